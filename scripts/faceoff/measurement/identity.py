"""What this machine really is: processors, GPUs, driver, software, as the machine says and not the configuration."""

import os
import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from faceoff.files import canonical_json, sha256_text
from faceoff.measurement.topology import ROOT, cpu_model, online_cpus, physical_cores, socket_count
from faceoff.telemetry.nvml import as_text, nvml_errors, open_nvml

# Another version of these can change a result, so they count for drift.
FRAMEWORKS = (
    "torch",
    "torchvision",
    "tensorflow",
    "tensorflow-cpu",
    "keras",
    "numpy",
    "onnxruntime",
    "onnxruntime-gpu",
    "tensorrt",
    "tensorrt-cu12",
    "tensorrt-cu13",
    "tensorrt-rtx",
    "mlcommons-loadgen",
    "nvidia-cudnn-cu12",
    "nvidia-cudnn-cu13",
    "nvidia-nccl-cu12",
    "nvidia-nccl-cu13",
)
TOOLS = ("mlperf-logging", "nvidia-ml-py", "onnx", "psutil", "safetensors", "scipy", "snakemake", "triton")

PLACEHOLDER = re.compile(
    r"|to be filled by o\.?e\.?m\.?|default string|system product name|not specified|not applicable|n/?a|none|null|nan"
    r"|unknown|undefined|unspecified|tbd|todo|fixme|x+|\?+|-+|\.+",
    re.IGNORECASE,
)


def identity(*, root: Path = ROOT, nvml: Any | None = None) -> dict[str, Any]:
    """Return the machine as it is now; what the machine does not tell is left out.

    node (the server's model), cpu {model, sockets, physical_cores, logical_cpus}, memory_bytes, gpus [{name,
    memory_bytes, power_limit_w, compute_capability, form, pcie, nvlinks}], driver, cuda, kernel, os, python, packages.
    """
    cpus = online_cpus(root)
    found: dict[str, Any] = {
        "node": _node(root),
        "cpu": _told(
            {
                "model": cpu_model(root) or platform.processor() or platform.machine(),
                "sockets": socket_count(cpus, root),
                "physical_cores": len(physical_cores(cpus, root)),
                "logical_cpus": len(cpus),
            }
        ),
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "os": _operating_system(root),
        "python": platform.python_version(),
        "packages": {name: version for name in sorted(FRAMEWORKS + TOOLS) if (version := _version(name))},
    }
    if nvml is None:
        nvml, _ = open_nvml()
    return _told(found | (_gpus(nvml) if nvml else {}))


def identity_sha256(found: dict[str, Any]) -> str:
    """Return the hash of what counts for drift: names of devices, their power limits, driver, framework versions."""
    return sha256_text(canonical_json(_counting(found)))


def describe_drift(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return in words what counts and changed, such as "driver: 470.57.02 -> 580.159.04"; empty where nothing did."""
    before, after = _counting(old), _counting(new)
    return [
        f"{name}: {before.get(name, 'none')} -> {after.get(name, 'none')}"
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]


def is_placeholder(text: str) -> bool:
    """Return whether a text of a description says nothing: empty, "N/A", "To Be Filled By O.E.M." and the like."""
    return PLACEHOLDER.fullmatch(text.strip()) is not None


def _counting(found: dict[str, Any]) -> dict[str, str]:
    # Kinds of GPUs, not their number: a job may see only those that it was given.
    gpus = sorted({" ".join(filter(None, [gpu["name"], _limit(gpu)])) for gpu in found.get("gpus", [])})
    counting = {
        "cpu": found.get("cpu", {}).get("model"),
        "GPU": ", ".join(gpus),
        "driver": found.get("driver"),
        **{name: version for name, version in found.get("packages", {}).items() if name in FRAMEWORKS},
    }
    return {name: value for name, value in counting.items() if value}


def _limit(gpu: dict[str, Any]) -> str:
    return f"({gpu['power_limit_w']:g} W)" if "power_limit_w" in gpu else ""


def _gpus(nvml: Any) -> dict[str, Any]:
    errors = nvml_errors(nvml)

    def ask(query: str, *arguments: Any) -> Any:
        try:
            value = getattr(nvml, query)(*arguments)
        except errors:  # this GPU, driver or library does not tell
            return None
        return as_text(value) if isinstance(value, bytes) else value

    gpus = []
    for index in range(ask("nvmlDeviceGetCount") or 0):
        gpu = ask("nvmlDeviceGetHandleByIndex", index)
        name = ask("nvmlDeviceGetName", gpu) if gpu is not None else None
        if name is None:
            continue
        memory, limit = ask("nvmlDeviceGetMemoryInfo", gpu), ask("nvmlDeviceGetPowerManagementLimit", gpu)
        capability = ask("nvmlDeviceGetCudaComputeCapability", gpu)
        generation, width = ask("nvmlDeviceGetMaxPcieLinkGeneration", gpu), ask("nvmlDeviceGetMaxPcieLinkWidth", gpu)
        form = re.search(r"SXM\d?|PCIe|NVL\b", name, re.IGNORECASE)
        gpus.append(
            _told(
                {
                    "name": name,
                    "memory_bytes": memory.total if memory else None,
                    "power_limit_w": limit / 1000 if limit else None,
                    "compute_capability": "{}.{}".format(*capability) if capability else None,
                    "form": form[0] if form else None,
                    "pcie": f"{generation}.0 x{width}" if generation and width else None,
                    "nvlinks": sum(ask("nvmlDeviceGetNvLinkState", gpu, link) == 1 for link in range(18)),
                }
            )
        )
    cuda = ask("nvmlSystemGetCudaDriverVersion_v2")
    return {
        "gpus": gpus,
        "driver": ask("nvmlSystemGetDriverVersion"),
        "cuda": f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
    }


def _told(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "", [], {}, 0)}


def _node(root: Path) -> str | None:
    words = []
    for name in ("sys_vendor", "product_name"):
        path = root / "sys/class/dmi/id" / name
        if os.access(path, os.R_OK):
            words.append(path.read_text(encoding="utf-8", errors="replace").strip())
    return " ".join(word for word in words if not is_placeholder(word)) or None


def _operating_system(root: Path) -> str | None:
    path = root / "etc/os-release"
    if not path.is_file():
        return None
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    names = [line.partition("=")[2].strip("\"'") for line in lines if line.startswith("PRETTY_NAME=")]
    return names[0] if names else None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
