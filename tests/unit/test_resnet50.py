import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file
from tensorflow_ranks import card_spec, prepare_digits

from faceoff.benchmarks.resnet50 import hyperparameters_for_mllog, learning_rate
from faceoff.data.manifest import write_manifest
from faceoff.models.resnet_v1_5_tensorflow import ResNet, count_correct, cross_entropy
from faceoff.training import tensorflow as framework
from faceoff.training.rank import run_rank

tf = framework.tf  # imported there, quietly

IMAGES = 1281167
REFERENCE = card_spec("reference")["hyperparameters"]
TINY = card_spec("tiny")["hyperparameters"]


def elements(shapes: dict[str, tuple[int, ...]]) -> int:
    return sum(math.prod(shape) for shape in shapes.values())


def reference_network() -> ResNet:
    return ResNet(REFERENCE["blocks"], REFERENCE["width"], REFERENCE["classes"], 3, small_images=False)


def test_parameters_of_resnet50() -> None:
    network = reference_network()
    assert elements(network.kernels | network.scales) == 25_557_032
    assert elements(network.kernels | network.scales | network.statistics) == 25_610_152
    assert len(network.kernels) == 53 + 2


def test_multiplications_of_version_1_5() -> None:
    """torchvision counts 4.089 G for its ResNet-50, which is v1.5; with the stride on the 1x1 it is 3.86 G."""
    network = reference_network()
    shapes = network.kernels | network.scales
    weights = {name: tf.TensorSpec(shape) for name, shape in shapes.items()}
    statistics = {name: tf.TensorSpec(shape) for name, shape in network.statistics.items()}
    function = tf.function(lambda x, w, s: network(x, w, s, training=False)[0], autograph=False)
    graph = function.get_concrete_function(tf.TensorSpec([1, 224, 224, 3]), weights, statistics).graph
    convolutions = [operation for operation in graph.get_operations() if operation.type == "Conv2D"]
    total = sum(math.prod(each.outputs[0].shape) * math.prod(each.inputs[1].shape[:3]) for each in convolutions)
    assert len(convolutions) == 53
    assert (total + 2048 * 1000) / 1e9 == pytest.approx(4.089, abs=5e-4)


def test_initial_weights() -> None:
    network = ResNet([1, 1, 1, 1], 8, 10, 1, small_images=True)
    first, again, other = network.initial(1), network.initial(1), network.initial(2)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["stem/kernel"], other["stem/kernel"])
    kernel = first["stage4/block1/spatial/kernel"].numpy()
    assert kernel.std() == pytest.approx(math.sqrt(1 / (3 * 3 * 64)), rel=0.02)
    assert first["stem/gamma"].numpy().tolist() == [1.0] * 8


def test_evaluation_uses_the_statistics_and_leaves_them() -> None:
    network = ResNet([1], 4, 3, 1, small_images=True)
    weights = network.initial(1)
    statistics = {name: weights[name] for name in network.statistics}
    images = tf.random.stateless_normal([6, 8, 8, 1], [0, 0])
    together, kept = network(images, weights, statistics, training=False)
    alone, _ = network(images[:1], weights, statistics, training=False)
    np.testing.assert_allclose(together[:1], alone, rtol=1e-4, atol=1e-5)
    assert all(np.array_equal(kept[name], statistics[name]) for name in statistics)
    _, moved = network(images, weights, statistics, training=True)
    stem = tf.nn.conv2d(images, weights["stem/kernel"], 1, "SAME")
    np.testing.assert_allclose(moved["stem/mean"], 0.1 * tf.reduce_mean(stem, [0, 1, 2]), rtol=1e-4, atol=1e-6)


@given(st.integers(2, 50), st.floats(0, 1))
def test_cross_entropy_of_equal_logits_is_the_logarithm_of_the_classes(classes: int, smoothing: float) -> None:
    loss = cross_entropy(tf.zeros([2, classes]), tf.constant([0, 1]), smoothing)
    assert float(loss) == pytest.approx(math.log(classes), rel=1e-5)


def test_cross_entropy_with_smoothing() -> None:
    logits = np.array([[2.0, 0.0, -1.0]])
    logs = logits - np.log(np.exp(logits).sum())
    expected = -(logs[0] * [0.9 + 0.1 / 3, 0.1 / 3, 0.1 / 3]).sum()
    assert float(cross_entropy(tf.constant(logits, tf.float32), tf.constant([0]), 0.1)) == pytest.approx(expected)


def test_count_correct() -> None:
    assert float(count_correct(tf.eye(4), tf.constant([0, 1, 3, 3]))) == 3


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (0, 0.0),  # batch 256: 5004.56 steps an epoch, warm-up 25022 steps
        (12511, 0.064),
        (25022, 0.128),
        (150136, 0.128),  # the boundary of epoch 30 itself
        (150137, 0.0128),
        (300274, 0.00128),
        (400365, 1.28e-4),
        (450411, 1.28e-5),
    ],
)
def test_learning_rate_of_the_reference(step: int, expected: float) -> None:
    assert learning_rate(step, 256, IMAGES, REFERENCE) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("step", "expected"), [(0, 0.0), (20, 0.025), (40, 0.05), (220, 0.025), (400, 0.0), (500, 0.0)]
)
def test_learning_rate_of_the_tiny_preset(step: int, expected: float) -> None:
    assert learning_rate(step, 26, 1300, TINY) == pytest.approx(expected, abs=1e-9)


@given(st.integers(0, 10**6), st.sampled_from([64, 256, 4096]), st.sampled_from(["steps", "cosine"]))
def test_learning_rate_only_falls_after_warm_up(step: int, batch: int, decay: str) -> None:
    hyperparameters = REFERENCE | {"decay": decay}
    now, later = (learning_rate(each, batch, IMAGES, hyperparameters) for each in (step, step + 1))
    warm_up = int(IMAGES / batch * 5)
    assert 0 <= now <= 0.128 * batch / 256
    assert later > now if step < warm_up else later <= now


def test_settings_for_mlperf() -> None:
    settings = hyperparameters_for_mllog(REFERENCE, 1024, 8)
    assert settings["sgd_opt_base_learning_rate"] == pytest.approx(0.512)
    assert settings["model_bn_span"] == 128


def run_tiny(directory: Path, **changes: Any) -> dict[str, Any]:
    data = prepare_digits(directory / "data")
    manifest = directory / "data" / "manifest.json"
    write_manifest(manifest, "digits", data.files, data.facts, {})
    (directory / "segment").mkdir(parents=True, exist_ok=True)
    assert run_rank(card_spec("tiny", **changes), manifest, "0" * 64, directory / "segment") == 0
    return json.loads((directory / "segment" / "result.json").read_text())


@pytest.fixture
def one_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "RANK": 0,
        "LOCAL_RANK": 0,
        "WORLD_SIZE": 1,
        "FACEOFF_DEVICE": "cpu",
        "FACEOFF_LAUNCHED": 0,
    }.items():
        monkeypatch.setenv(name, str(value))


@pytest.mark.usefixtures("one_rank")
def test_the_tiny_preset_reaches_its_target_also_when_interrupted(tmp_path: Path) -> None:
    whole = run_tiny(tmp_path / "whole")
    assert whole["outcome"] == "ok"
    assert whole["curve"][-1]["epoch"] <= 6
    assert whole["measured"]["parameters"]["value"] == 129_858
    model = load_file(tmp_path / "whole" / "segment" / "model.safetensors")
    assert sum(array.size for array in model.values()) == 132_274
    run_tiny(tmp_path / "parts", budget={"epochs": 2, "seconds": 120})
    resumed = run_tiny(tmp_path / "parts")
    assert resumed["resumed"]
    assert [(point["loss"], point["quality"]) for point in resumed["curve"]] == [
        (point["loss"], point["quality"]) for point in whole["curve"]
    ]
    assert resumed["model_sha256"] == whole["model_sha256"]
