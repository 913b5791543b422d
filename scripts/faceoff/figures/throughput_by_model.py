"""Inference throughput of every model, scenario and accuracy, systems side by side."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from pandas import DataFrame

from faceoff.figures import style
from faceoff.records.labels import in_order, present
from faceoff.records.ratios import CASE, SystemRatio, inference_ratios

TITLE = "Inference throughput by model"
_CASE = 0.84  # of the distance between two groups of bars


def draw(rows: DataFrame, presentation: Mapping[str, Any]) -> Figure:
    """Draw samples/s as bars, a panel a workload, above them ratios to the baseline: of several, each above its bar."""
    rows = in_order(rows[rows["kind"] == "inference"].fillna({"accuracy": "", "scenario": ""}), presentation)
    if rows.empty:
        return style.message(TITLE, rows, presentation, "No inference cell in this study.")
    figure = style.create(TITLE, rows, presentation, _notes(rows, presentation))
    colors = style.colors(presentation)
    ratios = inference_ratios(rows, presentation["baseline"])
    names = present(rows, "workload", presentation["workloads"])
    several = len({ratio.system for ratio in ratios}) > 1
    for name, axes in style.panels(figure, names).items():
        own = rows[rows["workload"] == name]
        _draw_workload(axes, own, colors, [ratio for ratio in ratios if ratio.workload == name], several)
        style.head_panel(axes, style.workload_title(name, presentation))
    systems = present(rows, "system", presentation["systems"])
    style.legend(figure, [Patch(color=colors[name], label=presentation["systems"][name]["title"]) for name in systems])
    return figure


def _notes(rows: DataFrame, presentation: Mapping[str, Any]) -> list[str]:
    systems = presentation["systems"]
    baseline = systems[presentation["baseline"]]["title"]
    others = [systems[name]["title"] for name in present(rows, "system", systems) if name != presentation["baseline"]]
    metrics = rows.dropna(subset=["result_metric"]).groupby("scenario", sort=False)["result_metric"].unique()
    told = "; ".join(f"{scenario}: {', '.join(names).lower()}" for scenario, names in metrics.items())
    above = f"Above the bars: {others[0]} / {baseline}." if len(others) == 1 else ""
    above = f"Above each bar: its ratio to {baseline}." if len(others) > 1 else above
    notes = [f"{above} {told}.".lstrip()]
    if rows.groupby([*CASE, "system"]).size().max() > 1:
        notes[0] += " Ratios are of geometric means."
    if rows["notes"].fillna("").str.startswith("same run as").any():
        notes[0] += " * one run published for both accuracies."
    return notes


def _draw_workload(
    axes: Axes, rows: DataFrame, colors: Mapping[str, str], ratios: list[SystemRatio], several: bool
) -> None:
    units = rows["result_unit"].dropna().unique()
    rows = rows[["system", "accuracy", "scenario", "outcome", "result"]]
    cases = sorted(set(zip(rows["accuracy"], rows["scenario"], strict=True)))
    systems = present(rows, "system", colors)
    width = _CASE / len(systems)
    highest = rows["result"].max()
    top = highest * (1.9 if several else 1.28) if highest > 0 else 1.0
    share = 0.68 if several else 0.58  # of the highest bar: a number fits inside a bar above it, over one below
    axes.set_ylim(0, top)
    for place, (accuracy, scenario) in enumerate(cases):
        case = rows[(rows["accuracy"] == accuracy) & (rows["scenario"] == scenario)]
        for index, system in enumerate(systems):
            centre = place - _CASE / 2 + (index + 0.5) * width
            for row in case[case["system"] == system].itertuples():
                _draw_bar(axes, row, centre, 0.96 * width, top, colors[system], inside=row.result > share * highest)
        for ratio in ratios:
            if (ratio.accuracy, ratio.scenario) == (accuracy, scenario):
                x = place - _CASE / 2 + (systems.index(ratio.system) + 0.5) * width if several else place
                _draw_ratio(axes, x, _ratio_text(ratio), upright=several)
    accuracies = {accuracy for accuracy, _ in cases}
    labels = [f"{scenario}\n{accuracy} %" if len(accuracies) > 1 else scenario for accuracy, scenario in cases]
    axes.set_xticks(range(len(cases)), labels)
    axes.set_xlim(-0.5, max(len(cases), 2) - 0.5)
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylabel(units[0] if len(units) else "")


def _draw_ratio(axes: Axes, x: float, text: str, upright: bool) -> None:
    rotation = 90 if upright else 0
    box = style.OVER_GRID if text else None
    place = ("data", "axes fraction")
    look: dict[str, Any] = {"weight": "bold", "rotation": rotation, "size": style.SMALL if upright else style.NORMAL}
    axes.annotate(text, (x, 0.995), xycoords=place, ha="center", va="top", bbox=box, **look)


def _draw_bar(axes: Axes, row: Any, centre: float, width: float, top: float, color: str, inside: bool) -> None:
    if row.outcome != "ok":
        axes.text(centre, 0.02 * top, row.outcome, rotation=90, ha="center", va="bottom", color=style.BAD)
        return
    axes.bar(centre, row.result, width, color=color)
    text = f"{row.result:,.0f}" if row.result >= 1000 else f"{row.result:.4g}"
    axes.text(
        centre,
        row.result - 0.02 * top if inside else row.result + 0.02 * top,
        text,
        rotation=90,
        size=style.SMALL,
        ha="center",
        va="top" if inside else "bottom",
        color=_readable_on(color) if inside else "black",
        bbox=None if inside else style.OVER_GRID,
    )


def _ratio_text(ratio: SystemRatio) -> str:
    if ratio.refused:
        return "no ratio"
    return "" if ratio.ratio is None else f"{ratio.ratio:.2f}x{'*' if ratio.same_run else ''}"


def _readable_on(color: str) -> str:
    red, green, blue = to_rgb(color)
    return "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.55 else "black"
