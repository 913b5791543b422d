import hashlib
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faceoff.data.imagenet import count_records, index
from faceoff.errors import DataError


def tfrecord(*payloads: bytes) -> bytes:
    return b"".join(struct.pack("<QI", len(data), 0) + data + struct.pack("<I", 0) for data in payloads)


def folders(root: Path, classes=("n01440764", "n01443537")) -> Path:
    for part, count in (("train", 3), ("val", 2)):
        for name in classes:
            (root / part / name).mkdir(parents=True)
            for i in range(count):
                (root / part / name / f"{name}_{i}.JPEG").write_bytes(b"\xff\xd8" + bytes([i + 1]) * (i + 1))
    return root


def shards(root: Path) -> Path:
    for i in range(3):
        (root / f"train-{i:05}-of-00003").write_bytes(tfrecord(*[b"x" * i] * (i + 1)))
    (root / "validation-00000-of-00001").write_bytes(tfrecord(b"a", b"bc"))
    return root


def test_class_folders(tmp_path: Path) -> None:
    files, facts = index(folders(tmp_path), hashed=False)
    assert facts == {"layout": "folders", "classes": 2, "train_images": 6, "validation_images": 4}
    assert len(files) == 10
    entry = files["train/n01443537/n01443537_2.JPEG"]
    assert (entry.bytes, entry.sha256, entry.stage) == (5, "", "raw")


def test_full_verification_keeps_every_sha256(tmp_path: Path) -> None:
    files, _ = index(folders(tmp_path), hashed=True)
    for name, entry in files.items():
        assert entry.sha256 == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()


def test_tfrecord_shards(tmp_path: Path) -> None:
    files, facts = index(shards(tmp_path), hashed=False)
    assert facts == {"layout": "tfrecord", "train_images": 6, "validation_images": 2}
    assert list(files) == [*(f"train-{i:05}-of-00003" for i in range(3)), "validation-00000-of-00001"]


def test_empty_directory_shows_the_tree_expected(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"(?s)wrong tree.*expected one of.*train/CLASS/\*\.JPEG.*found neither.*is empty"
    ):
        index(tmp_path, hashed=False)


def test_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found no such directory"):
        index(tmp_path / "nowhere", hashed=False)


def test_archives_that_were_never_unpacked(tmp_path: Path) -> None:
    (tmp_path / "ILSVRC2012_img_train.tar").touch()
    with pytest.raises(DataError, match=r"holds ILSVRC2012_img_train\.tar"):
        index(tmp_path, hashed=False)


def test_flat_validation_images(tmp_path: Path) -> None:
    folders(tmp_path)
    for path in sorted((tmp_path / "val").rglob("*.JPEG")):
        path.rename(tmp_path / "val" / path.name)
    for name in ("n01440764", "n01443537"):
        (tmp_path / "val" / name).rmdir()
    with pytest.raises(DataError, match=r"val/ holds no class folders: val/ holds n01440764_0\.JPEG"):
        index(tmp_path, hashed=False)


def test_no_validation_folder(tmp_path: Path) -> None:
    (tmp_path / "train" / "n01440764").mkdir(parents=True)
    (tmp_path / "train" / "n01440764" / "a.JPEG").write_bytes(b"x")
    with pytest.raises(DataError, match=r"found no val/: .* holds train/"):
        index(tmp_path, hashed=False)


def test_class_that_only_one_part_has(tmp_path: Path) -> None:
    folders(tmp_path)
    (tmp_path / "val" / "n01443537").rename(tmp_path / "val" / "n99999999")
    with pytest.raises(DataError, match="only one of train/ and val/ has: n01443537, n99999999"):
        index(tmp_path, hashed=False)


def test_class_without_images(tmp_path: Path) -> None:
    folders(tmp_path)
    for path in (tmp_path / "train" / "n01440764").iterdir():
        path.rename(path.with_suffix(".txt"))
    with pytest.raises(DataError, match="train/n01440764/ holds no JPEG files"):
        index(tmp_path, hashed=False)


def test_empty_image(tmp_path: Path) -> None:
    folders(tmp_path)
    (tmp_path / "val/n01440764/n01440764_0.JPEG").write_bytes(b"")
    with pytest.raises(DataError, match=r"empty files: val/n01440764/n01440764_0\.JPEG"):
        index(tmp_path, hashed=False)


def test_missing_shard_is_named(tmp_path: Path) -> None:
    (shards(tmp_path) / "train-00001-of-00003").unlink()
    with pytest.raises(DataError, match="missing shards: train-00001-of-00003"):
        index(tmp_path, hashed=False)


def test_no_validation_shards(tmp_path: Path) -> None:
    (shards(tmp_path) / "validation-00000-of-00001").unlink()
    with pytest.raises(DataError, match="validation shards: expected one set, found none"):
        index(tmp_path, hashed=False)


def test_two_sets_of_shards(tmp_path: Path) -> None:
    (shards(tmp_path) / "train-00000-of-00004").write_bytes(tfrecord(b"a"))
    with pytest.raises(DataError, match="expected one set, found -of-00003, -of-00004"):
        index(tmp_path, hashed=False)


@given(payloads=st.lists(st.binary(max_size=40), min_size=1, max_size=8), data=st.data())
def test_records_are_counted_and_every_cut_is_seen(tmp_path_factory, payloads: list[bytes], data) -> None:
    path = tmp_path_factory.mktemp("records") / "train-00000-of-00001"
    content = tfrecord(*payloads)
    path.write_bytes(content)
    assert count_records(path) == len(payloads)
    ends = {sum(16 + len(payload) for payload in payloads[:i]) for i in range(len(payloads) + 1)}
    cut = data.draw(st.integers(0, len(content)).filter(lambda size: size not in ends))
    path.write_bytes(content[:cut])
    with pytest.raises(DataError, match=f"cut at byte {cut}"):
        count_records(path)


def test_text_file_is_no_tfrecord(tmp_path: Path) -> None:
    (tmp_path / "train-00000-of-00001").write_text("<html>404 Not Found</html>")
    with pytest.raises(DataError, match="no TFRecord file"):
        count_records(tmp_path / "train-00000-of-00001")
