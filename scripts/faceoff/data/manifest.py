"""The manifest: one small JSON file that stands for a whole data set.

    {"schema": "faceoff-dataset/1", "dataset": "digits", "root": ".", "source": {...}, "facts": {"classes": 10, ...},
     "files": {"train_images.npy": {"bytes": 83328, "sha256": "...", "stage": "preprocessed"}, ...}}

`root` is relative to the manifest: "." for files that lie beside it, or the name of a link to the user's own directory,
so that equal data gives an equal manifest wherever it is kept. A long list of files moves to `index`, a gzipped table
beside the manifest whose SHA-256 the manifest holds. A file without a SHA-256 is verified by its size alone.
"""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from faceoff.errors import DataError
from faceoff.files import atomic_path, sha256_file, write_json

SCHEMA = "faceoff-dataset/1"
STAGES = ("raw", "preprocessed")
FAILURES = "failures.log"
INDEX_NAME = "files.tsv.gz"
INLINE_FILES = 2048  # more would take the manifest past 1 MB, up to which Snakemake compares content


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Size in bytes, SHA-256 ("" where only the size is known) and stage of one file."""

    bytes: int
    sha256: str
    stage: str


@dataclass(frozen=True)
class Manifest:
    """A prepared data set: where its files are, what they must be, and facts such as the number of users."""

    dataset: str
    root: Path
    files: dict[str, FileEntry]
    facts: dict[str, Any]
    _verified: set[str] = field(default_factory=set, repr=False, compare=False)

    def path(self, name: str) -> Path:
        """Return the path of file `name`, verified once a process against its size and SHA-256.

        Raises DataError when the data set has no such file, or it is missing, cut or changed.
        """
        if name not in self.files:
            raise DataError(f"{self.dataset}: no file {name!r}; it has {_some(list(self.files))}")
        path = self.root / name
        if name not in self._verified:
            verify_file(path, self.files[name], remedy(self.dataset))
            self._verified.add(name)
        return path

    def array(self, name: str) -> np.ndarray:
        """Return the array in the .npy file `name`. Raises DataError as `path` does and for a file without array."""
        path = self.path(name)
        try:
            return np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{path}: no readable array: {error}") from error


def remedy(dataset: str) -> str:
    """Return the command that prepares a data set again."""
    manifest = f"results/data/{dataset}/manifest.json"
    return f"prepare it again: snakemake --cores all --forcerun {manifest} -- {manifest}"


def verify_file(path: Path, expected: FileEntry, remedy: str) -> None:
    """Check that `path` has the size and, where one is known, the SHA-256 of `expected`.

    Raises DataError that names the file, what was expected, what was found, and `remedy`.
    """
    try:
        size = path.stat().st_size
        if size != expected.bytes:
            raise DataError(f"{path}: expected {expected.bytes} bytes, found {size}: cut or changed; {remedy}")
        if expected.sha256 and (found := sha256_file(path)) != expected.sha256:
            raise DataError(f"{path}: expected sha256 {expected.sha256}, found {found}; {remedy}")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}; {remedy}") from error


def describe_file(path: Path, stage: str, *, hashed: bool = True) -> FileEntry:
    """Return the entry of an existing file; its SHA-256 only when `hashed`."""
    return FileEntry(path.stat().st_size, sha256_file(path) if hashed else "", stage)


def write_manifest(
    path: Path,
    dataset: str,
    files: Mapping[str, FileEntry],
    facts: Mapping[str, Any],
    source: Mapping[str, Any],
    root: str = ".",
) -> None:
    """Write the manifest of files that are complete under `path.parent / root`; the last step of a preparation."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "dataset": dataset,
        "root": root,
        "source": dict(source),
        "facts": dict(facts),
    }
    if len(files) > INLINE_FILES:
        index = path.parent / INDEX_NAME
        _write_index(index, files)
        document["index"] = {"name": INDEX_NAME, "bytes": index.stat().st_size, "sha256": sha256_file(index)}
    else:
        document["files"] = {
            name: {"bytes": entry.bytes, "sha256": entry.sha256, "stage": entry.stage} for name, entry in files.items()
        }
    write_json(path, document)


def write_failure(path: Path, dataset: str, reason: str) -> None:
    """Write a manifest that says why there is no data set, so that its cells fail with that reason and others go on.

    Each failure is also a line of failures.log beside it, by which the workflow knows to try again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / FAILURES).open("a", encoding="utf-8") as stream:
        stream.write(" ".join(reason.split()) + "\n")
    write_json(path, {"schema": SCHEMA, "dataset": dataset, "failed": reason})


def load_manifest(path: Path) -> Manifest:
    """Read a manifest; the files it names are verified later, as `Manifest.path` returns them.

    Raises DataError when the manifest is missing, no JSON, of another schema, names a file outside its root, or says
    that the data set could not be prepared.
    """
    again = remedy(path.parent.name)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{path}: no readable manifest: {error}; {again}") from error
    found = document.get("schema") if isinstance(document, dict) else type(document).__name__
    if found != SCHEMA:
        raise DataError(f"{path}: schema: expected {SCHEMA}, found {found!r}; {again}")
    if "failed" in document:
        raise DataError(f"data set {document.get('dataset')} could not be prepared: {document['failed']}")
    try:
        if "index" in document:
            index = document["index"]
            index_path = path.parent / _inside(index["name"])
            verify_file(index_path, FileEntry(int(index["bytes"]), str(index["sha256"]), "preprocessed"), again)
            files = _read_index(index_path)
        else:
            files = {_inside(name): _entry(**entry) for name, entry in document["files"].items()}
        root = path.parent / _inside(document["root"])
        return Manifest(str(document["dataset"]), root, files, dict(document["facts"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path}: not a whole manifest: {type(error).__name__}: {error}; {again}") from error


def _entry(bytes: int | str, sha256: str, stage: str) -> FileEntry:  # noqa: A002 - the key in the file
    if int(bytes) < 0 or stage not in STAGES or len(sha256) not in (0, 64):
        raise ValueError(f"no file entry: bytes {bytes!r}, sha256 {sha256!r}, stage {stage!r}")
    return FileEntry(int(bytes), sha256, stage)


def _inside(name: str) -> str:
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts:
        raise ValueError(f"a path outside the data set: {name!r}")
    return name


def _write_index(path: Path, files: Mapping[str, FileEntry]) -> None:
    # Without name and time in the gzip header equal files give an equal index.
    with (
        atomic_path(path) as temporary,
        temporary.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as stream,
    ):
        for name in sorted(files):
            if "\t" in name or "\n" in name:
                raise DataError(f"{path}: a file name holds a tab or a line end: {name!r}; rename it")
            entry = files[name]
            stream.write(f"{name}\t{entry.bytes}\t{entry.sha256}\t{entry.stage}\n".encode())


def _read_index(path: Path) -> dict[str, FileEntry]:
    files = {}
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            name, *entry = line.rstrip("\n").split("\t")
            files[_inside(name)] = _entry(*entry)
    return files


def _some(names: list[str]) -> str:
    return ", ".join(sorted(names)[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
