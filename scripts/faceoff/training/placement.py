"""Where a rank stands among the ranks of a run: its number, its share of the work and its random seeds."""

import hashlib
import os
import platform
from dataclasses import dataclass
from typing import Any, Self

from faceoff.errors import ConfigError
from faceoff.measurement.topology import cpu_model


@dataclass(frozen=True)
class Placement:
    """One rank of a run, as torchrun and Faceoff's launcher describe it in the environment."""

    rank: int
    local_rank: int
    world_size: int
    device: str  # "cpu" or "cuda"

    @classmethod
    def from_environment(cls) -> Self:
        """Read RANK, LOCAL_RANK, WORLD_SIZE and FACEOFF_DEVICE. Raises KeyError when one is missing."""
        return cls(
            rank=int(os.environ["RANK"]),
            local_rank=int(os.environ["LOCAL_RANK"]),
            world_size=int(os.environ["WORLD_SIZE"]),
            device=os.environ["FACEOFF_DEVICE"],
        )

    @property
    def leads(self) -> bool:
        """Whether this rank writes the files of the run."""
        return self.rank == 0

    def share(self, items: int) -> slice:
        """Return this rank's part of `items`: contiguous, disjoint from the others', sizes at most one apart."""
        return slice(items * self.rank // self.world_size, items * (self.rank + 1) // self.world_size)


def global_batch(batch: dict[str, Any], world_size: int) -> int:
    """Return the samples of one step over all ranks.

    Raises ConfigError when a batch that is given per step does not divide among the ranks.
    """
    size = int(batch["size"])
    if batch["per"] == "accelerator":
        return size * world_size
    if size % world_size:
        raise ConfigError(f"batch: a global batch of {size} does not divide among {world_size} accelerators")
    return size


def derive_seed(seed: int, *path: int | str) -> int:
    """Return a 63-bit seed for one purpose, such as ("order", epoch) or ("dropout", step, rank), of a run's seed.

    Draws that are seeded so need no saved generator state: a resumed run makes them again.
    """
    text = "/".join(str(part) for part in (seed, *path))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def cpu_name() -> str:
    """Return this process's processor and core, for example "AMD EPYC 7763 64-Core Processor core 3"."""
    name = cpu_model() or platform.processor() or platform.machine()
    cores = sorted(os.sched_getaffinity(0))
    return f"{name} core {cores[0]}" if len(cores) == 1 else f"{name} cores {cores[0]}-{cores[-1]}"
