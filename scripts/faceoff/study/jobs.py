"""What the rules ask for: inputs, params and targets as functions of wildcards, each as narrow as its job."""

import re
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from faceoff.errors import ConfigError
from faceoff.files import canonical_json, sha256_file, sha256_text
from faceoff.measurement.attempts import asked_hash, attempts_param, drift_token
from faceoff.measurement.identity import identity, identity_sha256
from faceoff.study.cells import TrainingCell
from faceoff.study.drawings import FIGURES, TABLES
from faceoff.study.fingerprint import fingerprint
from faceoff.study.loading import frozen_gaps, load_project
from faceoff.study.project import Project, Study
from faceoff.study.specs import collection_plan, dataset_of, framework_modules, presentation, training_spec


class Jobs:
    """The bridge between the rules and the project. Raises ConfigError where the configuration is wrong."""

    def __init__(self, root: Path, settings: dict[str, Any]) -> None:
        self.project: Project = load_project(root, settings)
        gap = next(frozen_gaps(self.project), None)
        if gap:
            raise gap

    def wildcard_constraints(self) -> dict[str, str]:
        """Constrain every wildcard to the names there are."""
        project = self.project
        workloads = {cell.workload: "" for study in project.studies.values() for cell in study.cells()}
        return {
            "collection": _names_pattern([path.stem for path in (project.root / "config/published").glob("*.csv")]),
            "dataset": _names_pattern(project.datasets),
            "figure": _names_pattern(FIGURES),
            "layout": "[1-9][0-9]*x[1-9][0-9]*",
            "seed": "[0-9]+",
            "study": _names_pattern(project.studies),
            "system": _names_pattern(project.systems),
            "table": _names_pattern(TABLES),
            "workload": _names_pattern(workloads),
        }

    def targets(self) -> list[str]:
        """Every file that results/figures stands for."""
        return self.project.targets()

    @staticmethod
    def code(program: str) -> str:
        """The fingerprint of a program."""
        return _fingerprint(program)

    def dataset_asked(self, dataset: str) -> str:
        """What a data set's card asks of its preparation; title, licence and advice are not in it."""
        card = self.project.datasets[dataset].content
        return canonical_json({key: card[key] for key in ("facts", "files", "source") if key in card})

    def dataset_code(self, dataset: str) -> str:
        """The fingerprint of a data set's preparation."""
        return _fingerprint("prepare_dataset", f"faceoff.data.{dataset.replace('-', '_')}")

    @staticmethod
    def dataset_failures(dataset: str) -> int:
        """How often a data set could not be prepared; each failure makes it stale."""
        path = Path(f"results/data/{dataset}/failures.log")
        return len(path.read_text(encoding="utf-8").splitlines()) if path.is_file() else 0

    def manifest(self, workload: str) -> str:
        """The manifest of a workload's data set."""
        return f"results/data/{dataset_of(self.project, workload)}/manifest.json"

    def system(self, name: str) -> str:
        """What describe_system is told of a system."""
        system = self.project.systems[name]
        told = {key: system[key] for key in ("accelerator", "node", "stack") if key in system}
        return canonical_json({"name": name, **told})

    def present_identity(self, name: str) -> str:
        """The hash of what this machine is, where the system is this machine; elsewhere only a job can tell."""
        return self._identity_of(name) or ""

    def training_spec(self, wildcards: Any) -> str:
        """What a training cell is asked."""
        return canonical_json(training_spec(self.project, _cell(wildcards)))

    def training_code(self, workload: str) -> str:
        """The fingerprint of a training cell's code."""
        return _fingerprint("train_model", *framework_modules(self.project, workload))

    def training_attempts(self, wildcards: Any) -> int:
        """How often the cell has failed, as attempts_param counts."""
        cell = _cell(wildcards)
        asked = asked_hash(training_spec(self.project, cell), self.training_code(cell.workload))
        return attempts_param(Path(cell.directory), asked, self.project.max_attempts)

    def training_drift_token(self, wildcards: Any) -> str:
        """What tells a cell to be measured again after its system changed."""
        cell = _cell(wildcards)
        present = self._identity_of(cell.system) if self.project.remeasure_on_drift else None
        return drift_token(Path(cell.directory), present)

    def live_records(self, study: str) -> list[str]:
        """The records of a study that jobs may write."""
        return [cell.record for cell in self.project.live_cells(self._study(study))]

    def frozen_records(self, study: str) -> str:
        """A hash of the records that no job of this invocation may write, so that the tables follow them."""
        live = set(self.live_records(study))
        frozen = [cell.record for cell in self._study(study).cells() if cell.record not in live]
        contents = {path: sha256_file(Path(path)) for path in frozen if Path(path).is_file()}
        return sha256_text(canonical_json(contents))[:16] if frozen else ""

    def described_systems(self, study: str) -> list[str]:
        """The descriptions of a study's measured systems, where jobs may still run on them."""
        systems = {cell.system for cell in self.project.live_cells(self._study(study))}
        return [f"results/systems/{name}.json" for name in sorted(systems)]

    def published(self, study: str) -> list[str]:
        """The published collections of a study."""
        return [f"results/published/{name}.parquet" for name in self.project.collections(self._study(study))]

    def collection_plan(self, study: str) -> str:
        """What collect_records expects."""
        return canonical_json(collection_plan(self.project, self._study(study)))

    @staticmethod
    def table_code(table: str) -> str:
        """The fingerprint of a table."""
        return _fingerprint("tabulate_records", f"faceoff.tables.{table}")

    def table_presentation(self, study: str, table: str) -> str:
        """What a table shows beside the records."""
        return canonical_json(presentation(self.project, self._study(study), TABLES[table]))

    @staticmethod
    def figure_code(figure: str) -> str:
        """The fingerprint of a figure."""
        return _fingerprint("plot_figure", f"faceoff.figures.{figure}")

    def figure_presentation(self, study: str, figure: str) -> str:
        """What a figure shows beside the records."""
        return canonical_json(presentation(self.project, self._study(study), FIGURES[figure]))

    def bad_cells(self) -> str:
        """The list of cells that are not ok, printed last: reason, log and the command that reruns each."""
        lines = []
        for study in self.project.studies:
            path = Path(f"results/tables/{study}/bad_cells.md")
            records = [Path(cell.record) for cell in self.project.studies[study].cells()]
            newest = max((record.stat().st_mtime for record in records if record.is_file()), default=0.0)
            if path.is_file() and path.stat().st_mtime < newest:
                lines.append(f"\nStudy {study}: records are newer than its tables, which were not made again")
            elif path.is_file():
                lines.append(f"\nStudy {study}, cells that are not ok: {path}\n{path.read_text(encoding='utf-8')}")
        return "".join(lines)

    def _study(self, name: str) -> Study:
        return self.project.studies[name]

    @cached_property
    def _identity_here(self) -> str:
        return identity_sha256(identity())

    def _identity_of(self, system: str) -> str | None:
        if "slurm" not in self.project.systems[system]:
            return self._identity_here
        return None


@cache
def _fingerprint(program: str, *modules: str) -> str:
    return fingerprint(program, *modules)


def _cell(wildcards: Any) -> TrainingCell:
    cell = TrainingCell.parse(f"{wildcards.workload}/{wildcards.system}/{wildcards.layout}/seed{wildcards.seed}")
    if cell is None:
        raise ConfigError(f"{wildcards}: no training cell")
    return cell


def _names_pattern(names: "dict[str, Any] | list[str]") -> str:
    """Return a regular expression that matches exactly these names, for wildcard constraints."""
    return "|".join(re.escape(name) for name in sorted(names)) or "(?!)"
