"""Training throughput by workload and layout, every seed a dot."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure
from pandas import DataFrame

from faceoff.figures import seed_dots, style

TITLE = "Training throughput"


def draw(rows: DataFrame, presentation: Mapping[str, Any]) -> Figure:
    """Draw samples/s of training without evaluation, also of runs that missed their target."""
    rows = rows[rows["kind"] == "training"]
    if rows.empty:
        return style.message(TITLE, rows, presentation, "No training cell in this study.")
    notes = [f"{seed_dots.statistics_note(rows)} Samples trained / time of training, without evaluation."]
    figure = style.create(TITLE, rows, presentation, notes)

    def label(panel: DataFrame) -> tuple[float, str]:
        units = panel["throughput_unit"].dropna().unique()
        unit = units[0] if len(units) else "samples/s"
        thousands = panel["throughput"].max() >= 10_000
        return (1000.0, f"thousand {unit}") if thousands else (1.0, unit)

    seed_dots.draw_panels(figure, rows, presentation, "throughput", "throughput", label, summarise_dnf=True)
    return figure
