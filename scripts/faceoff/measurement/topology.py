"""What the kernel says of this machine's processors: model, sockets, physical cores and their hardware threads.

`root` is the directory that holds proc/ and sys/.
"""

from collections.abc import Iterable
from pathlib import Path

ROOT = Path("/")


def cpu_model(root: Path = ROOT) -> str | None:
    """Return the processor's name from /proc/cpuinfo, or None where the kernel gives none (many Arm machines)."""
    for line in (root / "proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip().lower() == "model name" and value.strip():
            return " ".join(value.split())
    return None


def online_cpus(root: Path = ROOT) -> list[int]:
    """Return the numbers of the logical CPUs that are online, in order."""
    return parse_cpu_list((root / "sys/devices/system/cpu/online").read_text(encoding="ascii"))


def parse_cpu_list(text: str) -> list[int]:
    """Return the numbers in a list of the kernel's form, "0-3,8" for example. Raises ValueError for another form."""
    numbers: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        numbers += range(int(first), int(last if dash else first) + 1)
    return numbers


def physical_cores(cpus: Iterable[int], root: Path = ROOT) -> list[list[int]]:
    """Group logical CPUs by the physical core they are threads of: [[0, 64], [1, 65], ...].

    The cores come socket by socket, so that the first of them are neighbours. Where the kernel tells no topology, each
    CPU is a core of its own.
    """
    cores: dict[tuple[int, int, int], list[int]] = {}
    for cpu in sorted(set(cpus)):
        package = _topology(root, cpu, "physical_package_id")
        die = _topology(root, cpu, "die_id")
        core = _topology(root, cpu, "core_id")
        # Without a core's number nothing is known to share it; negative numbers cannot meet real ones.
        key = (max(package, 0), max(die, 0), core if core >= 0 else -1 - cpu)
        cores.setdefault(key, []).append(cpu)
    return sorted(
        cores.values(), key=lambda threads: (max(_topology(root, threads[0], "physical_package_id"), 0), threads)
    )


def socket_count(cpus: Iterable[int], root: Path = ROOT) -> int:
    """Return the number of sockets that these CPUs sit in; 1 where the kernel does not tell."""
    return len({max(_topology(root, cpu, "physical_package_id"), 0) for cpu in cpus})


def cpu_quota(root: Path = ROOT) -> float | None:
    """Return how many CPUs' time this process's control group (version 2) may use, or None for no limit."""
    quotas = []
    for line in _lines(root / "proc/self/cgroup"):
        if not line.startswith("0::"):
            continue
        group = root / "sys/fs/cgroup" / line.removeprefix("0::").strip("/")
        for directory in [group, *group.parents]:
            for limit in _lines(directory / "cpu.max"):
                quota, period = limit.split()
                if quota != "max":
                    quotas.append(int(quota) / int(period))
            if directory == root / "sys/fs/cgroup":
                break
    return min(quotas, default=None)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return []


def _topology(root: Path, cpu: int, name: str) -> int:
    """Return a number from the CPU's topology, -1 where the kernel does not tell."""
    lines = _lines(root / f"sys/devices/system/cpu/cpu{cpu}/topology/{name}")
    return int(lines[0]) if lines else -1
