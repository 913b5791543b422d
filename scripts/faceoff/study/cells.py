"""Cells: the single things that are measured, and the paths that name them."""

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, order=True)
class TrainingCell:
    """One training run: a workload on a system at a layout with a seed."""

    workload: str
    system: str
    layout: str
    seed: int

    @property
    def name(self) -> str:
        """The cell as a person types it: ncf-tiny/laptop/1x2/seed1."""
        return f"{self.workload}/{self.system}/{self.layout}/seed{self.seed}"

    @property
    def directory(self) -> str:
        """The directory under the working directory that holds what the cell leaves."""
        return f"results/train/{self.name}"

    @property
    def record(self) -> str:
        """The path of the cell's record."""
        return f"{self.directory}/record.json"

    @property
    def rerun(self) -> str:
        """The command that measures the cell again."""
        return f"snakemake --cores all --forcerun {self.record} -- {self.record}"

    def as_dict(self) -> dict[str, Any]:
        """The cell as it stands in a record."""
        return {"workload": self.workload, "system": self.system, "layout": self.layout, "seed": self.seed}

    @staticmethod
    def parse(name: str) -> "TrainingCell | None":
        """Return the cell that `name` (workload/system/layout/seedN) spells, or None."""
        match = re.fullmatch(r"([^/]+)/([^/]+)/([1-9][0-9]*x[1-9][0-9]*)/seed([0-9]+)", name)
        return TrainingCell(match[1], match[2], match[3], int(match[4])) if match else None
