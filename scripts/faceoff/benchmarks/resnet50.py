"""Image classification with ResNet-50 v1.5: digits for the tiny preset, ImageNet for the reference.

Optimiser and schedules are those of MLPerf Training v0.5's reference (mlcommons/training, image_classification).
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from faceoff.data.manifest import Manifest
from faceoff.training.clock import Clock
from faceoff.training.placement import Placement, global_batch

if TYPE_CHECKING:
    import tensorflow as tf

    from faceoff.training.tensorflow import Batch, Data, Tensors


def learning_rate(step: int, batch: int, samples: int, hyperparameters: dict[str, Any]) -> float:
    """Return the learning rate of `step` (from 0), for `batch` samples a step out of `samples` an epoch.

    It grows linearly from 0 to its base, which is proportional to the batch, then falls: with `decay: steps` by
    `decay_factor` after each of `decay_epochs`, with `decay: cosine` to 0 at the last of them (I. Loshchilov,
    F. Hutter, arXiv:1608.03983).
    """
    base = base_learning_rate(batch, hyperparameters)
    steps_per_epoch = samples / batch
    warm_up = int(steps_per_epoch * hyperparameters["warm_up_epochs"])
    if step < warm_up:
        return base * step / warm_up
    boundaries = [int(steps_per_epoch * epoch) for epoch in hyperparameters["decay_epochs"]]
    if hyperparameters["decay"] == "cosine":
        progress = min(1.0, (step - warm_up) / (boundaries[-1] - warm_up))
        return base * (1 + math.cos(math.pi * progress)) / 2
    return base * hyperparameters["decay_factor"] ** sum(step > boundary for boundary in boundaries)


def base_learning_rate(batch: int, hyperparameters: dict[str, Any]) -> float:
    """Return the learning rate between warm-up and decay (P. Goyal et al., arXiv:1706.02677)."""
    return hyperparameters["learning_rate"] * batch / hyperparameters["learning_rate_batch"]


def hyperparameters_for_mllog(hyperparameters: dict[str, Any], batch: int, ranks: int) -> dict[str, Any]:
    """Return the optimiser's settings under MLPerf's keys."""
    return {
        "opt_name": "sgd",
        "sgd_opt_base_learning_rate": base_learning_rate(batch, hyperparameters),
        "sgd_opt_weight_decay": hyperparameters["weight_decay"],
        "sgd_opt_momentum": hyperparameters["momentum"],
        "opt_learning_rate_warmup_epochs": hyperparameters["warm_up_epochs"],
        "opt_learning_rate_decay_boundary_epochs": hyperparameters["decay_epochs"],
        "opt_learning_rate_decay_factor": hyperparameters["decay_factor"],
        "model_bn_span": batch // ranks,
    }


def create_tensorflow_task(
    spec: dict[str, Any], data: Manifest, placement: Placement, clock: Clock
) -> "TensorFlowTask":
    """Return network and data for faceoff.training.tensorflow. Raises DataError when the data is not as prepared."""
    with clock.part("prepare"):
        if "layout" in data.facts:
            return TensorFlowTask(spec, _stream_imagenet(spec, data, placement), 3, placement)
        return TensorFlowTask(spec, _read_arrays(data, placement), 1, placement)


class TensorFlowTask:
    """faceoff.training.tensorflow.Task: the network and its loss, on batches of (images, labels)."""

    def __init__(self, spec: dict[str, Any], data: "Data", channels: int, placement: Placement) -> None:
        """Describe the network that `spec` asks for, for images of `channels`."""
        from faceoff.models.resnet_v1_5_tensorflow import ResNet

        hyperparameters = spec["hyperparameters"]
        self._hyperparameters = hyperparameters
        self._batch = global_batch(spec["batch"], placement.world_size)
        self._network = ResNet(
            hyperparameters["blocks"],
            hyperparameters["width"],
            hyperparameters["classes"],
            channels,
            small_images=hyperparameters["stem"] == "small",
        )
        self.data = data
        self.kernels, self.scales = self._network.kernels, self._network.scales
        self.statistics, self.initial = self._network.statistics, self._network.initial
        self.base_learning_rate = base_learning_rate(self._batch, hyperparameters)
        self.hyperparameters_for_mllog = hyperparameters_for_mllog(hyperparameters, self._batch, placement.world_size)

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        return learning_rate(step, self._batch, self.data.train_samples, self._hyperparameters)

    def loss(self, batch: "Batch", weights: "Tensors", statistics: "Tensors") -> "tuple[tf.Tensor, Tensors]":
        """Return the mean cross-entropy in nat, without weight decay, and the moved statistics."""
        from faceoff.models.resnet_v1_5_tensorflow import cross_entropy

        images, labels = batch
        logits, moved = self._network(images, weights, statistics, training=True)
        return cross_entropy(logits, labels, self._hyperparameters["label_smoothing"]), moved

    def score(self, batch: "Batch", weights: "Tensors", statistics: "Tensors") -> "tf.Tensor":
        """Return how many images are classified rightly (top-1)."""
        from faceoff.models.resnet_v1_5_tensorflow import count_correct

        images, labels = batch
        logits, _ = self._network(images, weights, statistics, training=False)
        return count_correct(logits, labels)


def _read_arrays(data: Manifest, placement: Placement) -> "Data":
    import tensorflow as tf

    from faceoff.training.tensorflow import Data, Resident

    def read(part: str) -> "tuple[np.ndarray, np.ndarray]":
        images = data.array(f"{part}_images.npy")[..., np.newaxis] / np.float32(data.facts["maximum"])
        return images, data.array(f"{part}_labels.npy").astype(np.int32)

    train_images, train_labels = read("train")
    test_images, test_labels = read("test")
    share = placement.share(len(test_labels))
    test_batch = tf.constant(test_images[share]), tf.constant(test_labels[share])
    return Data(
        training=Resident((tf.constant(train_images), tf.constant(train_labels))),
        evaluation=lambda: [test_batch],
        batch_spec=(tf.TensorSpec([None, *train_images.shape[1:]], tf.float32), tf.TensorSpec([None], tf.int32)),
        train_samples=len(train_labels),
        eval_samples=len(test_labels),
    )


def _stream_imagenet(spec: dict[str, Any], data: Manifest, placement: Placement) -> "Data":
    import tensorflow as tf

    from faceoff.data.imagenet_tensorflow import open_images, training_batches, validation_batches
    from faceoff.training.tensorflow import Data, Streamed

    size, batch = spec["hyperparameters"]["image_size"], global_batch(spec["batch"], placement.world_size)
    train, validation = (open_images(data, part) for part in ("train", "validation"))
    return Data(
        training=Streamed(lambda first_step: training_batches(train, first_step, batch, size, spec["seed"], placement)),
        evaluation=lambda: validation_batches(validation, batch // placement.world_size, size, placement),
        batch_spec=(tf.TensorSpec([None, size, size, 3], tf.float32), tf.TensorSpec([None], tf.int32)),
        train_samples=train.count,
        eval_samples=validation.count,
    )
