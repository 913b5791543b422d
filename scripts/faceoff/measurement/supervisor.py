"""Runs a measurement in child processes, so that whatever happens to them a finished record is left.

The supervisor picks the devices, holds the machine, starts the ranks and the telemetry beside them, waits, and writes
the record last. Ranks leave result.json (or error-N.json) in the segment's directory, which also holds the checkpoint.
"""

import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from faceoff.errors import FaceoffError, RecordError
from faceoff.files import atomic_path, canonical_json, sha256_file, sha256_text, write_text
from faceoff.measurement.accelerators import Devices, choose_devices
from faceoff.measurement.attempts import MARKER, Marker, append_failure, asked_hash, keep_token, now, read_marker
from faceoff.measurement.identity import identity, identity_sha256
from faceoff.measurement.launcher import free_ports, rank_environments, start_ranks, stop_ranks
from faceoff.measurement.lock import MACHINE_LOCK, exclusive
from faceoff.records.record import read_record, signed, write_record
from faceoff.telemetry.sampler import Sampler
from faceoff.telemetry.summary import summarise, to_parquet

POLL_S = 0.05
# A run that diverged would only diverge again, and a damaged checkpoint stays damaged.
USELESS_CHECKPOINT = ("loss is", "no readable checkpoint")
SHORTEST_WATCHDOG_S = 600.0
TELEMETRY_INTERVAL_S = 0.5


@dataclass(frozen=True)
class Measurement:
    """One cell to measure: what is asked, what runs, and where the results go.

    `command` is a rank's command line, to which `--segment DIR` is added. `companions` maps names of files that rank 0
    leaves in the segment's directory to their final paths.
    """

    kind: str
    cell: dict[str, Any]
    spec: dict[str, Any]
    fingerprint: str
    command: tuple[str, ...]
    record: Path
    companions: dict[str, Path]
    telemetry: Path
    inputs: dict[str, Path]
    log: str
    rerun: str
    check: Callable[[], object]  # raises FaceoffError where there is nothing to measure with
    attempt: int = 1
    failures_before: int = 0
    drift_token: str = ""

    @property
    def directory(self) -> Path:
        """The cell's directory."""
        return self.record.parent

    @property
    def asked(self) -> str:
        """The hash of the question and the code."""
        return asked_hash(self.spec, self.fingerprint)


@dataclass(frozen=True)
class Outcome:
    """How a measurement ended: `result` is rank 0's, empty where the cell failed."""

    outcome: str
    reason: str
    result: dict[str, Any]


class Interrupted(BaseException):
    """The supervisor was told to stop; the cell was not measured and no record is written."""


def measure(job: Measurement) -> str:
    """Measure one cell and write its record, its companions and its telemetry. Return the outcome.

    A second attempt at a job whose first one died without a word measures nothing: it writes `failed` with the reason.
    A cell that an earlier invocation's job finished in the meantime is taken as it is.
    """
    job.directory.mkdir(parents=True, exist_ok=True)
    try:
        with _stop_signals():
            return _measure_alone(job)
    except Interrupted as stop:
        raise SystemExit(f"{job.record}: stopped by {stop}; nothing was recorded, a rerun goes on from here") from stop


def _measure_alone(job: Measurement) -> str:
    with exclusive(job.directory / ".lock", "an earlier invocation's job of this cell"):
        finished = _finished_meanwhile(job)
        if finished:
            print(f"{job.record}: an earlier invocation's job finished this cell in the meantime", file=sys.stderr)
            return finished
        marker = read_marker(job.directory)
        if job.attempt > 1 and marker is not None and marker.asked == job.asked:
            found = _identity_or_none()
            return _leave(job, Outcome("failed", marker.verdict(), {}), found, marker.started, None, None)
        if job.spec.get("sharing") == "packed":
            return _measure_now(job)
        with exclusive(MACHINE_LOCK, "another measurement on this machine to end"):
            return _measure_now(job)


def _measure_now(job: Measurement) -> str:
    found = identity()
    segment = job.directory / ".segments" / _segment_hash(job, found)
    segment.mkdir(parents=True, exist_ok=True)
    for stale in ("result.json", "heartbeat", "telemetry.jsonl", *(path.name for path in segment.glob("error-*.json"))):
        (segment / stale).unlink(missing_ok=True)
    marker = Marker.of_this_process(job.asked)
    marker.write(job.directory)
    try:
        devices, outcome = _run(job, segment)
    except Interrupted as stop:
        replace(marker, signal=str(stop)).write(job.directory)
        raise
    except FaceoffError as error:
        devices, outcome = None, Outcome("failed", str(error), {})
    try:
        left = _leave(job, outcome, found, marker.started, segment, devices)
    except OSError as error:
        replace(marker, error=str(error)).write(job.directory)
        raise SystemExit(f"{job.record}: the record could not be written: {error}") from error
    if left != "failed" or any(text in outcome.reason for text in USELESS_CHECKPOINT):
        shutil.rmtree(segment)
    return left


def _run(job: Measurement, segment: Path) -> tuple[Devices, Outcome]:
    job.check()
    layout = job.spec["layout"]
    expected = job.spec.get("expected_devices", [])
    devices = choose_devices(job.spec["accelerator"], layout["nodes"], layout["accelerators"], expected)
    environments = rank_environments(devices.cores, devices.gpus, free_ports(layout["accelerators"] + 1))
    kills_before = _oom_kills()
    ranks = start_ranks(job.command, environments, segment)
    try:
        with Sampler(
            segment / "telemetry.jsonl", TELEMETRY_INTERVAL_S, lambda: [rank.pid for rank in ranks], devices.gpu_indices
        ):
            hang = _wait(ranks, segment / "heartbeat", max(SHORTEST_WATCHDOG_S, job.spec["budget"]["seconds"]))
    finally:
        first_exits = [rank.poll() for rank in ranks]
        stop_ranks(ranks)
    if hang:
        return devices, Outcome("failed", hang, {})
    if any(first_exits) or None in first_exits:
        return devices, Outcome("failed", _reason(first_exits, segment, _oom_kills() - kills_before), {})
    result = _read_json(segment / "result.json")
    if result is None:
        return devices, Outcome("failed", "rank 0 ended without a result", {})
    return devices, Outcome(result["outcome"], result["reason"], result)


def _wait(ranks: list[subprocess.Popen], heartbeat: Path, watchdog_s: float) -> str:
    """Wait until every rank ended well or one did not. Return the reason where a rank hangs, else nothing."""
    started = time.time()
    while True:
        exits = [rank.poll() for rank in ranks]
        if all(status == 0 for status in exits):
            return ""
        if any(status not in (None, 0) for status in exits):
            time.sleep(10 * POLL_S)  # the rank that failed first also pulls the others down: let it say why
            return ""
        last = heartbeat.stat().st_mtime if heartbeat.exists() else started
        if time.time() - max(last, started) > watchdog_s:
            return f"hang: no progress for {watchdog_s:.0f} s"
        time.sleep(POLL_S)


def _reason(exits: list[int | None], segment: Path, kills: int) -> str:
    errors = [error for path in segment.glob("error-*.json") if (error := _read_json(path))]
    signals = [(rank, -status) for rank, status in enumerate(exits) if status is not None and status < 0]
    if signals:
        rank, number = signals[0]
        if kills > 0:
            return f"out of memory: the kernel killed rank {rank}"
        return f"rank {rank} was killed by {signal.Signals(number).name}"
    if errors:
        # The first error is the cause: it pulls the other ranks down.
        return min(errors, key=lambda error: error["time"])["reason"]
    rank, status = next((rank, status) for rank, status in enumerate(exits) if status)
    return f"rank {rank} ended with exit status {status}"


def _leave(
    job: Measurement,
    outcome: Outcome,
    found: dict[str, Any] | None,
    started: str,
    segment: Path | None,
    devices: Devices | None,
) -> str:
    """Write telemetry, companions and, last, the record."""
    result = outcome.result
    window = (result["window"]["start"], result["window"]["end"]) if result else None
    samples = segment / "telemetry.jsonl" if segment else Path(os.devnull)
    to_parquet(samples, job.telemetry, window)
    for name, path in job.companions.items():
        if result and segment and (segment / name).is_file():
            with atomic_path(path) as temporary:
                shutil.copyfile(segment / name, temporary)
        else:
            write_text(path, "")
    record = {
        "kind": job.kind,
        "cell": job.cell,
        "spec": job.spec,
        "fingerprint": job.fingerprint,
        "outcome": outcome.outcome,
        "reason": outcome.reason,
        "measured": result.get("measured", {}),
        "curve": result.get("curve", []),
        "resumed": result.get("resumed", False),
        "segments": result.get("segments", []),
        "telemetry": summarise(samples, window, TELEMETRY_INTERVAL_S),
        "provenance": {
            "identity": found,
            "identity_sha256": identity_sha256(found) if found else None,
            "devices": result.get("devices") or (devices.names if devices else []),
            "device_note": devices.note if devices else "",
            "versions": result.get("versions", {}),
            "host": platform.node(),
            "started": started,
            "ended": now(),
            "attempt": job.attempt,
            "failures_before": job.failures_before,
            "drift_token": job.drift_token,
            "command": shlex.join(job.command),
            "log": job.log,
            "rerun": job.rerun,
            "git": _git_revision(),
            "inputs": {name: sha256_file(path) for name, path in job.inputs.items()},
            "companions": {name: sha256_file(path) for name, path in job.companions.items()},
            "slurm": {key: os.environ[key] for key in _SLURM if key in os.environ} or None,
        },
    }
    keep_token(job.directory, job.drift_token)
    history = job.directory / ".history" / f"{started.replace(':', '')}-{signed(record)['sha256'][:8]}.json"
    write_record(history, record)
    if outcome.outcome == "failed":
        append_failure(job.directory, job.asked, outcome.reason)
    write_record(job.record, record)
    (job.directory / MARKER).unlink(missing_ok=True)
    print(f"{job.record}: {outcome.outcome}" + (f": {outcome.reason}" if outcome.reason else ""), file=sys.stderr)
    return outcome.outcome


_SLURM = ("SLURM_JOB_ID", "SLURM_JOB_PARTITION", "SLURM_JOB_NODELIST", "SLURM_CLUSTER_NAME")


@contextmanager
def _stop_signals() -> Iterator[None]:
    def stop(number: int, _frame: FrameType | None) -> None:
        raise Interrupted(signal.Signals(number).name)

    # A signal that was ignored when this process was started (nohup, a script's &) stays ignored.
    signs = [
        sign for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP) if signal.getsignal(sign) is not signal.SIG_IGN
    ]
    before = {sign: signal.signal(sign, stop) for sign in signs}
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)


def _finished_meanwhile(job: Measurement) -> str | None:
    try:
        record = read_record(job.record)
    except RecordError:
        return None
    companions = record.get("provenance", {}).get("companions", {})
    same = record["spec"] == job.spec and record["fingerprint"] == job.fingerprint
    whole = all(path.is_file() and sha256_file(path) == companions.get(name) for name, path in job.companions.items())
    return record["outcome"] if same and whole and job.telemetry.is_file() and record["outcome"] != "failed" else None


def _segment_hash(job: Measurement, found: dict[str, Any]) -> str:
    return sha256_text(canonical_json([job.spec, job.fingerprint, identity_sha256(found)]))[:16]


def _identity_or_none() -> dict[str, Any] | None:
    try:
        return identity()
    except FaceoffError:
        return None


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def _oom_kills() -> int:
    """Return how many processes the kernel has killed in this control group for want of memory."""
    path = Path("/sys/fs/cgroup/memory.events")
    if not path.is_file():
        return 0
    counts = dict(line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return int(counts.get("oom_kill", 0))


def _git_revision() -> str | None:
    """Return the commit of the code, with a + where the working tree differs, or None outside a repository."""
    run = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout.strip() or None
