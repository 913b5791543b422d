"""Prepare a data set as its card says: check the source, make the files, check them, write the manifest last."""

import os
from collections.abc import Mapping
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from faceoff.data.manifest import FileEntry, describe_file, verify_file, write_manifest
from faceoff.errors import ConfigError, DataError

LINK = "source"


def read_card(path: Path) -> dict[str, Any]:
    """Read config/data/NAME.yaml. Raises ConfigError when it is missing or no mapping."""
    try:
        card = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: no readable card of a data set: {error}") from error
    if not isinstance(card, dict):
        raise ConfigError(f"{path}: expected keys such as source and files, found {type(card).__name__}")
    return card


def prepare_dataset(card: Mapping[str, Any], output: Path) -> None:
    """Prepare the data set named by the directory of `output` (results/data/NAME/manifest.json).

    What is made depends on the card's `source`, `facts` and `files` alone. An old manifest goes first and the new one
    comes last, so that whatever ends this in between leaves no manifest, and running again repairs it.
    Raises DataError for a source that is missing or not the expected one; ConfigError for a card that lacks a key.
    """
    name = output.parent.name
    try:
        output.unlink(missing_ok=True)
        output.parent.mkdir(parents=True, exist_ok=True)
        source = card["source"]
        if source["kind"] == "package":
            files, facts = _prepare_package(name, card, output.parent)
            write_manifest(output, name, files, facts, source)
        elif source["kind"] == "path":
            files, facts = _index_path(name, card, output.parent)
            write_manifest(output, name, files, facts, {"kind": "path", "verify": source["verify"]}, root=LINK)
        else:
            raise ConfigError(f"data set {name}: source: kind: expected package or path, found {source['kind']!r}")
    except KeyError as error:
        raise ConfigError(f"config/data/{name}.yaml: the key {error} is missing") from error
    except OSError as error:
        raise DataError(f"data set {name}: {error}") from error


def find_package_file(source: Mapping[str, Any]) -> Path:
    """Return the file that a Python package carries, found without importing the package, and verified.

    `source`: package, version, path (from the module's directory up), bytes, sha256. Raises DataError when the package
    is missing or of another version, or the file is missing, cut or changed.
    """
    package, version, path = str(source["package"]), str(source["version"]), str(source["path"])
    remedy = f"pip install --no-deps --force-reinstall {package}=={version}"
    module = path.split("/", 1)[0]
    spec = find_spec(module)
    try:
        installed = metadata.version(package)
    except metadata.PackageNotFoundError:
        installed = None
    if installed is None or spec is None or not spec.submodule_search_locations:
        raise DataError(f"package {package} is not installed: pip install --no-deps {package}=={version}")
    if installed != version:
        raise DataError(f"package {package}: expected version {version}, found {installed}: {remedy}")
    found = Path(next(iter(spec.submodule_search_locations))).parent / path
    verify_file(found, FileEntry(source["bytes"], source["sha256"], "raw"), f"install it again: {remedy}")
    return found


def _prepare_package(
    name: str, card: Mapping[str, Any], directory: Path
) -> tuple[dict[str, FileEntry], dict[str, Any]]:
    source = find_package_file(card["source"])
    facts = _module(name).prepare(source, directory)
    _check_facts(name, card["facts"], facts)
    files = {file: describe_file(directory / file, "preprocessed") for file in card["files"]}
    for file, entry in files.items():
        expected = card["files"][file]["sha256"]
        if entry.sha256 != expected:
            raise DataError(
                f"{directory / file}: preprocessed: expected sha256 {expected}, found {entry.sha256}: the preparation "
                "changed; if that is meant, change the card, and results on the old data no longer compare"
            )
    return files, facts


def _index_path(name: str, card: Mapping[str, Any], directory: Path) -> tuple[dict[str, FileEntry], dict[str, Any]]:
    source, module = card["source"], _module(name)
    if source["verify"] not in ("size", "full"):
        raise ConfigError(f"data set {name}: source: verify: expected size or full, found {source['verify']!r}")
    if source["path"] is None:
        raise DataError(
            f"{name} cannot be fetched by a program: sign up at {card['page']}, keep {card['disk']} free, and set "
            f"`source: path:` in config/data/{name}.yaml to a directory that holds {module.TREE}"
        )
    root = Path(source["path"]).expanduser().absolute()
    files, found = module.index(root, hashed=source["verify"] == "full")
    _check_facts(name, card["facts"], found)
    _link(directory / LINK, root)
    return files, {**card["facts"], **found}


def _module(name: str) -> Any:
    return import_module(f"faceoff.data.{name.replace('-', '_')}")


def _check_facts(name: str, expected: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    wrong = [
        f"{key}: expected {value}, found {found[key]}"
        for key, value in expected.items()
        if key in found and found[key] != value
    ]
    if wrong:
        raise DataError(f"data set {name}: {'; '.join(wrong)}: not the whole data set, or not this one")


def _link(link: Path, target: Path) -> None:
    temporary = link.with_name(f".{link.name}-{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)
