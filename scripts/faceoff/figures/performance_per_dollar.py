"""Inference throughput per dollar of whole systems, relative to the baseline system."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from pandas import DataFrame

from faceoff.figures import style
from faceoff.records.labels import in_order, present
from faceoff.records.prices import price_ratio
from faceoff.records.ratios import CASE, SystemRatio, inference_ratios

TITLE = "Throughput per dollar"
_ONE_COLUMN = 20  # bars that are readable one above the other
_COLORS = {"Offline": style.PALETTE[2], "Server": style.PALETTE[3]}


def draw(rows: DataFrame, presentation: Mapping[str, Any]) -> Figure:
    """Draw (ratio of throughput) / (ratio of price) as bars with the baseline as the line at 1.

    Beside each bar stands the break-even price ratio, at which both systems cost the same a sample/s: the ratio of
    throughput itself. Tiny presets are left out. Raises ConfigError for a system without a price.
    """
    rows = in_order(rows[(rows["kind"] == "inference") & (rows["preset"] != "tiny")], presentation)
    baseline = presentation["baseline"]
    ratios = [ratio for ratio in inference_ratios(rows, baseline) if ratio.ratio]
    if not ratios:
        return style.message(
            TITLE, rows, presentation, "No pair of inference results beyond tiny presets: nothing per dollar."
        )
    systems = presentation["systems"]
    others = present(rows[rows["system"] != baseline], "system", systems)
    prices = {name: price_ratio(systems, name, baseline) for name in others}
    title = f"{TITLE}, relative to {systems[baseline]['title']}"
    notes = _notes(prices, presentation)
    if any(ratio.same_run for ratio in ratios):
        notes[-1] += " * one run for both accuracies."
    if rows.groupby([*CASE, "system"]).size().max() > 1:
        notes[-1] += " Ratios are of geometric means."
    figure = style.create(title, rows, presentation, notes)
    several = set(rows.groupby("workload")["accuracy"].nunique().loc[lambda counts: counts > 1].index)
    labels = list(dict.fromkeys(_label(ratio, several, presentation) for ratio in ratios))
    columns = 1 if len(labels) * len(others) <= _ONE_COLUMN else 3
    for name, axes in style.panels(figure, others, columns).items():
        own = {_label(ratio, several, presentation): ratio for ratio in ratios if ratio.system == name}
        _draw_system(axes, own, labels, prices[name])
        style.head_panel(axes, systems[name]["title"])
        style.label_bottom(axes, "throughput per dollar (baseline = 1)")
        axes.tick_params(axis="y", labelleft=axes.get_subplotspec().is_first_col())
    handles: list[Any] = [Patch(color=_COLORS[name], label=name) for name in _COLORS if name in set(rows["scenario"])]
    style.legend(figure, [*handles, Line2D([], [], color="black", lw=2, label=f"{systems[baseline]['title']} = 1")])
    return figure


def _notes(prices: Mapping[str, float], presentation: Mapping[str, Any]) -> list[str]:
    notes = []
    for name, ratio in prices.items():
        system = presentation["systems"][name]
        price = system["price"]
        parts = [price.get("source"), price.get("date") and f"of {price['date']}"]
        origin = " ".join(str(part) for part in parts if part) or "configured"
        told = f"Price of {system['title']}: {ratio:g} times the baseline's ({origin}). {price.get('note', '')}"
        notes.append(told.strip())
    notes.append(
        "Derived here for whole systems: no MLPerf™ Inference metric, neither official nor verified. "
        "Break-even: the price ratio at which it is 1."
    )
    return notes


def _label(ratio: SystemRatio, several: set[str], presentation: Mapping[str, Any]) -> str:
    """Return a bar's name; the accuracy only where a workload has several."""
    accuracy = f" {ratio.accuracy}" if ratio.workload in several else ""
    return f"{style.workload_title(ratio.workload, presentation)}{accuracy} {ratio.scenario}"


def _draw_system(axes: Axes, ratios: Mapping[str, SystemRatio], labels: Sequence[str], price: float) -> None:
    for place, label in enumerate(labels):
        ratio = ratios.get(label)
        value = (ratio.ratio or 0) / price if ratio else 0
        text = "no ratio"
        if ratio and value:
            axes.barh(place, value, 0.78, color=_COLORS.get(ratio.scenario, style.PALETTE[0]))
            text = f"{value:.2f}{'*' if ratio.same_run else ''}   break-even {ratio.ratio:.2f}"
        axes.annotate(text, (value, place), (6, 0), textcoords="offset points", va="center", size=style.SMALL)
    axes.axvline(1, color="black", lw=2)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.tick_params(axis="y", length=0)
    # Room right of the longest bar for its text, which is as wide in points whatever the panel's width.
    columns = axes.get_subplotspec().get_gridspec().ncols
    longest = max([1.0, *(ratio.ratio / price for ratio in ratios.values() if ratio.ratio)])
    axes.set_xlim(0, longest * (1 + (0.25, 0.55, 1.15)[columns - 1]))
