"""A cell measured without Snakemake: by the command that describe_cell.py prints, and by torchrun."""

import json
import shlex
from pathlib import Path

from checkouts import copy_checkout, run
from quick_study import edit

from faceoff.records.record import read_record


def test_a_cell_by_hand_and_by_torchrun(tmp_path: Path):
    root = copy_checkout(tmp_path / "faceoff")
    edit(root, "config/benchmarks/ncf.yaml", "target: 0.63\n", "target: 0.4\n")
    run("snakemake", "--cores", "2", "results/data/movielens-100k/manifest.json", cwd=root)
    printed = run("python", "scripts/describe_cell.py", "ncf-tiny/laptop/1x1/seed7", cwd=root)
    run(*shlex.split(printed.stdout), cwd=root)
    assert read_record(root / "results/train/ncf-tiny/laptop/1x1/seed7/record.json")["outcome"] == "ok"

    printed = run("python", "scripts/describe_cell.py", "ncf-tiny/laptop/1x2/seed7", cwd=root)
    words = shlex.split(printed.stdout)[1:]
    run("torchrun", "--nproc-per-node", "2", *words, "--segment", "ranks", cwd=root, OMP_NUM_THREADS="1")
    result = json.loads((root / "ranks/result.json").read_text())
    assert (result["outcome"], len(result["devices"])) == ("ok", 2)
