"""Copies of the checkout, and programs of this environment run in them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("Snakefile", "config", "envs", "profiles", "scripts", "workflow")
PUBLISHED = ROOT.parent / "shared" / "published"


def copy_checkout(target: Path) -> Path:
    """Copy what a run needs, with its times, to `target`."""
    target.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target / part, ignore=shutil.ignore_patterns("__pycache__", "*.local.yaml"))
        else:
            shutil.copy2(ROOT / part, target / part)
    return target


def environment_here() -> dict[str, str]:
    """Return the environment of a program: this interpreter's programs first, jobs on this machine."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "FACEOFF_EXECUTOR": "local"}


def run(
    *command: str, cwd: Path, check: bool = True, timeout: float = 600, **environment: str
) -> subprocess.CompletedProcess:
    """Run a program of this environment; the failure message of `check` holds what it printed."""
    result = subprocess.run(
        command,
        check=False,
        cwd=cwd,
        env={**environment_here(), **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    if check and result.returncode:
        raise AssertionError(f"{' '.join(command)} exited {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result
