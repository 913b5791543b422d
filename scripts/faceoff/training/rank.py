"""What one rank of a training cell does: load the framework, build the trainer, run the loop, leave the result.

Files that it leaves in the segment's directory, by the first rank unless said otherwise:

    mllog.txt               `:::MLLOG` lines
    heartbeat               touched while training goes on
    checkpoint.safetensors  the last evaluation boundary; where it exists at the start, the run resumes from it
    model.safetensors       the final weights
    result.json             the outcome, last of all
    error-{rank}.json       by each rank that an exception ends, instead of a result
"""

import importlib
import os
import platform
import re
import sys
import time
import traceback
from importlib import metadata
from pathlib import Path
from typing import Any

from faceoff.data.manifest import load_manifest
from faceoff.files import sha256_file, write_json
from faceoff.training.checkpoint import write_tensors
from faceoff.training.clock import PARTS, Clock
from faceoff.training.loop import Trainer, run_training
from faceoff.training.mllog import BENCHMARK_NAMES, TrainingLog, keys
from faceoff.training.placement import Placement


def run_rank(spec: dict[str, Any], manifest_path: Path, fingerprint: str, segment: Path) -> int:
    """Run this process's rank of the cell `spec` and return the exit status: 0, or 1 after an exception.

    RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the environment are torchrun's; FACEOFF_DEVICE is
    "cpu" or "cuda", FACEOFF_LAUNCHED the Unix time at which the process was started.
    """
    placement = Placement.from_environment()
    error_path = segment / f"error-{placement.rank}.json"
    error_path.unlink(missing_ok=True)
    try:
        result = _measure(spec, manifest_path, fingerprint, segment, placement)
    except Exception as error:
        write_json(error_path, describe_error(error))
        traceback.print_exc(file=sys.stderr)
        return 1
    if placement.leads:
        write_json(segment / "result.json", result)
    return 0


def describe_error(error: Exception) -> dict[str, Any]:
    """Return reason, type, traceback and Unix time: of several ranks' errors the earliest is the cause."""
    text = "".join(traceback.format_exception(error))
    return {"reason": reason_of(error), "type": type(error).__name__, "traceback": text, "time": time.time()}


def reason_of(error: Exception) -> str:
    """Return one line that says why a rank ended; lack of memory begins with "out of memory: ".

    Frameworks are told apart by the names of their exceptions, so that none needs importing.
    """
    message = " ".join(str(error).split()) or type(error).__name__
    names = {kind.__name__ for kind in type(error).__mro__}
    allocator = re.search(r"can't allocate memory: (.*)", message)
    if allocator is not None:  # torch on a CPU raises a plain RuntimeError
        return f"out of memory: {allocator[1]}"
    if names & {"MemoryError", "OutOfMemoryError", "ResourceExhaustedError"}:
        return f"out of memory: {message}"
    return message


def _measure(
    spec: dict[str, Any], manifest_path: Path, fingerprint: str, segment: Path, placement: Placement
) -> dict[str, Any]:
    clock = Clock(float(os.environ["FACEOFF_LAUNCHED"]))
    log = TrainingLog(segment / "mllog.txt" if placement.leads else None)
    log.event(keys.CACHE_CLEAR, False)  # what the operating system cached stays: MLPerf asks that it be said
    log.start(keys.INIT_START)
    framework = importlib.import_module(f"faceoff.training.{spec['framework']}")
    benchmark = importlib.import_module(f"faceoff.benchmarks.{spec['benchmark']}")
    clock.imported()
    with clock.part("init"):
        trainer: Trainer = framework.create_trainer(spec, benchmark, load_manifest(manifest_path), placement, clock)
    for key, value in mlperf_settings(spec, trainer).items():
        log.event(key, value)
    outcome = run_training(spec, trainer, clock, log, segment, fingerprint, placement.leads)
    weights = trainer.weights()
    model_path = segment / "model.safetensors"
    if placement.leads:
        write_tensors(model_path, weights)
    trainer.close()
    log.close()
    if not placement.leads:
        return {}
    return {
        **outcome,
        "measured": measurements(spec, trainer, clock, outcome),
        "devices": trainer.devices,
        "versions": {"python": platform.python_version(), "numpy": metadata.version("numpy"), **trainer.versions},
        "model_sha256": sha256_file(model_path),
        "dataset_sha256": sha256_file(manifest_path),
    }


def mlperf_settings(spec: dict[str, Any], trainer: Trainer) -> dict[str, Any]:
    """Return the keys that MLPerf's rules ask to be logged once, before run_start.

    Only the reference presets claim the closed division.
    """
    return {
        keys.SUBMISSION_BENCHMARK: BENCHMARK_NAMES.get(spec["benchmark"], spec["benchmark"]),
        keys.SUBMISSION_ORG: "Faceoff (unverified)",
        keys.SUBMISSION_DIVISION: keys.CLOSED if spec["preset"] == "reference" else keys.OPEN,
        keys.SUBMISSION_STATUS: keys.ONPREM,
        keys.SUBMISSION_PLATFORM: f"{len(trainer.devices)} x {trainer.devices[0]}",
        keys.SEED: spec["seed"],
        keys.GLOBAL_BATCH_SIZE: trainer.global_batch,
        keys.TRAIN_SAMPLES: trainer.train_samples,
        keys.EVAL_SAMPLES: trainer.eval_samples,
        **trainer.hyperparameters_for_mllog,
    }


def measurements(spec: dict[str, Any], trainer: Trainer, clock: Clock, outcome: dict[str, Any]) -> dict[str, Any]:
    """Return what was measured, each number with its unit; times are sums over the run's segments."""
    totals, score, last = clock.totals(), clock.score(spec["round"]), outcome["curve"][-1]
    trained = last["step"] * trainer.global_batch
    values = {
        "time_to_target": (score if outcome["outcome"] == "ok" else None, "s"),
        "elapsed": (score, "s"),
        "epochs": (last["epoch"], "epoch"),
        "steps": (last["step"], "step"),
        "throughput": (trained / totals["train"], "samples/s"),
        "quality": (last["quality"], spec["metric"]["name"]),
        "target": (spec["target"], spec["metric"]["name"]),
        "loss": (last["loss"], "nat"),
        **{part: (totals[part], "s") for part in PARTS},
        "global_batch": (trainer.global_batch, "samples"),
        "learning_rate": (trainer.learning_rate, ""),
        "parameters": (trainer.parameters, "parameters"),
    }
    return {name: {"value": value, "unit": unit} for name, (value, unit) in values.items()}
