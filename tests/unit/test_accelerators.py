from pathlib import Path

import pytest
from recorded_nvml import NOT_SUPPORTED, Error, RecordedNvml
from test_topology import TWO_SOCKETS, machine

from faceoff.errors import AcceleratorError
from faceoff.measurement import accelerators
from faceoff.measurement.accelerators import choose_devices

T4 = {"Name": "Tesla T4", "MigMode": Error(NOT_SUPPORTED)}
V100 = {"Name": "Tesla V100-PCIE-16GB", "MigMode": Error(NOT_SUPPORTED)}
UUIDS = [f"GPU-{i}0000000-0000-4000-8000-000000000000" for i in range(4)]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the root of a machine with two sockets of two cores of two threads, and no NVML."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("model name\t: AMD EPYC 7763\n")
    monkeypatch.setattr(accelerators.os, "sched_getaffinity", lambda _pid: set(range(8)))
    monkeypatch.setattr(accelerators, "open_nvml", lambda: (None, "NVML: Driver Not Loaded"))
    return machine(tmp_path, TWO_SOCKETS)


def test_cpu_ranks_get_physical_cores_of_one_socket_first(host: Path) -> None:
    devices = choose_devices("cpu", 1, 2, root=host)
    assert (devices.cores, devices.gpus, devices.note) == ([0, 2], [], "")
    assert devices.names == ["AMD EPYC 7763", "AMD EPYC 7763"]
    assert choose_devices("cpu", 1, 4, root=host).cores == [0, 2, 1, 3]


def test_second_threads_only_when_cores_run_out_and_then_it_says_so(host: Path) -> None:
    devices = choose_devices("cpu", 1, 6, root=host)
    assert devices.cores == [0, 2, 1, 3, 4, 6]
    assert devices.note == "6 ranks share 4 physical cores"


def test_affinity_limits_the_cores(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerators.os, "sched_getaffinity", lambda _pid: {1, 5, 6})
    assert choose_devices("cpu", 1, 2, root=host).cores == [6, 1]
    with pytest.raises(AcceleratorError, match="1x4 asks for 4 accelerators a node, this machine has 3"):
        choose_devices("cpu", 1, 4, root=host)


def test_too_few_cores_names_layout_count_and_processor(host: Path) -> None:
    message = r"^layout 2x9 asks for 9 accelerators a node, this machine has 8 \(AMD EPYC 7763\)$"
    with pytest.raises(AcceleratorError, match=message):
        choose_devices("auto", 2, 9, root=host)


def test_container_s_share_of_cpu_time_is_no_core_more(host: Path) -> None:
    (host / "proc/self").mkdir()
    (host / "proc/self/cgroup").write_text("0::/\n")
    (host / "sys/fs/cgroup").mkdir(parents=True)
    (host / "sys/fs/cgroup/cpu.max").write_text("250000 100000\n")
    assert len(choose_devices("cpu", 1, 2, root=host).cores) == 2
    with pytest.raises(AcceleratorError, match=r"has 2 \(AMD EPYC 7763\), of 8 CPUs its control group may use 2\.5"):
        choose_devices("cpu", 1, 3, root=host)


@pytest.mark.parametrize("accelerators", [0, -1])
def test_layout_of_nothing(accelerators: int) -> None:
    with pytest.raises(AcceleratorError, match="expected at least 1"):
        choose_devices("auto", 1, accelerators)


def test_auto_takes_gpus_where_there_are_any(host: Path) -> None:
    devices = choose_devices("auto", 1, 2, environment={}, nvml=RecordedNvml(T4, T4, T4), root=host)
    assert (devices.names, devices.gpus, devices.gpu_indices) == (["Tesla T4"] * 2, UUIDS[:2], [0, 1])
    assert devices.cores == []
    assert choose_devices("auto", 1, 2, environment={}, nvml=RecordedNvml(), root=host).cores == [0, 2]
    assert choose_devices("cpu", 1, 2, environment={}, nvml=RecordedNvml(T4), root=host).cores == [0, 2]


def test_broken_driver_is_told_where_cores_are_taken_instead(host: Path) -> None:
    assert choose_devices("auto", 1, 1, root=host).note == ""
    (host / "proc/driver/nvidia").mkdir(parents=True)
    assert choose_devices("auto", 1, 1, root=host).note == "no GPU used: NVML: Driver Not Loaded"


def test_named_gpu_is_found_among_others_by_its_device_name(host: Path) -> None:
    nvml = RecordedNvml(V100, T4, T4)
    devices = choose_devices("t4", 1, 2, ["Tesla T4"], environment={}, nvml=nvml, root=host)
    assert (devices.gpu_indices, devices.names) == ([1, 2], ["Tesla T4", "Tesla T4"])
    with pytest.raises(AcceleratorError, match=r"2 accelerators a node of one kind, found 1 Tesla V100.*, 1 Tesla T4"):
        choose_devices("auto", 1, 2, environment={}, nvml=nvml, root=host)


@pytest.mark.parametrize(
    ("gpus", "found"),
    [((T4, T4), r"2: 2 Tesla T4"), ((V100, T4), r"1: 1 Tesla V100-PCIE-16GB, 1 Tesla T4"), ((), "0: no GPU")],
)
def test_too_few_gpus(host: Path, gpus: tuple[dict, ...], found: str) -> None:
    with pytest.raises(
        AcceleratorError, match=rf"layout 1x4 asks for 4 .* of the kind t4 \(Tesla T4\), .* has {found}$"
    ):
        choose_devices("t4", 1, 4, ["Tesla T4"], environment={}, nvml=RecordedNvml(*gpus), root=host)


def test_named_gpu_without_a_driver_says_why(host: Path) -> None:
    with pytest.raises(AcceleratorError, match=r"has 0: no GPU \(NVML: Driver Not Loaded\)"):
        choose_devices("t4", 1, 1, ["Tesla T4"], environment={}, root=host)


@pytest.mark.parametrize(
    ("visible", "indices"),
    [
        ("2,0", [2, 0]),
        (UUIDS[1], [1]),
        ("GPU-3", [3]),
        ("1,9,2", [1]),
        ("0, -1, 2", [0]),
    ],
)
def test_visible_devices_in_their_order_up_to_the_first_that_is_none(visible: str, indices: list[int]) -> None:
    devices = choose_devices(
        "auto", 1, len(indices), environment={"CUDA_VISIBLE_DEVICES": visible}, nvml=RecordedNvml(T4, T4, T4, T4)
    )
    assert devices.gpu_indices == indices
    with pytest.raises(AcceleratorError):
        choose_devices(
            "t4", 1, len(indices) + 1, environment={"CUDA_VISIBLE_DEVICES": visible}, nvml=RecordedNvml(T4, T4, T4, T4)
        )


@pytest.mark.parametrize("hidden", ["", "-1", "NoDevFiles"])
def test_hidden_gpus_are_not_taken(host: Path, hidden: str) -> None:
    environment = {"CUDA_VISIBLE_DEVICES": hidden}
    assert choose_devices("auto", 1, 1, environment=environment, nvml=RecordedNvml(T4), root=host).cores == [0]


def test_mig_is_refused(host: Path) -> None:
    a100 = {"Name": "NVIDIA A100-PCIE-40GB", "MigMode": [1, 1]}
    with pytest.raises(AcceleratorError, match="is in MIG mode: only whole GPUs"):
        choose_devices("auto", 1, 1, environment={}, nvml=RecordedNvml(a100), root=host)
    with pytest.raises(AcceleratorError, match="names the MIG instance MIG-1234"):
        choose_devices(
            "auto", 1, 1, environment={"CUDA_VISIBLE_DEVICES": "MIG-1234"}, nvml=RecordedNvml(a100), root=host
        )


def test_gpu_that_fell_off_the_bus_is_not_counted(host: Path) -> None:
    nvml = RecordedNvml({**T4, "lost": True}, T4)
    assert choose_devices("auto", 1, 1, environment={}, nvml=nvml, root=host).gpu_indices == [1]
    with pytest.raises(AcceleratorError, match="this machine has 1: 1 Tesla T4"):
        choose_devices("auto", 1, 2, environment={}, nvml=nvml, root=host)
