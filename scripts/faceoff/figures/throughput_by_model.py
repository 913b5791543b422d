"""Inference throughput of every model, scenario and accuracy, systems side by side."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from pandas import DataFrame

from faceoff.figures import style
from faceoff.records.labels import present
from faceoff.records.ratios import SystemRatio, inference_ratios

TITLE = "Inference throughput by model"
_CASE = 0.84  # of the distance between two groups of bars


def draw(rows: DataFrame, presentation: Mapping[str, Any]) -> Figure:
    """Draw samples/s as bars, a panel a workload, and above each group its ratios to the baseline."""
    rows = rows[rows["kind"] == "inference"].fillna({"accuracy": "", "scenario": ""})
    if rows.empty:
        return style.message(TITLE, rows, presentation, "No inference cell in this study.")
    figure = style.create(TITLE, rows, presentation, _notes(rows, presentation))
    colors = style.colors(presentation)
    ratios = inference_ratios(rows, presentation["baseline"])
    names = present(rows, "workload", presentation["workloads"])
    for name, axes in style.panels(figure, names).items():
        own = rows[rows["workload"] == name]
        _draw_workload(axes, own, colors, [ratio for ratio in ratios if ratio.workload == name])
        axes.set_title(style.workload_title(name, presentation), loc="left", weight="bold")
    systems = present(rows, "system", presentation["systems"])
    style.legend(figure, [Patch(color=colors[name], label=presentation["systems"][name]["title"]) for name in systems])
    return figure


def _notes(rows: DataFrame, presentation: Mapping[str, Any]) -> list[str]:
    systems = presentation["systems"]
    baseline = systems[presentation["baseline"]]["title"]
    others = [systems[name]["title"] for name in present(rows, "system", systems) if name != presentation["baseline"]]
    metrics = rows.dropna(subset=["result_metric"]).groupby("scenario", sort=False)["result_metric"].unique()
    told = "; ".join(f"{scenario}: {', '.join(names).lower()}" for scenario, names in metrics.items())
    notes = [f"Above the bars: {', '.join(others)} / {baseline}. {told}."]
    if rows["notes"].fillna("").str.startswith("same run as").any():
        notes[0] += " * one run published for both accuracies."
    return notes


def _draw_workload(axes: Axes, rows: DataFrame, colors: Mapping[str, str], ratios: list[SystemRatio]) -> None:
    units = rows["result_unit"].dropna().unique()
    rows = rows[["system", "accuracy", "scenario", "outcome", "result"]]
    cases = sorted(set(zip(rows["accuracy"], rows["scenario"], strict=True)))
    systems = present(rows, "system", colors)
    width = _CASE / len(systems)
    highest = rows["result"].max()
    top = highest * 1.28 if highest > 0 else 1.0
    axes.set_ylim(0, top)
    for place, (accuracy, scenario) in enumerate(cases):
        case = rows[(rows["accuracy"] == accuracy) & (rows["scenario"] == scenario)]
        for index, system in enumerate(systems):
            centre = place - _CASE / 2 + (index + 0.5) * width
            for row in case[case["system"] == system].itertuples():
                _draw_bar(axes, row, centre, 0.96 * width, top, colors[system])
        told = [_ratio_text(ratio) for ratio in ratios if (ratio.accuracy, ratio.scenario) == (accuracy, scenario)]
        axes.text(place, 0.995 * top, "  ".join(told), ha="center", va="top", weight="bold")
    several = len({accuracy for accuracy, _ in cases}) > 1
    axes.set_xticks(
        range(len(cases)), [f"{scenario}\n{accuracy} %" if several else scenario for accuracy, scenario in cases]
    )
    axes.set_xlim(-0.5, max(len(cases), 2) - 0.5)
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylabel(units[0] if len(units) else "")


def _draw_bar(axes: Axes, row: Any, centre: float, width: float, top: float, color: str) -> None:
    if row.outcome != "ok":
        axes.text(centre, 0.02 * top, row.outcome, rotation=90, ha="center", va="bottom", color=style.BAD)
        return
    axes.bar(centre, row.result, width, color=color)
    inside = row.result > 0.45 * top
    text = f"{row.result:,.0f}" if row.result >= 1000 else f"{row.result:.4g}"
    axes.text(
        centre,
        row.result - 0.02 * top if inside else row.result + 0.02 * top,
        text,
        rotation=90,
        size=style.NORMAL - 1,
        ha="center",
        va="top" if inside else "bottom",
        color=_readable_on(color) if inside else "black",
    )


def _ratio_text(ratio: SystemRatio) -> str:
    if ratio.refused:
        return "no ratio"
    return "" if ratio.ratio is None else f"{ratio.ratio:.2f}x{'*' if ratio.same_run else ''}"


def _readable_on(color: str) -> str:
    red, green, blue = to_rgb(color)
    return "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.55 else "black"
