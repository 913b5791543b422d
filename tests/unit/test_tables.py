"""Tables of finished, failed and missing cells."""

import csv
from pathlib import Path
from typing import Any

import pytest
from example_study import (
    LAPTOP,
    SERVERS,
    WORKLOADS,
    asked_otherwise,
    laptop_rows,
    published_rows,
    three_systems,
    training_cell,
    training_record,
)
from pandas import DataFrame

from faceoff.errors import ConfigError
from faceoff.records.collect import collect
from faceoff.records.frame import frame_of
from faceoff.records.record import write_record
from faceoff.tables import bad_cells, benchmarks, drift, per_dollar, results, speedups, systems, versions
from faceoff.tables.text import Table, cell_text, significant, write_csv, write_markdown

MODULES = [systems, benchmarks, versions, results, bad_cells, drift, speedups, per_dollar]


def by(table: Table, **wanted: Any) -> dict[str, Any]:
    (row,) = [row for row in table.rows if all(row[key] == value for key, value in wanted.items())]
    return dict(row)


def seeds_of(root: Path, epochs: list[float], outcomes: list[str] | None = None, **kind: str) -> DataFrame:
    cells = [
        training_cell(root, kind.get("workload", "ncf-tiny"), kind.get("layout", "1x1"), seed + 1)
        for seed in range(len(epochs))
    ]
    for cell, count, outcome in zip(cells, epochs, outcomes or ["ok"] * len(epochs), strict=True):
        record = training_record(cell, count, outcome)
        record["spec"]["round"] = kind.get("round", "v0.7")
        write_record(Path(cell["record"]), record)
    return frame_of(collect("laptop", cells, {}, {}))


def test_results_of_a_laptop_say_what_is_missing(tmp_path: Path):
    table = results.tabulate(laptop_rows(tmp_path), LAPTOP)
    failed = by(table, workload="resnet50-tiny", layout="1x2")
    assert failed["reached"] == "2 of 3"
    assert failed["other cells"] == "seed 3 failed: out of memory: 2.1 GiB asked for, 1.7 GiB free"
    missed = by(table, workload="ncf-tiny", layout="1x2")
    assert (missed["reached"], missed["statistics"]) == ("2 of 3", "dots and range, n = 2")
    assert "time mean (s)" not in missed
    assert "1 resumed" in by(table, workload="ncf-tiny", layout="1x1")["notes"]
    assert "Tiny presets check the workflow and rank no hardware." in table.note


def test_time_a_success_counts_the_time_of_failures(tmp_path: Path):
    rows = seeds_of(tmp_path, [4.0, 5.0, 12.0], ["ok", "ok", "dnf"])
    row = by(results.tabulate(rows, LAPTOP), workload="ncf-tiny")
    assert row["time a success (s)"] == significant(rows["elapsed_s"].sum() / 2)


def test_more_missed_targets_than_the_rule_allows_leave_no_mean(tmp_path: Path):
    epochs, outcomes = [5.0, 5.0, 6.0, 6.0, 5.0, 12.0], ["ok"] * 5 + ["dnf"]
    allowed = by(results.tabulate(seeds_of(tmp_path / "a", epochs, outcomes), LAPTOP), workload="ncf-tiny")
    assert isinstance(allowed["time mean (s)"], float)
    assert allowed["statistics"] == "t interval on log, 95 %, n = 5"
    strict = results.tabulate(seeds_of(tmp_path / "b", epochs, outcomes, round="v0.5"), LAPTOP)
    assert by(strict, workload="ncf-tiny")["time mean (s)"] == "none: too many missed the target"


def test_throughput_is_a_geometric_mean_and_notes_explain_only_what_is_there(tmp_path: Path):
    rows = seeds_of(tmp_path, [5.0, 5.0])
    rows["throughput"] = [100.0, 400.0]
    table = results.tabulate(rows, LAPTOP)
    assert by(table, workload="ncf-tiny")["throughput"] == 200.0
    assert "Throughput: geometric mean" in table.note
    assert "Time mean" not in table.note
    five = results.tabulate(seeds_of(tmp_path / "five", [5.0] * 5), LAPTOP)
    assert "Time mean: geometric" in five.note


def test_records_of_different_questions_have_no_mean_and_no_ratio(tmp_path: Path):
    rows = asked_otherwise(laptop_rows(tmp_path))
    told = "Other question: 1 of 6 cells of ncf-tiny: target: recorded 0.61, now 0.63"
    table = results.tabulate(rows, LAPTOP)
    mixed = by(table, workload="ncf-tiny", layout="1x1")
    assert mixed["notes"].startswith("no mean: records of different questions")
    assert not {"throughput", "time min (s)", "epochs"} & set(mixed)
    assert by(table, workload="ncf-tiny", layout="1x2")["throughput"]
    assert told in table.note
    ratios = speedups.tabulate(rows, LAPTOP)
    assert by(ratios, workload="ncf-tiny")["notes"] == "no ratio: records of different questions"
    assert "throughput" not in by(ratios, workload="ncf-tiny")
    assert by(ratios, workload="resnet50-tiny")["throughput"]
    assert told in ratios.note


def test_rows_stand_in_the_order_of_the_presentation(tmp_path: Path):
    rows, presentation = three_systems()
    table = results.tabulate(rows.sample(frac=1, random_state=1), presentation)
    workloads = list(dict.fromkeys(row["workload"] for row in table.rows))
    assert workloads == list(presentation["workloads"])
    assert [row["system"] for row in table.rows] == ["3x T4", "3x A30", "3x A100"] * 16
    turned = {**LAPTOP, "workloads": dict(reversed(WORKLOADS.items()))}
    for module in (results, speedups):
        found = [row["workload"] for row in module.tabulate(laptop_rows(tmp_path), turned).rows]
        assert found == sorted(found, reverse=True)
    layouts = results.tabulate(laptop_rows(tmp_path).iloc[::-1], LAPTOP).rows
    assert [row["layout"] for row in layouts] == ["1x1", "1x2"] * 2


def test_per_dollar_is_the_ratio_over_the_price():
    rows, presentation = three_systems()
    table = per_dollar.tabulate(rows, presentation)
    assert len(table.rows) == 32
    t4 = by(table, workload="rnnt-reference", scenario="Server", system="3x T4")
    assert (t4["throughput per dollar"], t4["break-even price ratio"], t4["price ratio"]) == (1.25, 0.5, 0.4)
    dlrm = by(table, workload="dlrm-reference", accuracy="99", scenario="Server", system="3x A100")
    assert (dlrm["throughput per dollar"], dlrm["break-even price ratio"]) == (2.4316, 3.4602)
    assert dlrm["notes"] == "one run for both accuracies"
    assert "Price of 3x A100: 1.423 times the baseline's (Dell list prices of 2021-09-07)." in table.note
    assert "no MLPerf™ Inference metric, neither official nor verified" in table.note


def test_per_dollar_without_a_price_says_so_and_an_unlike_price_is_an_error():
    rows = published_rows()
    bare = {name: {"title": system["title"]} for name, system in SERVERS["systems"].items()}
    table = per_dollar.tabulate(rows, {**SERVERS, "systems": bare})
    assert (table.rows, table.note) == ([], "No price is configured: nothing per dollar.")
    bare["r7525-a100"]["price"] = {"amount": 10, "currency": "USD"}
    with pytest.raises(ConfigError, match=r"systems\.r7525-a100\.price"):
        per_dollar.tabulate(rows, {**SERVERS, "systems": bare})
    assert per_dollar.tabulate(rows.assign(preset="tiny"), SERVERS).rows == []


def test_olympic_mean_says_how_many_runs_the_rule_asks_for(tmp_path: Path):
    rows = seeds_of(tmp_path, [4.0, 5.0, 6.0, 5.0, 5.0])
    asked = {**LAPTOP, "workloads": {"ncf-tiny": {**WORKLOADS["ncf-tiny"], "mlperf_runs": 5}}}
    times = sorted(rows["time_to_target_s"])[1:-1]
    assert by(results.tabulate(rows, asked), workload="ncf-tiny")["olympic mean (s)"] == significant(sum(times) / 3)
    asked["workloads"]["ncf-tiny"]["mlperf_runs"] = 10
    row = by(results.tabulate(rows, asked), workload="ncf-tiny")
    assert row["olympic mean (s)"] == "none: 10 runs asked for, 5 there"
    asked["workloads"]["ncf-tiny"]["mlperf_runs"] = 5
    rows["resumed"] = [True, False, False, False, False]
    row = by(results.tabulate(rows, asked), workload="ncf-tiny")
    assert row["olympic mean (s)"] == "none: 5 runs asked for, 4 there"


def test_published_results_and_ratios():
    table = results.tabulate(published_rows(), SERVERS)
    row = by(table, workload="dlrm-reference", system="3x A100", accuracy="99.9", scenario="Server")
    assert (row["result"], row["ratio to baseline"], row["verdict"]) == (764569.05, 3.4602, "VALID")
    assert row["unit"] == "samples/s (scheduled samples per second)"
    assert row["notes"] == "same run as dlrm-99"
    assert row["p99 latency (ms)"] == 20.8  # beside DLRM's bound of 30 ms
    assert by(table, workload="rnnt-reference", system="3x A30", scenario="Server")["ratio to baseline"] is None
    assert "unequal hosts: 2x AMD EPYC 7502 and 2x AMD EPYC 7763" in table.note
    assert "MLPerf™ Inference v1.1 Closed" in table.note


def test_an_unlike_result_has_no_ratio_and_a_failed_one_no_number():
    rows = published_rows()
    a100 = rows[(rows["system"] == "r7525-a100") & (rows["workload"] == "rnnt-reference")]
    offline, server = (a100.index[a100["scenario"] == scenario][0] for scenario in ("Offline", "Server"))
    rows.loc[offline, "round"] = "v1.0"
    rows.loc[server, ["outcome", "reason", "result"]] = ["failed", "out of memory", None]
    table = results.tabulate(rows, SERVERS)
    unlike = by(table, workload="rnnt-reference", system="3x A100", scenario="Offline")
    assert unlike["ratio to baseline"] == "refused: round: v1.0 and v1.1"
    failed = by(table, workload="rnnt-reference", system="3x A100", scenario="Server")
    assert (failed["result"], failed["ratio to baseline"]) == ("failed: out of memory", None)


def test_bad_cells_come_worst_first_with_log_and_command(tmp_path: Path):
    rows = laptop_rows(tmp_path)
    cell = training_cell(tmp_path, "ncf-tiny", "1x4", 1)
    missing = frame_of(collect("laptop", [cell], {}, {}))
    table = bad_cells.tabulate(DataFrame(rows.to_dict("records") + missing.to_dict("records")), LAPTOP)
    assert [row["outcome"] for row in table.rows] == ["failed", "dnf", "not run"]
    failed = table.rows[0]
    assert failed["reason"].startswith("out of memory")
    assert failed["log"] == "logs/train/resnet50-tiny/laptop/1x2/seed3.log"
    assert failed["rerun"].startswith("snakemake ")
    assert table.rows[1]["reason"] == "HR@10 0.610 < 0.63 after 12 epochs"
    assert table.note == "3 of 13 cells."
    assert bad_cells.tabulate(published_rows(), SERVERS).note == "No bad cell: all 32 are ok."


def test_systems_stand_side_by_side():
    table = systems.tabulate(published_rows(), SERVERS)
    assert list(table.columns) == ["", "3x A30", "3x A100"]
    facts = {row[""]: (row["3x A30"], row["3x A100"]) for row in table.rows}
    assert facts["power limit (W)"] == (165, 250)
    assert facts["host processors"] == facts["found: processors"] == ("2x AMD EPYC 7763", "2x AMD EPYC 7502")
    assert facts["found: accelerators"] == ("3x NVIDIA A30", "3x NVIDIA A100-PCIE-40GB")
    assert facts["price ratio"] == (None, 1.423)
    assert facts["price relative to"] == (None, "3x A30")


def test_a_price_has_its_note_and_pinned_cores_their_processor(tmp_path: Path):
    facts = {row[""]: row for row in systems.tabulate(*three_systems()).rows}
    assert facts["price: note"]["3x T4"] == "A guess."
    (found,) = [row for row in systems.tabulate(laptop_rows(tmp_path), LAPTOP).rows if row[""] == "found: accelerators"]
    assert found["Laptop"] == "2 pinned cores of AMD EPYC 7763"


def test_benchmarks_of_training_and_inference(tmp_path: Path):
    training = by(benchmarks.tabulate(laptop_rows(tmp_path), LAPTOP), workload="ncf-tiny")
    assert (training["data set"], training["metric"], training["target"]) == ("MovieLens 100K", "HR@10", 0.63)
    inference = by(benchmarks.tabulate(published_rows(), SERVERS), workload="bert-reference")
    assert inference["target"] == "89.96526 (99 %); 90.783126 (99.9 %)"
    assert (inference["metric"], inference["FP32 reference"], inference["round"]) == ("F1 (%)", 90.874, "v1.1")


def test_versions_of_one_package_stand_side_by_side(tmp_path: Path):
    rows = laptop_rows(tmp_path)
    rows.loc[0, "versions"] = '{"torch": "2.13.0"}'
    assert by(versions.tabulate(rows, LAPTOP), package="torch")["Laptop"] == "2.13.0 / 2.14.1"
    assert by(versions.tabulate(published_rows(), SERVERS), package="TensorRT")["3x A100"] == "8.0.2"


def test_drift_says_what_changed_and_since_when(tmp_path: Path):
    rows = laptop_rows(tmp_path)
    assert drift.tabulate(rows, LAPTOP).note == "No drift."
    rows.loc[[3, 4], "drift"] = True
    rows.loc[[3, 4], "drift_reason"] = "driver: 470.57.02 -> 580.159.04"
    (row,) = drift.tabulate(rows, LAPTOP).rows
    assert (row["changed"], row["records"], row["of"]) == ("driver: 470.57.02 -> 580.159.04", 2, 12)
    assert row["first"] == rows.loc[3, "started"]


def test_speedup_of_two_accelerators_is_split(tmp_path: Path):
    table = speedups.tabulate(laptop_rows(tmp_path), LAPTOP)
    row = by(table, workload="resnet50-tiny")
    assert row["against"] == "Laptop 1x1"
    assert row["throughput"] * row["of epochs"] * row["of overhead"] == pytest.approx(row["time"], rel=2e-3)
    assert (row["headline"], row["verdict"]) == ("time", "")
    assert "throughput x of epochs x of overhead" in table.note
    assert "Tiny presets check the workflow and rank no hardware." in table.note
    missed = by(table, workload="ncf-tiny")
    assert "time" not in missed
    assert missed["notes"] == "2 of 3 against 3 of 3 reached the target"


def test_throughput_is_the_headline_where_the_seed_decides_the_epochs(tmp_path: Path):
    one = seeds_of(tmp_path / "1", [10.0, 14.0, 11.0, 12.0, 10.0])
    two = seeds_of(tmp_path / "2", [10.0, 14.0, 11.0, 12.0, 10.0], layout="1x2")
    rows = DataFrame(one.to_dict("records") + two.to_dict("records"))
    row = by(speedups.tabulate(rows, LAPTOP), workload="ncf-tiny")
    assert (row["headline"], row["verdict"]) == ("throughput", "higher")
    assert row["statistics"] == "Welch's t on log, 95 %, n = 5 and 5"
    assert row["throughput"] == pytest.approx(2 * 0.94)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_no_table_ever_says_nan_or_none(module: Any, tmp_path: Path):
    laptop = laptop_rows(tmp_path)
    nothing = frame_of(collect("laptop", [training_cell(tmp_path / "none", "ncf-tiny", "1x1", 1)], {}, {}))
    for rows, presentation in ((laptop, LAPTOP), (nothing, LAPTOP), (published_rows(), SERVERS)):
        table = module.tabulate(rows, presentation)
        write_csv(table, tmp_path / "table.csv")
        write_markdown(table, tmp_path / "table.md")
        with (tmp_path / "table.csv").open(newline="") as stream:
            cells = [cell for line in csv.reader(stream) for cell in line]
        assert not {"nan", "NaN", "None", "NaT", "<NA>"} & set(cells)
        assert "| nan |" not in (tmp_path / "table.md").read_text()


def test_markdown_and_csv_of_one_table(tmp_path: Path):
    table = Table("Title", ["a", "b", "empty"], [{"a": 1.5, "b": "x|y"}, {"a": float("nan"), "b": 3.0}], "A note.")
    write_markdown(table, tmp_path / "t.md")
    write_csv(table, tmp_path / "t.csv")
    assert (tmp_path / "t.md").read_text() == (
        "# Title\n\n| a | b |\n| --- | --- |\n| 1.5 | x\\|y |\n|  | 3 |\n\nA note.\n"
    )
    assert (tmp_path / "t.csv").read_text() == "a,b\n1.5,x|y\n,3\n"


@pytest.mark.parametrize(("value", "text"), [(768806.0, "768806"), (91264.18, "91264.18"), (None, ""), (True, "True")])
def test_a_cell_keeps_the_digits(value: Any, text: str):
    assert cell_text(value) == text
