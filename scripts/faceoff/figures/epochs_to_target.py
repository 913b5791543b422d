"""Epochs to target by workload and layout, every seed a dot: what the seed and the global batch do to convergence."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure
from pandas import DataFrame

from faceoff.figures import seed_dots, style
from faceoff.records.convergence import convergence_notes
from faceoff.records.labels import one_question

TITLE = "Epochs to target"


def draw(rows: DataFrame, presentation: Mapping[str, Any]) -> Figure:
    """Draw epochs to the target and, under each workload's title, whether they hang on seed or global batch."""
    rows = rows[rows["kind"] == "training"]
    if rows.empty:
        return style.message(TITLE, rows, presentation, "No training cell in this study.")
    notes = [
        f"{seed_dots.statistics_note(rows)} A cross is where the run's budget ended.",
        "Seed-sensitive: within one layout the epochs range over two evaluation intervals or more and over 10 %.",
    ]
    figure = style.create(TITLE, rows, presentation, notes)
    axes = seed_dots.draw_panels(
        figure, rows, presentation, "epochs", "epochs", lambda _: (1.0, "epochs"), summarise_dnf=False
    )
    for name, panel in axes.items():
        own = rows[rows["workload"] == name]
        told = "\n".join(convergence_notes(own)) if one_question(own) else "records of different questions"
        panel.set_title(panel.get_title(loc="left"), loc="left", weight="bold", pad=8 + 14 * (told.count("\n") + 1))
        panel.annotate(
            told,
            (0, 1),
            (0, 6),
            xycoords="axes fraction",
            textcoords="offset points",
            size=style.SMALL,
            color=style.QUIET,
        )
    return figure
