"""The environment files: one lock, and the conda file that is made from it."""

import os
import sys
from pathlib import Path

import yaml


def prefer_this_python() -> None:
    """Let the rules' `python` be the one that runs Snakemake, also where its environment is not active."""
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def locked_requirements(lock: str) -> list[str]:
    """Return the pins of a lock, in its order."""
    return [line for line in lock.splitlines() if line and not line.startswith("#")]


def conda_environment(lock: str) -> str:
    """Return a conda environment file, as text, that installs the pins of a lock through pip."""
    environment = {
        "channels": ["conda-forge", "nodefaults"],
        "dependencies": ["python=3.11", "pip", {"pip": locked_requirements(lock)}],
    }
    header = "# Made by `make lock` from default.lock: the same pins for `snakemake --sdm conda`.\n"
    return header + yaml.safe_dump(environment, sort_keys=False)
