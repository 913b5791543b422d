"""Where a system was no longer what it was: records of one system with unequal identities."""

from collections.abc import Mapping
from typing import Any

from pandas import DataFrame

from faceoff.records.labels import present
from faceoff.tables.text import Table

_COLUMNS = ("system", "changed", "records", "of", "first", "last")


def tabulate(rows: DataFrame, presentation: Mapping[str, Any]) -> Table:
    """Return a row a change: what it is (expected -> found), how many records hold it, and when they began."""
    table = []
    drifted = rows[rows["drift"].eq(True)]
    changes = [
        (system, reason, own)
        for system in present(drifted, "system", presentation["systems"])
        for reason, own in drifted[drifted["system"] == system].groupby("drift_reason", sort=False)
    ]
    for system, reason, own in changes:
        table.append(
            {
                "system": presentation["systems"][system]["title"],
                "changed": reason,
                "records": len(own),
                "of": int((rows["system"] == system).sum()),
                "first": own["started"].min(),
                "last": own["started"].max(),
            }
        )
    note = "Nothing was thrown away: these records are in tables and figures, and marked." if table else "No drift."
    return Table("Drift", _COLUMNS, table, note)
