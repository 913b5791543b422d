"""The benchmarks of a study: data set, network, metric, target."""

from collections.abc import Mapping
from typing import Any

from pandas import DataFrame

from faceoff.tables.text import Table

_COLUMNS = (
    "workload",
    "benchmark",
    "area",
    "data set",
    "network",
    "metric",
    "target",
    "server latency bound (ms)",
    "round",
)


def tabulate(rows: DataFrame, presentation: Mapping[str, Any]) -> Table:
    """Return a row a workload; inference shows its goals (99 % and 99.9 % of the FP32 reference)."""
    table = [
        {
            "workload": name,
            "benchmark": workload["title"],
            "area": workload["area"],
            "data set": workload["dataset"],
            "network": workload["network"],
            "metric": workload["metric"],
            "target": _target(workload),
            "server latency bound (ms)": workload.get("server_latency_ms"),
            "round": workload["round"],
        }
        for name, workload in presentation["workloads"].items()
        if name in set(rows["workload"])
    ]
    tiny = any(workload["preset"] == "tiny" for workload in presentation["workloads"].values())
    return Table("Benchmarks", _COLUMNS, table, "Tiny presets check the workflow and rank no hardware." if tiny else "")


def _target(workload: Mapping[str, Any]) -> Any:
    goals = workload.get("goals")
    if not goals:
        return workload["target"]
    return "; ".join(f"{value:g} ({accuracy} %)" for accuracy, value in goals.items())
