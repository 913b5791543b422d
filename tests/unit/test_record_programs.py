"""The four programs from published results and records to tables and figures, run as a person runs them."""

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from example_study import COLLECTION, LAPTOP, MODELS, ROOT, SERVERS, laptop_rows

SYSTEMS = {"r7525-a30": "R7525_A30x3_TRT", "r7525-a100": "R7525_A100-PCIE-40GBx3_TRT"}
PUBLISHED_PLAN = {
    "study": "r7525-a100-a30",
    "inference": {
        "benchmarks": {name: {"names": names, "scenarios": ["Offline"]} for name, (_, names) in MODELS.items()},
        "protocol": "v1.1",
        "systems": {
            name: {"name": published, "collection": COLLECTION.stem, "accelerators": 3}
            for name, published in SYSTEMS.items()
        },
    },
}
LAPTOP_PLAN = {
    "study": "laptop",
    "training": {
        "workloads": ["ncf-tiny", "resnet50-tiny"],
        "layouts": {"laptop": ["1x1", "1x2"]},
        "seeds": [1, 2, 3],
        "questions": {"ncf-tiny": {}, "resnet50-tiny": {}},
    },
}


def run(monkeypatch: pytest.MonkeyPatch, name: str, **options: Any) -> None:
    arguments: list[str] = []
    for option, value in options.items():
        values = value if isinstance(value, list) else [value]
        arguments += [f"--{option}", *(one if isinstance(one, str) else str(one) for one in values)]
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(ROOT / "scripts" / f"{name}.py"), run_name="__main__")


def test_from_published_results_to_a_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    run(monkeypatch, "read_published", input=COLLECTION, output=f"published/{COLLECTION.stem}.parquet")
    run(
        monkeypatch,
        "collect_records",
        plan=json.dumps(PUBLISHED_PLAN),
        published=f"published/{COLLECTION.stem}.parquet",
        systems=[],
        parquet="r.parquet",
        csv="r.csv",
    )
    assert pq.read_table("r.parquet")["outcome"].to_pylist() == ["ok"] * 18
    Path("presentation.json").write_text(json.dumps(SERVERS))
    run(
        monkeypatch,
        "plot_figure",
        figure="performance_per_dollar",
        records="r.parquet",
        presentation="presentation.json",
        output=["f.svg", "f.png", "f.pdf"],
    )
    assert Path("f.svg").read_text().startswith("<?xml")
    assert Path("f.png").read_bytes()[:4] == b"\x89PNG"
    assert Path("f.pdf").read_bytes()[:4] == b"%PDF"


def test_from_records_to_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    laptop_rows(Path("results"))
    run(
        monkeypatch,
        "collect_records",
        plan=json.dumps(LAPTOP_PLAN),
        published=[],
        systems=[],
        parquet="r.parquet",
        csv="r.csv",
    )
    outcomes = pq.read_table("r.parquet")["outcome"].to_pylist()
    assert (len(outcomes), outcomes.count("ok"), outcomes.count("failed")) == (12, 10, 1)
    run(
        monkeypatch,
        "tabulate_records",
        table="bad_cells",
        records="r.parquet",
        presentation=json.dumps(LAPTOP),
        csv="t.csv",
        md="t.md",
    )
    assert "out of memory: 2.1 GiB asked for" in Path("t.md").read_text()
    assert len(Path("t.csv").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("program", "options", "message"),
    [
        (
            "plot_figure",
            {"figure": "pie"},
            "expected a module of faceoff.figures with draw(), found faceoff.figures.pie",
        ),
        ("plot_figure", {"figure": "style"}, "expected a module of faceoff.figures with draw()"),
        ("plot_figure", {"figure": "scaling", "presentation": "{"}, "expected JSON or the path of a JSON file"),
        ("plot_figure", {"figure": "scaling"}, "none.parquet: no readable table of records"),
        ("tabulate_records", {"table": "text"}, "expected a module of faceoff.tables with tabulate()"),
    ],
)
def test_a_mistake_ends_with_one_line(
    program: str, options: dict[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    outputs = {"output": "f.svg"} if program == "plot_figure" else {"csv": "t.csv", "md": "t.md"}
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, program, **{"records": "none.parquet", "presentation": "{}", **outputs, **options})
    assert str(caught.value).startswith(f"{program}.py: ")
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_collection_ends_with_file_line_and_column_and_status_1(tmp_path: Path):
    wrong = tmp_path / "wrong.csv"
    wrong.write_text(COLLECTION.read_text().replace(",99815.7,", ",99815;7,"))
    program = [sys.executable, str(ROOT / "scripts/read_published.py"), "--input", str(wrong)]
    ended = subprocess.run(
        [*program, "--output", str(tmp_path / "p.parquet")], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr == (
        f"read_published.py: {wrong}: line 2: column 'value': expected a number above 0, found '99815;7'\n"
    )
    assert not (tmp_path / "p.parquet").exists()
