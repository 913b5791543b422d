"""ImageNet in miniature: a few images in the forms that the real one has, as class folders and as TFRecord shards."""

from pathlib import Path

import numpy as np
from PIL import Image

from faceoff.data.imagenet import index
from faceoff.data.manifest import Manifest

CLASSES = ("n01440764", "n01443537", "n01484850")
TRAIN, VALIDATION = 4, 2  # images a class


def save_image(path: Path, seed: int) -> None:
    """Save a photo-like JPEG; one is a PNG by another name, one is grey, one is CMYK: ImageNet has all of them."""
    generator = np.random.default_rng(seed)
    sides = generator.integers(40, 300, 2)
    image = Image.fromarray(generator.integers(0, 256, (6, 6, 3), dtype=np.uint8)).resize(tuple(sides.tolist()))
    mode = {1: "L", 2: "CMYK"}.get(seed, "RGB")
    image.convert(mode).save(path, "PNG" if seed == 3 else "JPEG")


def folders(root: Path) -> Manifest:
    seed = 0
    for part, count in (("train", TRAIN), ("val", VALIDATION)):
        for synset in CLASSES:
            (root / part / synset).mkdir(parents=True)
            for number in range(count):
                save_image(root / part / synset / f"{synset}_{number}.JPEG", seed)
                seed += 1
    return Manifest("imagenet", root, *index(root, hashed=False))


def shards(root: Path, source: Manifest, *, per_shard: int = 4) -> Manifest:
    from faceoff.training.tensorflow import tf

    root.mkdir()
    for part, folder in (("train", "train"), ("validation", "val")):
        names = sorted(name for name in source.files if name.startswith(folder))
        groups = [names[start : start + per_shard] for start in range(0, len(names), per_shard)]
        for number, group in enumerate(groups):
            with tf.io.TFRecordWriter(str(root / f"{part}-{number:05}-of-{len(groups):05}")) as writer:
                for name in group:
                    encoded = tf.train.BytesList(value=[(source.root / name).read_bytes()])
                    label = tf.train.Int64List(value=[CLASSES.index(name.split("/")[1]) + 1])
                    features = {
                        "image/encoded": tf.train.Feature(bytes_list=encoded),
                        "image/class/label": tf.train.Feature(int64_list=label),
                    }
                    example = tf.train.Example(features=tf.train.Features(feature=features))
                    writer.write(example.SerializeToString())
    return Manifest("imagenet", root, *index(root, hashed=False))
