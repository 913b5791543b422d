"""The supervisor: whatever happens to the measured process, a finished record with the reason is left."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from checkouts import ROOT
from hypothesis import given
from hypothesis import strategies as st

from faceoff.measurement import supervisor
from faceoff.measurement.attempts import (
    Marker,
    append_failure,
    attempts_param,
    count_failures,
    drift_token,
    read_marker,
)
from faceoff.measurement.supervisor import Measurement, measure
from faceoff.records.record import read_record, write_record

# A rank that does what its first argument says.
RANK = """
    import json, os, signal, sys, time
    from pathlib import Path
    what, segment = sys.argv[1], Path(sys.argv[-1])
    from faceoff.measurement.launcher import enter_rank
    enter_rank()
    (segment / f"started-{os.environ['RANK']}").write_text(str(os.getpid()))
    if what == "well" or (what == "resume" and (segment / "checkpoint").exists()):
        result = {"outcome": "ok", "reason": "", "resumed": what == "resume", "segments": [],
                  "window": {"start": time.time() - 1, "end": time.time()}, "curve": [], "devices": ["a core"],
                  "versions": {}, "measured": {"epochs": {"value": 3, "unit": "epoch"}}}
        (segment / "mllog.txt").write_text(":::MLLOG\\n")
        (segment / "model.safetensors").write_bytes(b"weights")
        (segment / "result.json").write_text(json.dumps(result))
    elif what == "error":
        error = {"reason": "out of memory: 64 GiB", "type": "MemoryError", "traceback": "", "time": time.time()}
        (segment / f"error-{os.environ['RANK']}.json").write_text(json.dumps(error))
        sys.exit(1)
    elif what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "quiet":
        pass
    else:
        (segment / "checkpoint").touch()
        time.sleep(60)
"""


@pytest.fixture
def cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory to measure in, with the program of a rank, and a lock of its own."""
    (tmp_path / "rank.py").write_text(textwrap.dedent(RANK))
    (tmp_path / "manifest.json").write_text("{}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "scripts"))
    monkeypatch.setattr(supervisor, "MACHINE_LOCK", tmp_path / "machine.lock")
    return tmp_path


def job(cell: Path, what: str, attempt: int = 1, accelerators: int = 1, **spec) -> Measurement:
    layout = {"nodes": 1, "accelerators": accelerators}
    return Measurement(
        kind="training",
        cell={"workload": "ncf-tiny", "system": "here", "layout": f"1x{accelerators}", "seed": 1},
        spec={"accelerator": "cpu", "layout": layout, "budget": {"epochs": 1, "seconds": 60}, **spec},
        fingerprint="f",
        command=(sys.executable, str(cell / "rank.py"), what),
        record=cell / "cell" / "record.json",
        companions={name: cell / "cell" / name for name in ("mllog.txt", "model.safetensors")},
        telemetry=cell / "cell" / "telemetry.parquet",
        inputs={"manifest.json": cell / "manifest.json"},
        log="cell.log",
        rerun="snakemake ...",
        check=lambda: None,
        attempt=attempt,
    )


def failures(cell: Path) -> list[str]:
    path = cell / "cell" / "failures.log"
    return path.read_text().splitlines() if path.exists() else []


def test_a_good_run_leaves_everything_and_nothing_more(cell: Path):
    assert measure(job(cell, "well", accelerators=2)) == "ok"
    record = read_record(cell / "cell" / "record.json")
    assert record["outcome"] == "ok"
    assert record["measured"]["epochs"] == {"value": 3, "unit": "epoch"}
    assert record["provenance"]["identity"]
    assert record["provenance"]["rerun"] == "snakemake ..."
    assert (cell / "cell" / "model.safetensors").read_bytes() == b"weights"
    assert failures(cell) == []
    assert read_marker(cell / "cell") is None
    assert not list((cell / "cell" / ".segments").iterdir())
    assert [read_record(path)["sha256"] for path in (cell / "cell" / ".history").iterdir()] == [record["sha256"]]


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("error", "out of memory: 64 GiB"),
        ("kill", "rank 0 was killed by SIGKILL"),
        ("quiet", "rank 0 ended without a result"),
    ],
)
def test_a_failed_run_is_recorded_with_its_reason(cell: Path, what: str, reason: str):
    assert measure(job(cell, what)) == "failed"
    record = read_record(cell / "cell" / "record.json")
    assert (record["outcome"], record["reason"], record["measured"]) == ("failed", reason, {})
    assert [line.split("\t")[2] for line in failures(cell)] == [reason]
    for companion in ("mllog.txt", "model.safetensors"):
        assert (cell / "cell" / companion).read_bytes() == b""
    assert (cell / "cell" / "telemetry.parquet").stat().st_size > 0


def test_a_hang_is_ended_by_the_watchdog(cell: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(supervisor, "SHORTEST_WATCHDOG_S", 0.5)
    assert measure(job(cell, "sleep", budget={"epochs": 1, "seconds": 0.1})) == "failed"
    assert read_record(cell / "cell" / "record.json")["reason"].startswith("hang: no progress for")


def test_more_accelerators_than_there_are(cell: Path):
    assert measure(job(cell, "well", accelerators=4096)) == "failed"
    assert "layout 1x4096 asks for 4096 accelerators" in read_record(cell / "cell" / "record.json")["reason"]


def test_a_device_that_is_not_the_configured_one_is_refused(cell: Path):
    assert measure(job(cell, "well", accelerator="t4", expected_devices=["Tesla T4"])) == "failed"
    assert "of the kind t4 (Tesla T4)" in read_record(cell / "cell" / "record.json")["reason"]


def test_the_second_attempt_measures_nothing(cell: Path):
    asked = job(cell, "well").asked
    (cell / "cell").mkdir()
    Marker.of_this_process(asked).write(cell / "cell")
    assert measure(job(cell, "well", attempt=2)) == "failed"
    record = read_record(cell / "cell" / "record.json")
    assert record["reason"].startswith("killed (SIGKILL) on ")
    assert record["measured"] == {}
    assert not list((cell / "cell").glob(".segments/*/started-0"))
    assert len(failures(cell)) == 1


def test_a_cell_that_was_finished_meanwhile_is_taken(cell: Path):
    assert measure(job(cell, "well")) == "ok"
    before = (cell / "cell" / "record.json").read_bytes()
    assert measure(job(cell, "well")) == "ok"
    assert (cell / "cell" / "record.json").read_bytes() == before
    (cell / "cell" / "model.safetensors").write_bytes(b"other")
    assert measure(job(cell, "well")) == "ok"
    assert (cell / "cell" / "model.safetensors").read_bytes() == b"weights"


def supervise_elsewhere(cell: Path, what: str) -> subprocess.Popen:
    code = (
        "import sys; sys.path.insert(0, sys.argv[3]); from test_supervisor import *;"
        "supervisor.MACHINE_LOCK = Path(sys.argv[1]) / 'machine.lock'; measure(job(Path(sys.argv[1]), sys.argv[2]))"
    )
    here = Path(__file__).parent
    path = os.pathsep.join([str(ROOT / "scripts"), str(here), str(here.parent)])
    return subprocess.Popen(
        [sys.executable, "-c", code, str(cell), what, str(here)], env={**os.environ, "PYTHONPATH": path}
    )


def wait_for(condition, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "gave up waiting"
        time.sleep(0.02)


def test_a_stopped_supervisor_leaves_no_record_and_a_rerun_goes_on(cell: Path):
    process = supervise_elsewhere(cell, "resume")
    wait_for(lambda: list(cell.glob("cell/.segments/*/checkpoint")))
    process.terminate()
    assert process.wait(120) != 0
    assert not (cell / "cell" / "record.json").exists()
    assert read_marker(cell / "cell").signal == "SIGTERM"
    assert failures(cell) == []
    assert measure(job(cell, "resume")) == "ok"
    assert read_record(cell / "cell" / "record.json")["resumed"]


def test_ranks_die_with_a_killed_supervisor(cell: Path):
    process = supervise_elsewhere(cell, "resume")
    wait_for(lambda: list(cell.glob("cell/.segments/*/checkpoint")))
    rank = int(next(cell.glob("cell/.segments/*/started-0")).read_text())
    process.send_signal(signal.SIGKILL)
    process.wait(120)
    wait_for(lambda: not Path(f"/proc/{rank}").exists() or "Z" in Path(f"/proc/{rank}/stat").read_text().split()[2])


@given(st.integers(1, 6), st.integers(0, 8))
def test_a_failing_cell_is_stale_until_it_was_tried_often_enough(tmp_path_factory, maximum: int, rounds: int):
    directory = tmp_path_factory.mktemp("cell")
    runs, recorded = 0, None
    for _ in range(rounds):
        number = attempts_param(directory, "asked", maximum)
        if number != recorded:  # Snakemake runs the cell, which fails
            runs, recorded = runs + 1, number
            append_failure(directory, "asked", "a reason\twith a tab\nand a line")
            write_record(directory / "record.json", {"outcome": "failed"})
    assert runs == min(rounds, maximum)
    assert count_failures(directory, "another question") == 0


def test_a_success_after_failures_stays_fresh_whatever_the_limit(tmp_path: Path):
    for _ in range(2):
        append_failure(tmp_path, "asked", "reason")
    recorded = attempts_param(tmp_path, "asked", 3)
    write_record(tmp_path / "record.json", {"outcome": "ok", "provenance": {"failures_before": recorded}})
    assert {attempts_param(tmp_path, "asked", limit) for limit in (1, 2, 3, 9)} == {recorded}


def test_drift_makes_a_cell_stale_once(tmp_path: Path):
    assert drift_token(tmp_path, "new") == ""
    write_record(tmp_path / "record.json", {"outcome": "ok", "provenance": {"identity_sha256": "old"}})
    assert drift_token(tmp_path, None) == ""
    assert drift_token(tmp_path, "old") == ""
    token = drift_token(tmp_path, "new")
    assert token == "new"
    (tmp_path / ".remeasured").write_text(token + "\n")
    write_record(tmp_path / "record.json", {"outcome": "ok", "provenance": {"identity_sha256": "new"}})
    assert drift_token(tmp_path, "new") == token
    assert drift_token(tmp_path, None) == token


def test_an_edited_record_is_noticed(tmp_path: Path):
    write_record(tmp_path / "record.json", {"outcome": "ok", "measured": {"epochs": 3}})
    record = json.loads((tmp_path / "record.json").read_text())
    record["measured"]["epochs"] = 2
    (tmp_path / "record.json").write_text(json.dumps(record))
    with pytest.raises(Exception, match="was edited after it was written"):
        read_record(tmp_path / "record.json")


def test_a_repaired_cell_stays_fresh_after_its_attempts_were_used_up(tmp_path: Path):
    for _ in range(3):
        append_failure(tmp_path, "asked", "reason")
    write_record(tmp_path / "record.json", {"outcome": "failed"})
    started_with = attempts_param(tmp_path, "asked", 3)
    write_record(tmp_path / "record.json", {"outcome": "ok", "provenance": {"failures_before": started_with}})
    assert attempts_param(tmp_path, "asked", 3) == started_with


def test_a_record_that_cannot_be_written_says_so_in_the_retry(cell: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(supervisor, "to_parquet", full)
        with pytest.raises(SystemExit, match="No space left on device"):
            measure(job(cell, "well"))
    assert measure(job(cell, "well", attempt=2)) == "failed"
    assert "No space left on device" in read_record(cell / "cell" / "record.json")["reason"]


def test_the_lock_of_the_machine_does_not_move_with_tmpdir():
    code = "from faceoff.measurement.lock import MACHINE_LOCK; print(MACHINE_LOCK)"
    places = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(ROOT / "scripts"), "TMPDIR": place},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for place in ("/tmp", "/var/tmp")
    }
    assert len(places) == 1
