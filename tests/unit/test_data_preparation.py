import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from faceoff.data.manifest import load_manifest
from faceoff.data.preparation import find_package_file, prepare_dataset, read_card
from faceoff.errors import ConfigError, DataError

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / "scripts" / "prepare_dataset.py"


def card(name: str) -> dict:
    return read_card(REPOSITORY / "config" / "data" / f"{name}.yaml")


def prepare(name: str, tmp_path: Path, **changes) -> Path:
    output = tmp_path / name / "manifest.json"
    prepare_dataset({**card(name), **changes}, output)
    return output


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict:
    """Install a package `tinydata` 1.0 that raises when imported; return the source block of a card."""
    (tmp_path / "site/tinydata/data").mkdir(parents=True)
    (tmp_path / "site/tinydata/__init__.py").write_text("raise AssertionError('imported')\n")
    (tmp_path / "site/tinydata/data/x.csv").write_bytes(b"1,2\n")
    (tmp_path / "site/tiny_data-1.0.dist-info").mkdir()
    (tmp_path / "site/tiny_data-1.0.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: tiny-data\nVersion: 1.0\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    sha256 = hashlib.sha256(b"1,2\n").hexdigest()
    return {"package": "tiny-data", "version": "1.0", "path": "tinydata/data/x.csv", "bytes": 4, "sha256": sha256}


def test_digits_are_the_1797_known_images(tmp_path: Path) -> None:
    manifest = load_manifest(prepare("digits", tmp_path))
    images = [manifest.array(f"{part}_images.npy") for part in ("train", "test")]
    labels = [manifest.array(f"{part}_labels.npy") for part in ("train", "test")]
    assert [a.shape for a in images] == [(1300, 8, 8), (497, 8, 8)]
    # Images a class of the UCI test set, from its own description (optdigits.names).
    assert np.bincount(np.concatenate(labels)).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert max(a.max() for a in images) == 16


def test_movielens_has_its_known_counts_and_negatives_nobody_saw(tmp_path: Path) -> None:
    manifest = load_manifest(prepare("movielens-100k", tmp_path))
    train, test = manifest.array("train_pairs.npy"), manifest.array("test_pairs.npy")
    negatives = manifest.array("test_negatives.npy")
    assert (manifest.facts["users"], manifest.facts["items"]) == (943, 1682)
    assert (train.shape, test.shape, negatives.shape) == ((99_057, 2), (943, 2), (943, 99))
    assert train.dtype == test.dtype == negatives.dtype == np.int32
    assert len(np.unique(np.concatenate([train, test]), axis=0)) == 100_000
    assert np.bincount(np.concatenate([train, test])[:, 0]).min() == 20  # GroupLens: each user rated at least 20 films
    rated = np.zeros((943, 1682), dtype=bool)
    rated[tuple(np.concatenate([train, test]).T)] = True
    assert not rated[np.arange(943)[:, None], negatives].any()
    assert all(len(set(row)) == 99 for row in negatives.tolist())


def test_preparing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = prepare("digits", tmp_path / "a"), prepare("digits", tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    for name in load_manifest(first).files:
        assert (first.parent / name).read_bytes() == (second.parent / name).read_bytes()


def test_package_file_is_found_without_importing_the_package(package: dict, tmp_path: Path) -> None:
    assert find_package_file(package) == tmp_path / "site/tinydata/data/x.csv"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"package": "tiny-dota"}, r"tiny-dota is not installed: pip install --no-deps tiny-dota==1\.0"),
        ({"path": "tinydota/data/x.csv"}, "tiny-data is not installed"),
        ({"version": "2.0"}, r"expected version 2\.0, found 1\.0: pip install .* tiny-data==2\.0"),
        ({"path": "tinydata/data/y.csv"}, r"y\.csv: cannot be read: No such file"),
        ({"bytes": 5}, r"x\.csv: expected 5 bytes, found 4: cut or changed"),
        ({"sha256": "0" * 64}, r"x\.csv: expected sha256 0{64}, found [1-9a-f]"),
    ],
)
def test_wrong_package(package: dict, change: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        find_package_file({**package, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"facts": {"train_images": 1301}}, "train_images: expected 1301, found 1300"),
        ({"files": {"train_images.npy": {"sha256": "0" * 64}}}, "preprocessed: expected sha256 0{64}, found 50bbef2e"),
        ({"files": {"other.npy": {"sha256": "0" * 64}}}, r"other\.npy"),
    ],
)
def test_preparation_that_makes_something_else_leaves_no_manifest(tmp_path: Path, change: dict, message: str) -> None:
    output = prepare("digits", tmp_path)
    with pytest.raises(DataError, match=message):
        prepare("digits", tmp_path, **change)
    assert not output.exists()
    assert load_manifest(prepare("digits", tmp_path)).array("test_labels.npy").shape == (497,)


@pytest.mark.parametrize("changed", [{}, {"source": {"kind": "package"}}, {"source": {"kind": "url"}}])
def test_card_without_its_keys(tmp_path: Path, changed: dict) -> None:
    with pytest.raises(ConfigError, match="digits"):
        prepare_dataset(changed, tmp_path / "digits" / "manifest.json")


def test_imagenet_without_a_path_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"(?s)sign up at .*150 GB.*source: path:.*config/data/imagenet\.yaml.*train/CLASS"
    ):
        prepare("imagenet", tmp_path)
    assert not (tmp_path / "imagenet" / "manifest.json").exists()


def small_imagenet(root: Path) -> Path:
    for part in ("train", "val"):
        for name in ("n01440764", "n01443537"):
            (root / part / name).mkdir(parents=True)
            (root / part / name / "a.JPEG").write_bytes(b"\xff\xd8 image")
    return root


def test_imagenet_under_the_user_s_path(tmp_path: Path) -> None:
    facts = {"classes": 2, "train_images": 2, "validation_images": 2}
    manifests = []
    for place in ("one", "two"):
        source = {"kind": "path", "path": str(small_imagenet(tmp_path / place)), "verify": "full"}
        output = prepare("imagenet", tmp_path / "results", source=source, facts=facts)
        manifests.append(output.read_bytes())
        manifest = load_manifest(output)
        image = manifest.path("val/n01443537/a.JPEG")
        assert image.resolve() == tmp_path / place / "val/n01443537/a.JPEG"
    assert manifests[0] == manifests[1]
    assert manifest.facts == {**facts, "layout": "folders"}
    image.write_bytes(b"\xff\xd8 imagf")
    with pytest.raises(DataError, match="expected sha256"):
        load_manifest(output).path("val/n01443537/a.JPEG")


def test_half_unpacked_imagenet_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    source = {"kind": "path", "path": str(small_imagenet(tmp_path / "one")), "verify": "size"}
    with pytest.raises(DataError, match="classes: expected 1000, found 2; train_images: expected 1281167, found 2"):
        prepare("imagenet", tmp_path, source=source)


def test_killed_preparation_leaves_no_manifest_and_running_again_repairs(tmp_path: Path) -> None:
    output = prepare("digits", tmp_path)
    program = f"""
import os, signal
from faceoff.data import preparation
def killed(*arguments, **keywords): os.kill(os.getpid(), signal.SIGKILL)
preparation.describe_file = killed
preparation.prepare_dataset({card("digits")!r}, preparation.Path({str(output)!r}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, env={**os.environ, "PYTHONPATH": str(SCRIPT.parent)}
    )
    assert done.returncode == -signal.SIGKILL
    assert (output.parent / "train_images.npy").exists()
    assert not output.exists()
    assert len(load_manifest(prepare("digits", tmp_path)).files) == 4


def test_program_prints_one_message_and_no_traceback(tmp_path: Path) -> None:
    arguments = [sys.executable, SCRIPT, "--output", tmp_path / "imagenet/manifest.json", "--card"]
    done = subprocess.run(
        [*arguments, REPOSITORY / "config/data/imagenet.yaml"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith("prepare_dataset.py: imagenet cannot be fetched")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("text", [None, "", "- a", "a: [", "7"])
def test_card_that_is_none(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "card.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"card\.yaml: "):
        read_card(tmp_path / "card.yaml")


def test_program_imports_no_framework_and_neither_package(tmp_path: Path) -> None:
    program = f"""
import sys
from faceoff.data import preparation
preparation.prepare_dataset({card("digits")!r}, preparation.Path({str(tmp_path / "digits" / "manifest.json")!r}))
heavy = {{"sklearn", "recbole", "torch", "tensorflow", "pandas", "scipy"}} & set(sys.modules)
sys.exit(str(sorted(heavy)) if heavy else 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, env={**os.environ, "PYTHONPATH": str(SCRIPT.parent)}
    )
    assert done.returncode == 0
