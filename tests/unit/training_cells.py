"""Small training cells for tests, and ranks as processes forked from a server that has loaded torch once."""

import multiprocessing
import os
import socket
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np

from faceoff.data.manifest import describe_file, write_manifest
from faceoff.training.rank import run_rank

USERS, ITEMS, GROUPS, NEGATIVES = 120, 80, 4, 29
FINGERPRINT = "c0de" * 16

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["torch._dynamo", "torch.distributed", "safetensors.numpy", "mlperf_logging.mllog"])


def write_dataset(directory: Path) -> Path:
    """Write interactions in which users of a group like items of the group, and return the manifest's path."""
    random = np.random.default_rng(0)
    train, test, negatives = [], [], []
    for user in range(USERS):
        liked = np.flatnonzero(np.arange(ITEMS) % GROUPS == user % GROUPS)
        chosen = random.choice(liked, 13, replace=False)
        train += [(user, item) for item in chosen[1:]]
        test.append((user, chosen[0]))
        negatives.append(random.choice(np.setdiff1d(np.arange(ITEMS), liked), NEGATIVES, replace=False))
    directory.mkdir(parents=True)
    for name, rows in (("train_pairs", train), ("test_pairs", test), ("test_negatives", negatives)):
        np.save(directory / f"{name}.npy", np.array(rows, dtype=np.int32))
    files = {path.name: describe_file(path, "preprocessed") for path in directory.glob("*.npy")}
    manifest = directory / "manifest.json"
    write_manifest(manifest, "groups", files, {"users": USERS, "items": ITEMS}, {})
    return manifest


def ncf_spec(**changes: Any) -> dict[str, Any]:
    """Return a cell of NCF on `write_dataset`'s data: 28 steps an epoch; keys of hyperparameters may be changed too."""
    spec: dict[str, Any] = {
        "benchmark": "ncf",
        "preset": "tiny",
        "variant": "",
        "framework": "pytorch",
        "round": "v0.7",
        "dataset": "groups",
        "metric": {"name": "HR@10", "unit": "fraction", "higher_is_better": True},
        "target": 0.95,
        "evaluate_every": 1.0,
        "budget": {"epochs": 10, "seconds": 120},
        "batch": {"size": 256, "per": "global"},
        "precision": "fp32",
        "hyperparameters": {
            "factors": 8,
            "layers": [16, 8],
            "negatives": 4,
            "optimizer": "adam",
            "learning_rate": 0.02,
            "beta_1": 0.9,
            "beta_2": 0.999,
            "epsilon": 1e-8,
        },
        "accelerator": "cpu",
        "layout": {"nodes": 1, "accelerators": 1},
        "seed": 1,
        "stack": "default",
        "sharing": "exclusive",
    }
    for key, value in changes.items():
        place = spec["hyperparameters"] if key in spec["hyperparameters"] else spec
        place[key] = value
    return spec


def start_ranks(
    spec: dict[str, Any], manifest: Path, segment: Path, world_size: int = 1, device: str = "cpu"
) -> list[BaseProcess]:
    """Start the ranks of a cell on this machine; they leave their files in `segment`."""
    segment.mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = []
    for rank in range(world_size):
        environment = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(world_size),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "FACEOFF_DEVICE": device,
            "FACEOFF_LAUNCHED": str(time.time()),
        }
        process = _processes.Process(target=_run, args=(environment, spec, manifest, segment))
        process.start()
        ranks.append(process)
    return ranks


def run_ranks(
    spec: dict[str, Any], manifest: Path, segment: Path, world_size: int = 1, device: str = "cpu"
) -> list[int | None]:
    """Run the ranks of a cell to their end and return their exit statuses."""
    ranks = start_ranks(spec, manifest, segment, world_size, device)
    for process in ranks:
        process.join()
    return [process.exitcode for process in ranks]


def _run(environment: dict[str, str], spec: dict[str, Any], manifest: Path, segment: Path) -> None:
    import torch

    torch.set_num_threads(1)
    os.environ.update(environment)
    sys.exit(run_rank(spec, manifest, FINGERPRINT, segment))
