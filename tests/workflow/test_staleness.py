"""The edit table: each edit, and exactly the jobs that it makes stale."""

from collections.abc import Callable
from pathlib import Path

import pytest
from checkouts import run
from quick_study import edit, stale_jobs

from faceoff.measurement.identity import identity_sha256
from faceoff.records.record import read_record, write_record

LAPTOP_TABLES = {
    f"tabulate_records laptop/{name}"
    for name in ("systems", "benchmarks", "versions", "results", "speedups", "bad_cells", "drift")
}
LAPTOP_FIGURES = {
    f"plot_figure laptop/{name}"
    for name in ("time_to_target", "epochs_to_target", "throughput", "scaling", "quality_curve")
}
LAPTOP_DRAWN = {"collect_records laptop"} | LAPTOP_TABLES | LAPTOP_FIGURES
NCF, RESNET = "train_model ncf-tiny/laptop/1x1/seed1", "train_model resnet50-tiny/laptop/1x1/seed1"
CARD, MODULE = "config/benchmarks/ncf.yaml", "scripts/faceoff/benchmarks/ncf.py"
LOOP = "scripts/faceoff/training/loop.py"


def change(file: str, old: str, new: str) -> Callable[[Path], None]:
    return lambda root: edit(root, file, old, new)


def touch(file: str) -> Callable[[Path], None]:
    return lambda root: (root / file).touch()


def delete(file: str) -> Callable[[Path], None]:
    return lambda root: (root / file).unlink()


def append(file: str, text: str) -> Callable[[Path], None]:
    return lambda root: (root / file).write_text((root / file).read_text() + text)


EDITS: dict[str, tuple[Callable[[Path], None], set[str]]] = {
    "nothing": (lambda root: None, set()),
    "a learning rate": (change(CARD, "learning_rate: 0.004", "learning_rate: 0.003"), {NCF} | LAPTOP_DRAWN),
    "a target": (change(CARD, "target: 0.4\n", "target: 0.41\n"), {NCF} | LAPTOP_DRAWN),
    "a seed added": (
        change("config/studies/laptop.yaml", "seeds: [1]", "seeds: [1, 2]"),
        {NCF.replace("seed1", "seed2"), RESNET.replace("seed1", "seed2")} | LAPTOP_DRAWN,
    ),
    "a comment in a card": (change(CARD, "title: NCF", "title: NCF  # neural collaborative filtering"), set()),
    "a comment in code": (append(MODULE, "\n# a comment\n"), set()),
    "a docstring": (change(MODULE, '"""', '"""Edited. '), set()),
    "a price": (
        change("config/systems.yaml", "ratio: 1.423", "ratio: 1.5"),
        {
            "plot_figure r7525-a100-a30/performance_per_dollar",
            "tabulate_records r7525-a100-a30/systems",
            "tabulate_records r7525-a100-a30/per_dollar",
        },
    ),
    "a function in one benchmark's module": (
        append(MODULE, "\n\ndef unused() -> None:\n    return None\n"),
        {NCF} | LAPTOP_DRAWN,
    ),
    "a change in the shared loop": (
        change(LOOP, "STEPS_PER_INTERVAL = 100", "STEPS_PER_INTERVAL = 99"),
        {NCF, RESNET} | LAPTOP_DRAWN,
    ),
    "a change in one figure": (
        append("scripts/faceoff/figures/scaling.py", "\n\nUNUSED = 1\n"),
        {"plot_figure laptop/scaling"},
    ),
    "a touched data file": (touch("results/data/movielens-100k/manifest.json"), set()),
    "touched code": (touch(MODULE), set()),
    "a deleted record": (delete("results/train/ncf-tiny/laptop/1x1/seed1/record.json"), {NCF} | LAPTOP_DRAWN),
    "a deleted figure": (delete("results/figures/laptop/scaling.png"), {"plot_figure laptop/scaling"}),
    "a title of the study": (
        change("config/studies/r7525-a100-a30.yaml", 'title: "', 'title: "Edited: '),
        {f"plot_figure r7525-a100-a30/{name}" for name in ("throughput_by_model", "performance_per_dollar")},
    ),
    "the number of attempts": (change("config/config.yaml", "max_attempts: 3", "max_attempts: 5"), set()),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_reruns_exactly_what_it_made_stale(name: str, study: Path):
    apply, expected = EDITS[name]
    apply(study)
    assert stale_jobs(study) == expected


def test_a_fresh_copy_with_results_reruns_nothing(study: Path):
    for path in [*study.glob("scripts/**/*.py"), *study.glob("config/**/*.yaml"), *study.glob("workflow/**/*")]:
        path.touch()
    assert stale_jobs(study) == set()


def test_only_narrows_a_run(study: Path):
    edit(study, CARD, "learning_rate: 0.004", "learning_rate: 0.003")
    edit(study, "config/benchmarks/resnet50.yaml", "target: 0.5\n", "target: 0.51\n")
    jobs = stale_jobs(study, "--config", "only=ncf")
    assert NCF in jobs
    assert RESNET not in jobs


@pytest.mark.parametrize(
    ("policy", "expected"), [("report", LAPTOP_DRAWN), ("remeasure", {NCF} | LAPTOP_DRAWN)], ids=["report", "remeasure"]
)
def test_drift_reruns_cells_only_where_it_is_asked_for(study: Path, policy: str, expected: set[str]):
    path = study / "results/train/ncf-tiny/laptop/1x1/seed1/record.json"
    record = read_record(path)
    record["provenance"]["identity"]["packages"]["torch"] = "1.0"
    record["provenance"]["identity_sha256"] = identity_sha256(record["provenance"]["identity"])
    write_record(path, record)
    edit(study, "config/config.yaml", "on_drift: report", f"on_drift: {policy}")
    assert stale_jobs(study) == expected
    run("snakemake", "--cores", "2", "results/figures", cwd=study)
    drift = (study / "results/tables/laptop/drift.md").read_text()
    assert ("torch: 1.0 -> 2.14.1" in drift) is (policy == "report")
    assert stale_jobs(study) == set()
    assert len(list(path.parent.glob(".history/*.json"))) == (2 if policy == "remeasure" else 1)
