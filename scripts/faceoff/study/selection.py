"""Workloads, layouts, and which cells a study has."""

import fnmatch
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from faceoff.errors import ConfigError
from faceoff.study.cells import TrainingCell

WORKLOAD = re.compile(
    r"(?P<benchmark>[a-z0-9_]+)-(?P<preset>tiny|small|reference)(\+(?P<variant>[a-z0-9][a-z0-9.-]*))?"
)


@dataclass(frozen=True, order=True)
class Workload:
    """A benchmark at a preset, possibly in a variant of its card: resnet50-reference+pytorch."""

    benchmark: str
    preset: str
    variant: str = ""

    @staticmethod
    def parse(name: str) -> "Workload":
        """Return the workload that `name` spells. Raises ConfigError where it spells none."""
        match = WORKLOAD.fullmatch(name)
        if match is None:
            raise ConfigError(f"workload: expected a name such as ncf-tiny or resnet50-reference+pytorch, found {name}")
        return Workload(match["benchmark"], match["preset"], match["variant"] or "")

    def __str__(self) -> str:
        return f"{self.benchmark}-{self.preset}" + (f"+{self.variant}" if self.variant else "")


def layout_of(text: str) -> tuple[int, int]:
    """Return (nodes, accelerators in each node) of a layout such as `2x8`. Raises ValueError for anything else."""
    match = re.fullmatch(r"(\d+)x(\d+)", text)
    if match is None:
        raise ValueError(f"layout: expected NODESxACCELERATORS, such as 1x4; found {text!r}")
    return int(match[1]), int(match[2])


def training_cells(plan: dict[str, Any]) -> Iterator[TrainingCell]:
    """Yield the training cells of a plan {"workloads": [...], "layouts": {system: [...]}, "seeds": [...]}.

    Seeds are outermost and systems innermost.
    """
    for seed in plan["seeds"]:
        for workload in plan["workloads"]:
            for system, layouts in plan["layouts"].items():
                for layout in layouts:
                    yield TrainingCell(workload, system, layout, seed)


def selected(cell: TrainingCell, patterns: Iterable[str]) -> bool:
    """Say whether a cell matches one of the patterns workload/system/layout/seed, or whether there is no pattern.

    Each part may be left out at the end, may hold * and ?, and the first may be a benchmark alone.
    """
    patterns = list(patterns)
    names = [cell.workload, cell.system, cell.layout, f"seed{cell.seed}"]

    def matches(pattern: str) -> bool:
        parts = pattern.strip("/").split("/")
        if parts[0] == Workload.parse(cell.workload).benchmark:
            parts[0] = cell.workload
        return len(parts) <= len(names) and all(
            fnmatch.fnmatchcase(name, part) for name, part in zip(names, parts, strict=False)
        )

    return not patterns or any(matches(pattern) for pattern in patterns)
