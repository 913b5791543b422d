from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faceoff.measurement.topology import cpu_model, cpu_quota, online_cpus, parse_cpu_list, physical_cores, socket_count


def machine(root: Path, topology: dict[int, tuple[int, int]], online: str | None = None) -> Path:
    """Write a kernel's files for CPUs that sit in (socket, core)."""
    for cpu, (package, core) in topology.items():
        directory = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        directory.mkdir(parents=True)
        (directory / "physical_package_id").write_text(f"{package}\n")
        (directory / "core_id").write_text(f"{core}\n")
    (root / "sys/devices/system/cpu").mkdir(parents=True, exist_ok=True)
    (root / "sys/devices/system/cpu/online").write_text((online or ",".join(map(str, topology))) + "\n")
    return root


# Two sockets of two cores with two threads each, numbered as Linux does on Intel: second threads come last.
TWO_SOCKETS = {0: (0, 0), 1: (1, 0), 2: (0, 1), 3: (1, 1), 4: (0, 0), 5: (1, 0), 6: (0, 1), 7: (1, 1)}


def test_threads_of_a_core_are_found_socket_by_socket(tmp_path: Path) -> None:
    root = machine(tmp_path, TWO_SOCKETS)
    assert physical_cores(range(8), root) == [[0, 4], [2, 6], [1, 5], [3, 7]]
    assert socket_count(range(8), root) == 2


def test_affinity_to_second_threads_only(tmp_path: Path) -> None:
    assert physical_cores({5, 7}, machine(tmp_path, TWO_SOCKETS)) == [[5], [7]]


def test_dies_that_number_their_cores_alike(tmp_path: Path) -> None:
    root = machine(tmp_path, {0: (0, 0), 1: (0, 0)})
    for cpu in (0, 1):
        (root / f"sys/devices/system/cpu/cpu{cpu}/topology/die_id").write_text(f"{cpu}\n")
    assert physical_cores([0, 1], root) == [[0], [1]]


def test_kernel_without_topology_or_with_unknown_ids(tmp_path: Path) -> None:
    assert physical_cores([3, 1], tmp_path) == [[1], [3]]
    assert socket_count([3, 1], tmp_path) == 1
    assert physical_cores([0, 1], machine(tmp_path, {0: (-1, -1), 1: (-1, -1)})) == [[0], [1]]


@given(st.sets(st.integers(0, 300), min_size=1), st.integers(1, 4), st.integers(1, 4))
def test_every_cpu_is_a_thread_of_exactly_one_core(tmp_path_factory, cpus: set[int], sockets: int, cores: int) -> None:
    root = machine(tmp_path_factory.mktemp("cpu"), {cpu: (cpu % sockets, cpu // sockets % cores) for cpu in cpus})
    grouped = physical_cores(cpus, root)
    assert sorted(cpu for core in grouped for cpu in core) == sorted(cpus)
    assert len(grouped) == len({(cpu % sockets, cpu // sockets % cores) for cpu in cpus})


@given(st.sets(st.integers(0, 400)))
def test_cpu_list_round_trip(cpus: set[int]) -> None:
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    text = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
    assert parse_cpu_list(text + "\n") == sorted(cpus)


@pytest.mark.parametrize("text", ["a", "1-", "-1", "0-3-5"])
def test_broken_cpu_list(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        parse_cpu_list(text)


def test_online_cpus(tmp_path: Path) -> None:
    assert online_cpus(machine(tmp_path, {}, online="0-2,5")) == [0, 1, 2, 5]


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC  7763 \n", "AMD EPYC 7763"),
        ("processor\t: 0\nCPU implementer\t: 0x41\n", None),
        ("model name\t:\n", None),
    ],
)
def test_cpu_model(tmp_path: Path, text: str, model: str | None) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(text)
    assert cpu_model(tmp_path) == model


@pytest.mark.parametrize(
    ("limits", "quota"),
    [
        ({}, None),
        ({"job/step": "max 100000"}, None),
        ({"job/step": "150000 100000"}, 1.5),
        ({"job": "400000 100000", "job/step": "max 100000"}, 4.0),
        ({"": "200000 100000", "job": "400000 100000"}, 2.0),
    ],
)
def test_tightest_quota_on_the_way_up_counts(tmp_path: Path, limits: dict[str, str], quota: float | None) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("1:cpu:/old\n0::/job/step\n")
    for group, limit in limits.items():
        directory = tmp_path / "sys/fs/cgroup" / group
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "cpu.max").write_text(limit + "\n")
    assert cpu_quota(tmp_path) == quota
