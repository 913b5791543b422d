"""Scaling efficiency of training throughput against one accelerator."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame

from faceoff.figures import style
from faceoff.records.labels import one_question, present
from faceoff.records.statistics import summarise

TITLE = "Scaling efficiency of throughput"


def draw(rows: DataFrame, presentation: Mapping[str, Any]) -> Figure:
    """Draw throughput / (n x mean throughput of one accelerator): each run a dot, the means of layouts a line.

    Means are geometric, as wherever rates are averaged.
    """
    rows = rows[rows["kind"] == "training"]
    if rows.empty:
        return style.message(TITLE, rows, presentation, "No training cell in this study.")
    if rows["layout"].nunique() == 1:
        return style.message(TITLE, rows, presentation, f"one layout, {rows['layout'].iloc[0]}: nothing to scale")
    notes = ["Efficiency = throughput / (n x mean throughput of layout 1x1). One dot a run; the line joins the means."]
    notes[0] += " Means are geometric."
    figure = style.create(TITLE, rows, presentation, notes)
    colors = style.colors(presentation)
    names = present(rows, "workload", presentation["workloads"])
    systems = present(rows, "system", presentation["systems"])
    for name, axes in style.panels(figure, names).items():
        own = rows[rows["workload"] == name]
        missing: dict[str, list[str]] = {}
        for system in systems:
            why = _draw_system(axes, own[own["system"] == system], colors[system], with_numbers=len(systems) == 1)
            missing.setdefault(why, []).append(presentation["systems"][system]["title"])
        told = "\n".join(f"{why}:\n{', '.join(titles)}" for why, titles in missing.items() if why)
        axes.text(0.5, 0.5, told, transform=axes.transAxes, ha="center", va="center", bbox=style.OVER_GRID)
        _finish(axes, own)
        style.label_bottom(axes, "accelerators (n)")
        style.head_panel(axes, style.workload_title(name, presentation))
    handles = [
        Line2D([], [], marker="o", color=colors[system], label=presentation["systems"][system]["title"])
        for system in systems
    ]
    style.legend(
        figure, [*handles, Line2D([], [], ls="--", color=style.QUIET, label="ideal: n times the throughput of one")]
    )
    return figure


def _draw_system(axes: Axes, rows: DataFrame, color: str, with_numbers: bool) -> str:
    """Draw a system's efficiency, or return why there is none."""
    rows = rows.dropna(subset=["throughput"])
    count = rows["nodes"] * rows["accelerators"]
    single = rows.loc[count == 1, "throughput"]
    if rows.empty:
        return ""
    if single.empty:
        return "no throughput of layout 1x1"
    if not one_question(rows):
        return "records of different questions"
    efficiency = rows["throughput"] / (count * summarise(list(single)).mean)
    means = efficiency.groupby(count).agg(lambda values: summarise(list(values)).mean)
    axes.plot(count, efficiency, "o", color=color, alpha=0.6, ms=8, mew=0, clip_on=False)
    axes.plot(means.index, means, "-", color=color, lw=2)
    for n, value in means[means.index > 1].items() if with_numbers else ():
        axes.annotate(f"{100 * value:.0f} %", (n, value), (10, 0), textcoords="offset points", va="center", color=color)
    return ""


def _finish(axes: Axes, rows: DataFrame) -> None:
    counts = sorted({int(n) for n in rows["nodes"] * rows["accelerators"]})
    axes.axhline(1, ls="--", color=style.QUIET)
    axes.set_xticks(counts)
    axes.set_xlim(counts[0] - 0.3, counts[-1] + 0.2 + 0.25 * (counts[-1] - counts[0] + 1))
    axes.set_ylim(0, max(1.15, axes.get_ylim()[1]))
    axes.set_ylabel("efficiency (1 = ideal)")
