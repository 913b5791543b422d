"""Training in PyTorch: devices, processes, precision and optimisers; what is learned comes from a benchmark's task.

A benchmark's module takes part by offering `create_pytorch_task(hyperparameters, data, context) -> Task`. The same code
runs one rank or many, on CPUs (gloo) and GPUs (NCCL), on one node or several.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import torch
import torch._dynamo  # optimisers load it on first use; loaded here, it counts among the imports
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from faceoff.data.manifest import Manifest
from faceoff.errors import AcceleratorError, ConfigError
from faceoff.training.clock import Clock
from faceoff.training.loop import Interval
from faceoff.training.mllog import keys
from faceoff.training.placement import Placement, cpu_name, derive_seed, global_batch

# Computing types of autocast; fp32 and tf32 compute as the parameters are stored.
AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
PRECISIONS = ("fp32", "tf32", *AUTOCAST)

Batch = Any  # what a task's batches are is its own affair


@dataclass(frozen=True)
class Context:
    """What a task needs to know of the run: its place in it, its device, the samples of one step over all ranks."""

    placement: Placement
    device: torch.device
    global_batch: int
    seed: int

    def generator(self, *path: int | str) -> torch.Generator:
        """Return a generator on the device for one purpose, such as ("samples", epoch), of the run's seed.

        Without the rank in `path` every rank draws the same, so that a layout does not change what is learned.
        """
        return torch.Generator(self.device).manual_seed(derive_seed(self.seed, *path))


class Task(Protocol):
    """What a benchmark gives the trainer. Its constructor reads the data: that time is the clock's part `prepare`."""

    train_samples: int  # of one epoch
    eval_samples: int

    def build_network(self) -> nn.Module:
        """Return the network, on the CPU, drawn from torch's generator, which the trainer has seeded."""

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of a step (from 0)."""

    def example(self) -> Batch:
        """Return a made-up batch of this rank's size on the device: warming up must not touch training data."""

    def batches(self, first_step: int, steps: int) -> Iterator[Batch]:
        """Yield this rank's share of the batches of `steps` steps, on the device.

        Every rank's share has the same size; the last samples of an epoch that fill no batch are left out.
        """

    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        """Return the mean loss, a scalar in nats, of this rank's share of a batch."""

    def evaluate(self, network: nn.Module) -> Tensor:
        """Return float rows [n, k] about this rank's share of the evaluation set: each item on one rank only."""

    def quality(self, rows: Tensor) -> float:
        """Return the metric from the rows of all ranks, in the order of the ranks, on the CPU."""


def create_trainer(
    spec: dict[str, Any], benchmark: ModuleType, data: Manifest, placement: Placement, clock: Clock
) -> "PyTorchTrainer":
    """Join the process group, read the data and build network and optimiser.

    Raises ConfigError for a batch that does not divide or is larger than an epoch, and AcceleratorError for a
    precision that the device does not have.
    """
    samples = global_batch(spec["batch"], placement.world_size)
    device = start_device(placement, spec["precision"])
    context = Context(placement, device, samples, spec["seed"])
    with clock.part("prepare"):
        task: Task = benchmark.create_pytorch_task(spec["hyperparameters"], data, context)
    return PyTorchTrainer(spec, task, context)


class PyTorchTrainer:
    """One rank of a run: `faceoff.training.loop.Trainer` for PyTorch."""

    def __init__(self, spec: dict[str, Any], task: Task, context: Context) -> None:
        self._task, self._context = task, context
        self.global_batch = context.global_batch
        self.train_samples, self.eval_samples = task.train_samples, task.eval_samples
        self.steps_per_epoch = task.train_samples // self.global_batch
        if self.steps_per_epoch == 0:
            raise ConfigError(f"batch: {self.global_batch} samples; an epoch has only {task.train_samples}")
        torch.manual_seed(derive_seed(context.seed, "weights"))
        self._network = task.build_network().to(context.device)
        self._parallel = self._network
        if context.placement.world_size > 1:
            ids = [context.device.index] if context.device.type == "cuda" else None
            self._parallel = DistributedDataParallel(self._network, ids, gradient_as_bucket_view=True)
        self._optimizer, optimizer_keys = create_optimizer(self._network, spec["hyperparameters"])
        autocast = AUTOCAST.get(spec["precision"])
        self._autocast = torch.autocast(context.device.type, autocast, enabled=autocast is not None)
        self._scaler = torch.amp.GradScaler(context.device.type, enabled=autocast is torch.float16)
        self.parameters = sum(parameter.numel() for parameter in self._network.parameters())
        self.learning_rate = task.learning_rate(0)
        self.hyperparameters_for_mllog = optimizer_keys
        self.devices = self._gather_text(device_name(context.device))
        self.versions = versions(context.device)

    def warm_up(self) -> None:
        """Take one step on a made-up batch, so that libraries load and buckets form, and take it back."""
        before = self.state()
        self._step(self._task.example())
        self.restore(before)
        self._synchronize()

    def train(self, first_step: int, steps: int) -> Interval:
        """Run `steps` steps and return their losses, each the mean over the global batch."""
        torch.manual_seed(derive_seed(self._context.seed, "step", first_step, self._context.placement.rank))
        self._parallel.train()
        losses, wait_s = [], 0.0
        batches = self._task.batches(first_step, steps)
        for step in range(first_step, first_step + steps):
            asked = time.monotonic()
            batch = next(batches)
            wait_s += time.monotonic() - asked
            for group in self._optimizer.param_groups:
                group["lr"] = self._task.learning_rate(step)
            losses.append(self._step(batch))
        means = torch.stack(losses).double()
        if self._context.placement.world_size > 1:
            dist.all_reduce(means)
            means /= self._context.placement.world_size
        return Interval(means.tolist(), wait_s)

    def evaluate(self) -> float:
        """Return the quality, computed on every rank from the rows of all."""
        self._share_buffers()
        self._network.eval()
        with torch.inference_mode(), self._autocast:
            rows = self._task.evaluate(self._network)
        return self._task.quality(self._gather(rows.double()).cpu())

    def state(self) -> dict[str, np.ndarray]:
        """Return model, optimiser and loss scale."""
        self._share_buffers()
        state = {f"model/{name}": tensor for name, tensor in self._network.state_dict().items()}
        for index, moments in self._optimizer.state_dict()["state"].items():
            state |= {f"optimizer/{index}/{name}": value for name, value in moments.items() if value is not None}
        state |= {f"scaler/{name}": torch.tensor(value) for name, value in self._scaler.state_dict().items()}
        return {name: _to_numpy(tensor) for name, tensor in state.items()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take back what `state` gave."""
        tensors: dict[str, dict[str, Tensor]] = {"model": {}, "optimizer": {}, "scaler": {}}
        for name, array in state.items():
            kind, _, rest = name.partition("/")
            tensors[kind][rest] = torch.from_numpy(array).clone()
        self._network.load_state_dict(tensors["model"])
        moments: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors["optimizer"].items():
            index, _, moment = name.partition("/")
            moments.setdefault(int(index), {})[moment] = tensor
        groups = self._optimizer.state_dict()["param_groups"]
        self._optimizer.load_state_dict({"state": moments, "param_groups": groups})
        if self._scaler.is_enabled():
            self._scaler.load_state_dict({name: tensor.item() for name, tensor in tensors["scaler"].items()})

    def weights(self) -> dict[str, np.ndarray]:
        """Return the model's parameters and buffers."""
        self._share_buffers()
        return {name: _to_numpy(tensor) for name, tensor in self._network.state_dict().items()}

    def agree(self, value: float) -> float:
        """Return the first rank's value."""
        if self._context.placement.world_size == 1:
            return value
        tensor = torch.tensor(value, dtype=torch.float64, device=self._context.device)
        dist.broadcast(tensor, src=0)
        return tensor.item()

    def close(self) -> None:
        """Leave the process group."""
        if dist.is_initialized():
            dist.destroy_process_group()

    def _step(self, batch: Batch) -> Tensor:
        with self._autocast:
            loss = self._task.loss(self._parallel, batch)
        self._scaler.scale(loss).backward()
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self._optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def _synchronize(self) -> None:
        if self._context.device.type == "cuda":
            torch.cuda.synchronize(self._context.device)

    def _share_buffers(self) -> None:
        # Running statistics are each rank's own after the last forward pass; the first rank's count.
        if self._context.placement.world_size > 1:
            for buffer in self._network.buffers():
                dist.broadcast(buffer, src=0)

    def _gather(self, rows: Tensor) -> Tensor:
        """Return the rows [n, k] of all ranks, in the order of the ranks; n may differ between ranks, k may not."""
        size = self._context.placement.world_size
        if size == 1:
            return rows
        count = torch.tensor([len(rows)], device=rows.device)
        counts = [torch.empty_like(count) for _ in range(size)]
        dist.all_gather(counts, count)
        longest = max(int(count) for count in counts)
        padded = rows.new_zeros((longest, *rows.shape[1:]))
        padded[: len(rows)] = rows
        parts = [torch.empty_like(padded) for _ in range(size)]
        dist.all_gather(parts, padded)
        return torch.cat([part[: int(count)] for part, count in zip(parts, counts, strict=True)])

    def _gather_text(self, text: str) -> list[str]:
        line = torch.tensor(list(f"{text}\n".encode()), dtype=torch.uint8, device=self._context.device)
        return bytes(self._gather(line).tolist()).decode().splitlines()


def start_device(placement: Placement, precision: str) -> torch.device:
    """Take this rank's device, set how it computes in 32 bits and, with several ranks, join the process group.

    Raises AcceleratorError when there is no such device, or it does not have the precision.
    """
    if placement.device == "cuda":
        if placement.local_rank >= torch.cuda.device_count():
            raise AcceleratorError(
                f"rank {placement.rank} needs GPU {placement.local_rank}; torch sees {torch.cuda.device_count()}"
            )
        device = torch.device("cuda", placement.local_rank)
        torch.cuda.set_device(device)
    else:
        device = torch.device("cpu")
    check_precision(precision, device)
    torch.backends.fp32_precision = "tf32" if precision == "tf32" else "ieee"
    if placement.world_size > 1:
        if device.type == "cuda":
            dist.init_process_group("nccl", device_id=device)
        else:
            dist.init_process_group("gloo")
    return device


def check_precision(precision: str, device: torch.device) -> None:
    """Raise ConfigError for an unknown precision and AcceleratorError for one that the device does not have."""
    if precision not in PRECISIONS:
        raise ConfigError(f"precision: expected one of {', '.join(PRECISIONS)}; found {precision!r}")
    if device.type == "cpu":
        if precision == "tf32":
            raise AcceleratorError("precision tf32 is of NVIDIA GPUs; use fp32 or bf16 on a CPU")
    elif precision in ("bf16", "tf32") and (capability := torch.cuda.get_device_capability(device)) < (8, 0):
        raise AcceleratorError(
            f"precision {precision} needs compute capability 8.0; {torch.cuda.get_device_name(device)} has "
            f"{capability[0]}.{capability[1]}: use fp16 or fp32"
        )


def create_optimizer(
    network: nn.Module, hyperparameters: dict[str, Any]
) -> tuple[torch.optim.Optimizer, dict[str, Any]]:
    """Return the fused optimiser that the hyperparameters name, and its settings under MLPerf's keys.

    Raises ConfigError for an unknown `optimizer`.
    """
    name, rate = hyperparameters["optimizer"], hyperparameters["learning_rate"]
    logged = {keys.OPT_NAME: name, keys.OPT_BASE_LR: rate}
    if name == "adam":
        betas, epsilon = (hyperparameters["beta_1"], hyperparameters["beta_2"]), hyperparameters["epsilon"]
        optimizer = torch.optim.Adam(network.parameters(), rate, betas, epsilon, fused=True)
        settings = {keys.OPT_ADAM_BETA_1: betas[0], keys.OPT_ADAM_BETA_2: betas[1], keys.OPT_ADAM_EPSILON: epsilon}
        return optimizer, logged | settings
    if name == "sgd":
        momentum, decay = hyperparameters["momentum"], hyperparameters["weight_decay"]
        sgd = torch.optim.SGD(network.parameters(), rate, momentum, weight_decay=decay, fused=True)
        for parameter in network.parameters():
            # Else torch allocates without filling, and keeps what lay there when fp16 skips the first step.
            sgd.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        return sgd, logged | {"opt_momentum": momentum, keys.OPT_WEIGHT_DECAY: decay}
    raise ConfigError(f"optimizer: expected adam or sgd; found {name!r}")


def device_name(device: torch.device) -> str:
    """Return the name that the device gives itself."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_name()


def versions(device: torch.device) -> dict[str, str]:
    """Return the versions of torch and, on a GPU, of the libraries that it computes with."""
    found = {"torch": torch.__version__}
    if device.type == "cuda":
        found |= {
            "cuda": str(torch.version.cuda),
            "cudnn": str(torch.backends.cudnn.version()),
            "nccl": ".".join(str(number) for number in torch.cuda.nccl.version()),
        }
    return found


def _to_numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy().copy()
