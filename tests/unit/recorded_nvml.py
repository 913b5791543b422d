"""A module in the place of pynvml that answers as NVML did on an NVIDIA H200 (driver 580.159.04) under load.

`values` may replace an answer for one GPU: by a value, or by a number of NVML's errors, which is then raised.
"""

from types import SimpleNamespace

NOT_SUPPORTED, GPU_IS_LOST = 3, 15
TEXTS = {NOT_SUPPORTED: "Not Supported", GPU_IS_LOST: "GPU is lost"}


class NVMLError(Exception):
    """An error of NVML's, by its number."""

    def __init__(self, number: int) -> None:
        super().__init__(TEXTS[number])


class Error(int):
    """A number of NVML's errors, to be raised and not returned."""


H200 = {
    "Name": "NVIDIA H200",
    "PowerUsage": 418141,
    "TotalEnergyConsumption": 5745540,
    "UtilizationRates": SimpleNamespace(gpu=100, memory=31),
    "MemoryInfo": SimpleNamespace(total=150754820096, free=148955594752, used=1799225344),
    "ClockInfo": {1: 1785, 2: 3201},
    "Temperature": 46,
    "CurrentClocksThrottleReasons": 0x4,
    "TotalEccErrors": 0,
    "CurrPcieLinkGeneration": 5,
    "CurrPcieLinkWidth": 16,
    "MaxPcieLinkGeneration": 5,
    "MaxPcieLinkWidth": 16,
    "PowerManagementLimit": 700000,
    "CudaComputeCapability": (9, 0),
    "MigMode": [0, 0],
    "NvLinkState": Error(NOT_SUPPORTED),
}


class RecordedNvml:
    """Answers for some GPUs; `gpus` holds what differs from the recording for each."""

    NVMLError = NVMLError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC = 0, 1, 0

    def __init__(self, *gpus: dict, driver: str = "580.159.04", absent: tuple[str, ...] = ()) -> None:
        self.gpus = [
            {**H200, "UUID": f"GPU-{i}0000000-0000-4000-8000-000000000000", **gpu} for i, gpu in enumerate(gpus)
        ]
        self.driver = driver
        self.absent = absent

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        if self.gpus[index].get("lost"):
            raise NVMLError(GPU_IS_LOST)
        return index

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return self.driver

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:  # noqa: N802
        return 13000

    def __getattr__(self, name: str):
        query = name.removeprefix("nvmlDeviceGet")
        if name in self.absent or query not in {*H200, "UUID"}:
            raise AttributeError(name)

        def answer(handle: int, *arguments: int):
            self.nvmlDeviceGetHandleByIndex(handle)
            value = self.gpus[handle][query]
            if isinstance(value, dict):
                value = value[arguments[0]]
            if isinstance(value, Error):
                raise NVMLError(value)
            return value

        return answer
