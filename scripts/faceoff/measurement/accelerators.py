"""Chooses the devices of a layout on this node, without a framework: physical cores for CPU ranks, GPUs by NVML."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from faceoff.errors import AcceleratorError
from faceoff.measurement.topology import ROOT, cpu_model, cpu_quota, physical_cores
from faceoff.telemetry.nvml import as_text, nvml_errors, open_nvml


@dataclass(frozen=True)
class Devices:
    """The devices of one node's ranks, in the order of the local ranks; either `cores` or `gpus` is empty.

    `cores`: the core each rank is pinned to. `gpus`: UUIDs for CUDA_VISIBLE_DEVICES; `gpu_indices`: the same GPUs'
    indices for NVML. `names`: what each device says it is. `note`: what a reader of the result must know, or "".
    """

    names: list[str]
    cores: list[int] = field(default_factory=list)
    gpus: list[str] = field(default_factory=list)
    gpu_indices: list[int] = field(default_factory=list)
    note: str = ""


@dataclass(frozen=True)
class Gpu:
    """A GPU that this process may use."""

    index: int
    uuid: str
    name: str
    mig: bool


def choose_devices(
    accelerator: str,
    nodes: int,
    accelerators: int,
    expected: Sequence[str] = (),
    *,
    environment: Mapping[str, str] = os.environ,
    nvml: Any | None = None,
    root: Path = ROOT,
) -> Devices:
    """Return the devices of this node for the layout `nodes` x `accelerators`.

    `accelerator` is "cpu", "auto" (GPUs where there are any, else cores) or a GPU's name in the configuration, whose
    device is one of the names `expected`; without `expected`, any GPU. Raises AcceleratorError when the node has fewer.
    """
    layout = f"{nodes}x{accelerators}"
    if accelerators < 1:
        raise AcceleratorError(f"layout {layout}: expected at least 1 accelerator a node, found {accelerators}")
    if accelerator == "cpu":
        return _choose_cores(layout, accelerators, root)
    nvml, reason = (nvml, "") if nvml else open_nvml()
    gpus = visible_gpus(nvml, environment) if nvml else []
    if accelerator == "auto" and not gpus:
        devices = _choose_cores(layout, accelerators, root)
        broken = reason and (root / "proc/driver/nvidia").exists()
        return (
            replace(devices, note="; ".join(filter(None, [devices.note, f"no GPU used: {reason}"])))
            if broken
            else devices
        )
    return _choose_gpus(layout, accelerators, accelerator, gpus, expected, reason)


def visible_gpus(nvml: Any, environment: Mapping[str, str] = os.environ) -> list[Gpu]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES leaves, in its order; all of them where it is not set.

    As in CUDA, the first entry that names no GPU ends the list. Raises AcceleratorError for MIG instances.
    """
    errors = nvml_errors(nvml)
    gpus: list[Gpu] = []
    try:
        count = nvml.nvmlDeviceGetCount()
    except errors as error:
        raise AcceleratorError(f"NVML: {error}") from error
    for index in range(count):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            uuid, name = as_text(nvml.nvmlDeviceGetUUID(handle)), as_text(nvml.nvmlDeviceGetName(handle))
        except errors:  # it has fallen off the bus, or belongs to another container
            continue
        try:
            mig = nvml.nvmlDeviceGetMigMode(handle)[0] == 1
        except errors:  # a GPU that has no MIG
            mig = False
        gpus.append(Gpu(index, uuid, name, mig))
    wanted = environment.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return gpus
    chosen: list[Gpu] = []
    for entry in filter(None, map(str.strip, wanted.split(","))):
        if entry.startswith("MIG"):
            raise AcceleratorError(
                f"CUDA_VISIBLE_DEVICES names the MIG instance {entry}: only whole GPUs can be measured"
            )
        named = [
            gpu for gpu in gpus if entry == str(gpu.index) or (entry.startswith("GPU-") and gpu.uuid.startswith(entry))
        ]
        if len(named) != 1:
            break
        chosen += named
    return chosen


def _choose_gpus(
    layout: str, count: int, accelerator: str, gpus: Sequence[Gpu], expected: Sequence[str], reason: str
) -> Devices:
    asked = f"layout {layout} asks for {count} accelerators a node"
    fitting = [gpu for gpu in gpus if not expected or gpu.name in expected]
    if len(fitting) < count:
        kind = f"{accelerator} ({' or '.join(expected)})" if expected else accelerator
        found = _counted([gpu.name for gpu in gpus]) or f"no GPU{f' ({reason})' if reason else ''}"
        wanted = "" if accelerator == "auto" else f" of the kind {kind}"
        raise AcceleratorError(f"{asked}{wanted}, this machine has {len(fitting)}: {found}")
    chosen = fitting[:count]
    if len({gpu.name for gpu in chosen}) > 1:
        raise AcceleratorError(f"{asked} of one kind, found {_counted([gpu.name for gpu in chosen])}: name one")
    if shared := [gpu for gpu in chosen if gpu.mig]:
        raise AcceleratorError(
            f"GPU {shared[0].index} ({shared[0].name}) is in MIG mode: only whole GPUs can be measured"
        )
    return Devices(
        names=[gpu.name for gpu in chosen],
        gpus=[gpu.uuid for gpu in chosen],
        gpu_indices=[gpu.index for gpu in chosen],
    )


def _choose_cores(layout: str, count: int, root: Path) -> Devices:
    model = cpu_model(root) or "unknown processor"
    cores = physical_cores(os.sched_getaffinity(0), root)
    # One thread of every core, then, only if these are too few, the second of each, and so on.
    threads = [core[i] for i in range(max(map(len, cores))) for core in cores if i < len(core)]
    quota = cpu_quota(root)
    usable = len(threads) if quota is None else min(len(threads), int(quota))
    if usable < count:
        limit = f", of {len(threads)} CPUs its control group may use {quota:g}" if usable < len(threads) else ""
        asked = f"layout {layout} asks for {count} accelerators a node"
        raise AcceleratorError(f"{asked}, this machine has {usable} ({model}){limit}")
    note = f"{count} ranks share {len(cores)} physical cores" if count > len(cores) else ""
    return Devices(names=[model] * count, cores=threads[:count], note=note)


def _counted(names: Sequence[str]) -> str:
    return ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))
