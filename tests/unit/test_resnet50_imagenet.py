import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from miniature_imagenet import CLASSES, TRAIN, folders, shards
from tensorflow_ranks import ALONE, card_spec

from faceoff.benchmarks import resnet50
from faceoff.data.manifest import Manifest
from faceoff.errors import DataError
from faceoff.training import tensorflow as framework
from faceoff.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from faceoff.training.clock import Clock
from faceoff.training.placement import Placement

tf = framework.tf  # imported there, quietly
from faceoff.data import imagenet_tensorflow as imagenet  # noqa: E402

SIZE = 32
RANKS = [Placement(rank, rank, 2, "cpu") for rank in range(2)]


@pytest.fixture(scope="module")
def layouts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Manifest]:
    """Return the same images as class folders and as TFRecord shards."""
    root = tmp_path_factory.mktemp("imagenet")
    source = folders(root / "folders")
    return {"folders": source, "tfrecord": shards(root / "shards", source)}


def batches(manifest: Manifest, count: int, first_step: int = 0, placement: Placement = ALONE, seed: int = 1) -> list:
    images = imagenet.open_images(manifest, "train")
    dataset = imagenet.training_batches(images, first_step, 4, SIZE, seed, placement)
    return [tuple(part.numpy() for part in batch) for batch in dataset.take(count)]


def same(first: list, second: list) -> bool:
    return all(
        np.array_equal(a, b) for one, other in zip(first, second, strict=True) for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("layout", ["folders", "tfrecord"])
def test_equal_seeds_give_equal_batches_from_any_step_on(layouts: dict[str, Manifest], layout: str) -> None:
    whole = batches(layouts[layout], 7)  # epochs of 3 steps
    assert same(whole, batches(layouts[layout], 7))
    assert same(whole[4:], batches(layouts[layout], 3, first_step=4))
    assert not same(whole, batches(layouts[layout], 7, seed=2))
    assert not same(whole[:3], whole[3:6])
    images, labels = whole[0]
    assert images.shape == (4, SIZE, SIZE, 3)
    assert images.dtype == np.float32
    assert labels.dtype == np.int32


@pytest.mark.parametrize("layout", ["folders", "tfrecord"])
def test_an_epoch_sees_every_image_once(layouts: dict[str, Manifest], layout: str) -> None:
    labels = np.concatenate([labels for _, labels in batches(layouts[layout], 3)])
    assert sorted(labels) == [0] * TRAIN + [1] * TRAIN + [2] * TRAIN


def test_ranks_share_each_batch_of_folders(layouts: dict[str, Manifest]) -> None:
    alone = batches(layouts["folders"], 3)
    first, second = (batches(layouts["folders"], 3, placement=placement) for placement in RANKS)
    for (_, whole), (_, left), (_, right) in zip(alone, first, second, strict=True):
        assert whole.tolist() == [*left, *right]


def test_more_ranks_than_shards_are_refused(layouts: dict[str, Manifest]) -> None:
    with pytest.raises(DataError, match="3 training shards for 4 ranks"):
        batches(layouts["tfrecord"], 1, placement=Placement(0, 0, 4, "cpu"))


@pytest.mark.parametrize("layout", ["folders", "tfrecord"])
def test_all_ranks_together_evaluate_each_image_once(layouts: dict[str, Manifest], layout: str) -> None:
    images = imagenet.open_images(layouts[layout], "validation")
    alone = list(imagenet.validation_batches(images, 4, SIZE, ALONE))
    assert [len(labels) for _, labels in alone] == [4, 2]
    parts = [batch for placement in RANKS for batch in imagenet.validation_batches(images, 4, SIZE, placement)]
    assert contents(parts) == contents(alone)


def contents(batches: list) -> list[tuple[int, bytes]]:
    return sorted(
        (int(label), image.numpy().tobytes())
        for images, labels in batches
        for image, label in zip(images, labels, strict=True)
    )


def test_both_layouts_hold_the_same_images_and_labels(layouts: dict[str, Manifest]) -> None:
    found = {}
    for layout, manifest in layouts.items():
        images = imagenet.open_images(manifest, "validation")
        found[layout] = contents(list(imagenet.validation_batches(images, 6, SIZE, ALONE)))
    assert [label for label, _ in found["folders"]] == [0, 0, 1, 1, 2, 2]
    assert found["folders"] == found["tfrecord"]


def jpeg(pixels: np.ndarray) -> Any:
    return tf.io.encode_jpeg(pixels.astype(np.uint8), quality=100, chroma_downsampling=False)


def test_central_crop_of_an_image_of_256() -> None:
    ramp = np.broadcast_to(np.arange(256)[:, np.newaxis, np.newaxis], (256, 256, 3))
    cropped = imagenet.crop_centrally(jpeg(ramp), 224).numpy() + imagenet.CHANNEL_MEANS
    np.testing.assert_allclose(cropped, ramp[16:240, 16:240], atol=1.5)


@pytest.mark.parametrize("shape", [(300, 512), (512, 300), (60, 41)])
def test_central_crop_keeps_the_aspect_ratio(shape: tuple[int, int]) -> None:
    rows = np.linspace(0, 255, shape[0])[:, np.newaxis, np.newaxis]
    image = np.broadcast_to(rows, (*shape, 3))
    cropped = imagenet.crop_centrally(jpeg(image), 224).numpy() + imagenet.CHANNEL_MEANS
    height = 256 * shape[0] / min(shape)
    assert cropped[..., 0].max() - cropped[..., 0].min() == pytest.approx(255 * 224 / height, abs=4)


def test_random_crops_stay_inside_and_flip_half_the_time() -> None:
    ramp = np.broadcast_to(np.arange(200)[np.newaxis, :, np.newaxis], (100, 200, 3))
    encoded, flipped, spans = jpeg(ramp), 0, []
    for number in range(60):
        crop = imagenet.crop_randomly(encoded, SIZE, tf.constant([7, number], tf.int64)).numpy()
        row = (crop + imagenet.CHANNEL_MEANS)[SIZE // 2, :, 0]
        assert row.min() > -3
        assert row.max() < 203
        flipped += bool(row[0] > row[-1])
        spans.append(abs(row[-1] - row[0]))
    assert 15 < flipped < 45
    assert min(spans) < 60 < 120 < max(spans)


def test_a_changed_file_is_named(layouts: dict[str, Manifest], tmp_path: Path) -> None:
    source = folders(tmp_path / "folders")
    name = f"train/{CLASSES[0]}/{CLASSES[0]}_0.JPEG"
    with (source.root / name).open("ab") as stream:
        stream.write(b"more")
    trainer = reference_trainer(source, {"blocks": [1], "width": 4, "image_size": SIZE})
    with pytest.raises(DataError, match=rf"cut or changed.*{name}"):
        trainer.train(0, 6)
    records = shards(tmp_path / "shards", layouts["folders"])
    shard = records.root / "train-00000-of-00003"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"train-00000-of-00003: expected .* cut or changed"):
        imagenet.open_images(records, "train")


def reference_trainer(manifest: Manifest, changes: dict[str, Any] | None = None) -> framework.TensorFlowTrainer:
    spec = card_spec(
        "reference", batch={"size": 2, "per": "accelerator"}, precision="fp32", hyperparameters=changes or {}
    )
    return framework.create_trainer(spec, resnet50, manifest, ALONE, Clock(time.time()))


def test_the_reference_network_trains_evaluates_and_resumes(layouts: dict[str, Manifest], tmp_path: Path) -> None:
    trainer = reference_trainer(layouts["folders"])
    assert trainer.parameters == 25_557_032
    interval = trainer.train(0, 2)
    assert interval.losses == pytest.approx([np.log(1000)] * 2, rel=0.1)
    assert interval.wait_s > 0
    quality = trainer.evaluate()
    path = tmp_path / "checkpoint.safetensors"
    write_checkpoint(path, Checkpoint(2, trainer.state(), {}, [], [], "0"))
    expected = trainer.train(2, 1).losses
    checkpoint = read_checkpoint(path, "0")
    assert checkpoint is not None
    trainer.restore(checkpoint.state)
    assert trainer.train(2, 1).losses == expected

    other = reference_trainer(layouts["tfrecord"])
    other.restore(checkpoint.state)
    assert other.evaluate() == quality
    assert np.isfinite(other.train(2, 1).losses).all()
