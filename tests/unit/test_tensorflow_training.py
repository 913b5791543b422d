import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from miniature_imagenet import folders
from tensorflow_ranks import ALONE, CLASSES, SAMPLES, TESTS, Linear, linear_spec, start_two_ranks

from faceoff.errors import AcceleratorError, ConfigError, DataError, DivergenceError
from faceoff.training import tensorflow as framework
from faceoff.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from faceoff.training.clock import Clock
from faceoff.training.loop import check_losses
from faceoff.training.placement import Placement

STEPS = 15  # beyond the first epoch of 12


def trainer(**changes: Any) -> framework.TensorFlowTrainer:
    return framework.create_trainer(linear_spec(**changes), Linear(), None, ALONE, Clock(time.time()))


def test_the_update_is_sgd_with_momentum_and_decay_of_kernels() -> None:
    model = trainer()
    state = model.state()
    kernel, bias = (state[f"model/{name}"].astype(np.float64) for name in ("kernel", "bias"))
    velocity, bias_velocity, mean = np.zeros_like(kernel), np.zeros_like(bias), np.zeros(5)
    expected = []
    for step, numbers in enumerate(model._numbers(0, STEPS).numpy()):
        inputs, labels = model._task.inputs[numbers].astype(np.float64), model._task.labels[numbers]
        logits = inputs @ kernel + bias
        odds = np.exp(logits)
        probabilities = odds / odds.sum(1, keepdims=True)
        expected.append(-np.log(probabilities[range(4), labels]).mean())
        error = (probabilities - np.eye(CLASSES)[labels]) / 4
        velocity = 0.9 * velocity + inputs.T @ error + 0.01 * kernel
        bias_velocity = 0.9 * bias_velocity + error.sum(0)
        kernel -= 0.5 / (1 + step) * velocity
        bias -= 0.5 / (1 + step) * bias_velocity
        mean = 0.9 * mean + 0.1 * inputs.mean(0)
    np.testing.assert_allclose(model.train(0, STEPS).losses, expected, rtol=1e-5)
    after = model.state()
    np.testing.assert_allclose(after["model/kernel"], kernel, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(after["model/bias"], bias, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(after["model/mean"], mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(after["momentum/kernel"], velocity, rtol=1e-4, atol=1e-5)


def test_an_epoch_sees_every_sample_once() -> None:
    numbers = trainer()._numbers(0, 24).numpy()
    for epoch in (numbers[:12], numbers[12:]):
        assert sorted(epoch.ravel()) == list(range(SAMPLES))
    assert (numbers[:12] != numbers[12:]).any()


def test_quality_is_exact() -> None:
    model = trainer()
    kernel = model.weights()["kernel"]
    inputs, labels = model._task.inputs[SAMPLES:], model._task.labels[SAMPLES:]
    assert model.evaluate() == np.mean((inputs @ kernel).argmax(1) == labels)
    assert model.eval_samples == TESTS


def test_equal_seeds_give_equal_losses_and_others_do_not() -> None:
    assert trainer().train(0, STEPS) == trainer().train(0, STEPS)
    assert trainer().train(0, STEPS) != trainer(seed=4).train(0, STEPS)


def test_warming_up_changes_nothing() -> None:
    model = trainer()
    before = model.state()
    model.warm_up()
    after = model.state()
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_a_resumed_run_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    whole = trainer()
    losses = whole.train(0, 5).losses + whole.train(5, STEPS - 5).losses
    first = trainer()
    first.train(0, 5)
    path = tmp_path / "checkpoint.safetensors"
    write_checkpoint(path, Checkpoint(5, first.state(), {}, [], [], "0"))
    second = trainer()
    second.warm_up()
    checkpoint = read_checkpoint(path, "0")
    assert checkpoint is not None
    second.restore(checkpoint.state)
    assert second.train(5, STEPS - 5).losses == losses[5:]
    after, expected = second.state(), whole.state()
    assert all(np.array_equal(after[name], expected[name]) for name in expected)


def test_a_loss_that_is_no_number_is_found() -> None:
    hyperparameters = linear_spec()["hyperparameters"] | {"learning_rate": 1e38, "weight_decay": 1e38}
    losses = trainer(hyperparameters=hyperparameters).train(0, STEPS).losses
    assert np.isfinite(losses[0])
    with pytest.raises(DivergenceError, match=r"loss is (nan|inf) at step \d+ \(epoch 1\)"):
        check_losses(losses, 0, 12)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_lower_precision_stays_close_and_keeps_float32_weights(precision: str) -> None:
    model = trainer(precision=precision)
    losses = model.train(0, STEPS).losses
    expected = trainer().train(0, STEPS).losses
    assert losses != expected
    np.testing.assert_allclose(losses, expected, rtol=0.02)
    assert {array.dtype for array in model.state().values()} == {np.dtype(np.float32)}


def test_what_a_machine_lacks_is_said() -> None:
    with pytest.raises(AcceleratorError, match="a CPU has no tf32; ask for fp32"):
        trainer(precision="tf32")
    with pytest.raises(AcceleratorError, match=r"expected a GPU for local rank 99, found \d+"):
        framework.take_device(Placement(99, 99, 100, "cuda"), "fp32")


def test_a_batch_beyond_the_data_is_refused() -> None:
    with pytest.raises(ConfigError, match="batch: 49 samples a step, but only 48 to train on"):
        trainer(batch={"size": 49, "per": "global"})


def test_two_ranks_need_tf_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(ConfigError, match="TF_CONFIG: expected the addresses of 2 ranks, found none"):
        framework.create_strategy(Placement(0, 0, 2, "cpu"))


def test_missing_evaluation_samples_are_found() -> None:
    half = framework.TensorFlowTrainer(
        linear_spec(),
        Linear().create_tensorflow_task(linear_spec(), None, Placement(0, 0, 2, "cpu"), Clock(time.time())),
        ALONE,
        framework.create_strategy(ALONE),
        "half",
    )
    with pytest.raises(DataError, match="evaluation: expected 17 samples, found 8"):
        half.evaluate()


LOST = 0  # the rank that dies at the end of the second run; it serves the other


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[list[int], list[dict[str, np.ndarray]]]]:
    """Return the exit statuses of two ranks and what they left, of a whole run and of one that loses a rank."""
    runs = []
    for arguments in ((), ("--lose", str(LOST))):
        output = tmp_path_factory.mktemp("run")
        folders(output / "imagenet")
        ranks = start_two_ranks(output, *arguments)
        try:
            statuses = [rank.wait(timeout=240) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
        found = [dict(np.load(output / f"rank{rank}.npz", allow_pickle=False)) for rank in range(2)]
        runs.append((statuses, found))
    return runs


def equal(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


def test_both_ranks_hold_the_same_model_and_quality(two_ranks: list) -> None:
    statuses, found = two_ranks[0]
    assert statuses == [0, 0]
    assert equal(*found)
    assert found[0]["agreed"] == 5
    assert len(found[0]["devices"]) == 2


def test_two_ranks_repeat_bit_by_bit(two_ranks: list) -> None:
    (_, first), (_, second) = two_ranks
    assert equal(first[0], second[0])


def test_two_ranks_train_as_one_with_the_same_global_batch(two_ranks: list) -> None:
    found, model = two_ranks[0][1][0], trainer()
    np.testing.assert_allclose(found["linear/losses"], model.train(0, STEPS).losses, rtol=1e-5)
    for name, array in model.weights().items():
        np.testing.assert_allclose(found[f"linear/{name}"], array, rtol=1e-4, atol=1e-6)
    assert found["linear/quality"] == model.evaluate()


def test_a_lost_rank_ends_the_other(two_ranks: list) -> None:
    statuses = two_ranks[1][0]
    assert statuses[LOST] == 9
    assert statuses[1 - LOST] == 1
