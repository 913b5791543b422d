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
    """Return what must be said of rows, a line each.

    Tiny presets, cells that were asked another question, pinned cores, drift, mixed hardware, unequal hosts and the
    standing of MLPerf's results.
    """
    return [
        *_tiny(rows, presentation),
        *_questions(rows, presentation),
        *_pinned_cores(rows),
        *_marks(rows, presentation),
        *_mlperf(rows, presentation),
    ]


def in_order(rows: DataFrame, presentation: Mapping[str, Any]) -> DataFrame:
    """Return rows by workload, accuracy and scenario, system, layout and seed, as the presentation orders them."""
    names = {part: {name: place for place, name in enumerate(presentation[part])} for part in ("workloads", "systems")}

    def key(cell: Mapping[str, Any]) -> tuple[Any, ...]:
        return (
            names["workloads"].get(cell["workload"], len(rows)),
            cell["accuracy"] or "",
            cell["scenario"] or "",
            names["systems"].get(cell["system"], len(rows)),
            cell["nodes"] * cell["accelerators"],
            cell["nodes"],
            cell["seed"] or 0,
        )

    columns = ["workload", "accuracy", "scenario", "system", "nodes", "accelerators", "seed"]
    keys = [key(cell) for cell in rows[columns].astype(object).where(rows[columns].notna(), None).to_dict("records")]
    return rows.iloc[sorted(range(len(rows)), key=keys.__getitem__)]


def one_question(rows: DataFrame) -> bool:
    """Return whether the records of rows answer one question: only then they have a mean, and a ratio."""
    scored = rows[rows["outcome"].isin(["ok", "dnf"])]
    return "question" not in rows or scored["question"].nunique() <= 1


def pinned_core(device: str) -> str:
    """Return the processor of which a device is one pinned core; empty where it is none."""
    match = re.fullmatch(r"(.+) core \d+", device)
    return match[1] if match else ""


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


def _questions(rows: DataFrame, presentation: Mapping[str, Any]) -> list[str]:
    if "question_note" not in rows:
        return []
    lines = []
    for name in present(rows, "workload", presentation["workloads"]):
        own = rows.loc[rows["workload"] == name, "question_note"]
        counts = own[own.fillna("") != ""].value_counts(sort=False)
        lines += [
            f"Other question: {count} of {len(own)} cells of {name}: {short(note)}" for note, count in counts.items()
        ]
    return lines


def _pinned_cores(rows: DataFrame) -> list[str]:
    devices = {device for devices in rows["devices"].dropna() for device in devices}
    names = sorted({pinned_core(device) for device in devices} - {""})
    return [f"An accelerator here is one pinned core of {' or '.join(names)}."] if names else []


def _marks(rows: DataFrame, presentation: Mapping[str, Any]) -> list[str]:
    lines = []
    for name in present(rows, "system", presentation["systems"]):
        own = rows[rows["system"] == name]
        title = presentation["systems"][name]["title"]
        drifted = own[own["drift"].eq(True)]
        if len(drifted):
            reasons = "; ".join(dict.fromkeys(drifted["drift_reason"]))
            lines.append(f"Drift: {title} is not what it was in {len(drifted)} of {len(own)} cells: {short(reasons)}")
        hardware = {pinned_core(device) or device for devices in own["devices"].dropna() for device in devices}
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
        # Published anywhere else, a result may be anyone's: what MLCommons verified is in its own repositories.
        verified = re.fullmatch(r"\S+ from github\.com/mlcommons/\S+ at \S+", retrieved)
        standing = "MLPerf™" if verified else "Unverified MLPerf™"
        lines.append(
            f"{standing} {kind} {round_} {division.capitalize()}: {models}; {scenarios}. Submitted by {submitter}. "
            f"Retrieved {retrieved}. {'Results verified' if verified else 'Not verified'} by MLCommons Association."
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
