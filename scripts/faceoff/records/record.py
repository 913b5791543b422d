"""A record: the JSON that a cell leaves, signed with its own SHA-256.

    {"schema": "faceoff-record/1", "kind": "training", "cell": {...}, "spec": {...}, "fingerprint": "...",
     "outcome": "ok", "reason": "", "measured": {...}, "telemetry": {...}, "provenance": {...}, "sha256": "..."}

Every measured number is {"value": ..., "unit": ...}. DESIGN of outcomes: `ok`; `dnf`, the target was not reached
within the budget; `invalid`, measured but against a rule; `failed`, nothing was measured, `reason` says why.
"""

import json
from pathlib import Path
from typing import Any

from faceoff.errors import RecordError
from faceoff.files import canonical_json, sha256_text, write_json

SCHEMA = "faceoff-record/1"
OUTCOMES = ("ok", "dnf", "invalid", "failed")


def signed(record: dict[str, Any]) -> dict[str, Any]:
    """Return `record` with the SHA-256 of its canonical JSON (without the key `sha256`) under `sha256`."""
    body = {key: value for key, value in record.items() if key != "sha256"}
    return {**body, "sha256": sha256_text(canonical_json(body))}


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Sign and write a record atomically. Raises RecordError for an outcome that does not exist."""
    if record.get("outcome") not in OUTCOMES:
        raise RecordError(f"{path}: outcome: expected one of {', '.join(OUTCOMES)}; found {record.get('outcome')!r}")
    write_json(path, signed({**record, "schema": SCHEMA}))


def read_record(path: Path) -> dict[str, Any]:
    """Read a record and check its signature.

    Raises RecordError when it is no JSON, of another schema, or was changed after it was written.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RecordError(f"{path}: no readable record: {error}; delete it and run again") from error
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        found = record.get("schema") if isinstance(record, dict) else type(record).__name__
        raise RecordError(f"{path}: schema: expected {SCHEMA}, found {found!r}; delete it and run again")
    expected = signed(record)["sha256"]
    if record.get("sha256") != expected:
        raise RecordError(
            f"{path}: the record was edited after it was written: its content hashes to {expected[:12]}, "
            f"it says {str(record.get('sha256'))[:12]}; delete it and run again"
        )
    return record
