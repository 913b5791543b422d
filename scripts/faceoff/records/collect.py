"""From the records of a study's cells to its table: every expected cell becomes one row, whatever became of it."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from faceoff.errors import RecordError
from faceoff.files import atomic_path
from faceoff.measurement.identity import describe_drift
from faceoff.records.record import read_record
from faceoff.records.rows import bare_row, published_row, table_of, training_row

Entry = Mapping[str, Any]


def collect(
    study: str,
    cells: Iterable[Mapping[str, Any]],
    collections: Mapping[str, Sequence[Entry]],
    identities: Mapping[str, Mapping[str, Any]],
) -> pa.Table:
    """Return the table of a study's cells (see `rows`), in the order of `cells`.

    `collections` maps the name of a published collection to its results, `identities` a system to what it was found to
    be. A cell without a record is `not run`; one whose record is cut, edited or of another cell is `invalid`. A row
    whose record holds another identity of its system than `identities` (without one: than the system's earliest record)
    is marked as drift. Raises RecordError when a cell names a collection that is not given.
    """
    rows, found = [], []
    for cell in cells:
        identity: Mapping[str, Any] | None = None
        if cell["source"] == "published":
            row = published_row(study, cell, _entry(cell, collections))
        else:
            row, identity = _measured_row(study, cell)
        rows.append(row)
        found.append(identity)
    _mark_drift(rows, found, identities)
    return table_of(rows)


def write_records(table: pa.Table, parquet: Path, text: Path) -> None:
    """Write the table as Parquet and, without the curves, as CSV; both atomically."""
    with atomic_path(parquet) as temporary:
        pq.write_table(table, temporary)
    columns = [name for name in table.column_names if name != "curve"]
    with atomic_path(text) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        for row in table.select(columns).to_pylist():
            writer.writerow("; ".join(value) if isinstance(value, list) else value for value in row.values())


def _measured_row(study: str, cell: Mapping[str, Any]) -> tuple[dict[str, Any], Mapping[str, Any] | None]:
    path = Path(cell["record"])
    if not path.exists():
        return bare_row(study, cell, "not run"), None
    try:
        record = read_record(path)
        _check_cell(path, cell, record)
        return training_row(study, cell, record), (record.get("provenance") or {}).get("identity")
    except RecordError as error:
        return bare_row(study, cell, "invalid", str(error)), None
    except KeyError as error:
        return bare_row(study, cell, "invalid", f"{path}: the record lacks {error}; delete it and run again"), None


def _check_cell(path: Path, cell: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    for key, value in record["cell"].items():
        if cell.get(key) != value:
            raise RecordError(
                f"{path}: the record is of another cell: {key}: expected {cell.get(key)}, found {value}; "
                "delete it and run again"
            )


def _entry(cell: Mapping[str, Any], collections: Mapping[str, Sequence[Entry]]) -> Entry | None:
    if cell["collection"] not in collections:
        given = ", ".join(collections) or "none"
        raise RecordError(f"{cell['cell']}: expected the published collection {cell['collection']}, given: {given}")
    wanted = (cell["published_system"], cell["mlperf_name"], cell["scenario"], cell["protocol"])
    for entry in collections[cell["collection"]]:
        if (entry["system"], entry["mlperf_name"], entry["scenario"], entry["round"]) == wanted:
            return entry
    return None


def _mark_drift(
    rows: Sequence[dict[str, Any]],
    found: Sequence[Mapping[str, Any] | None],
    present: Mapping[str, Mapping[str, Any]],
) -> None:
    earliest: dict[str, Mapping[str, Any]] = {}
    dated = [(row, identity) for row, identity in zip(rows, found, strict=True) if identity is not None]
    for row, identity in sorted(dated, key=lambda pair: pair[0]["ended"] or ""):
        first = earliest.setdefault(row["system"], identity)
        now = present.get(row["system"])
        # From the older to the newer: from the record to the system as it is now, or from the first record to this one.
        old, new = (identity, now) if now is not None else (first, identity)
        row["drift_reason"] = "; ".join(describe_drift(dict(old), dict(new)))
        row["drift"] = bool(row["drift_reason"])


def read_collections(paths: Iterable[Path]) -> dict[str, list[dict[str, Any]]]:
    """Return the published collections in Parquet files by name. Raises RecordError for a file that is none."""
    try:
        return {path.stem: pq.read_table(path).to_pylist() for path in paths}
    except (OSError, ValueError) as error:
        raise RecordError(f"no readable published collection: {error}") from error


def read_identities(paths: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """Return what systems were found to be, by name. Raises RecordError for a file that is no description."""
    identities = {}
    for path in paths:
        try:
            identities[path.stem] = json.loads(path.read_text(encoding="utf-8"))["identity"]
        except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError) as error:
            raise RecordError(
                f"{path}: no readable description of a system: {error}; delete it and run again"
            ) from error
    return identities
