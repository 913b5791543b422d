import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_nvml import NOT_SUPPORTED, Error, RecordedNvml
from test_topology import TWO_SOCKETS, machine

from faceoff.errors import ConfigError
from faceoff.measurement import identity as identity_module
from faceoff.measurement.description import describe_system
from faceoff.measurement.identity import describe_drift, identity, identity_sha256, is_placeholder

SCRIPT = Path(identity_module.__file__).parents[2] / "describe_system.py"

R7525 = {
    "node": "Dell Inc. PowerEdge R7525",
    "cpu": {"model": "AMD EPYC 7763", "sockets": 2, "physical_cores": 128, "logical_cpus": 256},
    "memory_bytes": 2**40,
    "gpus": [{"name": "NVIDIA A30", "power_limit_w": 165.0}] * 3,
    "driver": "470.57.02",
    "kernel": "5.4.0",
    "packages": {"torch": "2.14.1", "psutil": "7.2.2"},
}


@pytest.fixture
def host(tmp_path: Path) -> Path:
    root = machine(tmp_path, TWO_SOCKETS)
    for name, text in {
        "proc/cpuinfo": "model name\t: Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz",
        "sys/class/dmi/id/sys_vendor": "Dell Inc.",
        "sys/class/dmi/id/product_name": "PowerEdge R740",
        "etc/os-release": 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 24.04.1 LTS"',
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return root


def test_identity_of_a_server_with_two_kinds_of_gpu(host: Path) -> None:
    v100 = {"Name": b"Tesla V100-PCIE-16GB", "PowerManagementLimit": 250000, "CudaComputeCapability": (7, 0)}
    found = identity(root=host, nvml=RecordedNvml({}, v100))
    assert found["node"] == "Dell Inc. PowerEdge R740"
    assert found["cpu"] == {
        "model": "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz",
        "sockets": 2,
        "physical_cores": 4,
        "logical_cpus": 8,
    }
    assert found["gpus"][0] == {
        "name": "NVIDIA H200",
        "memory_bytes": 150754820096,
        "power_limit_w": 700.0,
        "compute_capability": "9.0",
        "pcie": "5.0 x16",
    }
    assert (found["gpus"][1]["form"], found["gpus"][1]["compute_capability"]) == ("PCIE", "7.0")
    assert (found["driver"], found["cuda"], found["os"]) == ("580.159.04", "13.0", "Ubuntu 24.04.1 LTS")
    assert found["packages"]["torch"]
    json.dumps(found, allow_nan=False)


def test_what_the_machine_does_not_tell_is_left_out(host: Path) -> None:
    (host / "sys/class/dmi/id/sys_vendor").write_text("To Be Filled By O.E.M.\n")
    (host / "sys/class/dmi/id/product_name").write_text("System Product Name\n")
    (host / "etc/os-release").unlink()
    mute = dict.fromkeys(
        ("MemoryInfo", "PowerManagementLimit", "CudaComputeCapability", "MaxPcieLinkWidth"), Error(NOT_SUPPORTED)
    )
    found = identity(root=host, nvml=RecordedNvml(mute, {"lost": True}))
    assert found["gpus"] == [{"name": "NVIDIA H200"}]
    assert {"node", "os"}.isdisjoint(found)
    assert describe_system({"name": "t4", "accelerator": "t4"}, found)["system"] == "t4"


def test_identity_of_this_machine_describes_it_without_an_empty_field() -> None:
    found = identity()
    assert found["cpu"]["logical_cpus"] >= found["cpu"]["physical_cores"] >= found["cpu"]["sockets"] >= 1
    assert describe_system({"name": "here", "accelerator": "auto"}, found)["identity"] == found


def change(**changes) -> dict:
    return {**copy.deepcopy(R7525), **changes}


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (change(driver="580.159.04"), ["driver: 470.57.02 -> 580.159.04"]),
        (change(packages={"torch": "2.15.0"}), ["torch: 2.14.1 -> 2.15.0"]),
        (change(packages={}), ["torch: 2.14.1 -> none"]),
        (change(gpus=[{"name": "A30", "power_limit_w": 120.0}]), ["GPU: NVIDIA A30 (165 W) -> A30 (120 W)"]),
        (change(gpus=[]), ["GPU: NVIDIA A30 (165 W) -> none"]),
        (change(cpu={"model": "AMD EPYC 7543"}), ["cpu: AMD EPYC 7763 -> AMD EPYC 7543"]),
    ],
)
def test_drift_in_words(new: dict, words: list[str]) -> None:
    assert describe_drift(R7525, new) == words
    assert identity_sha256(R7525) != identity_sha256(new)


@pytest.mark.parametrize(
    "new",
    [
        change(gpus=R7525["gpus"][:1]),  # a job sees only the GPUs it was given
        change(kernel="6.8.0", memory_bytes=2**39, node="other", os="Ubuntu"),
        change(packages={"torch": "2.14.1", "psutil": "8.0.0"}),
    ],
)
def test_what_does_not_count_is_no_drift(new: dict) -> None:
    assert describe_drift(R7525, new) == []
    assert identity_sha256(R7525) == identity_sha256(new)


identities = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.fixed_dictionaries({}, optional={"model": st.sampled_from(["a", "b"])}),
        "driver": st.sampled_from(["1", "2"]),
        "kernel": st.sampled_from(["1", "2"]),
        "gpus": st.lists(
            st.fixed_dictionaries({"name": st.sampled_from(["T4", "A30"])}, optional={"power_limit_w": st.just(70.0)}),
            max_size=3,
        ),
        "packages": st.dictionaries(st.sampled_from(["torch", "tensorflow", "psutil"]), st.sampled_from(["1", "2"])),
    },
)


@given(identities, identities)
def test_drift_has_words_exactly_when_the_hash_differs(old: dict, new: dict) -> None:
    assert bool(describe_drift(old, new)) == (identity_sha256(old) != identity_sha256(new))
    assert len(describe_drift(old, new)) == len(describe_drift(new, old))


@pytest.mark.parametrize(
    "text",
    ["", "  ", "N/A", "na", "To Be Filled By O.E.M.", "Default string", "unknown", "TBD", "xxx", "???", "-", "None"],
)
def test_placeholders(text: str) -> None:
    assert is_placeholder(text)


@pytest.mark.parametrize("text", ["PowerEdge R740", "NVIDIA A30", "0", "Nano", "xeon", "none of these"])
def test_texts_that_say_something(text: str) -> None:
    assert not is_placeholder(text)


@pytest.mark.parametrize(
    ("configured", "found", "field"),
    [
        ({"name": "a30", "node": ""}, R7525, "configured.node is ''"),
        ({"name": "a30", "host": {"memory": "TBD"}}, R7525, "configured.host.memory is 'TBD'"),
        ({"name": "a30", "host": {}}, R7525, "configured.host is empty"),
        ({"name": "a30", "stack": None}, R7525, "configured.stack is empty"),
        ({"accelerator": "a30"}, R7525, "system is empty"),
        ({"name": "a30"}, change(gpus=[{"name": "0"}]), r"identity.gpus\[0\].name is '0'"),
        ({"name": "a30"}, change(cpu={"model": ""}), "identity.cpu.model is ''"),
    ],
)
def test_field_that_says_nothing_is_refused(configured: dict, found: dict, field: str) -> None:
    with pytest.raises(ConfigError, match=f"fields that say nothing: .*{field}"):
        describe_system(configured, found)


def test_program_writes_the_description_or_one_line(tmp_path: Path) -> None:
    output = tmp_path / "systems" / "laptop.json"
    command = [sys.executable, str(SCRIPT), "--output", str(output), "--system"]
    subprocess.run([*command, '{"name": "laptop", "accelerator": "auto"}'], check=True)
    description = json.loads(output.read_text())
    assert description["schema"] == "faceoff-system/1"
    assert description["identity_sha256"] == identity_sha256(description["identity"])
    failed = subprocess.run(
        [*command, '{"name": "n/a", "accelerator": "auto"}'], check=False, capture_output=True, text=True
    )
    assert (failed.returncode, failed.stderr) == (
        1,
        "describe_system.py: system n/a: fields that say nothing: system is 'n/a'\n",
    )
