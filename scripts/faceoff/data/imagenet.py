"""ImageNet (ILSVRC 2012) where the user keeps it: class folders of JPEG files, or TFRecord shards; never copied.

O. Russakovsky et al.: ImageNet Large Scale Visual Recognition Challenge, IJCV 115, 2015.
"""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from faceoff.data.manifest import FileEntry, describe_file
from faceoff.errors import DataError

TREE = """one of
  train/CLASS/*.JPEG and val/CLASS/*.JPEG, CLASS a folder such as n01440764, the same classes in both
  train-00000-of-01024 ... and validation-00000-of-00128 ..., TFRecord shards, every one of them"""
SHARD = re.compile(r"(train|validation)-(\d{5})-of-(\d{5})")
SUFFIXES = (".jpeg", ".jpg")
SHOWN = 6


def index(root: Path, *, hashed: bool) -> tuple[dict[str, FileEntry], dict[str, Any]]:
    """List the image files or shards under `root` by their path below it, and count what they hold.

    Returns the files (with SHA-256 when `hashed`) and the facts: layout "folders" or "tfrecord", train_images,
    validation_images and, of folders, classes. Raises DataError that shows the tree expected and the tree found.
    """
    if not root.is_dir():
        raise _wrong_tree(root, "no such directory")
    if (root / "train").is_dir():
        return _index_folders(root, hashed)
    if any(SHARD.fullmatch(entry.name) for entry in os.scandir(root)):
        return _index_shards(root, hashed)
    raise _wrong_tree(root, f"neither train/ nor shards: {_listing(root)}")


def _index_folders(root: Path, hashed: bool) -> tuple[dict[str, FileEntry], dict[str, Any]]:
    files: dict[str, FileEntry] = {}
    counts: dict[str, int] = {}
    classes: dict[str, list[str]] = {}
    for part in ("train", "val"):
        if not (root / part).is_dir():
            raise _wrong_tree(root, f"no {part}/: {_listing(root)}")
        folders = sorted(entry.name for entry in os.scandir(root / part) if entry.is_dir())
        if not folders:
            raise _wrong_tree(root, f"{part}/ holds no class folders: {_listing(root / part)}")
        paths = [f"{part}/{folder}" for folder in folders]
        with ThreadPoolExecutor() as pool:
            listings = pool.map(lambda path: _list_images(root, path, hashed), paths)
            found = {path: entry for listing in listings for path, entry in listing}
        files |= found
        counts[part] = len(found)
        classes[part] = folders
    if classes["train"] != classes["val"]:
        only = sorted(set(classes["train"]) ^ set(classes["val"]))
        raise _wrong_tree(root, f"classes that only one of train/ and val/ has: {_some(only)}")
    facts = {
        "layout": "folders",
        "classes": len(classes["train"]),
        "train_images": counts["train"],
        "validation_images": counts["val"],
    }
    return files, facts


def _list_images(root: Path, folder: str, hashed: bool) -> list[tuple[str, FileEntry]]:
    names = sorted(entry.name for entry in os.scandir(root / folder) if entry.name.lower().endswith(SUFFIXES))
    if not names:
        raise _wrong_tree(root, f"{folder}/ holds no JPEG files: {_listing(root / folder)}")
    images = [(f"{folder}/{name}", describe_file(root / folder / name, "raw", hashed=hashed)) for name in names]
    if empty := [name for name, entry in images if entry.bytes == 0]:
        raise DataError(f"{root}: empty files: {_some(empty)}; unpack the archive again")
    return images


def _index_shards(root: Path, hashed: bool) -> tuple[dict[str, FileEntry], dict[str, Any]]:
    shards: dict[str, dict[int, str]] = {"train": {}, "validation": {}}
    totals: dict[str, set[int]] = {"train": set(), "validation": set()}
    for entry in os.scandir(root):
        if match := SHARD.fullmatch(entry.name):
            shards[match[1]][int(match[2])] = entry.name
            totals[match[1]].add(int(match[3]))
    for part, found in shards.items():
        if len(totals[part]) != 1:
            sets = ", ".join(f"-of-{total:05}" for total in sorted(totals[part])) or "none"
            raise _wrong_tree(root, f"{part} shards: expected one set, found {sets}")
        (total,) = totals[part]
        if missing := [f"{part}-{i:05}-of-{total:05}" for i in range(total) if i not in found]:
            raise _wrong_tree(root, f"missing shards: {_some(missing)}")
    names = {part: [found[i] for i in sorted(found)] for part, found in shards.items()}
    with ThreadPoolExecutor() as pool:
        counts = {part: sum(pool.map(lambda name: count_records(root / name), names[part])) for part in names}
        every = names["train"] + names["validation"]
        entries = pool.map(lambda name: describe_file(root / name, "raw", hashed=hashed), every)
        files = dict(zip(every, entries, strict=True))
    facts = {"layout": "tfrecord", "train_images": counts["train"], "validation_images": counts["validation"]}
    return files, facts


def count_records(path: Path) -> int:
    """Return the number of records in a TFRecord file, walking from length to length without reading the data.

    A record is: length uint64, its CRC uint32, data, CRC uint32, little-endian. Raises DataError when the records do
    not fill the file exactly: it is cut, or no TFRecord file.
    """
    records = offset = 0
    with path.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        while offset < size:
            end = offset + 16 + int.from_bytes(os.pread(stream.fileno(), 8, offset), "little")
            if end > size:
                raise DataError(f"{path}: cut at byte {size}, or no TFRecord file: a record at {offset} ends at {end}")
            records += 1
            offset = end
    return records


def _wrong_tree(root: Path, found: str) -> DataError:
    return DataError(f"imagenet: wrong tree under {root}\nexpected {TREE}\nfound {found}")


def _listing(directory: Path) -> str:
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in os.scandir(directory))
    return f"{directory.name}/ holds {_some(names)}" if names else f"{directory.name}/ is empty"


def _some(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
