"""The published results of the two R7525, and what a wrong file of published results is told."""

import csv
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from example_study import COLLECTION, MODELS, ROOT

from faceoff.errors import ConfigError
from faceoff.records.published import COLUMNS, read_collection, write_collection

SHARED = ROOT.parent / "shared" / "published" / "inference"
A100, A30 = "R7525_A100-PCIE-40GBx3_TRT", "R7525_A30x3_TRT"
ACCURACY = {
    "resnet50": r"^accuracy=([\d.]+)%",
    "bert": r'"f1": ([\d.]+)',
    "ssd": r"^mAP=([\d.]+)%",
    "dlrm": r"^AUC=([\d.]+)%",
    "rnnt": r"accuracy=([\d.]+)%",
    "unet3d": r"Accuracy:\s*mean = ([\d.]+)",
}
LATENCIES = {"min": "Min", "mean": "Mean", "max": "Max"} | {
    f"p{name}": f"{float(name):.2f} percentile" for name in ("50", "90", "95", "97", "99", "99.9")
}


def raw_lines() -> list[dict[str, str]]:
    with COLLECTION.open(newline="") as stream:
        return list(csv.DictReader(stream))


def results() -> dict[tuple[str, str, str], dict[str, Any]]:
    return {(line["system"], line["mlperf_name"], line["scenario"]): line for line in read_collection(COLLECTION)}


@pytest.mark.parametrize(
    ("name", "scenario", "a100", "a30", "ratio"),
    [
        ("resnet50", "Offline", 99815.7, 53928.1, 1.8509),
        ("resnet50", "Server", 91264.18, 45006.13, 2.0278),
        ("bert-99", "Offline", 8465.57, 5020.19, 1.6863),
        ("bert-99", "Server", 7871.94, 3962.46, 1.9866),
        ("bert-99.9", "Offline", 4228.25, 2453.29, 1.7235),
        ("bert-99.9", "Server", 3814.94, 1949.88, 1.9565),
        ("ssd-resnet34", "Offline", 2450.72, 1409.05, 1.7393),
        ("ssd-resnet34", "Server", 2390.05, 1339.82, 1.7839),
        ("dlrm-99", "Offline", 768806, 399194, 1.9259),
        ("dlrm-99.9", "Offline", 768806, 399194, 1.9259),
        ("dlrm-99", "Server", 764569.05, 220963.44, 3.4602),
        ("dlrm-99.9", "Server", 764569.05, 220963.44, 3.4602),
        ("rnnt", "Offline", 35571.8, 19743.3, 1.8017),
        ("rnnt", "Server", 32577.05, 10891.59, 2.9910),
        ("3d-unet-99", "Offline", 155.628, 89.1338, 1.7460),
        ("3d-unet-99.9", "Offline", 155.628, 89.1338, 1.7460),
    ],
)
def test_published_values_and_ratios(name: str, scenario: str, a100: float, a30: float, ratio: float):
    found = results()
    values = [found[system, name, scenario]["value"] for system in (A100, A30)]
    assert values == [a100, a30]
    assert round(values[0] / values[1], 4) == ratio


def test_there_are_32_valid_results_of_26_runs():
    found = results()
    assert len(found) == 32
    assert {line["validity"] for line in found.values()} == {"VALID"}
    twice = [name for name, line in found.items() if line["same_run_as"]]
    assert {name[1] for name in twice} == {"dlrm-99", "dlrm-99.9", "3d-unet-99", "3d-unet-99.9"}
    assert len(found) - len(twice) // 2 == 26


def test_a_tail_of_minutes_behind_a_p99_within_its_bound_is_kept():
    line = results()[A30, "bert-99", "Server"]
    assert line["latency_p99_ns"] == 65008940
    assert line["latency_p99.9_ns"] > 523e9


CARDS = [path for path in sorted((ROOT / "config/benchmarks").glob("*.yaml")) if "\ninference:" in path.read_text()]


@pytest.mark.parametrize("path", CARDS, ids=[path.stem for path in CARDS])
def test_goals_of_the_cards_are_shares_of_the_reference_and_are_met(path: Path):
    rules = yaml.safe_load(path.read_text())["inference"]
    assert rules["mlperf_names"] == MODELS[path.stem][1]
    for level, goal in rules["goals"].items():
        assert goal == pytest.approx(rules["fp32_reference"] * float(level) / 100, abs=1e-9)
        lines = [line for line in results().values() if line["mlperf_name"] == rules["mlperf_names"][level]]
        assert {line["scenario"] for line in lines} == set(rules["scenarios"])
        assert all(line["quality"] >= goal for line in lines)
        server = [line for line in lines if line["scenario"] == "Server"]
        assert all(line["latency_p99_ns"] <= 1e6 * rules["server_latency_bound_ms"] for line in server)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the published result files")
def test_every_number_is_the_published_one():
    seen = set()
    for line in raw_lines():
        summary = SHARED / line["source_path"]
        text = summary.read_text()
        told = dict(re.findall(r"^([^:\n]+?) *: +(\S[^\n]*)$", text, re.MULTILINE))
        assert line["value"] == told[line["metric"]]
        assert (line["scenario"], line["validity"]) == (told["Scenario"], told["Result is"])
        for name, label in LATENCIES.items():
            assert line[f"latency_{name}_ns"] == told[f"{label} latency (ns)"]
        case = summary.parents[2]
        accuracy = re.search(ACCURACY[line["benchmark"]], (case / "accuracy/accuracy.txt").read_text(), re.MULTILINE)
        assert accuracy is not None
        assert line["quality"] == accuracy[1]
        if line["same_run_as"]:
            other = Path(str(summary).replace(line["mlperf_name"], line["same_run_as"]))
            assert other.read_bytes() == summary.read_bytes()
        system = yaml.safe_load((SHARED / "closed/Dell/systems" / f"{line['system']}.json").read_text())
        assert line["software"] == system["other_software_stack"]
        assert line["processor"] == system["host_processor_model_name"]
        assert line["memory"] == system["host_memory_capacity"]
        assert int(line["accelerators"]) == system["accelerators_per_node"]
        seen.add(summary)
    there = SHARED.glob("closed/Dell/results/R7525_A*x3_TRT/*/*/performance/run_1/mlperf_log_summary.txt")
    assert seen == set(there)
    assert len(seen) == 32


def write_lines(path: Path, lines: list[dict[str, str]], columns: list[str] | None = None) -> Path:
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, columns or list(COLUMNS), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(lines)
    return path


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("value", "fast", "expected a number above 0, found 'fast'"),
        ("value", "", "expected a number above 0, found ''"),
        ("value", "nan", "expected a number above 0, found 'nan'"),
        ("value", "-1", "expected a number above 0, found '-1'"),
        ("accelerators", "3.5", "expected a whole number above 0, found '3.5'"),
        ("latency_p99_ns", "1e9", "expected a whole number above 0, found '1e9'"),
        ("accuracy", "98", r"expected one of 99, 99.9, (empty), found '98'"),
        ("validity", "valid", "expected one of VALID, INVALID, found 'valid'"),
        ("published", "22.09.2021", "expected a date such as 2021-09-22, found '22.09.2021'"),
        ("source_path", " ", "expected a value, found ' '"),
        ("same_run_as", "bert", "expected a result of equal value, found 'bert': no such result"),
        ("same_run_as", "rnnt", "expected a result of equal value, found 'rnnt': 32577.05 there and 91264.18 here"),
    ],
)
def test_a_wrong_value_is_told_with_file_line_and_column(tmp_path: Path, column: str, value: str, message: str):
    lines = raw_lines()
    lines[1][column] = value
    path = write_lines(tmp_path / "wrong.csv", lines)
    with pytest.raises(ConfigError) as caught:
        read_collection(path)
    assert str(caught.value).startswith(f"{path}: line 3: column '{column}': ")
    assert message in str(caught.value)


def test_unknown_missing_and_doubled_columns_are_told(tmp_path: Path):
    lines, columns = raw_lines(), list(COLUMNS)
    with pytest.raises(ConfigError, match=r"line 1: column 'valeu': expected one of round, .*; found 'valeu'"):
        read_collection(write_lines(tmp_path / "a.csv", lines, [*columns, "valeu"]))
    with pytest.raises(ConfigError, match=r"line 1: column 'commit': expected, found no such column"):
        read_collection(write_lines(tmp_path / "b.csv", lines, [name for name in columns if name != "commit"]))
    with pytest.raises(ConfigError, match=r"line 1: column 'unit': expected once, found 2 times"):
        read_collection(write_lines(tmp_path / "c.csv", lines, [*columns, "unit"]))


def test_a_result_given_twice_a_short_line_and_an_empty_file_are_told(tmp_path: Path):
    lines = raw_lines()
    with pytest.raises(ConfigError, match=r"line 4: expected each result once, found R7525.* of line 2 again"):
        read_collection(write_lines(tmp_path / "twice.csv", [*lines[:2], lines[0]]))
    short = tmp_path / "short.csv"
    short.write_text(",".join(COLUMNS) + "\nv1.1,closed\n")
    with pytest.raises(ConfigError, match=rf"line 2: expected {len(COLUMNS)} values, found 2"):
        read_collection(short)
    with pytest.raises(ConfigError, match="expected at least one result, found none"):
        read_collection(write_lines(tmp_path / "none.csv", []))
    (tmp_path / "no.csv").write_bytes(b"")
    with pytest.raises(ConfigError, match="column 'round': expected, found no such column"):
        read_collection(tmp_path / "no.csv")


def test_parquet_holds_the_same_results(tmp_path: Path):
    entries = read_collection(COLLECTION)
    write_collection(entries, tmp_path / "published.parquet")
    assert pq.read_table(tmp_path / "published.parquet").to_pylist() == entries
