"""Faults in a real run: one bad cell is recorded with its reason, hides no other, and is tried again."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pandas as pd
import pytest
from checkouts import copy_checkout, environment_here, run
from quick_study import edit, stale_jobs

from faceoff.measurement.attempts import read_marker
from faceoff.records.record import read_record

CARD, STUDY = "config/benchmarks/ncf.yaml", "config/studies/laptop.yaml"
VARIANTS = """\
variants:
  huge: {hyperparameters: {factors: 1000000000}}
  diverging: {hyperparameters: {learning_rate: 1.0e+30}}
  hard: {target: 0.99, budget: {epochs: 1, seconds: 60}}
  long: {target: 0.99, budget: {epochs: 8, seconds: 600}}
"""
FEW = "figures: [time_to_target]\ntables: [results, bad_cells]"


def faulty_checkout(target: Path, workloads: str) -> Path:
    """Return a checkout with one study of NCF in the given variants, at one layout with one seed."""
    root = copy_checkout(target)
    edit(root, CARD, "variants: {}\n", VARIANTS)
    edit(root, CARD, "target: 0.63\n", "target: 0.4\n")
    edit(root, STUDY, "[ncf-tiny, resnet50-tiny]", workloads)
    edit(root, STUDY, "[1x1, 1x2]", "[1x1]")
    edit(root, STUDY, "[1, 2, 3]", "[1]")
    edit(root, STUDY, "figures: [time_to_target, epochs_to_target, throughput, scaling, quality_curve]", FEW)
    edit(root, "config/config.yaml", "[laptop, r7525-a100-a30]", "[laptop]")
    return root


def cell(root: Path, variant: str) -> Path:
    return root / f"results/train/ncf-tiny{variant}/laptop/1x1/seed1"


def record(root: Path, variant: str) -> dict:
    return read_record(cell(root, variant) / "record.json")


def test_failures_are_recorded_and_only_they_are_tried_again(tmp_path: Path):
    root = faulty_checkout(tmp_path / "faceoff", "[ncf-tiny, ncf-tiny+huge, ncf-tiny+diverging, ncf-tiny+hard]")
    first = run("snakemake", "--cores", "2", "results/figures", cwd=root)

    assert record(root, "")["outcome"] == "ok"
    assert (record(root, "+huge")["outcome"], record(root, "+huge")["measured"]) == ("failed", {})
    assert record(root, "+huge")["reason"].startswith("out of memory: ")
    assert record(root, "+diverging")["outcome"] == "failed"
    assert record(root, "+diverging")["reason"].startswith("loss is ")
    assert record(root, "+hard")["outcome"] == "dnf"
    assert "< 0.99 after 1 epochs (budget: 1 epochs)" in record(root, "+hard")["reason"]

    table = pd.read_csv(root / "results/records/laptop.csv")
    assert set(table["outcome"]) == {"ok", "failed", "dnf"}
    assert table.loc[table["outcome"] == "failed", ["time_to_target_s", "throughput"]].isna().all(axis=None)
    results = (root / "results/tables/laptop/results.md").read_text()
    assert "failed: out of memory" in results
    assert "| nan |" not in results.lower()
    bad = (root / "results/tables/laptop/bad_cells.md").read_text()
    printed = first.stdout + first.stderr
    for text in ("out of memory", "loss is", "logs/train_model/", "snakemake --cores all --forcerun"):
        assert text in bad
        assert text in printed
    assert (root / "results/figures/laptop/time_to_target.svg").stat().st_size > 0

    def tried_again() -> set[str]:
        return {job.split()[1] for job in stale_jobs(root) if job.startswith("train_model")}

    failing = {"ncf-tiny+huge/laptop/1x1/seed1", "ncf-tiny+diverging/laptop/1x1/seed1"}
    for _ in range(2):
        assert tried_again() == failing
        run("snakemake", "--cores", "2", "results/figures", cwd=root)
    assert stale_jobs(root) == set()
    assert len((cell(root, "+huge") / "failures.log").read_text().splitlines()) == 3

    edit(root, CARD, "factors: 1000000000", "factors: 8")
    assert tried_again() == {"ncf-tiny+huge/laptop/1x1/seed1"}
    run("snakemake", "--cores", "2", "results/figures", cwd=root)
    assert record(root, "+huge")["outcome"] == "ok"
    assert stale_jobs(root) == set()


def start_snakemake(root: Path) -> subprocess.Popen:
    return subprocess.Popen(
        ["snakemake", "--cores", "2", "results/figures"],
        cwd=root,
        env=environment_here(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def wait_for(condition, seconds: float = 300):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "gave up waiting"
        time.sleep(0.1)
    return value


def training(root: Path) -> int | None:
    """Return the supervisor's process once the long cell has written a checkpoint."""
    started = list(cell(root, "+long").glob(".segments/*/checkpoint.safetensors"))
    marker = read_marker(cell(root, "+long"))
    return marker.pid if started and marker else None


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def long_study(tmp_path: Path) -> Path:
    return faulty_checkout(tmp_path / "faceoff", "[ncf-tiny, ncf-tiny+long]")


def test_a_killed_rank_is_recorded_and_tried_again(long_study: Path):
    process = start_snakemake(long_study)
    supervisor = wait_for(lambda: training(long_study))
    os.kill(children(supervisor)[0], signal.SIGKILL)
    assert process.wait(300) == 0
    assert record(long_study, "+long")["reason"] == "rank 0 was killed by SIGKILL"
    assert record(long_study, "")["outcome"] == "ok"
    assert "train_model ncf-tiny+long/laptop/1x1/seed1" in stale_jobs(long_study)
    run("snakemake", "--cores", "2", "results/figures", cwd=long_study)
    assert record(long_study, "+long")["outcome"] == "dnf"
    assert stale_jobs(long_study) == set()


def test_a_killed_job_is_recorded_by_its_retry(long_study: Path):
    process = start_snakemake(long_study)
    supervisor = wait_for(lambda: training(long_study))
    ranks = children(supervisor)
    os.kill(supervisor, signal.SIGKILL)
    assert process.wait(300) == 0
    assert record(long_study, "+long")["reason"].startswith("killed (SIGKILL) on ")
    assert record(long_study, "+long")["provenance"]["attempt"] == 2
    assert record(long_study, "")["outcome"] == "ok"
    assert not [
        pid for pid in ranks if Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text()
    ]
    assert "train_model ncf-tiny+long/laptop/1x1/seed1" in stale_jobs(long_study)


def test_a_killed_workflow_goes_on_where_it_was(long_study: Path):
    process = start_snakemake(long_study)
    supervisor = wait_for(lambda: training(long_study))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(300)
    wait_for(lambda: not Path(f"/proc/{supervisor}").exists() or "Z" in Path(f"/proc/{supervisor}/stat").read_text())
    assert not (cell(long_study, "+long") / "record.json").exists()
    run("snakemake", "--unlock", cwd=long_study)
    run("snakemake", "--cores", "2", "results/figures", cwd=long_study)
    resumed = record(long_study, "+long")
    assert (resumed["outcome"], resumed["resumed"], len(resumed["segments"])) == ("dnf", True, 2)
    assert resumed["measured"]["epochs"]["value"] == 8
    assert [point["epoch"] for point in resumed["curve"]] == list(range(1, 9))
    assert not (cell(long_study, "+long") / "failures.log").exists()


def test_an_interrupted_workflow_records_nothing(long_study: Path):
    process = start_snakemake(long_study)
    wait_for(lambda: training(long_study))
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(300) == 1
    assert not (cell(long_study, "+long") / "record.json").exists()
    assert not (cell(long_study, "+long") / "failures.log").exists()
    assert "train_model ncf-tiny+long/laptop/1x1/seed1" in stale_jobs(long_study)
