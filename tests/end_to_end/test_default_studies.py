"""The default studies, run as a user runs them."""

from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml
from checkouts import copy_checkout, run
from mlperf_logging.compliance_checker import mlp_parser
from PIL import Image
from safetensors.numpy import load_file

from faceoff.records.record import read_record
from faceoff.study.loading import load_project

WORKLOADS, LAYOUTS, SEEDS = ("ncf-tiny", "resnet50-tiny"), ("1x1", "1x2"), (1, 2, 3)
CELLS = [f"{workload}/laptop/{layout}/seed{seed}" for workload in WORKLOADS for layout in LAYOUTS for seed in SEEDS]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkout in which the default studies have been run."""
    checkout = copy_checkout(tmp_path_factory.mktemp("default") / "faceoff")
    run("snakemake", "--cores", "all", "results/figures", cwd=checkout, timeout=1200)
    return checkout


def test_every_promised_file_is_there(root: Path):
    project = load_project(root, yaml.safe_load((root / "config/config.yaml").read_text()))
    missing = [path for path in project.targets() if not (root / path).is_file() or not (root / path).stat().st_size]
    assert missing == []


def test_the_second_run_does_nothing(root: Path):
    result = run("snakemake", "--cores", "all", "results/figures", cwd=root)
    assert "Nothing to be done" in result.stdout + result.stderr


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_reached_its_target_or_says_why_not(root: Path, name: str):
    record = read_record(root / "results/train" / name / "record.json")
    assert record["outcome"] in ("ok", "dnf"), record["reason"]
    measured, spec = record["measured"], record["spec"]
    assert (measured["quality"]["value"] >= spec["target"]) is (record["outcome"] == "ok")
    assert measured["epochs"]["value"] <= spec["budget"]["epochs"]
    assert measured["global_batch"]["value"] == spec["batch"]["size"]
    assert len(record["provenance"]["devices"]) == spec["layout"]["accelerators"]
    assert [point["quality"] >= spec["target"] for point in record["curve"][:-1]] == [False] * (
        len(record["curve"]) - 1
    )
    seconds = {part: measured[part]["value"] for part in ("imports", "prepare", "init", "train", "eval", "wait")}
    assert all(value >= 0 for value in seconds.values())
    assert seconds["train"] + seconds["eval"] <= measured["elapsed"]["value"] * 1.001
    assert measured["throughput"]["unit"] == "samples/s"
    samples = measured["steps"]["value"] * measured["global_batch"]["value"]
    assert measured["throughput"]["value"] == pytest.approx(samples / seconds["train"])
    assert all("value" in number and "unit" in number for number in measured.values())


def test_most_seeds_reach_their_target(root: Path):
    outcomes = [read_record(root / "results/train" / name / "record.json")["outcome"] for name in CELLS]
    assert outcomes.count("ok") >= 10


@pytest.mark.parametrize("name", CELLS)
def test_companions_of_a_cell(root: Path, name: str):
    directory = root / "results/train" / name
    assert load_file(directory / "model.safetensors")
    lines, errors = mlp_parser.parse_file(str(directory / "mllog.txt"), ruleset="0.7.0")
    assert not errors
    keys = [line.key for line in lines]
    for key in ("run_start", "run_stop", "eval_accuracy", "seed", "global_batch_size", "submission_benchmark"):
        assert key in keys
    assert str(root) not in (directory / "mllog.txt").read_text()
    telemetry = pq.read_table(directory / "telemetry.parquet")
    assert {"time_s", "cpu_percent"} <= set(telemetry.column_names)


def test_the_published_study_has_the_published_ratios(root: Path):
    table = pd.read_parquet(root / "results/records/r7525-a100-a30.parquet")
    assert len(table) == 32
    values = table.set_index(["benchmark", "accuracy", "scenario", "system"])["result"]
    ratio = values.xs("r7525-a100", level="system") / values.xs("r7525-a30", level="system")
    assert ratio[("bert", "99", "Server")] == pytest.approx(1.9866, abs=5e-5)
    assert ratio[("rnnt", "99", "Server")] == pytest.approx(2.9910, abs=5e-5)
    assert ratio[("dlrm", "99.9", "Server")] == pytest.approx(3.4602, abs=5e-5)


def test_figures_are_pictures(root: Path):
    figures = sorted(root.glob("results/figures/*/*.png"))
    assert len(figures) == 7
    for path in figures:
        with Image.open(path) as picture:
            assert min(picture.size) > 600
        assert path.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
        text = path.with_suffix(".svg").read_text()
        assert "<svg" in text
        if path.parent.name == "laptop":
            assert "tiny" in text, "the honest label is missing"
