"""Collections of published results: CSV files in config/published/, checked word by word.

A collection is read as strictly as a program: its numbers go into figures beside measured ones.
"""

import csv
import datetime as dt
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from faceoff.errors import ConfigError
from faceoff.files import atomic_path

_LATENCIES = ("min", "mean", "p50", "p90", "p95", "p97", "p99", "p99.9", "max")
_NAME = ("system", "mlperf_name", "scenario")


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("a value")
    return value


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in choices:
            raise ValueError("one of " + ", ".join(choice or "(empty)" for choice in choices))
        return value

    return parse


def _number(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise ValueError("a number above 0")
    return number


def _count(value: str) -> int:
    if not (value.isdecimal() and int(value) > 0):
        raise ValueError("a whole number above 0")
    return int(value)


def _date(value: str) -> str:
    try:
        return dt.date.fromisoformat(value).isoformat()
    except ValueError:
        raise ValueError("a date such as 2021-09-22") from None


def _any(value: str) -> str:
    return value


_TYPES: Mapping[Callable[[str], Any], pa.DataType] = {_number: pa.float64(), _count: pa.int64()}
COLUMNS: Mapping[str, Callable[[str], Any]] = {
    "round": _text,
    "division": _one_of("closed", "open"),
    "availability": _one_of("available", "preview", "rdi"),
    "organisation": _text,
    "system": _text,
    "accelerator": _text,
    "accelerators": _count,
    "processor": _text,
    "processors": _count,
    "memory": _text,
    "os": _text,
    "software": _text,
    "benchmark": _text,
    "mlperf_name": _text,
    "accuracy": _one_of("99", "99.9", ""),
    "scenario": _one_of("Offline", "Server", "SingleStream", "MultiStream"),
    "metric": _text,
    "value": _number,
    "unit": _text,
    "validity": _one_of("VALID", "INVALID"),
    "quality": _number,
    "quality_metric": _text,
    "weights": _text,
    **{f"latency_{name}_ns": _count for name in _LATENCIES},
    "same_run_as": _any,
    "published": _date,
    "retrieved": _date,
    "repository": _text,
    "commit": _text,
    "source_path": _text,
}
"""Columns of a collection and how a value of each is read; each function raises ValueError with what it expects."""


def read_collection(path: Path) -> list[dict[str, Any]]:
    """Read a CSV of published results: a mapping a line, numbers as numbers, latencies in ns.

    Raises ConfigError naming file, line, column, what was expected and what was found: for an unknown or missing
    column, a value that is missing or wrong, a result given twice, or one that calls itself the same run as an unequal
    one.
    """
    entries: dict[tuple[str, ...], dict[str, Any]] = {}
    lines: dict[tuple[str, ...], int] = {}
    with path.open(newline="", encoding="utf-8") as stream:
        reader = csv.reader(stream, strict=True)
        try:
            header = next(reader, [])
            _check_header(path, header)
            for values in reader:
                entry = _parse(path, reader.line_num, header, values)
                name = tuple(entry[key] for key in _NAME)
                if name in entries:
                    raise ConfigError(
                        f"{path}: line {reader.line_num}: expected each result once, "
                        f"found {' '.join(name)} of line {lines[name]} again"
                    )
                entries[name], lines[name] = entry, reader.line_num
        except (csv.Error, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: line {reader.line_num}: expected CSV in UTF-8, found: {error}") from error
    if not entries:
        raise ConfigError(f"{path}: line 2: expected at least one result, found none")
    for name, entry in entries.items():
        _check_same_run(path, lines[name], entry, entries)
    return list(entries.values())


def write_collection(entries: list[dict[str, Any]], path: Path) -> None:
    """Write what `read_collection` returned as Parquet, atomically."""
    schema = pa.schema([(name, _TYPES.get(parse, pa.string())) for name, parse in COLUMNS.items()])
    with atomic_path(path) as temporary:
        pq.write_table(pa.Table.from_pylist(entries, schema=schema), temporary)


def _check_header(path: Path, header: list[str]) -> None:
    for name in header:
        if name not in COLUMNS:
            raise ConfigError(f"{path}: line 1: column {name!r}: expected one of {', '.join(COLUMNS)}; found {name!r}")
        if header.count(name) > 1:
            raise ConfigError(f"{path}: line 1: column {name!r}: expected once, found {header.count(name)} times")
    for name in COLUMNS:
        if name not in header:
            raise ConfigError(f"{path}: line 1: column {name!r}: expected, found no such column")


def _parse(path: Path, line: int, header: list[str], values: list[str]) -> dict[str, Any]:
    if len(values) != len(header):
        raise ConfigError(f"{path}: line {line}: expected {len(header)} values, found {len(values)}")
    entry = {}
    for name, value in zip(header, values, strict=True):
        try:
            entry[name] = COLUMNS[name](value)
        except ValueError as error:
            raise ConfigError(f"{path}: line {line}: column {name!r}: expected {error}, found {value!r}") from error
    return entry


def _check_same_run(path: Path, line: int, entry: Mapping[str, Any], entries: Mapping[tuple[str, ...], Any]) -> None:
    other_name = entry["same_run_as"]
    if not other_name:
        return
    other = entries.get((entry["system"], other_name, entry["scenario"]))
    if other is None or other["value"] != entry["value"]:
        found = "no such result" if other is None else f"{other['value']} there and {entry['value']} here"
        raise ConfigError(
            f"{path}: line {line}: column 'same_run_as': expected a result of equal value, "
            f"found {other_name!r}: {found}"
        )
