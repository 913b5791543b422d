import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faceoff.data.arrays import save_array
from faceoff.data.manifest import INDEX_NAME, INLINE_FILES, FileEntry, describe_file, load_manifest, write_manifest
from faceoff.errors import DataError


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    save_array(tmp_path / "numbers.npy", np.arange(12, dtype=np.int32).reshape(3, 4))
    entry = describe_file(tmp_path / "numbers.npy", "preprocessed")
    write_manifest(tmp_path / "manifest.json", "numbers", {"numbers.npy": entry}, {"rows": 3}, {"kind": "package"})
    return tmp_path / "manifest.json"


def test_manifest_gives_back_facts_and_arrays(prepared: Path) -> None:
    manifest = load_manifest(prepared)
    assert (manifest.dataset, manifest.facts) == ("numbers", {"rows": 3})
    assert manifest.path("numbers.npy") == prepared.parent / "numbers.npy"
    np.testing.assert_array_equal(manifest.array("numbers.npy"), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])


def test_equal_files_give_an_equal_manifest(prepared: Path, tmp_path: Path) -> None:
    first = prepared.read_bytes()
    entry = describe_file(tmp_path / "numbers.npy", "preprocessed")
    write_manifest(prepared, "numbers", {"numbers.npy": entry}, {"rows": 3}, {"kind": "package"})
    assert prepared.read_bytes() == first


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "cannot be read: No such file"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "expected 176 bytes, found 175"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\1"), "expected sha256 .*, found "),
    ],
)
def test_damaged_file_is_named_with_expected_and_found(prepared: Path, damage, message: str) -> None:
    damage(prepared.parent / "numbers.npy")
    manifest = load_manifest(prepared)
    with pytest.raises(DataError, match=f"numbers.npy: {message}"):
        manifest.array("numbers.npy")


@pytest.mark.parametrize("size", [175, 177])
def test_without_a_sha256_the_size_decides(prepared: Path, size: int) -> None:
    entry = describe_file(prepared.parent / "numbers.npy", "raw", hashed=False)
    write_manifest(prepared, "numbers", {"numbers.npy": entry}, {}, {})
    assert load_manifest(prepared).path("numbers.npy").exists()
    (prepared.parent / "numbers.npy").write_bytes(b"x" * size)
    with pytest.raises(DataError, match=f"expected 176 bytes, found {size}"):
        load_manifest(prepared).path("numbers.npy")


def test_unknown_file_is_refused_with_the_known_ones(prepared: Path) -> None:
    with pytest.raises(DataError, match=r"no file 'letters\.npy'; it has numbers\.npy"):
        load_manifest(prepared).path("letters.npy")


def test_pickle_is_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    entry = describe_file(tmp_path / "objects.npy", "preprocessed")
    write_manifest(tmp_path / "manifest.json", "objects", {"objects.npy": entry}, {}, {})
    with pytest.raises(DataError, match="no readable array"):
        load_manifest(tmp_path / "manifest.json").array("objects.npy")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', '{"schema": "faceoff-dataset/0"}', "\0"])
def test_text_that_is_no_manifest(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(DataError, match=r"manifest\.json: .*prepare it again"):
        load_manifest(tmp_path / "manifest.json")


def test_missing_manifest(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no readable manifest"):
        load_manifest(tmp_path / "manifest.json")


@pytest.mark.parametrize(
    "change",
    [
        {"files": {"../../etc/passwd": {"bytes": 1, "sha256": "", "stage": "raw"}}},
        {"files": {"/etc/passwd": {"bytes": 1, "sha256": "", "stage": "raw"}}},
        {"root": "../elsewhere"},
        {"files": {"a": {"bytes": -1, "sha256": "", "stage": "raw"}}},
        {"files": {"a": {"bytes": 1, "sha256": "abc", "stage": "raw"}}},
        {"files": {"a": {"bytes": 1, "sha256": "", "stage": "cooked"}}},
        {"files": {"a": {"bytes": 1}}},
        {"files": [1, 2]},
        {"facts": None},
        {"index": {"name": "../files.tsv.gz", "bytes": 1, "sha256": ""}},
    ],
)
def test_hostile_manifest_is_refused(prepared: Path, change: dict) -> None:
    prepared.write_text(json.dumps({**json.loads(prepared.read_text()), **change}))
    with pytest.raises(DataError, match="not a whole manifest"):
        load_manifest(prepared)


def test_long_list_moves_to_an_index_that_the_manifest_holds_fast(tmp_path: Path) -> None:
    files = {f"train/{i:05}.JPEG": FileEntry(i + 1, "", "raw") for i in range(INLINE_FILES + 1)}
    path = tmp_path / "manifest.json"
    write_manifest(path, "images", files, {}, {}, root="source")
    assert path.stat().st_size < 1000
    assert load_manifest(path).files == files
    index = tmp_path / INDEX_NAME
    first = index.read_bytes()
    write_manifest(path, "images", dict(reversed(files.items())), {}, {}, root="source")
    assert index.read_bytes() == first
    index.write_bytes(gzip.compress(b"train/0.JPEG\t1\t\traw\n"))
    with pytest.raises(DataError, match=r"files\.tsv\.gz: expected"):
        load_manifest(path)


def test_inline_list_stays_under_the_size_whose_content_snakemake_compares(tmp_path: Path) -> None:
    files = {f"validation-{i:05}-of-01024": FileEntry(10**9, "f" * 64, "raw") for i in range(INLINE_FILES)}
    write_manifest(tmp_path / "manifest.json", "images", files, {}, {})
    assert (tmp_path / "manifest.json").stat().st_size < 1_000_000


@given(
    files=st.dictionaries(
        st.from_regex(r"[a-zé \-]{1,8}(/[a-z]{1,8}){0,2}", fullmatch=True),
        st.builds(
            FileEntry,
            st.integers(0, 2**60),
            st.sampled_from(["", "0" * 64]),
            st.sampled_from(["raw", "preprocessed"]),
        ),
    ),
    facts=st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5)),
)
def test_manifest_round_trip(tmp_path_factory, files: dict, facts: dict) -> None:
    path = tmp_path_factory.mktemp("trip") / "manifest.json"
    write_manifest(path, "any", files, facts, {})
    manifest = load_manifest(path)
    assert (manifest.files, manifest.facts, manifest.root) == (files, facts, path.parent)
