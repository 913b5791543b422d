"""Configuration files read with their line numbers, and checked against a JSON schema with errors to act on."""

import difflib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError

from faceoff.errors import ConfigError

Location = tuple[str | int, ...]


@dataclass(frozen=True)
class Source:
    """One YAML file: its content, its lines, and the line of each key."""

    name: str
    content: Any
    text: list[str] = field(default_factory=list)
    lines: dict[Location, int] = field(default_factory=dict)

    def error(self, where: Location, expected: str, found: str, write: str | None = None) -> ConfigError:
        """Return the error for the key at `where`: file, line, key, what was expected, found, and what to write."""
        line = self._line(where)
        place = f"{self.name}, line {line}" if line else self.name
        message = f"{place}: {dotted(where)}\n  expected: {expected}\n  found:    {found}"
        return ConfigError(message + (f"\n  write:    {write}" if write else ""))

    def corrected(self, where: Location, replacement: str) -> str:
        """Return the source line of the key at `where` with its value replaced: the line to write."""
        text = self.text_of(where)
        value = scalar_text(value_at(self.content, where))
        if value and value in text:
            return text[::-1].replace(value[::-1], replacement[::-1], 1)[::-1]
        key = where[-1] if where else ""
        return f"- {replacement}" if isinstance(key, int) else f"{key}: {replacement}"

    def unknown(self, where: Location, what: str, known: Iterable[str], found: str) -> ConfigError:
        """Return the error for a name that is not one of `known`, with the nearest one in the corrected line."""
        names = sorted(known)
        write = self.corrected(where, near(found, names)) if names else None
        expected = f"{what}: one of {', '.join(names)}" if names else f"{what}; none is defined"
        return self.error(where, expected, found, write)

    def unknown_key(self, where: Location, known: Iterable[str]) -> ConfigError:
        """Return the error for a key that is not one of `known`."""
        names, key = sorted(known), str(where[-1])
        write = self.text_of(where).replace(key, near(key, names), 1) if names else None
        return self.error(where, f"one of the keys {', '.join(names)}", f"the unknown key {key}", write)

    def text_of(self, where: Location) -> str:
        """Return the source line of the key at `where`, or the key alone where the file does not hold it."""
        line = self._line(where)
        return self.text[line - 1].strip() if line else f"{where[-1] if where else ''}:"

    def _line(self, where: Location) -> int | None:
        while where not in self.lines and where:
            where = where[:-1]
        return self.lines.get(where)


def read_yaml(path: Path, root: Path) -> Source:
    """Read a YAML file. Raises ConfigError for a missing file, broken YAML or a key that is given twice."""
    name = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name}: cannot be read: {error}") from error
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        lines: dict[Location, int] = {}
        if node is not None:
            _collect_lines(node, (), lines, name)
        content = loader.construct_document(node) if node is not None else {}
    except RecursionError as error:
        raise ConfigError(f"{name}: an anchor that holds itself") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{name}{line}: is not valid YAML: {getattr(error, 'problem', error)}") from error
    source = Source(name, content, text.splitlines(), lines)
    _check_values(source, content, ())
    return source


def check_schema(source: Source, schema: dict[str, Any]) -> None:
    """Check a file against a JSON schema (draft 2020-12). Raises ConfigError for the first fault."""
    faults = list(_Validator(schema).iter_errors(source.content))
    if faults:
        # A misspelt key is also a missing one: say the former.
        errors = [(fault.validator != "additionalProperties", _explain(source, fault)) for fault in faults]
        raise min(errors, key=lambda item: (item[0], _line_of_message(item[1])))[1]


def dotted(where: Location) -> str:
    """Return a location as people write it: training.seeds[2]."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
    return text.lstrip(".") or "(top level)"


def value_at(content: Any, where: Location) -> Any:
    """Return the value at a location, or None."""
    for part in where:
        try:
            content = content[part]
        except (KeyError, IndexError, TypeError):
            return None
    return content


def near(found: str, names: list[str]) -> str:
    """Return the name that is most like `found`."""
    close = difflib.get_close_matches(found, names, n=1, cutoff=0.0)
    return close[0] if close else names[0]


def scalar_text(value: Any) -> str:
    """Return a value as it stands in YAML."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _collect_lines(node: yaml.Node, where: Location, lines: dict[Location, int], name: str) -> None:
    lines.setdefault(where, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            _collect_lines(child, (*where, index), lines, name)
    elif isinstance(node, yaml.MappingNode):
        for key, child in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ConfigError(
                    f"{name}, line {key.start_mark.line + 1}: {dotted(where)}: expected a key that is text"
                )
            inner = (*where, key.value)
            if inner in lines:
                first, second = lines[inner], key.start_mark.line + 1
                raise ConfigError(f"{name}, line {second}: {dotted(inner)} is given twice (first on line {first})")
            lines[inner] = key.start_mark.line + 1
            _collect_lines(child, inner, lines, name)


# JSON has one kind of number; here 1.0 is no whole number, since it is spelt otherwise in paths.
_Validator = validators.extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)


def _check_values(source: Source, value: Any, where: Location) -> None:
    """Refuse what YAML has and Faceoff cannot use: infinite numbers, control characters, keys that are no text."""
    if isinstance(value, float) and not math.isfinite(value):
        raise source.error(where, "a finite number", str(value))
    if isinstance(value, str) and not value.isprintable():
        raise source.error(where, "text of printable characters on one line", repr(value))
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise source.error((*where, str(key)), "a key that is text", repr(key), f'"{key}": ...')
            _check_values(source, inner, (*where, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _check_values(source, inner, (*where, index))


_TYPES = {
    "object": "a mapping (key: value)",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing (null)",
}


def _explain(source: Source, fault: ValidationError) -> ConfigError:
    where: Location = tuple(fault.absolute_path)
    schema: dict[str, Any] = fault.schema if isinstance(fault.schema, dict) else {}
    instance: Any = fault.instance
    found = scalar_text(instance)
    found = found if len(found) < 80 else found[:77] + "..."
    if fault.validator == "additionalProperties":
        known = sorted(schema.get("properties", {}))
        extra = sorted(set(instance) - set(known), key=str)[0]
        return source.unknown_key((*where, extra), known)
    if "propertyNames" in fault.absolute_schema_path:
        options = [str(option) for option in schema.get("enum", ())]
        if options:
            return source.unknown_key((*where, instance), options)
        line = source.text_of((*where, instance)).replace(str(instance), _example(schema), 1)
        return source.error((*where, instance), schema.get("description", "another name"), found, line)
    if fault.validator == "required":
        missing = next(key for key in schema["required"] if key not in instance)
        example = _example(schema.get("properties", {}).get(missing, {}))
        return source.error(where, f"the key {missing}", "no such key", f"{missing}: {example}")
    if fault.validator in ("enum", "const"):
        options = [scalar_text(option) for option in schema.get("enum", [schema.get("const")])]
        return source.unknown(where, "a value", options, found)
    if fault.validator == "type":
        types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        expected = " or ".join(_TYPES[kind] for kind in types)
        return source.error(where, expected, found, source.corrected(where, _coerced(instance, types, schema)))
    if fault.validator in ("anyOf", "oneOf") and "examples" in schema:
        return source.error(where, schema.get("description", "another form"), found, _write(source, where, schema))
    expected = schema.get("description") or fault.message
    return source.error(where, f"{expected} ({fault.message})", found, _write(source, where, schema))


def _write(source: Source, where: Location, schema: dict[str, Any]) -> str | None:
    return source.corrected(where, _example(schema)) if schema.get("examples") else None


def _example(schema: dict[str, Any]) -> str:
    if schema.get("examples"):
        return json.dumps(schema["examples"][0], ensure_ascii=False).replace('"', "")
    return "..."


def _coerced(value: Any, types: list[str], schema: dict[str, Any]) -> str:
    if isinstance(value, str) and {"number", "integer"} & set(types):
        try:
            return repr(float(value)) if "number" in types else str(int(value))
        except ValueError:
            return _example(schema)
    if "array" in types and not isinstance(value, list | dict):
        return f"[{scalar_text(value)}]"
    if "string" in types and not isinstance(value, list | dict):
        return f'"{scalar_text(value)}"'
    return _example(schema)


def _line_of_message(error: ConfigError) -> int:
    head = str(error).split(":", 1)[0]
    return int(head.rsplit(" ", 1)[1]) if ", line " in head else 0
