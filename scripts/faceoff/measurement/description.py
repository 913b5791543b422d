"""The description of a system: what the configuration says beside what the machine is."""

from collections.abc import Iterator, Mapping
from typing import Any

from faceoff.errors import ConfigError
from faceoff.measurement.identity import identity_sha256, is_placeholder

SCHEMA = "faceoff-system/1"
NAMES = ("name", "model", "title", "node")


def describe_system(configured: Mapping[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a system from its configuration and its identity.

    Raises ConfigError, before anything was measured on the system, that lists every empty field and every placeholder.
    """
    description = {
        "schema": SCHEMA,
        "system": configured.get("name"),
        "configured": {key: value for key, value in configured.items() if key != "name"},
        "identity": found,
        "identity_sha256": identity_sha256(found),
    }
    if empty := list(_empty_fields(description, "")):
        raise ConfigError(f"system {configured.get('name')}: fields that say nothing: {', '.join(empty)}")
    return description


def _empty_fields(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            yield from _empty_fields(part, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list) and value:
        for i, part in enumerate(value):
            yield from _empty_fields(part, f"{path}[{i}]")
    elif value is None or value in ({}, []):
        yield f"{path} is empty"
    elif isinstance(value, str) and (is_placeholder(value) or (path.endswith(NAMES) and value.isdigit())):
        yield f"{path} is {value!r}"
