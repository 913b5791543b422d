import os
import subprocess
import sys
from pathlib import Path

import pytest
from recorded_nvml import GPU_IS_LOST, NOT_SUPPORTED, Error, RecordedNvml

from faceoff.telemetry import host, nvml
from faceoff.telemetry.host import HostReader
from faceoff.telemetry.nvml import FIELDS, GpuReader, open_nvml


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return root


def test_recorded_h200_in_units() -> None:
    reader = GpuReader(RecordedNvml({}), [0])
    assert reader.names == {0: "NVIDIA H200"}
    assert reader.read() == {
        "gpu0_power_w": 418.141,
        "gpu0_energy_j": 5745.54,
        "gpu0_utilisation_percent": 100.0,
        "gpu0_memory_used_bytes": 1799225344.0,
        "gpu0_sm_clock_mhz": 1785.0,
        "gpu0_memory_clock_mhz": 3201.0,
        "gpu0_temperature_c": 46.0,
        "gpu0_throttle_reasons": 4.0,
        "gpu0_ecc_corrected": 0.0,
        "gpu0_ecc_uncorrected": 0.0,
        "gpu0_pcie_generation": 5.0,
        "gpu0_pcie_width": 16.0,
    }
    assert reader.missing == {}


def test_field_that_raises_costs_only_itself() -> None:
    reader = GpuReader(RecordedNvml({}, {"TotalEnergyConsumption": Error(NOT_SUPPORTED)}), [0, 1])
    values = reader.read()
    assert [name for name, value in values.items() if value is None] == ["gpu1_energy_j"]
    assert reader.missing == {"gpu1_energy_j": "Not Supported"}
    assert len(values) == 2 * len(FIELDS)


@pytest.mark.parametrize("answer", [None, "n/a", object()])
def test_answer_that_is_no_number_is_missing(answer: object) -> None:
    reader = GpuReader(RecordedNvml({"Temperature": answer}), [0])
    assert reader.read()["gpu0_temperature_c"] is None
    assert "gpu0_temperature_c" in reader.missing or answer is None


def test_old_library_that_lacks_a_function() -> None:
    reader = GpuReader(RecordedNvml({}, absent=("nvmlDeviceGetTotalEnergyConsumption",)), [0])
    values = reader.read()
    assert (values["gpu0_energy_j"], values["gpu0_power_w"]) == (None, 418.141)
    assert reader.missing == {"gpu0_energy_j": "nvmlDeviceGetTotalEnergyConsumption"}


def test_gpu_that_falls_off_the_bus_leaves_nulls_and_the_others_go_on() -> None:
    recorded = RecordedNvml({}, {})
    reader = GpuReader(recorded, [0, 1])
    assert None not in reader.read().values()
    recorded.gpus[0]["lost"] = True
    values = reader.read()
    assert {name for name, value in values.items() if value is None} == {f"gpu0_{field}" for field in FIELDS}
    assert set(reader.missing.values()) == {"GPU is lost"}


def test_gpu_that_was_lost_before() -> None:
    reader = GpuReader(RecordedNvml({"lost": True}, {"Name": b"Tesla T4"}), [0, 1])
    assert reader.names == {1: "Tesla T4"}
    assert reader.missing == {"gpu0": "GPU is lost"}
    assert not any(name.startswith("gpu0") for name in reader.read())


def test_no_nvml_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    found, reason = open_nvml()
    assert found is None
    assert "pip install nvidia-ml-py" in reason


def test_no_driver_is_a_reason_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import pynvml

    def no_driver() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)

    monkeypatch.setattr(pynvml, "nvmlInit", no_driver)
    assert open_nvml() == (None, "NVML: RM has detected an NVML/RM version mismatch.")


def test_real_nvml_has_every_function_and_constant_that_is_used() -> None:
    import pynvml

    for query in FIELDS.values():
        # Without nvmlInit each query must reach NVML and be refused there.
        with pytest.raises(pynvml.NVMLError):
            query(pynvml, None)


def test_host_of_two_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(
        tmp_path,
        {
            "sys/devices/system/cpu/online": "0,2",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "2400000",
            "sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq": "3600000",
            "sys/class/hwmon/hwmon0/name": "coretemp",
            "sys/class/hwmon/hwmon0/temp1_input": "61000",
            "sys/class/hwmon/hwmon0/temp2_input": "58000",
            "sys/class/hwmon/hwmon1/name": "coretemp",
            "sys/class/hwmon/hwmon1/temp1_input": "67500",
            "sys/class/hwmon/hwmon2/name": "nvme",
            "sys/class/hwmon/hwmon2/temp1_input": "35000",
            "sys/class/hwmon/hwmon3/name": "acpi_fan",
            "sys/class/powercap/intel-rapl:0/name": "package-0",
            "sys/class/powercap/intel-rapl:0/energy_uj": "5000000",
            "sys/class/powercap/intel-rapl:0/max_energy_range_uj": "262143328850",
            "sys/class/powercap/intel-rapl:0:0/name": "dram",
            "sys/class/powercap/intel-rapl:0:0/energy_uj": "1",
            "sys/class/powercap/intel-rapl:1/name": "package-1",
            "sys/class/powercap/intel-rapl:1/energy_uj": "7500000",
            "sys/class/powercap/intel-rapl:1/max_energy_range_uj": "262143328850",
            "sys/class/powercap/intel-rapl:2/name": "psys",
            "sys/class/powercap/intel-rapl:2/energy_uj": "99",
        },
    )
    monkeypatch.setattr(host.psutil, "cpu_percent", lambda **_: [20.0, 60.0])
    monkeypatch.setattr(host.os, "sched_getaffinity", lambda _pid: {2})
    reader = HostReader(root)
    first, second = reader.read([os.getpid()]), reader.read([os.getpid()])
    assert (first["cpu_percent"], first["core2_percent"]) == (None, None)
    assert (second["cpu_percent"], second["core2_percent"]) == (40.0, 60.0)
    assert second["cpu_frequency_mhz"] == 3600.0
    assert (second["temperature_coretemp_c"], second["temperature_nvme_c"]) == (67.5, 35.0)
    assert (second["rapl0_energy_j"], second["rapl1_energy_j"]) == (5.0, 7.5)
    assert reader.rapl_ranges == {"rapl0_energy_j": 262143.32885, "rapl1_energy_j": 262143.32885}
    assert "rapl2_energy_j" not in second
    assert reader.missing == {}


def test_host_that_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise OSError("no /proc")

    monkeypatch.setattr(host.psutil, "virtual_memory", broken)
    monkeypatch.setattr(host.psutil, "cpu_percent", lambda **_: broken())
    reader = HostReader(tmp_path)
    reader.read([])
    values = reader.read([])
    assert (values["memory_used_bytes"], values["cpu_percent"], values["cpu_frequency_mhz"]) == (None, None, None)
    assert values["load_1min"] is not None
    assert reader.missing["memory_used_bytes"] == "no /proc"
    assert {"host", "cpu_percent", "cpu_frequency_mhz", "rapl", "temperature"} <= set(reader.missing)


def test_sensor_that_goes_away(tmp_path: Path) -> None:
    root = write(tmp_path, {"sys/devices/system/cpu/online": "0", "sys/class/hwmon/hwmon0/name": "k10temp"})
    write(root, {"sys/class/hwmon/hwmon0/temp1_input": "50000"})
    reader = HostReader(root)
    assert reader.read([])["temperature_k10temp_c"] == 50.0
    (root / "sys/class/hwmon/hwmon0/temp1_input").unlink()
    assert reader.read([])["temperature_k10temp_c"] is None


def test_memory_of_the_process_tree_counts_children_and_forgets_the_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "TREE_REFRESH_S", -1.0)
    hold = "import sys; data = bytearray(80_000_000); print('held', flush=True); sys.stdin.read()"
    spawn = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {hold!r}]).returncode)"
    with subprocess.Popen([sys.executable, "-c", spawn], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        parent.stdout.readline()
        reader = HostReader()
        assert reader.read([parent.pid])["rss_bytes"] > 80_000_000
        parent.stdin.close()
        parent.wait()
        assert reader.read([parent.pid])["rss_bytes"] == 0


def test_readers_import_nothing_heavy() -> None:
    program = (
        "import sys, faceoff.telemetry.sampler, faceoff.measurement.accelerators, faceoff.measurement.identity\n"
        "print(sorted({'pandas', 'pyarrow', 'numpy', 'torch', 'tensorflow'} & set(sys.modules)))"
    )
    scripts = Path(nvml.__file__).parents[2]
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={"PYTHONPATH": str(scripts)})
    assert done.stdout == "[]\n"


def test_gpu_is_lost_is_the_number_nvml_uses() -> None:
    import pynvml

    assert (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_NOT_SUPPORTED) == (GPU_IS_LOST, NOT_SUPPORTED)
