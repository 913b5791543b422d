"""Shared by all tests: the checkout, copies of it, and the published result files where there are any."""

import os
import shutil
from pathlib import Path

import pytest
from checkouts import PUBLISHED, copy_checkout, run
from hypothesis import settings
from quick_study import quick_checkout

# A busy machine is no fault of the code under test.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of the checkout without results."""
    return copy_checkout(tmp_path / "faceoff")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkout in which the quick studies have been run. Copy it before you change it."""
    root = quick_checkout(tmp_path_factory.mktemp("finished") / "faceoff")
    run("snakemake", "--cores", "2", "results/figures", cwd=root)
    return root


@pytest.fixture
def study(finished: Path, tmp_path: Path) -> Path:
    """Return a copy of the finished checkout, with its times and Snakemake's memory."""
    return Path(shutil.copytree(finished, tmp_path / "faceoff", symlinks=True))


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
