"""NVIDIA GPUs through NVML (the module `pynvml` of nvidia-ml-py), each field guarded alone.

NVML is given as an argument wherever it is used, so that a recorded one can stand in for it.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from faceoff.telemetry.fields import Values, read_field

# NVML Reference Manual, chapter Device Queries. PCIe throughput is left out: each reading takes 21 ms.
FIELDS: dict[str, Callable[[Any, Any], float]] = {
    "power_w": lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000,
    "energy_j": lambda nvml, gpu: nvml.nvmlDeviceGetTotalEnergyConsumption(gpu) / 1000,
    "utilisation_percent": lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu,
    "memory_used_bytes": lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).used,
    "sm_clock_mhz": lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM),
    "memory_clock_mhz": lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM),
    "temperature_c": lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
    "throttle_reasons": lambda nvml, gpu: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu),
    "ecc_corrected": lambda nvml, gpu: nvml.nvmlDeviceGetTotalEccErrors(
        gpu, nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_VOLATILE_ECC
    ),
    "ecc_uncorrected": lambda nvml, gpu: nvml.nvmlDeviceGetTotalEccErrors(
        gpu, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
    ),
    "pcie_generation": lambda nvml, gpu: nvml.nvmlDeviceGetCurrPcieLinkGeneration(gpu),
    "pcie_width": lambda nvml, gpu: nvml.nvmlDeviceGetCurrPcieLinkWidth(gpu),
}

# nvmlClocksThrottleReasons: bits of the field throttle_reasons that mean the GPU was held back.
THROTTLE_REASONS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal slowdown (software)",
    0x40: "thermal slowdown (hardware)",
    0x80: "power brake",
}


def open_nvml() -> tuple[Any | None, str]:
    """Return the initialised module `pynvml`, or None and why there is none: no package, no driver, another version."""
    try:
        import pynvml
    except ImportError as error:
        return None, f"{error}: pip install nvidia-ml-py"
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return None, f"NVML: {error}"
    return pynvml, ""


def nvml_errors(nvml: Any) -> tuple[type[Exception], ...]:
    """Return what a query of one field may raise: NVML's own errors; an old library lacks functions or gives None."""
    return (nvml.NVMLError, AttributeError, TypeError, ValueError)


def as_text(value: str | bytes) -> str:
    """Return a string of NVML's as text; its older Python modules give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


class GpuReader:
    """Reads every field of FIELDS for some GPUs. `names` holds their names, from the device; `missing` what failed."""

    def __init__(self, nvml: Any, indices: Sequence[int]) -> None:
        self._nvml = nvml
        self._errors = nvml_errors(nvml)
        self._handles: dict[int, Any] = {}
        self.names: dict[int, str] = {}
        self.missing: dict[str, str] = {}
        for index in indices:
            try:
                self._handles[index] = nvml.nvmlDeviceGetHandleByIndex(index)
                self.names[index] = as_text(nvml.nvmlDeviceGetName(self._handles[index]))
            except self._errors as error:
                self.missing[f"gpu{index}"] = str(error)

    def read(self) -> Values:
        """Return gpu{index}_{field} for every GPU found and every field; energy counts from the driver's start."""
        values: Values = {}
        for index, gpu in self._handles.items():
            for field, query in FIELDS.items():
                read_field(values, self.missing, f"gpu{index}_{field}", partial(query, self._nvml, gpu), self._errors)
        return values
