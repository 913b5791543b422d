"""ImageNet for TensorFlow: class folders of JPEG files or TFRecord shards, read through tf.data.

The images are prepared as in MLPerf Training v0.5's TensorFlow reference: to train, a random crop of 5 to 100 % of the
area at an aspect ratio of 0.75 to 1.33 and a random flip; to evaluate, the shorter side at 256 and the central
224 x 224; the mean colour subtracted. Equal seeds give equal batches, also from the middle of an epoch on.
"""

from pathlib import PurePosixPath
from typing import Protocol

import numpy as np
import tensorflow as tf

from faceoff.data.manifest import Manifest
from faceoff.errors import DataError
from faceoff.training.placement import Placement, derive_seed

CHANNEL_MEANS = (123.68, 116.78, 103.94)  # red, green, blue
RESIZE_RATIO = 256 / 224  # shorter side of an image per side of its central crop
AREA_RANGE = (0.05, 1.0)
ASPECT_RANGE = (0.75, 1.33)
CROP_ATTEMPTS = 100
SHUFFLED_RECORDS = 1500  # the reference's window
SHARDS_AT_A_TIME = 8


class Images(Protocol):
    """The images of one part of the data set, as items that `read` turns into an encoded image and its label."""

    count: int  # over all ranks

    def epoch(self, number: tf.Tensor, global_batch: int, seed: int, placement: Placement) -> tf.data.Dataset:
        """Return the items that a rank trains on in an epoch, in an order that derives from seed and epoch."""

    def share(self, placement: Placement) -> tf.data.Dataset:
        """Return the items that a rank evaluates: all ranks together have each exactly once."""

    def read(self, item: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the encoded image and its label int32, from 0."""


def open_images(data: Manifest, part: str) -> Images:
    """Return the images of `part`, "train" or "validation". Raises DataError when a file is not as in the manifest."""
    return Folders(data, part) if data.facts["layout"] == "folders" else Shards(data, part)


def training_batches(
    images: Images, first_step: int, global_batch: int, size: int, seed: int, placement: Placement
) -> tf.data.Dataset:
    """Return this rank's part of the batches from step `first_step` on, without end.

    Each is (images float32 [global_batch / ranks, size, size, 3], labels int32). An epoch is as many whole batches as
    the images fill; folders are shuffled over all images, shards among themselves and then in a window of records.
    """
    steps_per_epoch = images.count // global_batch
    samples_per_epoch = steps_per_epoch * global_batch // placement.world_size
    first_epoch, skipped_steps = divmod(first_step, steps_per_epoch)
    skipped_samples = skipped_steps * global_batch // placement.world_size
    crop_seed = derive_seed(seed, "crop", placement.rank)

    def one_epoch(number: tf.Tensor) -> tf.data.Dataset:
        items = images.epoch(number, global_batch, seed, placement).repeat().take(samples_per_epoch)
        skipped = tf.where(number == first_epoch, tf.constant(skipped_samples, tf.int64), 0)
        return items.enumerate(number * samples_per_epoch).skip(skipped)

    def prepare(position: tf.Tensor, item: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        encoded, label = images.read(item)
        return crop_randomly(encoded, size, tf.stack([tf.constant(crop_seed, tf.int64), position])), label

    samples = tf.data.Dataset.range(first_epoch, np.iinfo(np.int64).max).flat_map(one_epoch)
    batches = samples.map(prepare, tf.data.AUTOTUNE, deterministic=True)
    return batches.batch(global_batch // placement.world_size, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def validation_batches(images: Images, batch: int, size: int, placement: Placement) -> tf.data.Dataset:
    """Return this rank's share of the validation images once, in batches of at most `batch`, as in training."""

    def prepare(item: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        encoded, label = images.read(item)
        return crop_centrally(encoded, size), label

    samples = images.share(placement).map(prepare, tf.data.AUTOTUNE, deterministic=True)
    return samples.batch(batch).prefetch(tf.data.AUTOTUNE)


def crop_randomly(encoded: tf.Tensor, size: int, seed: tf.Tensor) -> tf.Tensor:
    """Return a random crop of an encoded JPEG, resized to float32 [size, size, 3] and flipped by the int64 [2] `seed`.

    C. Szegedy et al., arXiv:1409.4842, section 6. Only the cropped part is decoded.
    """
    begin, extent, _ = tf.image.stateless_sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(encoded),
        tf.constant([[[0.0, 0.0, 1.0, 1.0]]]),
        seed,
        min_object_covered=0.1,
        aspect_ratio_range=ASPECT_RANGE,
        area_range=AREA_RANGE,
        max_attempts=CROP_ATTEMPTS,
    )
    image = tf.image.decode_and_crop_jpeg(encoded, tf.concat([begin[:2], extent[:2]], 0), channels=3)
    return _centred(tf.image.stateless_random_flip_left_right(_resize(image, [size, size]), seed), size)


def crop_centrally(encoded: tf.Tensor, size: int) -> tf.Tensor:
    """Return the centre of an encoded JPEG, float32 [size, size, 3], after resizing it at its own aspect ratio."""
    image = tf.image.decode_jpeg(encoded, channels=3)
    sides = tf.cast(tf.shape(image)[:2], tf.float32)
    resized = _resize(image, tf.cast(sides * (round(size * RESIZE_RATIO) / tf.reduce_min(sides)), tf.int32))
    top, left = tf.unstack((tf.shape(resized)[:2] - size) // 2)
    return _centred(resized[top : top + size, left : left + size], size)


def _resize(image: tf.Tensor, sides: tf.Tensor | list[int]) -> tf.Tensor:
    # The reference's bilinear filter, whose samples lie at the corners of pixels; TensorFlow 2's lie at the centres.
    return tf.raw_ops.ResizeBilinear(images=image[tf.newaxis], size=sides, half_pixel_centers=False)[0]


def _centred(image: tf.Tensor, size: int) -> tf.Tensor:
    return tf.ensure_shape(image, [size, size, 3]) - tf.constant(CHANNEL_MEANS)


class Folders:
    """JPEG files in a folder a class; an item is the number of an image."""

    def __init__(self, data: Manifest, part: str) -> None:
        """List the images of `part`, "train" or "validation"; classes are numbered in the order of their names."""
        folder = {"train": "train", "validation": "val"}[part]
        names = sorted(name for name in data.files if PurePosixPath(name).parts[0] == folder)
        for name in names:
            if data.files[name].sha256:  # a size alone is checked as each image is read
                data.path(name)
        synsets = [PurePosixPath(name).parts[1] for name in names]
        _, labels = np.unique(synsets, return_inverse=True)
        self.count = len(names)
        self._paths = tf.constant([str(data.root / name) for name in names])
        self._labels = tf.constant(labels, tf.int32)
        self._bytes = tf.constant([data.files[name].bytes for name in names], tf.int32)

    def epoch(self, number: tf.Tensor, global_batch: int, seed: int, placement: Placement) -> tf.data.Dataset:
        """Return this rank's slice of each batch."""
        order = tf.random.experimental.stateless_shuffle(
            tf.range(self.count), tf.stack([tf.constant(derive_seed(seed, "order"), tf.int64), number])
        )
        steps = self.count // global_batch
        batches = tf.reshape(order[: steps * global_batch], [steps, placement.world_size, -1])
        return tf.data.Dataset.from_tensor_slices(tf.reshape(batches[:, placement.rank], [-1]))

    def share(self, placement: Placement) -> tf.data.Dataset:
        """Return a contiguous part of the images."""
        share = placement.share(self.count)
        return tf.data.Dataset.range(share.start, share.stop)

    def read(self, item: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Read one file and check its size."""
        path, expected = self._paths[item], self._bytes[item]
        encoded = tf.io.read_file(path)
        found = tf.strings.length(encoded)
        check = tf.debugging.Assert(
            found == expected, ["cut or changed, bytes expected, found:", path, expected, found]
        )
        with tf.control_dependencies([check]):
            return _as_jpeg(encoded), self._labels[item]


class Shards:
    """TFRecord files as MLPerf's reference makes them; an item is a record, with labels from 1."""

    def __init__(self, data: Manifest, part: str) -> None:
        """List the shards of `part`, "train" or "validation"."""
        self._paths = [str(data.path(name)) for name in sorted(data.files) if name.startswith(f"{part}-")]
        self._dataset = data.dataset
        self.count = int(data.facts[f"{part}_images"])

    def epoch(self, number: tf.Tensor, global_batch: int, seed: int, placement: Placement) -> tf.data.Dataset:  # noqa: ARG002
        """Return the records of this rank's shards; each epoch deals the shards anew."""
        if len(self._paths) < placement.world_size:
            raise DataError(f"{self._dataset}: {len(self._paths)} training shards for {placement.world_size} ranks")
        order = tf.random.experimental.stateless_shuffle(
            tf.constant(self._paths), tf.stack([tf.constant(derive_seed(seed, "order"), tf.int64), number])
        )
        records = _records(tf.data.Dataset.from_tensor_slices(order[placement.share(len(self._paths))]))
        window_seed = (derive_seed(seed, "window", placement.rank) >> 1) + number
        return records.shuffle(SHUFFLED_RECORDS, window_seed, reshuffle_each_iteration=False)

    def share(self, placement: Placement) -> tf.data.Dataset:
        """Return the records of a contiguous part of the shards."""
        paths = self._paths[placement.share(len(self._paths))]
        return _records(tf.data.Dataset.from_tensor_slices(tf.constant(paths, tf.string)))

    def read(self, item: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Take image and label from a serialised tf.train.Example."""
        features = {
            "image/encoded": tf.io.FixedLenFeature([], tf.string),
            "image/class/label": tf.io.FixedLenFeature([], tf.int64),
        }
        example = tf.io.parse_single_example(item, features)
        return _as_jpeg(example["image/encoded"]), tf.cast(example["image/class/label"], tf.int32) - 1


def _records(shards: tf.data.Dataset) -> tf.data.Dataset:
    return shards.interleave(tf.data.TFRecordDataset, SHARDS_AT_A_TIME, 1, tf.data.AUTOTUNE, deterministic=True)


def _as_jpeg(encoded: tf.Tensor) -> tf.Tensor:
    # ImageNet holds one PNG under a JPEG's name.
    return tf.cond(
        tf.io.is_jpeg(encoded),
        lambda: encoded,
        lambda: tf.io.encode_jpeg(tf.io.decode_png(encoded, channels=3), quality=100),
    )
