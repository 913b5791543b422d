"""The environments: one lock, and a conda file with the same pins."""

import re

import yaml
from checkouts import ROOT

from faceoff.study.environment import conda_environment, locked_requirements


def test_the_conda_file_holds_the_pins_of_the_lock():
    lock = (ROOT / "envs/default.lock").read_text()
    assert (ROOT / "envs/default.yaml").read_text() == conda_environment(lock)
    pins = yaml.safe_load((ROOT / "envs/default.yaml").read_text())["dependencies"][-1]["pip"]
    assert pins == locked_requirements(lock)


def test_every_package_is_pinned_and_every_package_asked_for_is_there():
    pins = dict(line.split("==") for line in locked_requirements((ROOT / "envs/default.lock").read_text()))
    locked = {name.lower().replace("_", "-"): version for name, version in pins.items()}
    for file in ("default.in", "data.in"):
        for line in locked_requirements((ROOT / "envs" / file).read_text()):
            name, _, version = re.sub(r"\s", "", line).partition("==")
            assert name.lower() in locked, f"{name} is asked for in {file} and not in the lock: run `make lock`"
            assert version in ("", locked[name.lower()])


def test_rooms_without_a_framework():
    imports = re.compile(r"^\s*(import|from) (torch|tensorflow|keras)\b", re.MULTILINE)
    rooms = ("study", "records", "tables", "figures", "measurement", "telemetry", "data")
    files = [path for room in rooms for path in (ROOT / "scripts/faceoff" / room).glob("*.py")]
    found = [path.name for path in files if imports.search(path.read_text())]
    assert found == ["imagenet_tensorflow.py"]
    assert all(path.read_text() == "" for path in (ROOT / "scripts").rglob("__init__.py"))


def test_a_rule_is_named_like_its_program():
    rules = [
        match[1]
        for path in (ROOT / "workflow/rules").glob("*.smk")
        for match in re.finditer(r"^rule (\w+):", path.read_text(), re.MULTILINE)
    ]
    assert rules
    for rule in rules:
        assert (ROOT / "scripts" / f"{rule}.py").is_file(), rule
    verbs = {path.stem.split("_")[0] for path in (ROOT / "scripts").glob("*.py")}
    assert verbs <= {
        "prepare",
        "train",
        "export",
        "quantize",
        "build",
        "search",
        "run",
        "check",
        "read",
        "describe",
        "collect",
        "tabulate",
        "plot",
        "compare",
        "write",
    }
