"""The project: every configuration file, read, checked against its schema and against the others."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from faceoff.errors import ConfigError
from faceoff.study.cells import TrainingCell
from faceoff.study.selection import Workload, selected, training_cells
from faceoff.study.source import Source

FIGURE_FORMATS = ("svg", "png", "pdf")
TABLE_FORMATS = ("csv", "md")
PRESET_DEFAULTS = ("framework", "round")


@dataclass(frozen=True)
class Study:
    """What is compared, as its file says it, with defaults filled in."""

    name: str
    source: Source
    figures: tuple[str, ...]
    tables: tuple[str, ...]
    frozen: bool = False
    partial: bool = False
    training: dict[str, Any] | None = None
    inference: dict[str, Any] | None = None

    @property
    def systems(self) -> list[str]:
        """The systems that are compared, in the order in which they are drawn."""
        return self.source.content["systems"]

    @property
    def workloads(self) -> list[str]:
        """The workloads that are compared, in the order in which they are drawn."""
        training = self.training["workloads"] if self.training else []
        return [*training, *(f"{name}-reference" for name in (self.inference or {}).get("benchmarks", []))]

    @property
    def baseline(self) -> str:
        """The system that ratios refer to: the last one where the file names none."""
        return self.source.content.get("baseline", self.systems[-1])

    def cells(self) -> list[TrainingCell]:
        """The training cells, seeds outermost."""
        return list(training_cells(self.training)) if self.training else []


@dataclass(frozen=True)
class Project:
    """All configuration of one working directory. `root` holds config/ and workflow/."""

    root: Path
    settings: dict[str, Any]
    systems_source: Source
    cards: dict[str, Source] = field(default_factory=dict)
    datasets: dict[str, Source] = field(default_factory=dict)
    studies: dict[str, Study] = field(default_factory=dict)

    @property
    def systems(self) -> dict[str, Any]:
        """Systems by name."""
        return self.systems_source.content["systems"]

    @property
    def accelerators(self) -> dict[str, Any]:
        """Data sheets by accelerator name."""
        return self.systems_source.content["accelerators"]

    @property
    def max_attempts(self) -> int:
        """How often a failed cell is tried, over invocations."""
        return self.settings.get("max_attempts", 3)

    @property
    def remeasure_on_drift(self) -> bool:
        """Whether cells of a system that has changed are measured again."""
        return self.settings.get("on_drift", "report") == "remeasure"

    @cached_property
    def patterns(self) -> list[str]:
        """The patterns of `only`, empty where every cell may run."""
        only = self.settings.get("only") or []
        return [only] if isinstance(only, str) else only

    def workload(self, name: str) -> Workload:
        """Return the workload that `name` spells. Raises ConfigError where no card has it."""
        workload = Workload.parse(name)
        card = self.cards[workload.benchmark].content if workload.benchmark in self.cards else {}
        known = workload.preset in card.get("presets", {}) and workload.variant in ("", *card.get("variants", {}))
        if not known:
            raise ConfigError(f"{name}: no such workload; there are {', '.join(self.workload_names())}")
        return workload

    def workload_names(self) -> list[str]:
        """Every workload that the cards define."""
        return [
            str(Workload(benchmark, preset, variant))
            for benchmark, card in self.cards.items()
            for preset in card.content.get("presets", {})
            for variant in ("", *card.content.get("variants", {}))
        ]

    def preset(self, workload: Workload) -> dict[str, Any]:
        """Return the preset of a workload: card defaults, preset, variant, with all hyperparameters."""
        card = self.cards[workload.benchmark].content
        layers = [card["presets"][workload.preset]]
        layers += [card["variants"][workload.variant]] if workload.variant else []
        merged = {key: card[key] for key in PRESET_DEFAULTS if key in card}
        for layer in layers:
            merged.update(layer)
        merged["hyperparameters"] = dict(card.get("hyperparameters", {}))
        for layer in layers:
            merged["hyperparameters"].update(layer.get("hyperparameters", {}))
        return merged

    def live_cells(self, study: Study) -> list[TrainingCell]:
        """The cells of a study that may run now: not frozen, not partial, and chosen by `only`."""
        if study.frozen or study.partial:
            return []
        frozen = {name for name, system in self.systems.items() if system.get("frozen")}
        return [cell for cell in study.cells() if cell.system not in frozen and selected(cell, self.patterns)]

    def measured_systems(self, study: Study) -> list[str]:
        """The systems of a study that jobs run on."""
        return [name for name in study.systems if "source" not in self.systems[name]]

    def collections(self, study: Study) -> list[str]:
        """The collections of published results that a study draws on."""
        return sorted(
            {self.systems[name]["source"]["collection"] for name in study.systems if "source" in self.systems[name]}
        )

    def figure_files(self, study: Study) -> list[str]:
        """The figures of a study, in every format."""
        stems = (f"results/figures/{study.name}/{figure}" for figure in study.figures)
        return [f"{stem}.{suffix}" for stem in stems for suffix in FIGURE_FORMATS]

    def table_files(self, study: Study) -> list[str]:
        """The tables of a study, in every format."""
        stems = (f"results/tables/{study.name}/{table}" for table in study.tables)
        return [f"{stem}.{suffix}" for stem in stems for suffix in TABLE_FORMATS]

    def targets(self) -> list[str]:
        """Every file that the studies promise; deleting any of them makes it stale."""
        files: dict[str, None] = {}
        for study in self.studies.values():
            files.update(dict.fromkeys(self.figure_files(study) + self.table_files(study)))
            files.update(dict.fromkeys(f"results/records/{study.name}.{suffix}" for suffix in ("parquet", "csv")))
            for cell in self.live_cells(study):
                dataset = self.preset(self.workload(cell.workload))["dataset"]
                files[f"results/data/{dataset}/manifest.json"] = None
                names = ("record.json", "mllog.txt", "telemetry.parquet", "model.safetensors")
                files.update(dict.fromkeys(f"{cell.directory}/{name}" for name in names))
        return list(files)
