"""What earlier attempts at a cell left beside its record: failures, the marker of a running job, and drift tokens.

A rule's `params` hold what these files say, so that a failed cell is stale until it has been tried often enough, and a
cell is measured again after its system changed, while everything else stays fresh.
"""

import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from faceoff.errors import RecordError
from faceoff.files import canonical_json, sha256_text, write_json, write_text
from faceoff.records.record import read_record

FAILURES = "failures.log"
MARKER = ".running.json"
DRIFT_MARK = ".remeasured"


def asked_hash(spec: dict[str, Any], fingerprint: str) -> str:
    """Return 16 hexadecimal digits that stand for what a cell is asked and the code that answers."""
    return sha256_text(canonical_json({"spec": spec, "fingerprint": fingerprint}))[:16]


def count_failures(directory: Path, asked: str) -> int:
    """Return how often the cell failed with this question and code: the lines of failures.log that carry its hash."""
    try:
        lines = (directory / FAILURES).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return 0
    return sum(line.split("\t")[1:2] == [asked] for line in lines)


def append_failure(directory: Path, asked: str, reason: str) -> None:
    """Append a line to failures.log: time (UTC), hash of question and code, reason."""
    directory.mkdir(parents=True, exist_ok=True)
    one_line = " ".join(reason.split())
    with (directory / FAILURES).open("a", encoding="utf-8") as stream:
        stream.write(f"{now()}\t{asked}\t{one_line}\n")


def attempts_param(directory: Path, asked: str, max_attempts: int) -> int:
    """Return a number for the rule's params that differs from the last run's just while the cell may be tried again.

    A run that fails adds a line, so the next invocation sees a larger number, until `max_attempts` runs have failed. A
    run that ended well keeps the number it was started with, which its record holds.
    """
    failures = count_failures(directory, asked)
    if failures == 0:
        return 0
    record = _record(directory / "record.json")
    if record.get("outcome") in ("ok", "dnf", "invalid"):
        return int(record.get("provenance", {}).get("failures_before", failures))
    return min(failures, max_attempts - 1)


def drift_token(directory: Path, present_identity: str | None) -> str:
    """Return the token for the rule's params: it changes when the system is no longer the one of the cell's record.

    `present_identity` is None where drift is only reported. A cell that was measured again keeps its token in a file.
    """
    path = directory / DRIFT_MARK
    token = path.read_text(encoding="utf-8").strip() if path.is_file() else ""
    if present_identity is None or not (directory / "record.json").is_file():
        return token
    recorded = _record(directory / "record.json").get("provenance", {}).get("identity_sha256")
    return token if recorded in (None, present_identity) else present_identity


def keep_token(directory: Path, token: str) -> None:
    """Remember the token a cell was measured with."""
    if token:
        write_text(directory / DRIFT_MARK, token + "\n")


@dataclass(frozen=True)
class Marker:
    """The note that a running job leaves, by which the next attempt knows how it ended."""

    asked: str
    started: str
    pid: int
    host: str
    boot: str
    slurm_job: str | None = None
    signal: str | None = None
    error: str | None = None

    @staticmethod
    def of_this_process(asked: str) -> "Marker":
        """Return the marker of the running process."""
        return Marker(asked, now(), os.getpid(), os.uname().nodename, boot_id(), os.environ.get("SLURM_JOB_ID"))

    def write(self, directory: Path) -> None:
        """Write the marker into a cell's directory."""
        write_json(directory / MARKER, asdict(self))

    def verdict(self) -> str:
        """Return in words how the job that left this marker ended."""
        where = f" on {self.host}" + (f", Slurm job {self.slurm_job}" if self.slurm_job else "")
        if self.error:
            return f"the record could not be written{where}: {self.error}"
        if self.signal:
            return f"killed by {self.signal}{where}"
        if self.host == os.uname().nodename and self.boot != boot_id():
            return f"the machine went down{where}"
        return f"killed (SIGKILL){where}: the job left no record"


def read_marker(directory: Path) -> Marker | None:
    """Return the marker in a cell's directory, or None where there is none that can be read."""
    try:
        return Marker(**json.loads((directory / MARKER).read_text(encoding="utf-8")))
    except (FileNotFoundError, json.JSONDecodeError, TypeError):
        return None


def boot_id() -> str:
    """Return what the kernel calls this boot."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text(encoding="utf-8").strip() if path.exists() else "unknown"


def now() -> str:
    """Return the time in UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _record(path: Path) -> dict[str, Any]:
    try:
        return read_record(path)
    except RecordError:
        return {}
