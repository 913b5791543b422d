"""Checkpoints of training: one safetensors file whose header holds the step, the clock, the curve and the segments."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from faceoff.errors import FaceoffError
from faceoff.files import atomic_path


@dataclass(frozen=True)
class Checkpoint:
    """A run at an evaluation boundary. Data order and random draws derive from seed and step and need no state."""

    step: int
    state: dict[str, np.ndarray]
    clock: dict[str, float]
    curve: list[dict[str, Any]]
    segments: list[dict[str, Any]]
    fingerprint: str


def write_tensors(path: Path, tensors: dict[str, np.ndarray], metadata: dict[str, str] | None = None) -> None:
    """Write arrays as one safetensors file, atomically."""
    with atomic_path(path) as temporary:
        save_file({name: np.asarray(array, order="C") for name, array in tensors.items()}, temporary, metadata)


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint atomically."""
    header = {
        "step": checkpoint.step,
        "clock": checkpoint.clock,
        "curve": checkpoint.curve,
        "segments": checkpoint.segments,
        "fingerprint": checkpoint.fingerprint,
    }
    write_tensors(path, checkpoint.state, {name: json.dumps(value) for name, value in header.items()})


def read_checkpoint(path: Path, fingerprint: str) -> Checkpoint | None:
    """Read a checkpoint, or return None where there is none.

    Raises FaceoffError when the file is damaged or was written by other code than `fingerprint`.
    """
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            header = {name: json.loads(text) for name, text in (file.metadata() or {}).items()}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        checkpoint = Checkpoint(state=state, **header)
    except (SafetensorError, OSError, json.JSONDecodeError, TypeError) as error:
        raise FaceoffError(f"{path}: no readable checkpoint: {error}; the next attempt begins anew") from error
    if checkpoint.fingerprint != fingerprint:
        raise FaceoffError(
            f"{path}: written by other code (fingerprint {checkpoint.fingerprint[:12]}, now {fingerprint[:12]}); "
            "delete it and run again"
        )
    return checkpoint
