"""ResNet v1.5 in TensorFlow: bottleneck blocks in which the 3x3 convolution carries the stride.

K. He et al.: Deep Residual Learning for Image Recognition, arXiv:1512.03385. Padding, initial values and batch
normalisation are those of MLPerf Training v0.5's TensorFlow reference; blocks 3, 4, 6, 3 of width 64 make ResNet-50.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import tensorflow as tf

EXPANSION = 4  # channels out of a block per channel inside it
BATCH_NORM_MOMENTUM = 0.9
BATCH_NORM_EPSILON = 1e-5
DENSE_DEVIATION = 0.01
TRUNCATED_DEVIATION = 0.87962566103423978  # of a unit normal distribution cut at two standard deviations

Tensors = Mapping[str, tf.Tensor]
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Convolution:
    """A square convolution without bias, followed by batch normalisation."""

    name: str
    size: int
    inputs: int
    outputs: int
    stride: int


class ResNet:
    """The network as a function of its weights.

    `kernels` (weight decay applies to them), `scales` (of batch normalisation) and `statistics` (moving mean and
    variance) give the shape of each tensor by its name.
    """

    def __init__(self, blocks: Sequence[int], width: int, classes: int, channels: int, small_images: bool) -> None:
        """Describe a network of `blocks` per stage; `small_images` takes a 3x3 stem without stride and pooling."""
        self.blocks = tuple(blocks)
        self.small_images = small_images
        convolutions = list(_convolutions(self.blocks, width, channels, small_images))
        self._strides = {each.name: each.stride for each in convolutions}
        features = convolutions[-1].outputs
        self.kernels: Shapes = {
            f"{each.name}/kernel": (each.size, each.size, each.inputs, each.outputs) for each in convolutions
        }
        self.kernels |= {"dense/kernel": (features, classes), "dense/bias": (classes,)}
        self.scales: Shapes = {
            f"{each.name}/{part}": (each.outputs,) for each in convolutions for part in ("gamma", "beta")
        }
        self.statistics: Shapes = {
            f"{each.name}/{part}": (each.outputs,) for each in convolutions for part in ("mean", "variance")
        }

    def initial(self, seed: int) -> dict[str, tf.Tensor]:
        """Return all weights and statistics before training; equal seeds give equal values on every rank."""
        values = {}
        for number, (name, shape) in enumerate((self.kernels | self.scales | self.statistics).items()):
            if name == "dense/kernel":
                values[name] = tf.random.stateless_normal(shape, [seed, number], stddev=DENSE_DEVIATION)
            elif name.endswith("kernel"):
                deviation = math.sqrt(1 / math.prod(shape[:-1])) / TRUNCATED_DEVIATION
                values[name] = tf.random.stateless_truncated_normal(shape, [seed, number], stddev=deviation)
            else:
                values[name] = tf.ones(shape) if name.endswith(("gamma", "variance")) else tf.zeros(shape)
        return values

    def __call__(
        self, images: tf.Tensor, weights: Tensors, statistics: Tensors, training: bool
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Return the logits float32 [batch, classes] of `images` [batch, height, width, channels], and the statistics.

        When `training`, the batch is normalised by itself and the returned statistics have moved towards it.
        """
        moved: dict[str, tf.Tensor] = {}

        def normalised(x: tf.Tensor, name: str) -> tf.Tensor:
            x = _convolve(x, weights[f"{name}/kernel"], self._strides[name])
            x, moved[f"{name}/mean"], moved[f"{name}/variance"] = tf.compat.v1.nn.fused_batch_norm(
                x,
                weights[f"{name}/gamma"],
                weights[f"{name}/beta"],
                statistics[f"{name}/mean"],
                statistics[f"{name}/variance"],
                epsilon=BATCH_NORM_EPSILON,
                is_training=training,
                exponential_avg_factor=1 - BATCH_NORM_MOMENTUM,
            )
            return x

        x = tf.cast(images, weights["stem/kernel"].dtype)
        x = tf.nn.relu(normalised(x, "stem"))
        if not self.small_images:
            x = tf.nn.max_pool2d(x, 3, 2, "SAME")
        for block in _block_names(self.blocks):
            shortcut = normalised(x, f"{block}/projection") if f"{block}/projection" in self._strides else x
            inner = tf.nn.relu(normalised(x, f"{block}/reduce"))
            inner = tf.nn.relu(normalised(inner, f"{block}/spatial"))
            x = tf.nn.relu(normalised(inner, f"{block}/expand") + shortcut)
        features = tf.reduce_mean(x, [1, 2])
        logits = tf.linalg.matmul(features, weights["dense/kernel"]) + weights["dense/bias"]
        return tf.cast(logits, tf.float32), moved


def cross_entropy(logits: tf.Tensor, labels: tf.Tensor, smoothing: float) -> tf.Tensor:
    """Return the mean softmax cross-entropy in nat against int `labels` [batch]; `smoothing` spreads over all classes.

    C. Szegedy et al., arXiv:1512.00567, section 7: (1 - smoothing) on the label, smoothing / classes on each class.
    """
    classes = logits.shape[-1]
    targets = tf.one_hot(labels, classes) * (1 - smoothing) + smoothing / classes
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(targets, logits))


def count_correct(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Return float32 [], the number of rows of `logits` whose greatest value stands at their label."""
    return tf.reduce_sum(tf.cast(tf.argmax(logits, 1, tf.int32) == labels, tf.float32))


def _convolutions(blocks: Sequence[int], width: int, channels: int, small_images: bool) -> Iterator[Convolution]:
    yield Convolution("stem", 3, channels, width, 1) if small_images else Convolution("stem", 7, channels, width, 2)
    inputs = width
    for stage, count in enumerate(blocks):
        inner = width * 2**stage
        for block in range(count):
            name, outputs = f"stage{stage + 1}/block{block + 1}", inner * EXPANSION
            stride = 2 if stage > 0 and block == 0 else 1
            if block == 0:
                yield Convolution(f"{name}/projection", 1, inputs, outputs, stride)
            yield Convolution(f"{name}/reduce", 1, inputs, inner, 1)
            yield Convolution(f"{name}/spatial", 3, inner, inner, stride)
            yield Convolution(f"{name}/expand", 1, inner, outputs, 1)
            inputs = outputs


def _block_names(blocks: Sequence[int]) -> Iterator[str]:
    for stage, count in enumerate(blocks):
        for block in range(count):
            yield f"stage{stage + 1}/block{block + 1}"


def _convolve(x: tf.Tensor, kernel: tf.Tensor, stride: int) -> tf.Tensor:
    if stride == 1:
        return tf.nn.conv2d(x, kernel, 1, "SAME")
    # "SAME" would pad by the size of the image; this pads by the kernel alone, alike on both sides.
    total = kernel.shape[0] - 1
    pad = [total // 2, total - total // 2]
    return tf.nn.conv2d(x, kernel, stride, [[0, 0], pad, pad, [0, 0]])
