from pathlib import Path

import numpy as np
import pytest

from faceoff.data.digits import prepare
from faceoff.errors import DataError


def test_table_becomes_a_permutation_of_its_images(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    table = np.hstack([random.integers(0, 17, (1310, 64)), random.integers(0, 10, (1310, 1))])
    np.savetxt(tmp_path / "digits.csv.gz", table, fmt="%d", delimiter=",")
    facts = prepare(tmp_path / "digits.csv.gz", tmp_path)
    images = np.concatenate([np.load(tmp_path / f"{part}_images.npy") for part in ("train", "test")])
    labels = np.concatenate([np.load(tmp_path / f"{part}_labels.npy") for part in ("train", "test")])
    assert images.dtype == np.uint8
    assert labels.dtype == np.int64
    assert (facts["train_images"], facts["test_images"]) == (1300, 10)
    rows = np.hstack([images.reshape(-1, 64), labels[:, None]])
    np.testing.assert_array_equal(rows, table[np.random.RandomState(0).permutation(1310)])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros((1300, 65)), "found 1300 of 65"),
        (np.zeros((1797, 64)), "found 1797 of 64"),
        (np.full((1797, 65), 10), "others"),
        (np.full((1797, 65), 17), "others"),
        (np.full((1797, 65), -1), "others"),
    ],
)
def test_other_tables_are_refused(tmp_path: Path, table: np.ndarray, message: str) -> None:
    np.savetxt(tmp_path / "digits.csv.gz", table, fmt="%d", delimiter=",")
    with pytest.raises(DataError, match=message):
        prepare(tmp_path / "digits.csv.gz", tmp_path)
    assert not list(tmp_path.glob("*.npy"))


@pytest.mark.filterwarnings("ignore:loadtxt")
@pytest.mark.parametrize("content", [b"", b"not gzip", b"\x1f\x8b\x08\x00cut"])
def test_unreadable_table(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "digits.csv.gz").write_bytes(content)
    with pytest.raises(DataError):
        prepare(tmp_path / "digits.csv.gz", tmp_path)
