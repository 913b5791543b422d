"""Inference throughput per dollar of whole systems, relative to the baseline system."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from pandas import DataFrame

from faceoff.figures import style
from faceoff.records.labels import present
from faceoff.records.ratios import SystemRatio, inference_ratios, price_ratio

TITLE = "Throughput per dollar"
_COLORS = {"Offline": style.PALETTE[2], "Server": style.PALETTE[3]}


def draw(rows: DataFrame, presentation: Mapping[str, Any]) -> Figure:
    """Draw (ratio of throughput) / (ratio of price) as bars with the baseline as the line at 1.

    Beside each bar stands the break-even price ratio, at which both systems cost the same a sample/s: the ratio of
    throughput itself. Tiny presets are left out. Raises ConfigError for a system without a price.
    """
    rows = rows[(rows["kind"] == "inference") & (rows["preset"] != "tiny")]
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
    figure = style.create(title, rows, presentation, notes)
    for name, axes in style.panels(figure, others, columns=2).items():
        own = [ratio for ratio in ratios if ratio.system == name]
        _draw_system(axes, own, prices[name], rows, presentation)
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
        "Break-even: the price ratio that makes it 1."
    )
    return notes


def _draw_system(
    axes: Any, ratios: list[SystemRatio], price: float, rows: DataFrame, presentation: Mapping[str, Any]
) -> None:
    several = rows.groupby("workload")["accuracy"].nunique()
    labels = []
    for place, ratio in enumerate(ratios):
        value = (ratio.ratio or 0) / price
        axes.barh(place, value, 0.78, color=_COLORS.get(ratio.scenario, style.PALETTE[0]))
        text = f"{value:.2f}   break-even at {ratio.ratio:.2f}x the price"
        axes.annotate(text, (value, place), (6, 0), textcoords="offset points", va="center", size=style.NORMAL)
        accuracy = f" {ratio.accuracy}" if several[ratio.workload] > 1 else ""
        star = "*" if ratio.same_run else ""
        labels.append(f"{style.workload_title(ratio.workload, presentation)}{accuracy} {ratio.scenario}{star}")
    axes.axvline(1, color="black", lw=2)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1.45 * max(ratio.ratio or 0 for ratio in ratios) / price)
    axes.set_xlabel("throughput per dollar (baseline = 1)")
