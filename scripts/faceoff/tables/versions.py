"""Software versions, as each system's records hold them."""

import json
from collections.abc import Mapping
from typing import Any

from pandas import DataFrame

from faceoff.tables.text import Table


def tabulate(rows: DataFrame, presentation: Mapping[str, Any]) -> Table:
    """Return a row a package and a column a system; several versions of one package stand side by side."""
    systems = presentation["systems"]
    found: dict[str, dict[str, set[str]]] = {}
    for name in systems:
        for text in rows.loc[rows["system"] == name, "versions"].dropna().unique():
            for package, version in json.loads(text).items():
                found.setdefault(package, {}).setdefault(name, set()).add(version)
    table = [
        {
            "package": package,
            **{systems[name]["title"]: " / ".join(sorted(versions)) for name, versions in by_system.items()},
        }
        for package, by_system in sorted(found.items())
    ]
    note = "" if table else "No record yet."
    return Table("Software versions", ["package", *(system["title"] for system in systems.values())], table, note)
