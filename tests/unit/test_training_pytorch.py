"""The PyTorch trainer on one rank, with a task whose optimum is known."""

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from faceoff.errors import AcceleratorError, ConfigError
from faceoff.training.clock import Clock
from faceoff.training.placement import Placement
from faceoff.training.pytorch import Context, PyTorchTrainer, check_precision, create_optimizer, create_trainer


class Regression:
    """y = 2 x + 1, with a network that keeps running statistics and drops inputs."""

    train_samples = 103
    eval_samples = 10

    def __init__(self, _hyperparameters: dict[str, Any], _data: Any, context: Context) -> None:
        self._context = context

    def build_network(self) -> nn.Module:
        return nn.Sequential(nn.BatchNorm1d(1), nn.Dropout(0.2), nn.Linear(1, 1))

    def learning_rate(self, step: int) -> float:
        return 0.1 / (1 + step)

    def example(self) -> tuple[Tensor, Tensor]:
        return torch.randn(10, 1), torch.zeros(10, 1)

    def batches(self, first_step: int, steps: int) -> Iterator[tuple[Tensor, Tensor]]:
        for step in range(first_step, first_step + steps):
            x = torch.randn(10, 1, generator=self._context.generator("x", step))
            yield x, 2 * x + 1

    def loss(self, network: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        return nn.functional.mse_loss(network(batch[0]), batch[1])

    def evaluate(self, network: nn.Module) -> Tensor:
        assert not network.training
        return network(torch.arange(10.0)[:, None])

    def quality(self, rows: Tensor) -> float:
        return rows.mean().item()


SGD = {"optimizer": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 1e-4}


def trainer(seed: int = 1, precision: str = "fp32", batch: int = 10) -> PyTorchTrainer:
    spec = {
        "seed": seed,
        "precision": precision,
        "batch": {"size": batch, "per": "accelerator"},
        "hyperparameters": SGD,
    }
    benchmark: Any = SimpleNamespace(create_pytorch_task=Regression)
    data: Any = None
    return create_trainer(spec, benchmark, data, Placement(0, 0, 1, "cpu"), Clock(time.time()))


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all((one[name] == other[name]).all() for name in one)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_warming_up_leaves_no_trace(precision: str) -> None:
    cold, warm = trainer(precision=precision), trainer(precision=precision)
    before = warm.state()
    warm.warm_up()
    assert same(warm.state(), before)
    assert cold.train(0, 12).losses == warm.train(0, 12).losses
    assert same(cold.state(), warm.state())


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_restored_trainer_goes_on(precision: str) -> None:
    whole, broken = trainer(precision=precision), trainer(precision=precision)
    whole.train(0, 15)
    broken.train(0, 15)
    resumed = trainer(precision=precision)
    resumed.restore(broken.state())
    assert same(resumed.state(), whole.state())
    assert resumed.train(15, 20).losses == whole.train(15, 20).losses
    assert same(resumed.weights(), whole.weights())
    assert resumed.evaluate() == whole.evaluate()


def test_state_holds_statistics_and_momentum() -> None:
    one = trainer()
    one.train(0, 3)
    state = one.state()
    assert {f"model/{name}" for name in one.weights()} < set(state)
    assert state["model/0.num_batches_tracked"] == 3
    assert {name for name in state if name.startswith("optimizer/")} == {
        f"optimizer/{index}/momentum_buffer" for index in range(4)
    }


def test_momentum_after_a_skipped_first_step() -> None:
    one = trainer(precision="fp16")
    with torch.no_grad():
        one._network[2].weight.fill_(6e4)  # the scaled loss and its gradient are infinite in 16 bits
    one.train(0, 1)
    momenta = [array for name, array in one.state().items() if "momentum" in name]
    assert len(momenta) == 4
    assert all((array == 0).all() for array in momenta)


def test_facts() -> None:
    one = trainer()
    assert one.steps_per_epoch == 10  # 103 samples: the last three fill no batch
    assert one.global_batch == 10
    assert one.parameters == 4
    assert one.agree(1.5) == 1.5
    assert len(one.devices) == 1
    assert one.versions["torch"] == torch.__version__
    one.train(4, 1)
    assert [group["lr"] for group in one._optimizer.param_groups] == [0.1 / 5]


def test_seeds() -> None:
    first, again, other = trainer(1), trainer(1), trainer(2)
    assert first.train(0, 5).losses == again.train(0, 5).losses
    assert first.train(5, 5).losses != other.train(5, 5).losses


def test_batch_larger_than_an_epoch() -> None:
    with pytest.raises(ConfigError, match="batch: 104 samples; an epoch has only 103"):
        trainer(batch=104)


def test_optimisers() -> None:
    network = nn.Linear(2, 1)
    adam = {"optimizer": "adam", "learning_rate": 0.1, "beta_1": 0.8, "beta_2": 0.99, "epsilon": 1e-7}
    optimizer, logged = create_optimizer(network, adam)
    assert optimizer.defaults["betas"] == (0.8, 0.99)
    assert optimizer.defaults["eps"] == 1e-7
    assert logged == {
        "opt_name": "adam",
        "opt_base_learning_rate": 0.1,
        "opt_adam_beta_1": 0.8,
        "opt_adam_beta_2": 0.99,
        "opt_adam_epsilon": 1e-7,
    }
    optimizer, logged = create_optimizer(network, SGD)
    assert (optimizer.defaults["momentum"], optimizer.defaults["weight_decay"]) == (0.9, 1e-4)
    assert logged["opt_weight_decay"] == 1e-4


@pytest.mark.parametrize(
    ("precision", "capability", "allowed"),
    [
        ("fp16", (7, 0), True),
        ("fp32", (7, 5), True),
        ("bf16", (7, 5), False),
        ("tf32", (7, 0), False),
        ("bf16", (8, 0), True),
        ("tf32", (9, 0), True),
    ],
)
def test_precision_of_a_gpu(
    monkeypatch: pytest.MonkeyPatch, precision: str, capability: tuple[int, int], allowed: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "Tesla T4")
    if allowed:
        check_precision(precision, torch.device("cuda", 0))
        return
    with pytest.raises(AcceleratorError, match=r"needs compute capability 8.0; Tesla T4 has 7.\d: use fp16 or fp32"):
        check_precision(precision, torch.device("cuda", 0))


def test_unknown_precision() -> None:
    with pytest.raises(ConfigError, match="found 'int3'"):
        check_precision("int3", torch.device("cpu"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_gpu_that_is_not_there() -> None:
    spec = {"seed": 1, "precision": "fp32", "batch": {"size": 10, "per": "accelerator"}, "hyperparameters": SGD}
    benchmark: Any = SimpleNamespace(create_pytorch_task=Regression)
    data: Any = None
    with pytest.raises(AcceleratorError, match="rank 3 needs GPU 1; torch sees 0"):
        create_trainer(spec, benchmark, data, Placement(3, 1, 4, "cuda"), Clock(time.time()))
