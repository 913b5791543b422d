"""A study of the real rules, scripts and presets that takes seconds, and the jobs that an edit makes stale."""

import re
from pathlib import Path

from checkouts import copy_checkout, run

# The real rules, scripts and tiny presets, with one seed and one layout, and targets that the first epochs reach.
QUICK = {
    "config/studies/laptop.yaml": [("layouts: [1x1, 1x2]", "layouts: [1x1]"), ("seeds: [1, 2, 3]", "seeds: [1]")],
    "config/benchmarks/ncf.yaml": [("target: 0.63\n", "target: 0.4\n")],
    "config/benchmarks/resnet50.yaml": [("target: 0.97\n", "target: 0.5\n")],
}


def edit(root: Path, file: str, old: str, new: str) -> None:
    """Replace one text in a file, which must hold it."""
    path = root / file
    text = path.read_text()
    assert old in text, f"{old!r} is not in {file}"
    path.write_text(text.replace(old, new, 1))


def quick_checkout(target: Path) -> Path:
    """Return a copy of the checkout whose studies take seconds."""
    root = copy_checkout(target)
    for file, changes in QUICK.items():
        for old, new in changes:
            edit(root, file, old, new)
    return root


def stale_jobs(root: Path, *arguments: str) -> set[str]:
    """Return what a dry run would do: for each job its rule and the part of its first output that names it."""
    result = run("snakemake", "--dry-run", "--cores", "2", "results/figures", *arguments, cwd=root)
    jobs = set()
    for block in re.split(r"\n(?=(?:local)?rule )", result.stdout + result.stderr):
        head = re.match(r"(?:local)?rule ([^:\n]+):", block)
        output = re.search(r"^    output: ([^,\n]+)", block, re.MULTILINE)
        if head and output:
            name = re.sub(r"^results/[a-z]+/|/(record|manifest)\.json$|\.[a-z]+$", "", output[1])
            jobs.add(f"{head[1]} {re.sub(r'/record$|/manifest$', '', name)}")
    return jobs
