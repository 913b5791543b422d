"""The tables and figures there are: what each one needs, so that an edit redraws no more than what shows it.

A figure is a module of its name in faceoff/figures/, a table one in faceoff/tables/.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Drawing:
    """A table or figure: the part of a study it draws, and the configuration that it shows beside the records."""

    draws: str  # "training", "inference" or "any"
    system_keys: tuple[str, ...] = ("title", "color")
    baseline: bool = False  # whether it divides systems by one of them
    study_keys: tuple[str, ...] = ("title",)
    workload_keys: tuple[str, ...] = ("title", "preset", "dataset", "network", "metric", "target", "round")


_SPECIFICATIONS = ("title", "node", "nodes", "host", "accelerator", "accelerators_per_node", "software", "price")

FIGURES = {
    "time_to_target": Drawing("training"),
    "epochs_to_target": Drawing("training"),
    "throughput": Drawing("training"),
    "scaling": Drawing("training"),
    "quality_curve": Drawing("training"),
    "throughput_by_model": Drawing("inference", baseline=True),
    "performance_per_dollar": Drawing("inference", baseline=True, system_keys=("title", "color", "price")),
}

NEED_PRICES = ("performance_per_dollar", "per_dollar")

TABLES = {
    "systems": Drawing("any", study_keys=(), system_keys=_SPECIFICATIONS, workload_keys=()),
    "benchmarks": Drawing(
        "any",
        study_keys=(),
        system_keys=(),
        workload_keys=("title", "area", "preset", "dataset", "network", "metric", "target", "round", "inference"),
    ),
    "versions": Drawing("any", study_keys=(), system_keys=("title",), workload_keys=()),
    "results": Drawing(
        "any",
        baseline=True,
        study_keys=(),
        system_keys=("title",),
        workload_keys=("title", "preset", "dataset", "network", "metric", "mlperf_runs"),
    ),
    "speedups": Drawing(
        "training",
        baseline=True,
        study_keys=(),
        system_keys=("title",),
        workload_keys=("title", "preset", "dataset", "network"),
    ),
    "per_dollar": Drawing(
        "inference", baseline=True, study_keys=(), system_keys=("title", "price"), workload_keys=("title",)
    ),
    "bad_cells": Drawing("any", study_keys=(), system_keys=("title",), workload_keys=("title",)),
    "drift": Drawing("any", study_keys=(), system_keys=("title",), workload_keys=()),
}
