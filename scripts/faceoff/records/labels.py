"""What a reader of a table or figure must know of its rows: honest labels, marks, and what MLCommons asks for."""

import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from pandas import DataFrame

_TRADEMARK = (
    "The MLPerf™ name and logo are trademarks of MLCommons Association in the United States and other countries. "
    "All rights reserved. Unauthorized use strictly prohibited. See www.mlcommons.org for more information."
)


def honest_labels(rows: DataFrame, presentation: Mapping[str, Any]) -> list[str]:
    """Return a line each on tiny presets, drift, mixed hardware, unequal hosts and the standing of MLPerf's results."""
    return [*_tiny(rows, presentation), *_marks(rows, presentation), *_mlperf(rows, presentation)]


def present(rows: DataFrame, column: str, order: Iterable[str]) -> list[str]:
    """Return the values of `column` that occur in rows, in the order of the presentation."""
    values = set(rows[column])
    return [name for name in order if name in values]


def short(text: str) -> str:
    """Return text cut to a line."""
    return textwrap.shorten(text, 110, placeholder=" ...")


def _tiny(rows: DataFrame, presentation: Mapping[str, Any]) -> list[str]:
    workloads = presentation["workloads"]
    names = present(rows[rows["preset"] == "tiny"], "workload", workloads)
    shown = {name: workloads[name] for name in names if "network" in workloads[name]}
    told = "; ".join(f"{name}: {workload['dataset']}, {workload['network']}" for name, workload in shown.items())
    label = "Tiny presets check the workflow and rank no hardware."
    return [f"{label} {told}." if told else label] if names else []


def _marks(rows: DataFrame, presentation: Mapping[str, Any]) -> list[str]:
    lines = []
    for name in present(rows, "system", presentation["systems"]):
        own = rows[rows["system"] == name]
        title = presentation["systems"][name]["title"]
        drifted = own[own["drift"].eq(True)]
        if len(drifted):
            reasons = "; ".join(dict.fromkeys(drifted["drift_reason"]))
            lines.append(f"Drift: {title} is not what it was in {len(drifted)} of {len(own)} cells: {short(reasons)}")
        hardware = {re.sub(r" core \d+$", "", device) for devices in own["devices"].dropna() for device in devices}
        if len(hardware) > 1:
            lines.append(f"Mixed hardware: {title} has records of {', '.join(sorted(hardware))}")
    done = rows[rows["outcome"] != "not run"]
    if done["source"].nunique() > 1:
        lines.append("Published beside measured: other code, hosts and rules; ratios between the two are marked.")
    processors = done.dropna(subset=["cpu"]).groupby("system", sort=False)["cpu"].first()
    if processors.nunique() > 1:
        hosts = done[done["source"] == "published"].groupby("system", sort=False)["host"].first()
        told = (
            f"{presentation['systems'][name]['title']}: {hosts.get(name, processor)}"
            for name, processor in processors.items()
        )
        lines.append(f"Hosts differ, so no ratio is of the accelerators alone. {'; '.join(told)}.")
    return lines


def _mlperf(rows: DataFrame, presentation: Mapping[str, Any]) -> list[str]:
    """Round, division, source and standing, as MLCommons' Results Messaging Guidelines ask."""
    lines = []
    published = rows[(rows["source"] == "published") & (rows["outcome"] != "not run")]
    for (round_, division, submitter, retrieved), own in published.groupby(
        ["round", "division", "submitter", "retrieved"]
    ):
        kind = "Inference" if own["kind"].iloc[0] == "inference" else "Training"
        models = ", ".join(
            presentation["workloads"][name]["title"] for name in present(own, "workload", presentation["workloads"])
        )
        scenarios = " and ".join(own["scenario"].dropna().unique())
        lines.append(
            f"MLPerf™ {kind} {round_} {division.capitalize()}: {models}; {scenarios}. Submitted by {submitter}. "
            f"Retrieved {retrieved}. Results verified by MLCommons Association."
        )
    measured = rows[(rows["source"] == "measured") & (rows["preset"] == "reference") & (rows["outcome"] != "not run")]
    for (kind, round_, division), _ in measured.groupby(["kind", "round", "division"]):
        lines.append(
            f"Unverified MLPerf™ {kind.capitalize()} {round_} {division.capitalize()}: measured here. "
            "Results not verified by MLCommons Association."
        )
    if lines:
        lines[-1] += " " + _TRADEMARK
    if len(published) and len(measured):
        lines.append(
            "Unverified results have not been through an MLPerf™ review and may use measurement methodologies and/or "
            "workload implementations that are inconsistent with the MLPerf™ specification for verified results."
        )
    return lines
