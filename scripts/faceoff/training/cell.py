"""A training cell as a measurement: its question, its ranks' command and the files it leaves."""

import sys
from pathlib import Path
from typing import Any

from faceoff.data.manifest import load_manifest
from faceoff.errors import ConfigError
from faceoff.files import canonical_json
from faceoff.measurement.supervisor import Measurement, measure
from faceoff.study.cells import TrainingCell

PROGRAM = Path(__file__).resolve().parents[2] / "train_model.py"


def measure_training(
    name: str,
    *,
    spec: dict[str, Any],
    manifest: Path,
    fingerprint: str,
    attempt: int = 1,
    failures_before: int = 0,
    drift_token: str = "",
    log: str = "",
) -> str:
    """Measure the training cell `name` (workload/system/layout/seedN) and return its outcome.

    Raises ConfigError for a name that spells no cell.
    """
    cell = TrainingCell.parse(name)
    if cell is None:
        raise ConfigError(
            f"--cell: expected workload/system/layout/seedN such as ncf-tiny/laptop/1x1/seed1, found {name}"
        )
    command = [
        sys.executable,
        str(PROGRAM),
        "--cell",
        name,
        "--spec",
        canonical_json(spec),
        "--manifest",
        str(manifest),
        "--fingerprint",
        fingerprint,
    ]
    directory = Path(cell.directory)
    job = Measurement(
        kind="training",
        cell=cell.as_dict(),
        spec=spec,
        fingerprint=fingerprint,
        command=tuple(command),
        record=Path(cell.record),
        companions={"mllog.txt": directory / "mllog.txt", "model.safetensors": directory / "model.safetensors"},
        telemetry=directory / "telemetry.parquet",
        inputs={"manifest.json": manifest},
        log=log,
        rerun=cell.rerun,
        check=lambda: load_manifest(manifest),
        attempt=attempt,
        failures_before=failures_before,
        drift_token=drift_token,
    )
    return measure(job)
