"""The clock of a training run: wall seconds in named parts, and the window that is the score."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

# `wait` is the part of `train` in which the accelerator had no data; every other second is in one part only.
PARTS = ("imports", "prepare", "init", "train", "eval", "checkpoint", "wait")


class Clock:
    """Seconds of this run, over all of its segments once an earlier segment's totals were added.

    `launched` is the Unix time at which the rank's process was started.
    """

    def __init__(self, launched: float) -> None:
        self.launched = launched
        self.seconds = dict.fromkeys((*PARTS, "window"), 0.0)
        self._open: list[str] = []
        self._since = time.monotonic()
        self._window_since: float | None = None

    def imported(self) -> None:
        """End the part `imports`, which began when the process was launched."""
        self.seconds["imports"] += time.time() - self.launched

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the block under `name`. A part inside another stops the outer one meanwhile."""
        self._settle()
        self._open.append(name)
        try:
            yield
        finally:
            self._settle()
            self._open.pop()

    def add(self, name: str, seconds: float) -> None:
        """Add seconds measured elsewhere."""
        self.seconds[name] += seconds

    def resume(self, totals: dict[str, float]) -> None:
        """Add the totals that an earlier segment left in its checkpoint."""
        for name, seconds in totals.items():
            self.seconds[name] += seconds

    def start_window(self) -> None:
        """Begin the timed window (run_start)."""
        self._window_since = time.monotonic()

    def stop_window(self) -> None:
        """End the timed window (run_stop)."""
        self.seconds["window"] = self.totals()["window"]
        self._window_since = None

    def totals(self) -> dict[str, float]:
        """Return the seconds of every part and of `window` until now."""
        self._settle()
        totals = dict(self.seconds)
        if self._window_since is not None:
            totals["window"] += time.monotonic() - self._window_since
        return totals

    def score(self, mlperf_round: str) -> float:
        """Return the seconds that a round counts until now.

        MLPerf Training v0.5 had no untimed initialisation; later rounds count from run_start to run_stop.
        """
        totals = self.totals()
        untimed = totals["prepare"] + totals["init"] if mlperf_round == "v0.5" else 0.0
        return untimed + totals["window"]

    def _settle(self) -> None:
        now = time.monotonic()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now
