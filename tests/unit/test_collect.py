"""Every expected cell becomes one row, whatever became of its record."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from example_study import (
    COLLECTION,
    laptop_rows,
    published_cells,
    published_rows,
    training_cell,
    training_record,
)

from faceoff.errors import RecordError
from faceoff.records.collect import collect, read_collections, read_identities, write_records
from faceoff.records.published import read_collection
from faceoff.records.question import question_hash, question_of
from faceoff.records.record import write_record
from faceoff.records.rows import SCORES, table_of, without_scores
from faceoff.records.statistics import refusal
from faceoff.study.selection import layout_of


def collected(cells: list[dict[str, Any]], identities: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    return collect("laptop", cells, {}, identities or {}).to_pylist()


@pytest.fixture
def cell(tmp_path: Path) -> dict[str, Any]:
    return training_cell(tmp_path, "ncf-tiny", "1x2", 1)


def test_a_record_becomes_a_row(cell: dict[str, Any]):
    record = training_record(cell, epochs=5.0)
    write_record(Path(cell["record"]), record)
    (row,) = collected([cell])
    assert {key: row[key] for key in ("study", "workload", "system", "layout", "seed", "outcome")} == {
        "study": "laptop",
        "workload": "ncf-tiny",
        "system": "laptop",
        "layout": "1x2",
        "seed": 1,
        "outcome": "ok",
    }
    assert (row["nodes"], row["accelerators"], row["device_count"]) == (1, 2, 2)
    measured = record["measured"]
    assert row["time_to_target_s"] == measured["time_to_target"]["value"]
    assert (row["throughput"], row["throughput_unit"]) == (measured["throughput"]["value"], "samples/s")
    assert (row["epochs"], row["global_batch"], row["quality_metric"]) == (5.0, 2048, "HR@10")
    assert row["cpu"] == "1x AMD EPYC 7763"
    assert json.loads(row["versions"])["torch"] == "2.14.1"
    assert [point["epoch"] for point in row["curve"]] == [1, 2, 3, 4, 5]
    assert not row["drift"]


def test_a_missing_record_is_not_run(cell: dict[str, Any]):
    (row,) = collected([cell])
    assert (row["outcome"], row["reason"], row["rerun"]) == ("not run", "", cell["rerun"])
    assert all(row[name] is None for name in SCORES)


def test_an_edited_record_is_invalid_and_has_no_numbers(cell: dict[str, Any]):
    path = Path(cell["record"])
    write_record(path, training_record(cell))
    path.write_text(path.read_text().replace('"value": 5.0', '"value": 4.0'))
    (row,) = collected([cell])
    assert row["outcome"] == "invalid"
    assert "the record was edited after it was written" in row["reason"]
    assert all(row[name] is None for name in SCORES)


def test_a_cut_record_is_invalid(cell: dict[str, Any]):
    path = Path(cell["record"])
    write_record(path, training_record(cell))
    path.write_text(path.read_text()[:100])
    (row,) = collected([cell])
    assert row["outcome"] == "invalid"
    assert "no readable record" in row["reason"]


def test_a_record_of_another_cell_is_invalid(tmp_path: Path, cell: dict[str, Any]):
    other = training_cell(tmp_path, "ncf-tiny", "1x2", 2)
    write_record(Path(cell["record"]), training_record(other))
    (row,) = collected([cell])
    assert row["outcome"] == "invalid"
    assert "the record is of another cell: seed: expected 1, found 2" in row["reason"]


def test_a_record_that_lacks_a_part_is_invalid(cell: dict[str, Any]):
    record = training_record(cell)
    del record["spec"]["round"]
    write_record(Path(cell["record"]), record)
    (row,) = collected([cell])
    assert row["outcome"] == "invalid"
    assert "the record lacks 'round'" in row["reason"]


def test_one_bad_cell_hides_no_other(tmp_path: Path):
    rows = laptop_rows(tmp_path)
    assert rows["outcome"].value_counts().to_dict() == {"ok": 10, "dnf": 1, "failed": 1}
    failed = rows[rows["outcome"] == "failed"].iloc[0]
    assert failed["reason"] == "out of memory: 2.1 GiB asked for, 1.7 GiB free"
    assert failed["log"].endswith("resnet50-tiny/laptop/1x2/seed3.log")


def test_a_missed_target_leaves_no_time_but_keeps_what_was_measured(cell: dict[str, Any]):
    record = training_record(cell, 12.0, "dnf")
    record["measured"]["time_to_target"] = {"value": 3.0, "unit": "s"}  # against the contract
    write_record(Path(cell["record"]), record)
    (row,) = collected([cell])
    assert row["time_to_target_s"] is None
    assert (row["epochs"], row["outcome"]) == (12.0, "dnf")
    assert row["elapsed_s"] > 0


@pytest.mark.parametrize("outcome", ["invalid", "failed", "not run"])
def test_only_ok_and_dnf_have_scores(outcome: str):
    row = without_scores({"outcome": outcome, "time_to_target_s": 1.0, "result": 2.0, "init_s": 0.1})
    assert row == {"outcome": outcome, "time_to_target_s": None, "result": None, "init_s": 0.1}


def test_another_identity_is_drift_in_words(tmp_path: Path):
    cells = [training_cell(tmp_path, "ncf-tiny", "1x1", seed) for seed in (1, 2, 3)]
    for cell in cells:
        record = training_record(cell)
        if cell["seed"] == 2:
            record["provenance"]["identity"] = {"cpu": {"model": "AMD EPYC 7543", "sockets": 1}}
        write_record(Path(cell["record"]), record)
    assert [row["drift"] for row in collected(cells)] == [False, True, False]
    assert collected(cells)[1]["drift_reason"] == "cpu: AMD EPYC 7763 -> AMD EPYC 7543"
    described = {"laptop": {"cpu": {"model": "AMD EPYC 7543", "sockets": 1}}}
    assert [row["drift"] for row in collected(cells, described)] == [True, False, True]


def test_published_results_become_rows():
    rows = published_rows()
    assert len(rows) == 32
    row = rows[(rows["workload"] == "bert-reference") & (rows["accuracy"] == "99.9")].iloc[0]
    assert (row["system"], row["scenario"], row["result"], row["result_unit"]) == (
        "r7525-a30",
        "Offline",
        2453.29,
        "samples/s",
    )
    assert row["devices"] == ["NVIDIA A30"] * 3
    assert (row["driver"], row["cpu"]) == ("470.42.01", "2x AMD EPYC 7763")
    assert row["host"] == "2x AMD EPYC 7763, 1 TB, CentOS 8.4.2105"
    assert row["source_path"].startswith("closed/Dell/results/R7525_A30x3_TRT/bert-99.9/Offline/")
    assert set(rows[rows["workload"] == "dlrm-reference"]["notes"]) == {"same run as dlrm-99", "same run as dlrm-99.9"}


def test_a_published_result_that_is_missing_or_invalid_has_no_number():
    entries = [dict(entry) for entry in read_collection(COLLECTION)]
    entries[0]["validity"] = "INVALID"
    cells = [dict(cell) for cell in published_cells()[:2]]
    cells[0]["published_system"] = "R7525_T4x3_TRT"
    missing, invalid = collect("study", cells, {COLLECTION.stem: entries}, {}).to_pylist()
    assert (missing["outcome"], missing["result"]) == ("not run", None)
    assert missing["reason"] == "no result of R7525_T4x3_TRT resnet50 Offline v1.1 in mlperf-inference-v1.1"
    assert (invalid["outcome"], invalid["reason"], invalid["result"]) == ("invalid", "published as INVALID", None)


def test_a_collection_that_was_not_given_is_told():
    with pytest.raises(RecordError, match=r"expected the published collection mlperf-inference-v1\.1, given: none"):
        collect("study", published_cells(), {}, {})


def test_csv_holds_every_row_without_the_curves(tmp_path: Path):
    laptop_rows(tmp_path)
    cells = [training_cell(tmp_path, "ncf-tiny", layout, seed) for layout in ("1x1", "1x2") for seed in (1, 2, 3)]
    write_records(collect("laptop", cells, {}, {}), tmp_path / "a.parquet", tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert [line["seed"] for line in lines] == ["1", "2", "3"] * 2
    assert "curve" not in lines[0]
    assert lines[5]["time_to_target_s"] == ""
    assert lines[4]["devices"] == "AMD EPYC 7763 core 0; AMD EPYC 7763 core 1"


def test_unreadable_files_are_told(tmp_path: Path):
    broken = tmp_path / "broken.parquet"
    broken.write_text("no parquet")
    with pytest.raises(RecordError, match="no readable published collection"):
        read_collections([broken])
    (tmp_path / "laptop.json").write_text("{}")
    with pytest.raises(RecordError, match=r"laptop\.json: no readable description of a system"):
        read_identities([tmp_path / "laptop.json"])


def test_layouts_are_read_or_refused():
    assert layout_of("2x8") == (2, 8)
    with pytest.raises(ValueError, match="expected NODESxACCELERATORS"):
        layout_of("8")


def test_a_table_of_no_rows_has_the_columns():
    assert table_of([]).num_rows == 0
    assert "time_to_target_s" in table_of([]).column_names


def test_a_record_of_another_question_says_how_it_differs(tmp_path: Path):
    cell = training_cell(tmp_path, "ncf-tiny", "1x2", 1)
    record = training_record(cell)
    write_record(Path(cell["record"]), record)
    asked = question_of(record["spec"])
    (same,) = collected([cell | {"question": asked}])
    (other,) = collected([cell | {"question": {**asked, "target": asked["target"] - 0.1}}])
    assert same["question_note"] is None
    assert other["question_note"] == f"target: recorded {asked['target']}, now {asked['target'] - 0.1}"
    assert same["question"] == other["question"] == question_hash(asked)
    assert refusal(same, other) == ""
    assert refusal(same, other | {"question": "another"}) == "records of different questions"
