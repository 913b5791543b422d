"""The training loop: train, evaluate at the card's interval, stop at the target or at the budget.

It knows no framework. A framework's module gives it a `Trainer`:

    faceoff.training.{pytorch,tensorflow}.create_trainer(spec, benchmark, data, placement, clock) -> Trainer

where `benchmark` is the module faceoff.benchmarks.{name}, `data` the data set's Manifest, `placement` says which rank
this is, and reading data is counted with `with clock.part("prepare")`; everything else in it counts as `init`.
"""

import math
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from faceoff.errors import DivergenceError, FaceoffError
from faceoff.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from faceoff.training.clock import Clock
from faceoff.training.mllog import TrainingLog, keys

# Steps between two signs of life, two looks at the time budget, two checks of the loss. Fixed, because a trainer
# seeds its generators at the first step of an interval.
STEPS_PER_INTERVAL = 100
HEARTBEAT_S = 1.0  # at least, between two touches of the file


@dataclass(frozen=True)
class Interval:
    """What some steps of training left."""

    losses: list[float]  # one a step: the mean over the global batch
    wait_s: float  # seconds in which the accelerator waited for data


class Trainer(Protocol):
    """One rank of a training run. Every rank calls the same methods in the same order, so they may communicate."""

    steps_per_epoch: int
    global_batch: int
    train_samples: int
    eval_samples: int
    parameters: int
    learning_rate: float
    hyperparameters_for_mllog: dict[str, Any]  # MLPerf's key -> value
    devices: list[str]  # of all ranks, as the devices name themselves
    versions: dict[str, str]  # of the framework and its libraries

    def warm_up(self) -> None:
        """Compile, trace, allocate; leave the state unchanged."""

    def train(self, first_step: int, steps: int) -> Interval:
        """Run `steps` steps from `first_step` (from 0 over the whole run).

        The order of the data and every random draw derive from (seed, epoch or step, rank): see
        `placement.derive_seed`. The steps never reach beyond an evaluation, but may reach into the next epoch.
        """

    def evaluate(self) -> float:
        """Return the quality, exact over the evaluation set, the same number on every rank."""

    def state(self) -> dict[str, np.ndarray]:
        """Return model, optimiser and everything else that is needed to go on."""

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take back what `state` gave."""

    def weights(self) -> dict[str, np.ndarray]:
        """Return the model alone."""

    def agree(self, value: float) -> float:
        """Return the first rank's value on every rank."""

    def close(self) -> None:
        """Leave the process group. Not called after an error."""


@dataclass
class Progress:
    """How far a run has come. `curve` and `segments` are as in a record, without the segment now running."""

    step: int = 0
    curve: list[dict[str, Any]] = field(default_factory=list)
    segments: list[dict[str, Any]] = field(default_factory=list)


class Segment:
    """The part of a run that one process does: all of it, unless it was killed and resumed. Begins at run_start."""

    def __init__(self, from_step: int) -> None:
        self.from_step = from_step
        self.start = time.time()
        self._since = time.monotonic()

    def until(self, step: int) -> dict[str, Any]:
        """Return the segment as a record tells it, ended now after `step` steps of the run."""
        return {
            "started": datetime.fromtimestamp(self.start, UTC).isoformat(timespec="milliseconds"),
            "ended": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "elapsed_s": time.monotonic() - self._since,
            "from_step": self.from_step,
            "to_step": step,
        }


def run_training(
    spec: dict[str, Any],
    trainer: Trainer,
    clock: Clock,
    log: TrainingLog,
    directory: Path,
    fingerprint: str,
    leads: bool,
) -> dict[str, Any]:
    """Train until the target or the budget is reached and return outcome, reason, segments, window and curve.

    Resumes from the checkpoint in `directory` where there is one; on the rank that `leads`, writes a checkpoint after
    each evaluation and touches `heartbeat` after each interval.

    Raises DivergenceError when loss or quality are no numbers, FaceoffError when the checkpoint does not fit.
    """
    path = directory / "checkpoint.safetensors"
    with clock.part("init"):
        trainer.warm_up()
        progress = Progress()
        checkpoint = read_checkpoint(path, fingerprint)
        if checkpoint is not None:
            trainer.restore(checkpoint.state)
            clock.resume(checkpoint.clock)
            progress = Progress(checkpoint.step, checkpoint.curve, checkpoint.segments)
        if trainer.agree(progress.step) != progress.step:
            raise FaceoffError(f"{path}: the ranks see different checkpoints; all nodes must share the directory")
    budget = spec["budget"]
    per_epoch = trainer.steps_per_epoch
    last_step = max(1, round(budget["epochs"] * per_epoch))

    log.end(keys.INIT_STOP)
    log.start(keys.RUN_START)
    clock.start_window()
    segment = Segment(progress.step)
    reached = late = False
    beat = -math.inf
    while not (reached or late or progress.step >= last_step):
        start, losses = progress.step, []
        end = min(next_evaluation(start, per_epoch, spec["evaluate_every"]), last_step)
        log.start(keys.BLOCK_START, first_epoch_num=start / per_epoch + 1, epoch_count=(end - start) / per_epoch)
        with clock.part("train"):
            while progress.step < end and not late:
                interval = trainer.train(progress.step, min(STEPS_PER_INTERVAL, end - progress.step))
                check_losses(interval.losses, progress.step, per_epoch)
                losses += interval.losses
                progress.step += len(interval.losses)
                clock.add("wait", interval.wait_s)
                if leads and time.monotonic() - beat >= HEARTBEAT_S:
                    (directory / "heartbeat").touch()
                    beat = time.monotonic()
                late = trainer.agree(clock.score(spec["round"])) >= budget["seconds"]
        log.end(keys.BLOCK_STOP, first_epoch_num=start / per_epoch + 1)

        epoch = progress.step / per_epoch
        log.start(keys.EVAL_START, epoch_num=epoch)
        with clock.part("eval"):
            quality = trainer.evaluate()
        log.end(keys.EVAL_STOP, epoch_num=epoch)
        log.event(keys.EVAL_ACCURACY, quality, epoch_num=epoch)
        if not math.isfinite(quality):
            raise DivergenceError(f"{spec['metric']['name']} is {quality} at step {progress.step} (epoch {epoch:g})")
        reached = meets(quality, spec["target"], spec["metric"]["higher_is_better"])
        point = {"epoch": epoch, "step": progress.step, "time_s": clock.score(spec["round"]), "quality": quality}
        progress.curve.append({**point, "loss": math.fsum(losses) / len(losses)})

        if not reached:
            with clock.part("checkpoint"):
                state = trainer.state()
                if leads:
                    segments = [*progress.segments, segment.until(progress.step)]
                    clocks = clock.totals()
                    write_checkpoint(
                        path, Checkpoint(progress.step, state, clocks, progress.curve, segments, fingerprint)
                    )
    clock.stop_window()
    log.end(keys.RUN_STOP, status=keys.SUCCESS if reached else keys.ABORTED)
    return {
        "outcome": "ok" if reached else "dnf",
        "reason": "" if reached else shortfall(spec, progress.curve[-1], late),
        "resumed": checkpoint is not None,
        "segments": [*progress.segments, segment.until(progress.step)],
        "window": {"start": segment.start, "end": time.time()},
        "curve": progress.curve,
    }


def next_evaluation(step: int, steps_per_epoch: int, evaluate_every: float) -> int:
    """Return the first step after `step` at which a run that evaluates every `evaluate_every` epochs evaluates."""
    stride = steps_per_epoch * evaluate_every
    number = math.floor(step / stride)
    while round(number * stride) <= step:
        number += 1
    return round(number * stride)


def meets(quality: float, target: float, higher_is_better: bool) -> bool:
    """Return whether a quality reaches its target; equal is enough."""
    return quality >= target if higher_is_better else quality <= target


def check_losses(losses: list[float], first_step: int, steps_per_epoch: int) -> None:
    """Raise DivergenceError naming step and epoch (both from 1) of the first loss that is NaN or infinite."""
    for step, loss in enumerate(losses, start=first_step + 1):
        if not math.isfinite(loss):
            raise DivergenceError(f"loss is {loss} at step {step} (epoch {(step - 1) // steps_per_epoch + 1})")


def shortfall(spec: dict[str, Any], last: dict[str, Any], late: bool) -> str:
    """Return why a run did not finish, for example "HR@10 0.612 < 0.63 after 12 epochs (budget: 12 epochs)"."""
    metric, budget = spec["metric"], spec["budget"]
    short = "<" if metric["higher_is_better"] else ">"
    limit = f"{budget['seconds']:g} s" if late else f"{budget['epochs']:g} epochs"
    return (
        f"{metric['name']} {last['quality']:.4g} {short} {spec['target']:g} "
        f"after {last['epoch']:.4g} epochs (budget: {limit})"
    )
