"""A table, written as CSV for programs and as Markdown for readers."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faceoff.files import write_text


@dataclass(frozen=True)
class Table:
    """Rows of text and numbers under named columns; `note` stands below, and alone when there are no rows."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Mapping[str, Any]]
    note: str = ""

    def filled(self) -> list[str]:
        """Return the columns in which any row says something; all of them when there are no rows."""
        return [name for name in self.columns if not self.rows or any(cell_text(row.get(name)) for row in self.rows)]


def significant(value: float | None, digits: int = 4) -> float | None:
    """Return a measured number to so many significant digits; None for a missing one."""
    return None if value is None or math.isnan(value) else float(f"{value:.{digits}g}")


def cell_text(value: Any) -> str:
    """Return a cell as text: nothing for a missing value, never NaN; a whole float without its fraction."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


def write_csv(table: Table, path: Path) -> None:
    """Write the table as CSV, atomically."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    columns = table.filled()
    writer.writerow(columns)
    writer.writerows([cell_text(row.get(name)) for name in columns] for row in table.rows)
    write_text(path, stream.getvalue())


def write_markdown(table: Table, path: Path) -> None:
    """Write the table as Markdown with its title and note, atomically."""
    columns = table.filled()
    lines = [f"# {table.title}", ""]
    if table.rows:
        lines += [_line(columns), _line(["---"] * len(columns))]
        lines += [_line(cell_text(row.get(name)) for name in columns) for row in table.rows]
        lines.append("")
    if table.note:
        lines += [table.note, ""]
    write_text(path, "\n".join(lines))


def _line(cells: Any) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
