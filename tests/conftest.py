"""Shared by all tests: the checkout, copies of it, and the published result files where there are any."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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


def run(
    *command: str, cwd: Path, check: bool = True, timeout: float = 600, **environment: str
) -> subprocess.CompletedProcess:
    """Run a program of this environment; the failure message of `check` holds what it printed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        command,
        check=False,
        cwd=cwd,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    if check and result.returncode:
        raise AssertionError(f"{' '.join(command)} exited {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of the checkout without results."""
    return copy_checkout(tmp_path / "faceoff")


@pytest.fixture(scope="session")
def published() -> Path:
    """Return the folder of published result files, or skip."""
    if not PUBLISHED.is_dir():
        pytest.skip(f"no published result files at {PUBLISHED}")
    return PUBLISHED


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses published files."""
    for item in items:
        if "published" in getattr(item, "fixturenames", ()):
            item.add_marker("shared")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """In CI a skipped test is a failure, unless it is marked gpu or shared."""
    if os.environ.get("CI") and session.config.pluginmanager.hasplugin("terminalreporter"):
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        skipped = [
            report.nodeid
            for report in reporter.stats.get("skipped", [])
            if not {"gpu", "shared"} & set(report.keywords)
        ]
        if skipped and exitstatus == 0:
            reporter.write_line(f"skipped, which fails in CI: {', '.join(skipped)}", red=True)
            session.exitstatus = 1
