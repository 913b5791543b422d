"""The results: training by workload, system and layout; inference by workload, accuracy, scenario and system."""

from collections.abc import Mapping
from typing import Any

from pandas import DataFrame

from faceoff.records.convergence import convergence_notes
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
    "MLPerf result (s)",
    "epochs",
    "throughput",
    "result",
    "unit",
    "ratio to baseline",
    "p99 latency (s)",
    "precision",
    "quality",
    "verdict",
    "other cells",
    "notes",
    "statistics",
)


def tabulate(rows: DataFrame, presentation: Mapping[str, Any]) -> Table:
    """Return the results; a cell without a number says its outcome and reason in its place."""
    systems, workloads = presentation["systems"], presentation["workloads"]
    training = [
        _training(own, workload, systems[system]["title"], layout, workloads[workload])
        for (workload, system, layout), own in rows[rows["kind"] == "training"].groupby(
            ["workload", "system", "layout"], sort=False
        )
    ]
    tiny = any(workload["preset"] == "tiny" for workload in workloads.values())
    note = "Time mean: geometric, over runs that reached the target. Time a success: all runs' time / successes."
    notes = [note if training else "", "Tiny presets check the workflow and rank no hardware." if tiny else ""]
    return Table("Results", _COLUMNS, [*training, *_inference(rows, presentation)], " ".join(filter(None, notes)))


def _training(
    rows: DataFrame, workload: str, system: str, layout: str, description: Mapping[str, Any]
) -> dict[str, Any]:
    ran = rows[rows["outcome"].isin(["ok", "dnf"])]
    reached = ran[ran["outcome"] == "ok"]
    row: dict[str, Any] = {
        "workload": workload,
        "system": system,
        "layout": layout,
        "reached": f"{len(reached)} of {len(ran)}",
        "other cells": "; ".join(_told(cell) for cell in rows[~rows["outcome"].isin(["ok", "dnf"])].to_dict("records")),
    }
    if ran.empty:
        return {**row, "reached": "none ran"}
    row |= {
        "throughput": significant(ran["throughput"].mean()),
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
        return {**row, "time mean (s)": f"none: {len(reached)} of {len(ran)} reached the target"}
    row["time mean (s)"] = significant(summary.mean)
    if summary.interval:
        row["time interval (s)"] = f"{summary.interval[0]:.4g} to {summary.interval[1]:.4g}"
    if "mlperf_runs" in description:
        row["MLPerf result (s)"] = _mlperf_result(ran, int(description["mlperf_runs"]))
    return row


def _mlperf_result(ran: DataFrame, runs: int) -> float | str | None:
    whole = ran[~ran["resumed"].astype(bool)].sort_values("seed")
    result = olympic_mean(list(whole["time_to_target_s"].fillna(float("inf"))), runs)
    return f"none: {runs} runs asked for, {len(whole)} there" if result is None else significant(result)


def _inference(rows: DataFrame, presentation: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = rows[rows["kind"] == "inference"].fillna({"accuracy": "", "scenario": "", "notes": ""})
    if rows.empty:
        return []
    ratios = {
        (ratio.workload, ratio.accuracy, ratio.scenario, ratio.system): ratio
        for ratio in inference_ratios(rows, presentation["baseline"])
    }
    table = []
    for cell in rows.to_dict("records"):
        ratio = ratios.get((*(cell[key] for key in CASE), cell["system"]))
        good = cell["outcome"] == "ok"
        table.append(
            {
                **{key: cell[key] for key in (*CASE, "layout", "precision", "verdict")},
                "system": presentation["systems"][cell["system"]]["title"],
                "result": cell["result"] if good else _told(cell),
                "unit": f"{cell['result_unit']} ({cell['result_metric'].lower()})" if good else None,
                "quality": f"{cell['quality']:.5g} {cell['quality_metric']}" if good else None,
                "p99 latency (s)": significant(cell["latency_p99_s"]) if cell["scenario"] != "Offline" else None,
                "ratio to baseline": (
                    f"refused: {ratio.refused}" if ratio.refused else ratio.ratio and round(ratio.ratio, 4)
                )
                if ratio
                else None,
                "notes": "; ".join(filter(None, [cell["notes"], *(ratio.marks if ratio else ())])),
            }
        )
    return table


def _told(cell: Mapping[str, Any]) -> str:
    seed = f"seed {cell['seed']} " if cell["kind"] == "training" else ""
    return f"{seed}{cell['outcome']}" + (f": {cell['reason']}" if cell["reason"] else "")


def _resumed(ran: DataFrame) -> list[str]:
    count = int(ran["resumed"].astype(bool).sum())
    return [f"{count} resumed"] if count else []


def _range(values: Any) -> str:
    low, high = values.min(), values.max()
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
