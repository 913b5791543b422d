"""The training log in MLPerf's format: `:::MLLOG` lines, written by MLCommons' own package."""

import logging
import re
import sys
from pathlib import Path
from typing import Any

from mlperf_logging.mllog import constants as keys
from mlperf_logging.mllog.mllog import MLLogger

__all__ = ["BENCHMARK_NAMES", "TrainingLog", "keys"]

# MLCommons' names of benchmarks where they differ from the cards'.
BENCHMARK_NAMES = {"resnet50": keys.RESNET}
_ROOT = Path(__file__).parents[2]


class TrainingLog:
    """Appends to a log file and to standard output; with no path (ranks other than the first) writes nothing."""

    def __init__(self, path: Path | None) -> None:
        self._handlers: list[logging.Handler] = []
        logger = logging.Logger("faceoff.training.mllog", logging.INFO)
        if path is not None:
            self._handlers = [logging.FileHandler(path, encoding="utf-8"), logging.StreamHandler(sys.stdout)]
        for handler in self._handlers:
            logger.addHandler(handler)
        if not self._handlers:
            logger.addHandler(logging.NullHandler())
        # The package makes the caller's path relative with a regular expression.
        self._log = MLLogger(logger=logger, default_stack_offset=2, root_dir=re.escape(str(_ROOT)))

    def start(self, key: str, **metadata: Any) -> None:
        """Log the start of an interval."""
        self._log.start(key, metadata=metadata)

    def end(self, key: str, **metadata: Any) -> None:
        """Log the end of an interval."""
        self._log.end(key, metadata=metadata)

    def event(self, key: str, value: Any, **metadata: Any) -> None:
        """Log a value."""
        self._log.event(key, value, metadata=metadata)

    def close(self) -> None:
        """Close the file."""
        for handler in self._handlers:
            handler.close()
