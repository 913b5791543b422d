"""The command that measures a cell without Snakemake."""

from pathlib import Path

import yaml

from faceoff.errors import ConfigError
from faceoff.files import canonical_json
from faceoff.study.cells import TrainingCell
from faceoff.study.fingerprint import fingerprint
from faceoff.study.loading import load_project
from faceoff.study.specs import dataset_of, framework_modules, training_spec


def command_by_hand(root: Path, name: str) -> list[str]:
    """Return the command line of train_model.py for a cell, as the rule would make it.

    Raises ConfigError for a name that spells no cell, or a workload or system that the configuration lacks.
    """
    cell = TrainingCell.parse(name)
    if cell is None:
        raise ConfigError(f"expected workload/system/layout/seedN such as ncf-tiny/laptop/1x1/seed1, found {name}")
    settings = yaml.safe_load((root / "config" / "config.yaml").read_text(encoding="utf-8"))
    project = load_project(root, settings)
    spec = training_spec(project, cell)
    code = fingerprint("train_model", *framework_modules(project, cell.workload))
    manifest = f"results/data/{dataset_of(project, cell.workload)}/manifest.json"
    words = ["python", "scripts/train_model.py", "--cell", name, "--spec", canonical_json(spec)]
    return [*words, "--manifest", manifest, "--fingerprint", code]
