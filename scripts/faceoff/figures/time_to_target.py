"""Time to target by workload and layout, every seed a dot."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure
from pandas import DataFrame

from faceoff.figures import seed_dots, style
from faceoff.records.convergence import seed_sensitivity
from faceoff.records.labels import one_question, present

TITLE = "Time to target"


def draw(rows: DataFrame, presentation: Mapping[str, Any]) -> Figure:
    """Draw time to target (s, min or h); a run that missed it is a cross at the time that it ended."""
    rows = rows[rows["kind"] == "training"]
    if rows.empty:
        return style.message(TITLE, rows, presentation, "No training cell in this study.")
    notes = [
        f"{seed_dots.statistics_note(rows)} A cross is where the run's budget ended: its time to target is longer."
    ]
    titles = [
        style.workload_title(name, presentation)
        for name in present(rows, "workload", presentation["workloads"])
        if one_question(own := rows[rows["workload"] == name]) and seed_sensitivity(own) == "yes"
    ]
    if titles:
        notes.append(f"Seed-sensitive: {', '.join(titles)}: throughput is the fair comparison there.")
    figure = style.create(TITLE, rows, presentation, notes)

    def label(panel: DataFrame) -> tuple[float, str]:
        divisor, unit = style.time_unit(panel["time_to_target_s"].fillna(panel["elapsed_s"]).max())
        return divisor, style.clock(panel, unit)

    seed_dots.draw_panels(figure, rows, presentation, "time_to_target_s", "elapsed_s", label, summarise_dnf=False)
    return figure
