"""Training in TensorFlow: SGD with momentum, over all ranks with MultiWorkerMirroredStrategy.

All weights lie in one vector, so that a step has one gradient, one all-reduce and one update, however many tensors the
network has. Ranks start from the same values and add the same sum, so their weights stay equal bit by bit; the moving
statistics of batch normalisation, which each rank gathers from its own part of the batch, are averaged after each call
of `train`.
"""

import faulthandler
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from faceoff.data.manifest import Manifest
from faceoff.errors import AcceleratorError, ConfigError, DataError
from faceoff.training.clock import Clock
from faceoff.training.loop import Interval
from faceoff.training.placement import Placement, cpu_name, derive_seed, global_batch

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # or TensorFlow imports Keras 3, not used here: 2 s
import tensorflow as tf

DTYPES = {"fp32": tf.float32, "tf32": tf.float32, "bf16": tf.bfloat16, "fp16": tf.float16}
TENSOR_FLOAT_CAPABILITY = (8, 0)  # of NVIDIA GPUs: the first with TF32 and bf16
DEVICE_NAME_BYTES = 256
RENDEZVOUS_S = 120  # within which all ranks must have imported TensorFlow

Tensors = Mapping[str, tf.Tensor]
Batch = tuple[tf.Tensor, ...]
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Resident:
    """Training data that stays on the device: one array of all samples for each part of a batch."""

    arrays: Batch


@dataclass(frozen=True)
class Streamed:
    """Training data that is read while training: `batches(first_step)` begins with this rank's batch of that step."""

    batches: Callable[[int], tf.data.Dataset]


@dataclass(frozen=True)
class Data:
    """A benchmark's data, as one rank sees it."""

    training: Resident | Streamed
    evaluation: Callable[[], Iterable[Batch]]  # this rank's share: each sample once over all ranks
    batch_spec: tuple[tf.TensorSpec, ...]  # of a batch, its size None
    train_samples: int  # of all ranks
    eval_samples: int


class Task(Protocol):
    """What a benchmark gives: a network as a function of its weights, and its data."""

    data: Data
    kernels: Shapes  # weight decay applies to these weights, and they take part in the precision asked
    scales: Shapes  # these weights stay float32 and do not decay
    statistics: Shapes  # float32, moved by training but not by gradients
    hyperparameters_for_mllog: dict[str, Any]
    base_learning_rate: float

    def initial(self, seed: int) -> dict[str, tf.Tensor]:
        """Return all weights and statistics before training."""

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of a step."""

    def loss(self, batch: Batch, weights: Tensors, statistics: Tensors) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Return the mean loss float32 [] over a rank's batch, and the statistics after it."""

    def score(self, batch: Batch, weights: Tensors, statistics: Tensors) -> tf.Tensor:
        """Return the sum float32 [] over a batch of what quality is the mean of."""


class Packing:
    """Named tensors that lie one after another in a vector."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self.sizes = [math.prod(shape) for shape in shapes.values()]
        self.size = sum(self.sizes)

    def unpack(self, vector: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the tensors of a vector by their names."""
        parts = tf.split(vector, self.sizes)
        return {name: tf.reshape(part, shape) for part, (name, shape) in zip(parts, self.shapes.items(), strict=True)}

    def pack(self, tensors: Tensors) -> tf.Tensor:
        """Return the vector of tensors given by their names."""
        return tf.concat([tf.reshape(tensors[name], [-1]) for name in self.shapes], 0)


def create_trainer(
    spec: dict[str, Any], benchmark: Any, data: Manifest, placement: Placement, clock: Clock
) -> "TensorFlowTrainer":
    """Return this rank's trainer of the cell `spec`. With more than one rank, TF_CONFIG must describe the cluster.

    Raises what `take_device` and `create_strategy` raise, DataError when the data is not as prepared, and ConfigError
    when the batch exceeds it or does not divide among the ranks.
    """
    device = take_device(placement, spec["precision"])
    strategy = create_strategy(placement)
    task = benchmark.create_tensorflow_task(spec, data, placement, clock)
    return TensorFlowTrainer(spec, task, placement, strategy, device)


class TensorFlowTrainer:
    """One rank, as the training loop drives it (faceoff.training.loop.Trainer)."""

    def __init__(
        self, spec: dict[str, Any], task: Task, placement: Placement, strategy: tf.distribute.Strategy, device: str
    ) -> None:
        """Put the network's initial weights on the device. Raises ConfigError when the batch exceeds the data."""
        self._task, self._placement, self._strategy, self._seed = task, placement, strategy, spec["seed"]
        self.global_batch = global_batch(spec["batch"], placement.world_size)
        self._batch = self.global_batch // placement.world_size
        self.train_samples, self.eval_samples = task.data.train_samples, task.data.eval_samples
        self.steps_per_epoch = self.train_samples // self.global_batch
        if self.steps_per_epoch == 0:
            raise ConfigError(f"batch: {self.global_batch} samples a step, but only {self.train_samples} to train on")
        self.learning_rate = task.base_learning_rate
        self.hyperparameters_for_mllog = task.hyperparameters_for_mllog
        self.versions = _versions()

        hyperparameters = spec["hyperparameters"]
        self._momentum = float(hyperparameters["momentum"])
        self._dtype = DTYPES[spec["precision"]]
        self._loss_scale = float(hyperparameters["loss_scale"]) if spec["precision"] == "fp16" else 1.0
        self._kernels, self._scales = Packing(task.kernels), Packing(task.scales)
        self._model = Packing(task.kernels | task.scales)
        self._moving = Packing(task.statistics)
        self.parameters = self._model.size

        initial = task.initial(derive_seed(self._seed, "weights"))
        self._weights = tf.Variable(self._model.pack(initial))
        self._velocity = tf.Variable(tf.zeros([self._model.size]))
        self._statistics = tf.Variable(self._moving.pack(initial))
        self._decay = tf.concat(
            [tf.fill([self._kernels.size], float(hyperparameters["weight_decay"])), tf.zeros([self._scales.size])], 0
        )
        self._arrays = task.data.training.arrays if isinstance(task.data.training, Resident) else ()
        self._train_resident = _graph(
            self._resident_interval,
            input_signature=[tf.TensorSpec([None, self._batch], tf.int64), tf.TensorSpec([None], tf.float32)],
        )
        self._train_streamed = _graph(lambda batch, rate: strategy.run(self._step, (batch, rate)))
        self._score = _graph(self._score_batch, input_signature=[task.data.batch_spec])
        self._average_statistics = _graph(lambda: strategy.run(self._share_statistics))
        self._total = _graph(lambda vector: strategy.run(_all_reduce, (vector,)))

        self._stream: Iterator[Batch] = iter(())
        self._stream_step = self._ordered_epoch = -1
        self._epoch_order = np.empty(0, np.int64)
        self.devices = self._gather_text(device)

    def warm_up(self) -> None:
        """Trace and compile every function by running it once; what that changed is put back."""
        state = self.state()
        batch = tuple(tf.zeros([self._batch, *spec.shape[1:]], spec.dtype) for spec in self._task.data.batch_spec)
        if isinstance(self._task.data.training, Resident):
            self._train_resident(tf.zeros([1, self._batch], tf.int64), tf.zeros([1]))
        else:
            self._train_streamed(batch, tf.constant(0.0))
        self._average_statistics()
        self._score(batch)
        self._sum([0.0, 0.0])
        self.restore(state)

    def train(self, first_step: int, steps: int) -> Interval:
        """Run `steps` steps. Waiting for data is measured with the device idle, as each step's loss was fetched."""
        rates = [self._task.learning_rate(step) for step in range(first_step, first_step + steps)]
        if isinstance(self._task.data.training, Resident):
            numbers = self._numbers(first_step, steps)
            losses, wait = self._train_resident(numbers, tf.constant(rates, tf.float32)).numpy().tolist(), 0.0
        else:
            losses, wait = self._run_stream(self._task.data.training, first_step, rates)
        self._average_statistics()
        return Interval(losses, wait)

    def evaluate(self) -> float:
        """Return the mean score over the evaluation set. Raises DataError when the ranks miss or repeat a sample."""
        score, samples = 0.0, 0
        for batch in _read(self._task.data.evaluation()):
            score += float(self._score(batch))
            samples += len(batch[0])
        total, seen = self._sum([score, float(samples)])
        if seen != self.eval_samples:
            raise DataError(f"evaluation: expected {self.eval_samples} samples, found {seen:g}; prepare the data again")
        return total / self.eval_samples

    def state(self) -> dict[str, np.ndarray]:
        """Return weights, statistics and momentum."""
        velocity = self._model.unpack(self._velocity)
        return {
            **{f"model/{name}": array for name, array in self.weights().items()},
            **{f"momentum/{name}": tensor.numpy() for name, tensor in velocity.items()},
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Take back what `state` gave."""
        model = {name.removeprefix("model/"): array for name, array in state.items() if name.startswith("model/")}
        self._weights.assign(self._model.pack(model))
        self._statistics.assign(self._moving.pack(model))
        self._velocity.assign(self._model.pack({name: state[f"momentum/{name}"] for name in self._model.shapes}))

    def weights(self) -> dict[str, np.ndarray]:
        """Return weights and statistics."""
        tensors = self._model.unpack(self._weights) | self._moving.unpack(self._statistics)
        return {name: tensor.numpy() for name, tensor in tensors.items()}

    def agree(self, value: float) -> float:
        """Return the first rank's value on every rank."""
        return self._sum([value if self._placement.leads else 0.0])[0]

    def close(self) -> None:
        """Wait for the other ranks: the first one's process serves the others and must not end before them."""
        self._sum([0.0])

    def _step(self, batch: Batch, rate: tf.Tensor) -> tf.Tensor:
        # One rank's part of a step, inside strategy.run; returns the mean loss over the global batch.
        with tf.GradientTape() as tape:
            weights, statistics = self._unpacked()
            loss, moved = self._task.loss(batch, weights, statistics)
            scaled = loss * self._loss_scale
        gradient = tape.gradient(scaled, self._weights)
        shared = _all_reduce(tf.concat([gradient, [scaled]], 0)) / (self._placement.world_size * self._loss_scale)
        tf.raw_ops.ResourceApplyMomentum(
            var=self._weights.handle,
            accum=self._velocity.handle,
            lr=rate,
            grad=shared[:-1] + self._decay * self._weights,
            momentum=self._momentum,
        )
        self._statistics.assign(self._moving.pack(moved))
        return shared[-1]

    def _share_statistics(self) -> None:
        self._statistics.assign(_all_reduce(self._statistics.value()) / self._placement.world_size)

    def _score_batch(self, batch: Batch) -> tf.Tensor:
        return self._task.score(batch, *self._unpacked())

    def _unpacked(self) -> tuple[dict[str, tf.Tensor], dict[str, tf.Tensor]]:
        kernels, scales = tf.split(self._weights, [self._kernels.size, self._scales.size])
        kernels = tf.cast(kernels, self._dtype)
        weights = self._kernels.unpack(kernels) | self._scales.unpack(scales)
        return weights, self._moving.unpack(self._statistics)

    def _resident_interval(self, numbers: tf.Tensor, rates: tf.Tensor) -> tf.Tensor:
        steps = tf.shape(rates)[0]

        def body(step: tf.Tensor, losses: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            batch = tuple(tf.gather(array, numbers[step]) for array in self._arrays)
            return step + 1, losses.write(step, self._strategy.run(self._step, (batch, rates[step])))

        start = tf.constant(0), tf.TensorArray(tf.float32, steps)
        _, losses = tf.while_loop(lambda step, _: step < steps, body, start, parallel_iterations=1)
        return losses.stack()

    def _run_stream(self, data: Streamed, first_step: int, rates: list[float]) -> tuple[list[float], float]:
        if first_step != self._stream_step:
            to_device = tf.data.experimental.prefetch_to_device(self._weights.device, 2)
            self._stream = _read(data.batches(first_step).apply(to_device))
        losses, wait = [], 0.0
        for rate in rates:
            since = time.perf_counter()
            batch = next(self._stream)
            wait += time.perf_counter() - since
            losses.append(float(self._train_streamed(batch, tf.constant(rate))))
        self._stream_step = first_step + len(losses)
        return losses, wait

    def _numbers(self, first_step: int, steps: int) -> tf.Tensor:
        # The samples of this rank in each step, int64 [steps, batch of a rank].
        rows = []
        for step in range(first_step, first_step + steps):
            epoch, position = divmod(step, self.steps_per_epoch)
            start = position * self.global_batch + self._placement.rank * self._batch
            rows.append(self._order(epoch)[start : start + self._batch])
        return tf.constant(np.stack(rows))

    def _order(self, epoch: int) -> np.ndarray:
        if self._ordered_epoch != epoch:
            generator = np.random.default_rng(derive_seed(self._seed, "order", epoch))
            self._epoch_order, self._ordered_epoch = generator.permutation(self.train_samples), epoch
        return self._epoch_order

    def _sum(self, values: list[float]) -> list[float]:
        return self._total(tf.constant(values, tf.float64)).numpy().tolist()

    def _gather_text(self, text: str) -> list[str]:
        # Collectives know numbers only.
        rows = np.zeros([self._placement.world_size, DEVICE_NAME_BYTES])
        encoded = text.encode()[:DEVICE_NAME_BYTES]
        rows[self._placement.rank, : len(encoded)] = list(encoded)
        summed = np.reshape(self._sum(rows.ravel().tolist()), rows.shape).astype(np.uint8)
        return [row.tobytes().rstrip(b"\0").decode(errors="replace") for row in summed]


def take_device(placement: Placement, precision: str) -> str:
    """Reserve this rank's device and return its own name. To be called before TensorFlow computes anything.

    Raises AcceleratorError when there is no GPU for this rank, or the device lacks the precision.
    """
    if placement.device == "cpu":
        if precision == "tf32":
            raise AcceleratorError("precision: a CPU has no tf32; ask for fp32")
        tf.config.experimental.enable_op_determinism()
        return cpu_name()
    gpus = tf.config.list_physical_devices("GPU")
    if placement.local_rank >= len(gpus):
        raise AcceleratorError(
            f"expected a GPU for local rank {placement.local_rank}, found {len(gpus)} that TensorFlow "
            f"{tf.__version__} can use; the package tensorflow-cpu uses none"
        )
    gpu = gpus[placement.local_rank]
    details = tf.config.experimental.get_device_details(gpu)
    if precision in ("tf32", "bf16") and details["compute_capability"] < TENSOR_FLOAT_CAPABILITY:
        raise AcceleratorError(f"precision: {details['device_name']} has no {precision}; ask for fp32 or fp16")
    tf.config.set_visible_devices(gpu, "GPU")
    tf.config.experimental.set_memory_growth(gpu, True)
    tf.config.experimental.enable_tensor_float_32_execution(precision == "tf32")
    return details["device_name"]


def create_strategy(placement: Placement) -> tf.distribute.Strategy:
    """Join the other ranks, once a process, and return the strategy that reduces over them.

    Raises ConfigError when there is no TF_CONFIG; ends the process when a rank stays away.
    """
    if placement.world_size == 1:
        return tf.distribute.get_strategy()
    if "TF_CONFIG" not in os.environ:
        raise ConfigError(f"TF_CONFIG: expected the addresses of {placement.world_size} ranks, found none")
    # Else gRPC would look for the other ranks behind the proxy that http_proxy may name, and wait without end.
    workers = json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"]
    os.environ["no_grpc_proxy"] = ",".join(address.rpartition(":")[0] for address in workers)  # noqa: SIM112 - gRPC reads this spelling
    kinds = tf.distribute.experimental.CommunicationImplementation
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=kinds.RING if placement.device == "cpu" else kinds.NCCL
    )
    # Inside TensorFlow the first rank would wait without end for one that never comes.
    faulthandler.dump_traceback_later(RENDEZVOUS_S, exit=True)
    try:
        return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _graph(function: Callable, **options: Any) -> Callable:
    return tf.function(function, autograph=False, **options)


def _all_reduce(vector: tf.Tensor) -> tf.Tensor:
    # The strategy reduces on the vector's device, which an argument of a function lacks and its copy has.
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(vector))


def _read(batches: Iterable[Batch]) -> Iterator[Batch]:
    try:
        yield from batches
    except (tf.errors.InvalidArgumentError, tf.errors.DataLossError, tf.errors.NotFoundError) as error:
        raise DataError(f"cannot read the data: {error.message}") from error


def _versions() -> dict[str, str]:
    build = tf.sysconfig.get_build_info()
    libraries = {name: str(build[f"{name}_version"]) for name in ("cuda", "cudnn") if f"{name}_version" in build}
    return {"tensorflow": tf.__version__, **libraries}
