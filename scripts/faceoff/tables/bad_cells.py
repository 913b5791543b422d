"""The cells that are not `ok`: why, where the log is, and what runs them again."""

from collections.abc import Mapping
from typing import Any

from pandas import DataFrame

from faceoff.records.labels import in_order
from faceoff.tables.text import Table

_ORDER = ("failed", "invalid", "dnf", "not run")


def tabulate(rows: DataFrame, presentation: Mapping[str, Any]) -> Table:
    """Return a row a cell, the worst outcomes first; an empty table says that there is none."""
    rows = in_order(rows, presentation)
    bad = [row for outcome in _ORDER for row in rows[rows["outcome"] == outcome].to_dict("records")]
    table = [{key: row[key] for key in ("cell", "outcome", "reason", "log", "rerun")} for row in bad]
    note = f"{len(bad)} of {len(rows)} cells." if bad else f"No bad cell: all {len(rows)} are ok."
    return Table(f"Bad cells of {presentation['study']}", ["cell", "outcome", "reason", "log", "rerun"], table, note)
