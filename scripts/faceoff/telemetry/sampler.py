"""Telemetry beside a measurement: a thread that appends one JSON line a sample to a file.

First comes a header, {"header": {"interval_s": 0.5, "cpu": "...", "gpus": {"0": "NVIDIA A30"}, "rapl": {...}}}.
A sample is {"time_s": Unix time, "cpu_percent": 12.5, "gpu0_power_w": 164.2, ...}, null where a field could not be
read; {"missing": {"gpu0_ecc_corrected": "Not Supported"}} says why when that first happens. A killed job leaves what it
had.
"""

import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from faceoff.measurement.topology import cpu_model
from faceoff.telemetry.host import HostReader
from faceoff.telemetry.nvml import GpuReader, open_nvml

STOP_TIMEOUT_S = 5.0


class Sampler:
    """Samples from entry to exit of its `with` block, once at both and every `interval_s` seconds in between.

    `pids` returns the measured processes at the time of a sample, `gpus` are NVML's indices. Nothing that fails in here
    ends a measurement: it leaves gaps, which the summary shows, and the reason in the file.
    """

    def __init__(
        self,
        path: Path,
        interval_s: float,
        pids: Callable[[], Sequence[int]],
        gpus: Sequence[int] = (),
        nvml: Any | None = None,
    ) -> None:
        self._path = path
        self._interval_s = interval_s
        self._pids = pids
        self._gpus = gpus
        self._nvml = nvml
        self._stop = threading.Event()
        # A driver that hangs must not keep the program from ending.
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(STOP_TIMEOUT_S)

    def _run(self) -> None:
        with self._path.open("a", encoding="utf-8") as stream:
            try:
                self._sample(stream)
            except Exception as error:
                _append(stream, {"missing": {"sampler": f"{type(error).__name__}: {error}"}})
                raise

    def _sample(self, stream: TextIO) -> None:
        host = HostReader()
        gpus, reason = self._open_gpus()
        header = {
            "interval_s": self._interval_s,
            "cpu": cpu_model(),
            "gpus": {str(index): name for index, name in gpus.names.items()} if gpus else {},
            "rapl": host.rapl_ranges,
        }
        # An earlier job may have been killed within a line.
        stream.write("\n" if stream.tell() else "")
        _append(stream, {"header": header})
        told: dict[str, str] = {}
        due = time.monotonic()
        while True:
            stopping = self._stop.wait(max(0.0, due - time.monotonic()))
            values = {"time_s": round(time.time(), 4), **host.read(self._pids()), **(gpus.read() if gpus else {})}
            _append(stream, values)
            missing = host.missing | (gpus.missing if gpus else {}) | ({"nvml": reason} if reason else {})
            if new := {name: why for name, why in missing.items() if name not in told}:
                _append(stream, {"missing": new})
                told |= new
            if stopping:
                return
            due = max(due + self._interval_s, time.monotonic())

    def _open_gpus(self) -> tuple[GpuReader | None, str]:
        if not self._gpus:
            return None, ""
        nvml, reason = (self._nvml, "") if self._nvml else open_nvml()
        return (GpuReader(nvml, self._gpus), "") if nvml else (None, reason)


def _append(stream: TextIO, line: dict[str, Any]) -> None:
    stream.write(json.dumps(line, separators=(",", ":")) + "\n")
    stream.flush()
