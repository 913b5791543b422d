"""Quality against training time, every run a line."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame

from faceoff.figures import style
from faceoff.records.labels import present

TITLE = "Quality against time"
_STROKES = ("-", "--", ":", "-.")
_FEW = 150  # evaluations in a panel that may each have a dot


def draw(rows: DataFrame, presentation: Mapping[str, Any]) -> Figure:
    """Draw the quality at each evaluation (its metric's unit) against the time since the clock started."""
    rows = rows[rows["kind"] == "training"]
    if rows.empty:
        return style.message(TITLE, rows, presentation, "No training cell in this study.")
    notes = ["One line a run; dots are evaluations; hollow: resumed; a cross ends a run that missed its target."]
    figure = style.create(TITLE, rows, presentation, notes)
    systems = present(rows, "system", presentation["systems"])
    layouts = style.layouts(rows)
    colors, strokes = style.colors(presentation), dict(zip(layouts, _STROKES * len(layouts), strict=False))
    if len(systems) == 1:  # then colours tell the layouts apart
        shades = dict(zip(layouts, style.PALETTE * len(layouts), strict=False))
        looks = {(systems[0], layout): (shades[layout], "-") for layout in layouts}
        title = presentation["systems"][systems[0]]["title"]
        handles = [Line2D([], [], color=shades[layout], label=f"{title}, {layout}") for layout in layouts]
    else:
        looks = {(system, layout): (colors[system], strokes[layout]) for system in systems for layout in layouts}
        titles = {system: presentation["systems"][system]["title"] for system in systems}
        handles = [Line2D([], [], color=colors[system], label=titles[system]) for system in systems]
        handles += [Line2D([], [], color=style.QUIET, ls=strokes[layout], label=layout) for layout in layouts]
    names = present(rows, "workload", presentation["workloads"])
    for name, axes in style.panels(figure, names).items():
        _draw_workload(axes, rows[rows["workload"] == name], presentation["workloads"][name], looks)
        style.head_panel(axes, style.target_title(name, presentation, rows[rows["workload"] == name]))
    style.legend(figure, [*handles, Line2D([], [], ls=(0, (1, 1)), lw=1, color="black", label="target")])
    return figure


def _draw_workload(
    axes: Axes, rows: DataFrame, workload: Mapping[str, Any], looks: Mapping[tuple[str, str], tuple[str, str]]
) -> None:
    divisor, unit = style.time_unit(rows["elapsed_s"].max())
    axes.set_xlabel(style.clock(rows, unit))
    axes.set_ylabel(workload["metric"]["name"])
    for target in style.targets(rows, workload):
        axes.axhline(target, ls=(0, (1, 1)), lw=1, color="black")
    runs = rows[["system", "layout", "outcome", "resumed", "curve"]].dropna(subset=["curve"])
    few = sum(len(curve) for curve in runs["curve"]) <= _FEW
    for run in runs.itertuples():
        color, stroke = looks[run.system, run.layout]
        times = [point["time_s"] / divisor for point in run.curve]
        quality = [point["quality"] for point in run.curve]
        face = "white" if run.resumed else color
        axes.plot(
            times, quality, color=color, ls=stroke, lw=1.5, marker="o" if few or run.resumed else "", ms=5, mfc=face
        )
        if run.outcome == "dnf" and times:
            axes.plot(times[-1], quality[-1], "x", color=color, ms=10, mew=2.5)
    axes.set_xlim(left=0)
    if runs.empty:
        axes.text(0.5, 0.5, "no run has finished", transform=axes.transAxes, ha="center", va="center")
