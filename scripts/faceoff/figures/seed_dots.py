"""Panels of dots, one a seed, by workload, layout and system: what several figures of training share."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame

from faceoff.figures import style
from faceoff.records.labels import one_question, present
from faceoff.records.statistics import dnf_allowance, summarise

_GROUP = 0.8  # of the distance between two layouts
_ROOMY = 4  # groups in a panel that leave room for words and large dots
_UNFINISHED = ("failed", "invalid", "not run")


def draw_panels(
    figure: Figure,
    rows: DataFrame,
    presentation: Mapping[str, Any],
    column: str,
    dnf_column: str,
    label: Callable[[DataFrame], tuple[float, str]],
    summarise_dnf: bool,
) -> dict[str, Axes]:
    """Draw `column` of each run that reached its target and `dnf_column` of each that did not, and the legend.

    `label` gives (divisor, text of the y axis) from a panel's rows. With `summarise_dnf` the range or interval is over
    all runs (a rate is valid without the target); otherwise over the runs that reached it, and left out when more
    missed it than the round's rule allows.
    """
    colors = style.colors(presentation)
    names = present(rows, "workload", presentation["workloads"])
    panels = style.panels(figure, names)
    for name, axes in panels.items():
        panel = rows[rows["workload"] == name]
        divisor, text = label(panel)
        value = panel[column].where(panel["outcome"] != "dnf", panel[dnf_column]) / divisor
        _draw_panel(axes, panel.assign(value=value), colors, summarise_dnf)
        axes.set_ylabel(text)
        style.head_panel(axes, style.target_title(name, presentation, panel))
        style.label_bottom(axes, "nodes x accelerators a node")
    style.legend(figure, _handles(rows, presentation, colors))
    return panels


def statistics_note(rows: DataFrame) -> str:
    """Say in words what the bar beside a group's dots is, and what stands above them."""
    counts = "k of n: reached, of all seeds."
    if not rows.groupby(["workload", "system", "layout"])[list(rows.columns)].apply(one_question).all():
        counts += " Records of different questions have no bar."
    if rows.groupby(["workload", "system", "layout"]).size().max() < 5:
        return f"One dot a seed; the bar is their range. Under 5 runs: no interval and no verdict. {counts}"
    return (
        "One dot a seed. From 5 runs the diamond is the geometric mean and the bar its 95 % interval "
        f"(t on log; from 10 runs bootstrap), else the bar is the range. {counts}"
    )


def _draw_panel(axes: Axes, panel: DataFrame, colors: Mapping[str, str], summarise_dnf: bool) -> None:
    layouts = style.layouts(panel)
    systems = present(panel, "system", colors)
    width = _GROUP / len(systems)
    roomy = len(layouts) * len(systems) <= _ROOMY
    told = []
    for place, layout in enumerate(layouts):
        for index, system in enumerate(systems):
            group = panel[(panel["layout"] == layout) & (panel["system"] == system)].sort_values("seed")
            centre = place - _GROUP / 2 + (index + 0.5) * width
            _draw_group(axes, group, centre, width, colors[system], 9 if roomy else 5, summarise_dnf)
            told.append(_count_lines(group, roomy))
            _annotate(axes, centre, told[-1], bad=group["outcome"].isin(_UNFINISHED).any())
    highest = panel["value"].max()
    rows = axes.get_subplotspec().get_gridspec().nrows
    head = 1.12 + 0.075 * rows * max(len(lines) for lines in told)
    axes.set_ylim(0, head * (highest if highest > 0 else 1))
    axes.set_xlim(-0.5, len(layouts) - 0.5)
    axes.set_xticks(range(len(layouts)), layouts)


def _draw_group(
    axes: Axes, group: DataFrame, centre: float, width: float, color: str, size: float, summarise_dnf: bool
) -> None:
    runs = group[group["outcome"].isin(["ok", "dnf"])]
    step = 0.6 * width / max(len(runs), 2)
    x = centre + (np.arange(len(runs)) - len(runs) / 2) * step
    dnf, resumed = runs["outcome"].eq("dnf").to_numpy(), runs["resumed"].eq(True).to_numpy()
    for marker, face, chosen in (("o", color, ~dnf & ~resumed), ("o", "white", ~dnf & resumed), ("x", color, dnf)):
        if chosen.any():
            look = {"color": color, "mfc": face, "mew": 0.2 * size, "ms": size, "clip_on": False}
            axes.plot(x[chosen], runs["value"].to_numpy()[chosen], marker, **look)
    missed = int(dnf.sum())
    if not summarise_dnf:
        if missed and missed > dnf_allowance(runs["round"].iloc[0]):
            return
        runs = runs[runs["outcome"] == "ok"]
    values = runs["value"].dropna()
    if len(values) < 2 or not one_question(runs):
        return
    summary = summarise(list(values))
    low, high = summary.interval or (summary.low, summary.high)
    side = centre + (len(runs) + missed * (not summarise_dnf)) / 2 * step + 0.02
    axes.plot([side, side], [low, high], "-", color=color, lw=2, marker="_", ms=8, mew=2, gid=summary.method)
    if summary.interval:
        axes.plot(side, summary.mean, "D", color=color, mec="white", ms=0.9 * size)


def _count_lines(group: DataFrame, roomy: bool) -> list[str]:
    counts = group["outcome"].value_counts()
    reached = counts.get("ok", 0)
    if group.empty or not roomy:
        return [] if group.empty else [f"{reached}/{len(group)}"]
    unlike = [] if one_question(group) else ["different questions"]
    unfinished = [f"{counts[name]} {name}" for name in _UNFINISHED if name in counts]
    return [f"{reached} of {len(group)} reached", *unfinished, *unlike]


def _annotate(axes: Axes, centre: float, lines: list[str], bad: bool) -> None:
    axes.annotate(
        "\n".join(lines),
        (centre, 1),
        xycoords=("data", "axes fraction"),
        ha="center",
        va="top",
        size=style.SMALL,
        color=style.BAD if bad else "black",
        bbox=style.OVER_GRID,
    )


def _handles(rows: DataFrame, presentation: Mapping[str, Any], colors: Mapping[str, str]) -> list[Line2D]:
    def mark(marker: str, label: str, color: str = "#333333", face: str | None = None) -> Line2D:
        return Line2D([], [], ls="", marker=marker, color=color, mfc=face or color, mew=2, ms=9, label=label)

    systems = present(rows, "system", presentation["systems"])
    handles = [mark("s", presentation["systems"][name]["title"], colors[name]) for name in systems]
    handles.append(mark("o", "reached the target"))
    if rows["resumed"].eq(True).any():
        handles.append(mark("o", "resumed", face="white"))
    if rows["outcome"].eq("dnf").any():
        handles.append(mark("x", "did not reach it (dnf)"))
    return handles
