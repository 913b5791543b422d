"""What each job is asked to do: the part of the configuration that it depends on, and no more.

The rules put these into `params`, as canonical JSON, so that an edit reruns exactly the jobs whose part it changed.
"""

from typing import Any

from faceoff.errors import ConfigError
from faceoff.records.question import question_of
from faceoff.study.cells import TrainingCell
from faceoff.study.drawings import Drawing
from faceoff.study.project import Project, Study
from faceoff.study.selection import layout_of


def training_spec(project: Project, cell: TrainingCell) -> dict[str, Any]:
    """Return what a training cell is asked to do. Raises ConfigError for a cell that the configuration lacks."""
    workload = project.workload(cell.workload)
    if cell.system not in project.systems or "stack" not in project.systems[cell.system]:
        known = ", ".join(name for name, system in project.systems.items() if "stack" in system)
        raise ConfigError(f"{cell.system}: no such measured system in {project.systems_source.name}; there are {known}")
    preset, system = project.preset(workload), project.systems[cell.system]
    nodes, accelerators = layout_of(cell.layout)
    accelerator = system["accelerator"]
    return {
        "benchmark": workload.benchmark,
        "preset": workload.preset,
        "variant": workload.variant,
        "metric": project.cards[workload.benchmark].content["metric"],
        **{key: preset[key] for key in _PRESET_KEYS},
        "accelerator": accelerator,
        "expected_devices": project.accelerators.get(accelerator, {}).get("devices", []),
        "layout": {"nodes": nodes, "accelerators": accelerators},
        "seed": cell.seed,
        "stack": system["stack"],
        "sharing": system.get("sharing", "exclusive"),
    }


_PRESET_KEYS = (
    "framework",
    "round",
    "dataset",
    "target",
    "evaluate_every",
    "budget",
    "batch",
    "precision",
    "hyperparameters",
)


def framework_modules(project: Project, workload_name: str) -> tuple[str, str]:
    """Return the modules that a training cell imports by name: the framework's loop and the benchmark."""
    workload = project.workload(workload_name)
    framework = project.preset(workload)["framework"]
    return f"faceoff.training.{framework}", f"faceoff.benchmarks.{workload.benchmark}"


def dataset_of(project: Project, workload_name: str) -> str:
    """Return the data set of a workload."""
    return project.preset(project.workload(workload_name))["dataset"]


def collection_plan(project: Project, study: Study) -> dict[str, Any]:
    """Return what collect_records expects of a study: its training cells as a product, its published systems."""
    plan: dict[str, Any] = {"study": study.name, "training": study.training, "inference": study.inference}
    if study.training:
        first = {cell.workload: cell for cell in reversed(study.cells())}
        questions = {name: question_of(training_spec(project, cell)) for name, cell in first.items()}
        plan["training"] = {**study.training, "questions": questions}
    return plan


def presentation(project: Project, study: Study, drawing: Drawing) -> dict[str, Any]:
    """Return the configuration that a table or figure shows beside the records."""
    content: dict[str, Any] = {"study": study.name}
    content |= {key: study.source.content[key] for key in drawing.study_keys}
    if drawing.baseline and len(study.systems) > 1:
        content["baseline"] = study.baseline
    content["order"] = {"systems": study.systems, "workloads": study.workloads}
    content["systems"] = {name: _shown_system(project, name, drawing) for name in study.systems}
    content["workloads"] = {name: shown for name, shown in _shown_workloads(project, study, drawing) if shown}
    return content


def _shown_system(project: Project, name: str, drawing: Drawing) -> dict[str, Any]:
    system = project.systems[name]
    shown = {key: system[key] for key in drawing.system_keys if key in system}
    if "accelerator" in shown:
        shown["accelerator"] = project.accelerators.get(system["accelerator"], {"title": system["accelerator"]})
    return shown


def _shown_workloads(project: Project, study: Study, drawing: Drawing) -> list[tuple[str, dict[str, Any]]]:
    shown = []
    if study.training and drawing.draws != "inference":
        for name in study.training["workloads"]:
            workload = project.workload(name)
            card = project.cards[workload.benchmark].content
            everything = {**card, **project.preset(workload), "preset": workload.preset}
            if workload.preset != "reference":
                everything.pop("mlperf_runs", None)  # a rule for MLPerf's own size
            everything["dataset"] = project.datasets[everything["dataset"]].content["title"]
            shown.append((name, _chosen(workload.benchmark, everything, drawing, ("inference",))))
    if study.inference and drawing.draws != "training":
        for benchmark in study.inference["benchmarks"]:
            card = project.cards[benchmark].content
            everything = {key: card[key] for key in ("title", "area", "inference") if key in card}
            shown.append((f"{benchmark}-reference", _chosen(benchmark, everything, drawing, ())))
    return shown


def _chosen(benchmark: str, everything: dict[str, Any], drawing: Drawing, but: tuple[str, ...]) -> dict[str, Any]:
    keys = [key for key in drawing.workload_keys if key in everything and key not in but]
    return {"benchmark": benchmark, **{key: everything[key] for key in keys}} if keys else {}
