"""The results: training by workload, system and layout; inference by workload, accuracy, scenario and system."""

from collections.abc import Mapping
from typing import Any

from pandas import DataFrame

from faceoff.records.convergence import convergence_notes
from faceoff.records.labels import honest_labels, in_order, one_question
from faceoff.records.ratios import CASE, inference_ratios
from faceoff.records.statistics import dnf_allowance, olympic_mean, summarise
from faceoff.tables.text import Table, significant

_COLUMNS = (
    "workload",
    "system",
    "layout",
    "accuracy",
    "scenario",
    "reached",
    "time min (s)",
    "time mean (s)",
    "time max (s)",
    "time interval (s)",
    "time a success (s)",
    "olympic mean (s)",
    "epochs",
    "throughput",
    "result",
    "unit",
    "ratio to baseline",
    "p99 latency (ms)",
    "precision",
    "quality",
    "verdict",
    "other cells",
    "notes",
    "statistics",
)

_MEANINGS = {
    "time mean (s)": "Time mean: geometric, over runs that reached the target.",
    "time a success (s)": "Time a success: all runs' time / successes.",
    "olympic mean (s)": "Olympic mean: arithmetic, without the fastest and the slowest run, MLPerf's rule.",
    "throughput": "Throughput: geometric mean of all runs, also of those that missed the target.",
    "ratio to baseline": "Ratio to baseline: of results; of their geometric means where a case has several runs.",
}


def tabulate(rows: DataFrame, presentation: Mapping[str, Any]) -> Table:
    """Return the results; a cell without a number says its outcome and reason in its place."""
    systems, workloads = presentation["systems"], presentation["workloads"]
    rows = in_order(rows, presentation)
    training = [
        _training(own, workload, systems[system]["title"], layout, workloads[workload])
        for (workload, system, layout), own in rows[rows["kind"] == "training"].groupby(
            ["workload", "system", "layout"], sort=False
        )
    ]
    inference, marks = _inference(rows, presentation)
    table = [*training, *inference]
    filled = {name for row in table for name, value in row.items() if value not in (None, "")}
    notes = [
        " ".join(text for name, text in _MEANINGS.items() if name in filled),
        *(f"Ratios: {mark}." for mark in marks),
        *honest_labels(rows, presentation),
    ]
    return Table("Results", _COLUMNS, table, "\n\n".join(filter(None, notes)))


def _training(
    rows: DataFrame, workload: str, system: str, layout: str, description: Mapping[str, Any]
) -> dict[str, Any]:
    ran = rows[rows["outcome"].isin(["ok", "dnf"])]
    reached = ran[ran["outcome"] == "ok"]
    row: dict[str, Any] = {
        "workload": workload,
        "system": system,
        "layout": layout,
        "reached": f"{len(reached)} of {len(rows)}",
        "other cells": "; ".join(_told(cell) for cell in rows[~rows["outcome"].isin(["ok", "dnf"])].to_dict("records")),
    }
    if ran.empty:
        return row
    if not one_question(ran):
        return {**row, "notes": "; ".join(["no mean: records of different questions", *_resumed(ran)])}
    rates = list(ran["throughput"].dropna())
    row |= {
        "throughput": significant(summarise(rates).mean) if rates else None,
        "unit": ran["throughput_unit"].iloc[0],
        "notes": "; ".join([*convergence_notes(rows), *_resumed(ran)]),
    }
    if reached.empty:
        return row
    summary = summarise(list(reached["time_to_target_s"]))
    row |= {
        "time min (s)": significant(summary.low),
        "time max (s)": significant(summary.high),
        "time a success (s)": significant(ran["elapsed_s"].sum() / len(reached)),
        "epochs": _range(reached["epochs"]),
        "statistics": summary.method,
    }
    if len(ran) - len(reached) > dnf_allowance(ran["round"].iloc[0]):
        return {**row, "time mean (s)": "none: too many missed the target"}
    if summary.interval:
        row["time mean (s)"] = significant(summary.mean)
        row["time interval (s)"] = f"{summary.interval[0]:.4g} to {summary.interval[1]:.4g}"
    if "mlperf_runs" in description:
        row["olympic mean (s)"] = _olympic_mean(ran, int(description["mlperf_runs"]))
    return row


def _olympic_mean(ran: DataFrame, runs: int) -> float | str | None:
    whole = ran[~ran["resumed"].astype(bool)].sort_values("seed")
    result = olympic_mean(list(whole["time_to_target_s"].fillna(float("inf"))), runs)
    return f"none: {runs} runs asked for, {len(whole)} there" if result is None else significant(result)


def _inference(rows: DataFrame, presentation: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rows, and the marks that all ratios share and that are said once."""
    rows = rows[rows["kind"] == "inference"].fillna({"accuracy": "", "scenario": "", "notes": ""})
    if rows.empty:
        return [], []
    ratios = {
        (ratio.workload, ratio.accuracy, ratio.scenario, ratio.system): ratio
        for ratio in inference_ratios(rows, presentation["baseline"])
    }
    told = [ratio.marks for ratio in ratios.values() if ratio.ratio]
    common = [mark for mark in (told[0] if told else ()) if all(mark in marks for marks in told)]
    table = []
    for cell in rows.to_dict("records"):
        ratio = ratios.get((*(cell[key] for key in CASE), cell["system"]))
        own = [mark for mark in ratio.marks if mark not in common] if ratio else []
        good = cell["outcome"] == "ok"
        table.append(
            {
                **{key: cell[key] for key in (*CASE, "layout", "precision", "verdict")},
                "system": presentation["systems"][cell["system"]]["title"],
                "result": cell["result"] if good else _told(cell),
                "unit": f"{cell['result_unit']} ({cell['result_metric'].lower()})" if good else None,
                "quality": f"{cell['quality']:.5g} {cell['quality_metric']}" if good else None,
                "p99 latency (ms)": significant(1000 * cell["latency_p99_s"])
                if cell["scenario"] != "Offline"
                else None,
                "ratio to baseline": (
                    f"refused: {ratio.refused}" if ratio.refused else ratio.ratio and round(ratio.ratio, 4)
                )
                if ratio
                else None,
                "notes": "; ".join(filter(None, [cell["notes"], *own])),
            }
        )
    return table, common


def _milliseconds(seconds: float) -> float | None:
    return significant(1000 * seconds)


def _told(cell: Mapping[str, Any]) -> str:
    seed = f"seed {cell['seed']} " if cell["kind"] == "training" else ""
    return f"{seed}{cell['outcome']}" + (f": {cell['reason']}" if cell["reason"] else "")


def _resumed(ran: DataFrame) -> list[str]:
    count = int(ran["resumed"].astype(bool).sum())
    return [f"{count} resumed"] if count else []


def _range(values: Any) -> str:
    low, high = values.min(), values.max()
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
