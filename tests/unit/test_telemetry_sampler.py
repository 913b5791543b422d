import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from recorded_nvml import RecordedNvml

from faceoff.telemetry import sampler
from faceoff.telemetry.sampler import Sampler
from faceoff.telemetry.summary import read_telemetry

SCRIPTS = Path(sampler.__file__).parents[2]


def wait_for(condition, timeout_s: float = 20) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.02)


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def test_samples_at_entry_at_exit_and_between(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    before = time.time()
    with Sampler(path, 0.02, lambda: [os.getpid()], [0, 1], nvml=RecordedNvml({}, {"Name": "Tesla T4"})):
        wait_for(lambda: path.exists() and len(lines(path)) > 5)
    after = time.time()
    header, *rest = lines(path)
    assert header["header"]["interval_s"] == 0.02
    assert header["header"]["gpus"] == {"0": "NVIDIA H200", "1": "Tesla T4"}
    samples = [line for line in rest if "time_s" in line]
    assert all(before <= sample["time_s"] <= after for sample in samples)
    assert samples[-1]["gpu1_power_w"] == 418.141
    assert samples[-1]["rss_bytes"] > 1_000_000
    assert not [thread for thread in threading.enumerate() if thread.name == "telemetry"]


def test_block_that_ends_at_once_has_a_sample(tmp_path: Path) -> None:
    with Sampler(tmp_path / "t.jsonl", 0.5, list):
        pass
    assert len(read_telemetry(tmp_path / "t.jsonl").times) >= 1


def test_machine_without_nvml_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "open_nvml", lambda: (None, "NVML: NVML Shared Library Not Found"))
    with Sampler(tmp_path / "t.jsonl", 0.5, list, [0]):
        pass
    telemetry = read_telemetry(tmp_path / "t.jsonl")
    assert telemetry.missing["nvml"] == "NVML: NVML Shared Library Not Found"
    assert telemetry.header["gpus"] == {}


def test_gpu_that_falls_off_while_sampling(tmp_path: Path) -> None:
    recorded, path = RecordedNvml({}), tmp_path / "t.jsonl"
    with Sampler(path, 0.02, list, [0], nvml=recorded):
        wait_for(lambda: path.exists() and len(lines(path)) > 3)
        recorded.gpus[0]["lost"] = True
        wait_for(lambda: any("gpu0_power_w" in line.get("missing", {}) for line in lines(path)))
    samples = [line for line in lines(path) if "time_s" in line]
    assert samples[0]["gpu0_power_w"] == 418.141
    assert samples[-1]["gpu0_power_w"] is None
    assert samples[-1]["memory_used_bytes"] > 0


def test_error_in_the_block_passes_and_ends_the_sampler(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Sampler(tmp_path / "t.jsonl", 0.02, list):
        _ = 1 / 0
    assert not [thread for thread in threading.enumerate() if thread.name == "telemetry"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_sampler_that_fails_leaves_the_reason_and_the_measurement_alone(tmp_path: Path) -> None:
    def broken() -> list[int]:
        raise RuntimeError("no processes")

    with Sampler(tmp_path / "t.jsonl", 0.02, broken):
        pass
    assert read_telemetry(tmp_path / "t.jsonl").missing == {"sampler": "RuntimeError: no processes"}


def test_driver_that_hangs_does_not_keep_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "STOP_TIMEOUT_S", 0.1)
    release = threading.Event()
    recorded = RecordedNvml({})
    recorded.nvmlDeviceGetPowerUsage = lambda _gpu: 1000.0 * release.wait(60)
    with Sampler(tmp_path / "t.jsonl", 0.02, list, [0], nvml=recorded) as stuck:
        pass
    assert stuck._thread.is_alive()
    release.set()
    stuck._thread.join(20)
    assert not stuck._thread.is_alive()


def test_killed_program_leaves_what_it_had_and_the_next_goes_on_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    program = f"""
import time
from pathlib import Path
from faceoff.telemetry.sampler import Sampler
with Sampler(Path({str(path)!r}), 0.02, list):
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], env={"PYTHONPATH": str(SCRIPTS)}) as process:
        wait_for(lambda: path.exists() and len(path.read_text().splitlines()) > 5)
        process.send_signal(signal.SIGKILL)
    kept = len(read_telemetry(path).times)
    assert kept >= 4
    with path.open("a") as stream:
        stream.write('{"time_s": 17960')
    with Sampler(path, 0.5, list):
        pass
    telemetry = read_telemetry(path)
    assert len(telemetry.times) > kept
    assert telemetry.unreadable_lines == 1
