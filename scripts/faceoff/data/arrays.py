"""Arrays on disk, whole or not at all."""

from pathlib import Path

import numpy as np

from faceoff.files import atomic_path


def save_array(path: Path, array: np.ndarray) -> None:
    """Write `array` to `path` (.npy, little-endian, no pickle) atomically: equal arrays give equal bytes."""
    with atomic_path(path) as temporary:
        np.save(temporary, np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")), allow_pickle=False)
