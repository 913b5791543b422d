"""The look that all figures share: slide size, colours, header and footer, and files whose bytes repeat."""

import json
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from pandas import DataFrame

from faceoff.files import atomic_path
from faceoff.records.labels import honest_labels, short

SIZE = (13.333, 7.5)  # inches: a 16:9 slide
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito (2008): told apart by colour-blind readers."""
BAD = "#B40F20"
QUIET = "#595959"
OVER_GRID = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
"""The box of a text that would else stand on grid lines."""
SMALL, NORMAL, LARGE, HUGE = 10, 12, 14, 22  # points

mpl.rcParams.update(
    {
        "font.size": NORMAL,
        "axes.titlesize": LARGE,
        "axes.labelsize": NORMAL,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.axisbelow": True,
        "grid.color": "#DDDDDD",
        "legend.frameon": False,
        "legend.fontsize": NORMAL,
        "svg.hashsalt": "faceoff",
    }
)

_METADATA: Mapping[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
_MARGIN = 0.02
_WIDTH = 72 * SIZE[0] * (1 - 2 * _MARGIN)  # of a line of the footer, in points
_LINE = 1.35 * SMALL / 72 / SIZE[1]  # height of a line of the footer, as a fraction of the figure
_PACKAGES = ("torch", "tensorflow", "tensorflow-cpu", "onnxruntime", "tensorrt", "tensorrt-rtx", "mlcommons-loadgen")


def create(title: str, rows: DataFrame, presentation: Mapping[str, Any], notes: Iterable[str] = ()) -> Figure:
    """Return a figure with header and footer and room between them; its text says what the rows are worth."""
    figure = Figure(figsize=SIZE, layout="constrained")
    figure.text(_MARGIN, 0.985, title, size=HUGE, weight="bold", va="top")
    figure.text(_MARGIN, 0.925, presentation["title"], size=LARGE, color=QUIET, va="top")
    done = int((rows["outcome"] != "not run").sum())
    if done < len(rows):
        figure.text(
            1 - _MARGIN,
            0.985,
            f"partial: {done} of {len(rows)} cells",
            size=LARGE,
            color=BAD,
            weight="bold",
            va="top",
            ha="right",
        )
    lines = [line for note in (*notes, *footer(rows, presentation)) for line in _wrap(note, _WIDTH, SMALL)]
    figure.text(_MARGIN, 0.012, "\n".join(lines), size=SMALL, color=QUIET, va="bottom", linespacing=1.25)
    bottom = 0.025 + len(lines) * _LINE
    figure.get_layout_engine().set(rect=(_MARGIN / 2, bottom, 1 - _MARGIN, 0.84 - bottom), w_pad=0.1, h_pad=0.06)
    return figure


def legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Put the legend under the header, in one row if it fits, and the panels under the legend."""
    width = sum(0.62 * NORMAL * len(handle.get_label()) + 45 for handle in handles) / 72
    rows = math.ceil(width / (SIZE[0] * (1 - 2 * _MARGIN)))
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(_MARGIN - 0.005, 0.895),
        ncols=math.ceil(len(handles) / rows),
        columnspacing=1.6,
    )
    left, bottom, across, up = figure.get_layout_engine().get()["rect"]
    figure.get_layout_engine().set(rect=(left, bottom, across, up - 0.035 * (rows - 1)))


def panels(figure: Figure, names: Sequence[str], columns: int = 3) -> dict[str, Axes]:
    """Return one axes a name, in a grid that wastes no cell it can avoid."""
    rows = math.ceil(len(names) / columns)
    columns = math.ceil(len(names) / rows)
    grid = figure.add_gridspec(rows, columns)
    return {name: figure.add_subplot(grid[divmod(index, columns)]) for index, name in enumerate(names)}


def label_bottom(axes: Axes, text: str) -> None:
    """Label the x axis of a panel that has no other panel below it in its grid."""
    if axes.get_subplotspec().is_last_row():
        axes.set_xlabel(text)


def message(title: str, rows: DataFrame, presentation: Mapping[str, Any], text: str) -> Figure:
    """Return a figure that only says why there is nothing to draw."""
    figure = create(title, rows, presentation)
    figure.text(0.5, 0.5, "\n".join(textwrap.wrap(text, 80)), size=LARGE, ha="center", va="center")
    return figure


def colors(presentation: Mapping[str, Any]) -> dict[str, str]:
    """Return each system's colour: its own, or the next of the palette."""
    systems = presentation["systems"]
    return {
        name: system.get("color") or PALETTE[index % len(PALETTE)]
        for index, (name, system) in enumerate(systems.items())
    }


def layouts(rows: DataFrame) -> list[str]:
    """Return the layouts in rows by their number of accelerators, then of nodes."""
    distinct = rows[["layout", "nodes", "accelerators"]].drop_duplicates()
    sizes = {name: (nodes * accelerators, nodes) for name, nodes, accelerators in distinct.itertuples(index=False)}
    return sorted(sizes, key=lambda name: sizes[name])


def time_unit(seconds: float) -> tuple[float, str]:
    """Return (divisor, unit) for an axis that reaches so many seconds; s for none (NaN)."""
    return (3600.0, "h") if seconds > 5 * 3600 else (60.0, "min") if seconds > 300 else (1.0, "s")


def clock(rows: DataFrame, unit: str) -> str:
    """Return the label of an axis of time: what the clock of the rows' rounds includes, and the unit."""
    starts = {"with initialisation" if name == "v0.5" else "run start to run stop" for name in rows["round"].dropna()}
    return f"{' or '.join(sorted(starts)) or 'time'} ({unit})"


def workload_title(name: str, presentation: Mapping[str, Any]) -> str:
    """Return a workload's title with its preset and variant."""
    workload = presentation["workloads"][name]
    preset, variant = workload.get("preset", "reference"), name.partition("+")[2]
    size = "" if preset == "reference" else f" ({preset})"
    return f"{workload['title']}{size}" + (f", variant {variant}" if variant else "")


def target_title(name: str, presentation: Mapping[str, Any], rows: DataFrame) -> str:
    """Return a workload's title with the targets of the rows drawn, which may not be today's."""
    told = " / ".join(f"{target:g}" for target in targets(rows, presentation["workloads"][name]))
    return f"{workload_title(name, presentation)} to {presentation['workloads'][name]['metric']['name']} {told}"


def targets(rows: DataFrame, workload: Mapping[str, Any]) -> list[float]:
    """Return the targets of runs; without any run, the workload's own."""
    found = rows.loc[rows["outcome"].isin(["ok", "dnf"]), "target"].dropna().unique()
    return sorted(float(target) for target in found) or [workload["target"]]


def head_panel(axes: Axes, text: str) -> None:
    """Write the head of a panel, in as many lines as its width asks for."""
    columns = axes.get_subplotspec().get_gridspec().ncols
    axes.set_title("\n".join(_wrap(text, 0.9 * _WIDTH / columns, LARGE, "bold")), loc="left", weight="bold")


def _wrap(text: str, width: float, size: float, weight: str = "normal") -> list[str]:
    """Break text into lines of at most `width` points, where it has words short enough."""
    space = _width("n n", size, weight) - 2 * _width("n", size, weight)
    lines: list[list[str]] = []
    left = 0.0
    for word in text.split():
        needed = space + _width(word, size, weight)
        if lines and needed <= left:
            lines[-1].append(word)
        else:
            lines.append([word])
            left = width + space
        left -= needed
    return [" ".join(line) for line in lines]


@lru_cache(maxsize=4096)
def _width(text: str, size: float, weight: str) -> float:
    """Return the width of text in points."""
    return float(text_to_path.get_text_width_height_descent(text, FontProperties(size=size, weight=weight), False)[0])


def footer(rows: DataFrame, presentation: Mapping[str, Any]) -> list[str]:
    """Return the lines that every figure carries: provenance, honest labels, marks, and what MLCommons asks for."""
    lines = [_provenance(rows, presentation)]
    bad = rows[rows["outcome"].isin(["failed", "invalid"])]
    lines += [f"{row.outcome}: {_cell_name(row)}: {short(row.reason)}" for row in bad.head(2).itertuples()]
    if len(bad) > 2:
        lines.append(f"... and {len(bad) - 2} more: see the table bad_cells")
    return lines + honest_labels(rows, presentation)


def save(figure: Figure, paths: Iterable[Path]) -> None:
    """Write the figure in the format of each path's suffix, atomically; equal figures give equal bytes."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # the layout is found once, not for every format
    for axes in figure.axes:  # the layout's solver goes by addresses in memory: its last digits are not repeated
        axes.set_position([round(edge, 6) for edge in axes.get_position(original=True).bounds])
    for path in paths:
        kind = path.suffix.removeprefix(".")
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format=kind, dpi=120, metadata=_METADATA[kind])


def _provenance(rows: DataFrame, presentation: Mapping[str, Any]) -> str:
    counts = rows["outcome"].value_counts()
    parts = ", ".join(
        f"{counts[name]} {name}" for name in ("ok", "dnf", "invalid", "failed", "not run") if name in counts
    )
    texts = [f"Study {presentation['study']}", f"n = {len(rows)} cells: {parts}"]
    dated = rows[rows["outcome"] != "not run"].dropna(subset=["ended"])
    for source, text in (("measured", "newest record"), ("published", "results published")):
        dates = dated.loc[dated["source"] == source, "ended"]
        texts += [f"{text} {max(dates)[:10]}"] if len(dates) else []
    texts += _versions(rows)
    return " · ".join(texts)


def _versions(rows: DataFrame) -> list[str]:
    found: dict[str, set[str]] = {}
    for source, text in rows[["source", "versions"]].dropna().drop_duplicates().itertuples(index=False):
        for package, version in json.loads(text).items():
            if source == "published" or package in _PACKAGES:
                found.setdefault(package, set()).add(version)
    return [f"{package} {' / '.join(sorted(versions))}" for package, versions in sorted(found.items())]


def _cell_name(row: Any) -> str:
    parts = (row.workload, row.system, row.layout, row.scenario)
    seed = f"seed {row.seed}" if row.kind == "training" else ""
    return " ".join(part for part in (*parts, seed) if isinstance(part, str) and part)
