"""Handwritten digits: 1,797 grey images of 8 x 8 pixels in 10 classes, the UCI test set that scikit-learn carries.

E. Alpaydin, C. Kaynak: Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998.
"""

from pathlib import Path
from typing import Any

import numpy as np

from faceoff.data.arrays import save_array
from faceoff.errors import DataError

TRAIN_IMAGES = 1300
SIDE = 8
MAXIMUM = 16
CLASSES = 10


def prepare(source: Path, output: Path) -> dict[str, Any]:
    """Split the table `source` (digits.csv.gz: 64 pixels and a label a row) into training and test arrays.

    Writes to the directory `output`: train_images.npy uint8 [1300, 8, 8] (0 to 16), train_labels.npy int64 [1300],
    test_images.npy uint8 [497, 8, 8], test_labels.npy int64 [497]. The order is a permutation from RandomState(0).
    Returns the facts. Raises DataError for a table of another form.
    """
    try:
        table = np.loadtxt(source, delimiter=",", dtype=np.int64, ndmin=2)
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{source}: no readable table of digits: {error}") from error
    rows, columns = table.shape
    if columns != SIDE * SIDE + 1 or rows <= TRAIN_IMAGES:
        raise DataError(f"{source}: expected more than {TRAIN_IMAGES} rows of 65 numbers, found {rows} of {columns}")
    pixels, labels = table[:, :-1], table[:, -1]
    if pixels.min() < 0 or pixels.max() > MAXIMUM or labels.min() < 0 or labels.max() >= CLASSES:
        raise DataError(f"{source}: expected pixels 0 to {MAXIMUM} and labels 0 to {CLASSES - 1}, found others")
    order = np.random.RandomState(0).permutation(rows)
    for name, part in (("train", order[:TRAIN_IMAGES]), ("test", order[TRAIN_IMAGES:])):
        save_array(output / f"{name}_images.npy", pixels[part].reshape(-1, SIDE, SIDE).astype(np.uint8))
        save_array(output / f"{name}_labels.npy", labels[part])
    return {
        "classes": CLASSES,
        "train_images": TRAIN_IMAGES,
        "test_images": rows - TRAIN_IMAGES,
        "shape": [SIDE, SIDE],
        "maximum": MAXIMUM,
    }
