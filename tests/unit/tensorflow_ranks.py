"""What tests of TensorFlow share: specs from the card, a linear classifier, the program that is one of two ranks.

As a program: trains the linear classifier, and a small ResNet on the images in imagenet/ under the folder given, and
leaves there what it found. With `--lose RANK` that rank then dies, and the other goes on training.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from faceoff.benchmarks import resnet50
from faceoff.data import digits
from faceoff.data.imagenet import index
from faceoff.data.manifest import Manifest, describe_file
from faceoff.data.preparation import find_package_file
from faceoff.measurement.launcher import enter_rank, free_ports, rank_environments
from faceoff.training.clock import Clock
from faceoff.training.placement import Placement

CONFIG = Path(__file__).parents[2] / "config"
ALONE = Placement(rank=0, local_rank=0, world_size=1, device="cpu")
SMALL = {"blocks": [1, 1], "width": 4, "image_size": 32}
FEATURES, CLASSES, SAMPLES, TESTS = 5, 3, 48, 17


def card_spec(preset: str, world_size: int = 1, **changes: Any) -> dict[str, Any]:
    """Return the spec of a cell of config/benchmarks/resnet50.yaml."""
    card = yaml.safe_load((CONFIG / "benchmarks" / "resnet50.yaml").read_text())
    chosen = card["presets"][preset]
    spec = {key: card[key] for key in ("framework", "round", "metric")} | chosen
    hyperparameters = card["hyperparameters"] | chosen.get("hyperparameters", {}) | changes.pop("hyperparameters", {})
    fixed = {"benchmark": "resnet50", "preset": preset, "variant": "", "accelerator": "cpu", "sharing": "exclusive"}
    layout = {"nodes": 1, "accelerators": world_size}
    return (
        spec
        | fixed
        | {"layout": layout, "seed": 1, "stack": "default"}
        | changes
        | {"hyperparameters": hyperparameters}
    )


def prepare_digits(directory: Path) -> Manifest:
    """Prepare the digits in a folder."""
    card = yaml.safe_load((CONFIG / "data" / "digits.yaml").read_text())
    directory.mkdir(parents=True, exist_ok=True)
    facts = digits.prepare(find_package_file(card["source"]), directory)
    files = {path.name: describe_file(path, "preprocessed") for path in directory.glob("*.npy")}
    return Manifest("digits", directory, files, facts)


class Linear:
    """A benchmark: softmax regression on fixed noise, so that ranks and batches add up exactly."""

    def create_tensorflow_task(self, spec: dict, _data: None, placement: Placement, _clock: Clock) -> "Linear":
        import tensorflow as tf

        from faceoff.training.tensorflow import Data, Resident

        generator = np.random.default_rng(0)
        self.inputs = generator.normal(size=[SAMPLES + TESTS, FEATURES]).astype(np.float32)
        self.labels = generator.integers(0, CLASSES, SAMPLES + TESTS).astype(np.int32)
        share = np.arange(SAMPLES, SAMPLES + TESTS)[placement.share(TESTS)]
        self.data = Data(
            Resident((tf.constant(self.inputs[:SAMPLES]), tf.constant(self.labels[:SAMPLES]))),
            lambda: [(tf.constant(self.inputs[share]), tf.constant(self.labels[share]))],
            (tf.TensorSpec([None, FEATURES]), tf.TensorSpec([None], tf.int32)),
            SAMPLES,
            TESTS,
        )
        self.kernels = {"kernel": (FEATURES, CLASSES)}
        self.scales = {"bias": (CLASSES,)}
        self.statistics = {"mean": (FEATURES,)}
        self.hyperparameters_for_mllog = {}
        self.base_learning_rate = spec["hyperparameters"]["learning_rate"]
        return self

    def initial(self, seed: int) -> Mapping[str, Any]:
        generator = np.random.default_rng(seed)
        kernel = generator.normal(size=[FEATURES, CLASSES]).astype(np.float32)
        return {"kernel": kernel, "bias": np.zeros(CLASSES, np.float32), "mean": np.zeros(FEATURES, np.float32)}

    def learning_rate(self, step: int) -> float:
        return self.base_learning_rate / (1 + step)

    def loss(self, batch: tuple, weights: Mapping, statistics: Mapping) -> tuple:
        import tensorflow as tf

        inputs, labels = batch
        logits = tf.matmul(inputs, tf.cast(weights["kernel"], tf.float32)) + weights["bias"]
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return tf.reduce_mean(losses), {"mean": 0.9 * statistics["mean"] + 0.1 * tf.reduce_mean(inputs, 0)}

    def score(self, batch: tuple, weights: Mapping, _statistics: Mapping) -> Any:
        import tensorflow as tf

        inputs, labels = batch
        logits = tf.matmul(inputs, tf.cast(weights["kernel"], tf.float32)) + weights["bias"]
        return tf.reduce_sum(tf.cast(tf.argmax(logits, 1, tf.int32) == labels, tf.float32))


def linear_spec(**changes: Any) -> dict[str, Any]:
    """Return a spec for the linear classifier: 12 steps an epoch."""
    hyperparameters = {"learning_rate": 0.5, "momentum": 0.9, "weight_decay": 0.01, "loss_scale": 128}
    spec = {"seed": 3, "precision": "fp32", "batch": {"size": 4, "per": "global"}, "hyperparameters": hyperparameters}
    return spec | changes


def start_two_ranks(output: Path, *arguments: str) -> list[subprocess.Popen]:
    """Start this file as two ranks that share the cores there are, behind a proxy that is not there."""
    cores = (sorted(os.sched_getaffinity(0)) * 2)[:2]
    command = [sys.executable, __file__, str(output), *arguments]
    environments = rank_environments(cores, [], free_ports(3))
    paths = os.pathsep.join(sys.path)
    launched = {"PYTHONPATH": paths, "FACEOFF_LAUNCHED": repr(time.time()), "http_proxy": "http://127.0.0.1:9"}
    return [subprocess.Popen(command, env={**os.environ, **launched, **each}) for each in environments]


def run_rank(output: Path, lost: int | None) -> None:
    """Train as one of two ranks and save losses, qualities and weights."""
    from faceoff.training import tensorflow as framework

    placement = Placement.from_environment()
    clock = Clock(time.time())
    device, strategy = framework.take_device(placement, "fp32"), framework.create_strategy(placement)
    spec = linear_spec()
    task = Linear().create_tensorflow_task(spec, None, placement, clock)
    first = framework.TensorFlowTrainer(spec, task, placement, strategy, device)
    found: dict[str, Any] = {"linear/losses": first.train(0, 15).losses, "linear/quality": first.evaluate()}
    spec = card_spec("reference", 2, precision="fp32", batch={"size": 4, "per": "global"}, hyperparameters=SMALL)
    images = Manifest("imagenet", output / "imagenet", *index(output / "imagenet", hashed=False))
    task = resnet50.create_tensorflow_task(spec, images, placement, clock)
    second = framework.TensorFlowTrainer(spec, task, placement, strategy, device)
    second.warm_up()
    found |= {"resnet/losses": second.train(0, 8).losses, "resnet/quality": second.evaluate()}
    found |= {"agreed": second.agree(float(placement.rank + 5)), "devices": first.devices}
    found |= {f"linear/{name}": array for name, array in first.weights().items()}
    found |= {f"resnet/{name}": array for name, array in second.state().items()}
    np.savez(output / f"rank{placement.rank}.npz", **found)
    if placement.rank == lost:
        os._exit(9)
    while lost is not None:
        first.train(0, 100)
    second.close()


if __name__ == "__main__":
    enter_rank()
    run_rank(Path(sys.argv[1]), int(sys.argv[3]) if "--lose" in sys.argv else None)
