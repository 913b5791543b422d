import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlperf_logging.compliance_checker import mlp_compliance

from faceoff.errors import DivergenceError, FaceoffError
from faceoff.training.clock import Clock
from faceoff.training.loop import STEPS_PER_INTERVAL, Interval, next_evaluation, run_training
from faceoff.training.mllog import TrainingLog, keys
from faceoff.training.rank import mlperf_settings


class Descent:
    """A trainer of one number: each step takes a tenth off, and the loss is what is left."""

    steps_per_epoch = 10
    global_batch = 32
    train_samples = 320
    eval_samples = 5
    parameters = 1
    learning_rate = 0.1
    hyperparameters_for_mllog: dict[str, Any] = {"opt_base_learning_rate": 0.1}  # noqa: RUF012
    devices = ["abacus"]  # noqa: RUF012
    versions = {"abacus": "1"}  # noqa: RUF012

    def __init__(self, dies_at: int | None = None, nan_at: int | None = None) -> None:
        self.left = np.array(1.0)
        self.calls: list[tuple[int, int]] = []
        self._dies_at, self._nan_at = dies_at, nan_at

    def warm_up(self) -> None:
        pass

    def train(self, first_step: int, steps: int) -> Interval:
        self.calls.append((first_step, steps))
        losses = []
        for step in range(first_step, first_step + steps):
            if step == self._dies_at:
                raise KeyboardInterrupt
            self.left = self.left * 0.9
            losses.append(math.nan if step == self._nan_at else float(self.left))
        return Interval(losses, wait_s=0.001)

    def evaluate(self) -> float:
        return float(self.left)

    def state(self) -> dict[str, np.ndarray]:
        return {"left": self.left}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.left = state["left"]

    def weights(self) -> dict[str, np.ndarray]:
        return {"left": self.left}

    def agree(self, value: float) -> float:
        return value

    def close(self) -> None:
        pass


def spec(**changes: Any) -> dict[str, Any]:
    return {
        "benchmark": "gnmt",
        "preset": "tiny",
        "round": "v0.7",
        "metric": {"name": "WER", "unit": "fraction", "higher_is_better": False},
        "target": 0.05,
        "evaluate_every": 1,
        "budget": {"epochs": 50, "seconds": 60},
        "seed": 3,
        **changes,
    }


def run(trainer: Descent, directory: Path, leads: bool = True, **changes: Any) -> dict[str, Any]:
    log = TrainingLog(directory / "mllog.txt" if leads else None)
    log.event(keys.CACHE_CLEAR, False)
    log.start(keys.INIT_START)
    cell = spec(**changes)
    for key, value in mlperf_settings(cell, trainer).items():
        log.event(key, value)
    return run_training(cell, trainer, Clock(time.time()), log, directory, "f" * 64, leads)


def test_stops_at_the_first_evaluation_that_meets_the_target(tmp_path: Path) -> None:
    outcome = run(Descent(), tmp_path)
    assert outcome["outcome"] == "ok"
    # 0.9 ** 30 = 0.0424 <= 0.05 < 0.9 ** 20
    assert [point["step"] for point in outcome["curve"]] == [10, 20, 30]
    assert [point["epoch"] for point in outcome["curve"]] == [1, 2, 3]
    assert outcome["curve"][-1]["quality"] == pytest.approx(0.9**30)
    assert outcome["curve"][0]["loss"] == pytest.approx(sum(0.9**k for k in range(1, 11)) / 10)
    assert [part["to_step"] for part in outcome["segments"]] == [30]


def test_long_intervals_are_cut(tmp_path: Path) -> None:
    trainer = Descent()
    run(trainer, tmp_path, evaluate_every=25, target=0.0, budget={"epochs": 35, "seconds": 60})
    assert trainer.calls == [(0, 100), (100, 100), (200, 50), (250, 100)]
    assert max(steps for _, steps in trainer.calls) == STEPS_PER_INTERVAL


def test_budget_in_epochs(tmp_path: Path) -> None:
    outcome = run(Descent(), tmp_path, budget={"epochs": 2, "seconds": 60})
    assert outcome["outcome"] == "dnf"
    assert outcome["reason"] == "WER 0.1216 > 0.05 after 2 epochs (budget: 2 epochs)"


def test_budget_in_seconds_cuts_an_interval_short_and_evaluates(tmp_path: Path) -> None:
    outcome = run(Descent(), tmp_path, target=0.0, evaluate_every=50, budget={"epochs": 50, "seconds": 0})
    assert outcome["outcome"] == "dnf"
    assert [point["step"] for point in outcome["curve"]] == [STEPS_PER_INTERVAL]
    assert outcome["reason"] == "WER 2.656e-05 > 0 after 10 epochs (budget: 0 s)"


def test_loss_that_is_no_number(tmp_path: Path) -> None:
    with pytest.raises(DivergenceError, match=r"^loss is nan at step 37 \(epoch 4\)$"):
        run(Descent(nan_at=36), tmp_path, target=0.0)


def test_interrupted_run_goes_on(tmp_path: Path) -> None:
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
    unbroken = run(Descent(), tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(Descent(dies_at=25), tmp_path / "broken")
    outcome = run(Descent(), tmp_path / "broken")
    assert outcome["resumed"]
    assert not unbroken["resumed"]
    assert [(part["from_step"], part["to_step"]) for part in outcome["segments"]] == [(0, 20), (20, 30)]
    for key in ("epoch", "step", "quality", "loss"):
        assert [point[key] for point in outcome["curve"]] == [point[key] for point in unbroken["curve"]]


def test_segments_add_up_on_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hand:
        now = 1e9

        def time(self) -> float:
            return self.now

        monotonic = time

    class Timed(Descent):
        def train(self, first_step: int, steps: int) -> Interval:
            hand.now += steps  # a second a step, also for steps that are lost
            return super().train(first_step, steps)

    hand = Hand()
    monkeypatch.setattr("faceoff.training.clock.time", hand)
    monkeypatch.setattr("faceoff.training.loop.time", hand)
    with pytest.raises(KeyboardInterrupt):
        run(Timed(dies_at=25), tmp_path)
    hand.now += 1000
    outcome = run(Timed(), tmp_path)
    assert [part["elapsed_s"] for part in outcome["segments"]] == [20, 10]
    assert [point["time_s"] for point in outcome["curve"]] == [10, 20, 30]
    assert outcome["window"]["end"] - outcome["window"]["start"] == 10


def test_ranks_that_see_different_checkpoints(tmp_path: Path) -> None:
    class Stranger(Descent):
        def agree(self, value: float) -> float:
            return value + 10

    with pytest.raises(FaceoffError, match="all nodes must share the directory"):
        run(Stranger(), tmp_path)


def test_only_the_leading_rank_writes(tmp_path: Path) -> None:
    run(Descent(), tmp_path, leads=False)
    assert not list(tmp_path.iterdir())
    run(Descent(), tmp_path, leads=True)
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint.safetensors", "heartbeat", "mllog.txt"}


@pytest.mark.parametrize("every", [1, 0.5])
def test_log_passes_the_compliance_checker(tmp_path: Path, every: float) -> None:
    run(Descent(), tmp_path, evaluate_every=every)
    checker = mlp_compliance.make_checker("training", "0.7.0", quiet=False, werror=True)
    assert checker.check_file(str(tmp_path / "mllog.txt"), "training_0.7.0/common.yaml")
    lines = [json.loads(line.removeprefix(":::MLLOG ")) for line in (tmp_path / "mllog.txt").read_text().splitlines()]
    assert {line["metadata"]["file"] for line in lines} <= {"faceoff/training/loop.py", __file__}
    assert [line["value"] for line in lines if line["key"] == "submission_division"] == ["open"]


@given(step=st.integers(0, 10**6), per_epoch=st.integers(1, 10**5), every=st.floats(1e-4, 50))
def test_next_evaluation(step: int, per_epoch: int, every: float) -> None:
    following = next_evaluation(step, per_epoch, every)
    assert step < following <= step + math.ceil(per_epoch * every) + 1
    # Evaluations are where they are, wherever a run resumes.
    assert next_evaluation(following - 1, per_epoch, every) == following


def test_evaluations_of_a_fraction_of_an_epoch() -> None:
    steps = [0]
    for _ in range(6):
        steps.append(next_evaluation(steps[-1], 241, 0.5))
    assert steps == [0, 120, 241, 362, 482, 602, 723]
