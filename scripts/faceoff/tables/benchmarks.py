"""The benchmarks of a study: data set, network, metric, target."""

from collections.abc import Mapping
from typing import Any

from pandas import DataFrame

from faceoff.records.labels import present
from faceoff.tables.text import Table

_COLUMNS = (
    "workload",
    "benchmark",
    "area",
    "data set",
    "network",
    "metric",
    "FP32 reference",
    "target",
    "server latency bound (ms)",
    "round",
)


def tabulate(rows: DataFrame, presentation: Mapping[str, Any]) -> Table:
    """Return a row a workload; inference shows the FP32 reference and its goals, 99 % or 99.9 % of that."""
    workloads = presentation["workloads"]
    table = []
    for name in present(rows, "workload", workloads):
        workload, rounds = workloads[name], rows.loc[rows["workload"] == name, "round"].dropna().unique()
        facts = _inference(workload["inference"]) if "inference" in workload else _training(workload)
        head = {"workload": name, "benchmark": workload["title"], "area": workload["area"]}
        table.append({**head, "round": " / ".join(sorted(rounds)), **facts})
    tiny = "Tiny presets check the workflow and rank no hardware." if (rows["preset"] == "tiny").any() else ""
    return Table("Benchmarks", _COLUMNS, table, tiny)


def _training(workload: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "data set": workload["dataset"],
        "network": workload["network"],
        "metric": workload["metric"]["name"],
        "target": workload["target"],
        "round": workload["round"],
    }


def _inference(rules: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "data set": rules["dataset"],
        "metric": f"{rules['metric']} ({rules['unit']})",
        "FP32 reference": rules["fp32_reference"],
        "target": "; ".join(f"{value!r} ({accuracy} %)" for accuracy, value in rules["goals"].items()),
        "server latency bound (ms)": rules.get("server_latency_bound_ms"),
    }
