"""The host beside the accelerators: processors, memory, the measured processes, and RAPL's energy counters."""

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

import psutil

from faceoff.measurement.topology import ROOT, online_cpus
from faceoff.telemetry.fields import Values, read_field

ERRORS = (OSError, ValueError, KeyError, AttributeError, psutil.Error)
TREE_REFRESH_S = 5.0


class HostReader:
    """Reads the host's fields. `rapl_ranges` holds where each RAPL counter wraps, in joules; `missing` what failed.

    Each instance belongs to the thread that reads: psutil keeps the times between two readings by thread.
    """

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self.missing: dict[str, str] = {}
        self.rapl_ranges: dict[str, float] = {}
        self._rapl: dict[str, Path] = {}
        self._sensors: dict[str, list[Path]] = {}
        self._cpus: list[int] = []
        self._frequencies: dict[int, Path] = {}
        self._tree: list[int] = []
        self._tree_read = float("-inf")
        self._read_before = False
        try:
            self._cpus = online_cpus(root)
            cpu = root / "sys/devices/system/cpu"
            self._frequencies = {n: cpu / f"cpu{n}/cpufreq/scaling_cur_freq" for n in self._cpus}
            self._find_sensors()
            self._find_rapl()
        except ERRORS as error:
            self.missing["host"] = str(error)
        if not self._rapl:
            self.missing["rapl"] = "no readable energy counter under /sys/class/powercap"
        if not self._sensors:
            self.missing["temperature"] = "no sensor under /sys/class/hwmon"

    def read(self, pids: Sequence[int]) -> Values:
        """Return the host's fields; `pids` are the measured processes, whose children count too.

        cpu_percent (all CPUs), core{n}_percent (cores that a measured process is pinned to), cpu_frequency_mhz (mean of
        those, else of all), temperature_{chip}_c (its hottest sensor), memory_used_bytes, swap_used_bytes, load_1min,
        rss_bytes (sum over the processes, pages they share counted in each), rapl{n}_energy_j (a counter that wraps).
        """
        values: Values = {}
        pinned = _pinned_cores(pids)
        shares = self._cpu_percents()
        values["cpu_percent"] = fmean(shares.values()) if shares else None
        values.update({f"core{core}_percent": shares.get(core) for core in pinned})
        self._set(values, "cpu_frequency_mhz", lambda: self._frequency_mhz(pinned or self._cpus))
        self._set(values, "memory_used_bytes", lambda: psutil.virtual_memory().used)
        self._set(values, "swap_used_bytes", lambda: psutil.swap_memory().used)
        self._set(values, "load_1min", lambda: os.getloadavg()[0])
        self._set(values, "rss_bytes", lambda: self._rss_bytes(pids))
        for chip, sensors in self._sensors.items():
            self._set(values, f"temperature_{chip}_c", partial(_hottest, sensors))
        for name, path in self._rapl.items():
            self._set(values, name, partial(_joules, path))
        return values

    def _set(self, values: Values, name: str, read: Callable[[], float | None]) -> None:
        read_field(values, self.missing, name, read, ERRORS)

    def _cpu_percents(self) -> dict[int, float]:
        """Return each CPU's busy share since the last call, in percent; nothing at the first call."""
        try:
            percents = psutil.cpu_percent(percpu=True)
        except ERRORS as error:
            self.missing.setdefault("cpu_percent", str(error))
            return {}
        first, self._read_before = not self._read_before, True
        return {} if first else dict(zip(self._cpus, percents, strict=False))

    def _frequency_mhz(self, cores: Sequence[int]) -> float:
        return fmean(_number(self._frequencies[core]) for core in cores) / 1000

    def _rss_bytes(self, pids: Sequence[int]) -> float:
        if time.monotonic() - self._tree_read > TREE_REFRESH_S or not set(pids) <= set(self._tree):
            self._tree = _process_tree(pids)
            self._tree_read = time.monotonic()
        return sum(_resident_pages(pid) for pid in self._tree) * os.sysconf("SC_PAGE_SIZE")

    def _find_sensors(self) -> None:
        for chip in sorted((self._root / "sys/class/hwmon").glob("hwmon*")):
            sensors = sorted(chip.glob("temp*_input"))
            if sensors:
                name = (chip / "name").read_text(encoding="utf-8").strip()
                self._sensors[name] = self._sensors.get(name, []) + sensors

    def _find_rapl(self) -> None:
        # Other zones are parts of a package (core, dram) or hold all of them (psys).
        for zone in sorted((self._root / "sys/class/powercap").glob("intel-rapl:*")):
            if (zone / "name").read_text(encoding="utf-8").startswith("package"):
                name = f"rapl{zone.name.partition(':')[2]}_energy_j"
                self.rapl_ranges[name] = _joules(zone / "max_energy_range_uj")
                self._rapl[name] = zone / "energy_uj"


def _pinned_cores(pids: Sequence[int]) -> list[int]:
    cores = set()
    for pid in pids:
        try:
            affinity = os.sched_getaffinity(pid)
        except OSError:  # it has ended
            continue
        if len(affinity) == 1:
            cores |= affinity
    return sorted(cores)


def _process_tree(pids: Sequence[int]) -> list[int]:
    tree: dict[int, None] = {}
    unseen = list(pids)
    while unseen:
        pid = unseen.pop()
        tree[pid] = None
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                unseen += [child for child in map(int, path.read_text().split()) if child not in tree]
            except OSError:  # the thread has ended
                continue
    return list(tree)


def _resident_pages(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):  # it has ended
        return 0


def _hottest(sensors: Sequence[Path]) -> float:
    return max(_number(path) for path in sensors) / 1000


def _joules(path: Path) -> float:
    return _number(path) / 1e6


def _number(path: Path) -> int:
    return int(path.read_bytes())
