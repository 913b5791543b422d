"""Reads the project's configuration files, and checks each against its schema and against the others."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from faceoff.errors import ConfigError
from faceoff.records.prices import price_ratio
from faceoff.study.drawings import FIGURES, NEED_PRICES, TABLES, Drawing
from faceoff.study.project import PRESET_DEFAULTS, Project, Study
from faceoff.study.selection import layout_of, selected
from faceoff.study.source import Location, Source, check_schema, read_yaml, value_at

# A card's name is its module's, and becomes part of paths.
NAMES = {"benchmark": re.compile("[a-z][a-z0-9_]*"), "dataset": re.compile("[a-z][a-z0-9-]*")}


def load_project(root: Path, settings: dict[str, Any]) -> Project:
    """Read and check every configuration file under root/config.

    `settings` is what Snakemake made of config/config.yaml and --config. Raises ConfigError with file, line, key,
    what was expected, what was found, and the corrected line.
    """
    config = root / "config"
    main = _merged_settings(read_yaml(config / "config.yaml", root), settings)
    check_schema(main, _schema(root, "config"))
    systems = read_yaml(config / "systems.yaml", root)
    overlay = config / "systems.local.yaml"
    if overlay.exists():
        systems = _overlaid(systems, read_yaml(overlay, root), _schema(root, "systems"))
    check_schema(systems, _schema(root, "systems"))
    project = Project(root, settings, systems)
    for kind, folder, target in (("benchmark", "benchmarks", project.cards), ("dataset", "data", project.datasets)):
        for path in sorted((config / folder).glob("*.yaml")):
            if not NAMES[kind].fullmatch(path.stem):
                raise ConfigError(f"{path.relative_to(root)}: the file's name: expected {NAMES[kind].pattern}.yaml")
            target[path.stem] = read_yaml(path, root)
            check_schema(target[path.stem], _schema(root, kind))
    _check_systems(project)
    for card in project.cards.values():
        _check_card(project, card)
    for name in settings["studies"]:
        project.studies[name] = _load_study(project, name, main)
    _check_only(project, main)
    return project


def _merged_settings(main: Source, settings: dict[str, Any]) -> Source:
    """Return the settings; what the command line gave has no line in the file."""
    given = main.content if isinstance(main.content, dict) else {}
    lines = {
        where: line for where, line in main.lines.items() if where and given[where[0]] == settings.get(str(where[0]))
    }
    from_file = all(given.get(key) == value for key, value in settings.items())
    return Source(main.name if from_file else f"{main.name} (with --config)", settings, main.text, lines)


def _schema(root: Path, kind: str) -> dict[str, Any]:
    path = root / "workflow" / "schemas" / f"{kind}.schema.yaml"
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _overlaid(base: Source, overlay: Source, schema: dict[str, Any]) -> Source:
    """Return the systems with an overlay laid over them, key by key; a price replaces the whole price.

    Raises ConfigError in the overlay's own lines.
    """
    check_schema(overlay, _without_required(schema))
    for section, entries in overlay.content.items():
        known = base.content.get(section, {})
        for name, entry in entries.items():
            if name not in known and "title" not in entry:
                raise overlay.unknown_key((section, name), known)

    def merge(left: Any, right: Any, key: str = "") -> Any:
        if isinstance(left, dict) and isinstance(right, dict) and key != "price":
            return {**left, **{inner: merge(left.get(inner), value, inner) for inner, value in right.items()}}
        return right

    return Source(f"{base.name} (with {overlay.name})", merge(base.content, overlay.content), base.text, base.lines)


def _without_required(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_required(value) for key, value in schema.items() if key != "required"}
    return schema


def _check_systems(project: Project) -> None:
    source = project.systems_source
    for name, system in project.systems.items():
        where: Location = ("systems", name)
        if system["accelerator"] != "auto" and system["accelerator"] != "cpu":
            _require(source, (*where, "accelerator"), "an accelerator", [*project.accelerators, "auto", "cpu"])
        if "source" in system:
            path = project.root / "config" / "published" / f"{system['source']['collection']}.csv"
            if not path.is_file():
                known = [file.stem for file in path.parent.glob("*.csv")]
                raise source.unknown((*where, "source", "collection"), "a file in config/published/", known, path.stem)
            if "accelerators_per_node" not in system:
                raise source.error(where, "the key accelerators_per_node", "no such key", "accelerators_per_node: 3")
        elif "stack" not in system:
            raise source.error(
                where, "the key stack (a measured system names its software)", "no such key", "stack: default"
            )
        if "stack" in system:
            _require(source, (*where, "stack"), "a stack", source.content["stacks"])
        if "price" in system:
            _check_price(project, (*where, "price"), system["price"])


def _check_price(project: Project, where: Location, price: dict[str, Any]) -> None:
    source = project.systems_source
    kinds = [kind for kind in ("ratio", "amount") if kind in price]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "neither"
        raise source.error(where, "either ratio (with relative_to) or amount (with currency)", found)
    missing = {"ratio": "relative_to", "amount": "currency"}[kinds[0]]
    if missing not in price:
        raise source.error(where, f"the key {missing} beside {kinds[0]}", "no such key", f"{missing}: ...")
    if "relative_to" in price:
        _require(source, (*where, "relative_to"), "a system", project.systems)


def _check_card(project: Project, source: Source) -> None:
    card = source.content
    vocabulary = card.get("hyperparameters", {})
    for section in ("presets", "variants"):
        for name, layer in card.get(section, {}).items():
            where: Location = (section, name)
            if section == "presets":
                for key in (*PRESET_DEFAULTS, "metric"):
                    if key not in card and key not in layer:
                        raise source.error(where, f"the key {key}, here or at the top level", "no such key")
            if "dataset" in layer:
                _require(source, (*where, "dataset"), "a data set in config/data/", project.datasets)
            for key, value in layer.get("hyperparameters", {}).items():
                inner = (*where, "hyperparameters", key)
                if key not in vocabulary:
                    raise source.unknown_key(inner, vocabulary)
                if not _same_kind(value, vocabulary[key]):
                    expected = f"a {type(vocabulary[key]).__name__}, as in the card's {key}: {vocabulary[key]}"
                    raise source.error(inner, expected, repr(value), _as_number(source, inner, value))


def _as_number(source: Source, where: Location, value: Any) -> str | None:
    """Return the line to write where YAML read a number such as 4e-3 as text."""
    try:
        return source.corrected(where, repr(float(value))) if isinstance(value, str) else None
    except ValueError:
        return None


def _same_kind(value: Any, reference: Any) -> bool:
    if reference is None:
        return True
    if isinstance(value, bool) or isinstance(reference, bool):
        return isinstance(value, bool) and isinstance(reference, bool)
    if isinstance(value, int | float) and isinstance(reference, int | float):
        return True
    return type(value) is type(reference)


def _load_study(project: Project, name: str, main: Source) -> Study:
    path = project.root / "config" / "studies" / f"{name}.yaml"
    if not path.is_file():
        known = [file.stem for file in path.parent.glob("*.yaml")]
        index = project.settings["studies"].index(name)
        raise main.unknown(("studies", index), "a file in config/studies/", known, name)
    source = read_yaml(path, project.root)
    check_schema(source, _schema(project.root, "study"))
    content = source.content
    for index in range(len(content["systems"])):
        _require(source, ("systems", index), "a system in config/systems.yaml", project.systems)
    titles = [project.systems[name]["title"] for name in content["systems"]]
    for index, title in enumerate(titles):
        if title in titles[:index]:
            raise source.error(("systems", index), "systems with titles of their own", f"{title}, twice")
    if "baseline" in content:
        _require(source, ("baseline",), "a system of this study", content["systems"])
    study = Study(
        name,
        source,
        figures=_drawings(project, source, "figures", FIGURES),
        tables=_drawings(project, source, "tables", TABLES),
        frozen=content.get("frozen", False),
        partial=content.get("partial", False),
        training=_training_plan(project, source) if "training" in content else None,
        inference=_inference_plan(project, source) if "inference" in content else None,
    )
    if not study.training and not study.inference:
        raise source.error((), "the key training or inference", "neither", "training: {workloads: [ncf-tiny], ...}")
    return study


def _drawings(project: Project, source: Source, key: str, known: dict[str, Drawing]) -> tuple[str, ...]:
    """Return the tables or figures of a study: those it names, or else all that fit it."""
    content = source.content
    fitting = [name for name, drawing in known.items() if drawing.draws == "any" or drawing.draws in content]
    unpriced = _missing_price(project, content)
    for index, name in enumerate(content.get(key, [])):
        if name not in known:
            raise source.unknown((key, index), f"one of the {key}", known, name)
        if name not in fitting:
            lack = f"{name} draws {known[name].draws}, which this study lacks"
            raise source.error((key, index), f"one of {', '.join(fitting)}: {lack}", name)
        if name in NEED_PRICES and unpriced:
            raise source.error((key, index), f"prices of the systems, in {project.systems_source.name}", unpriced)
    return tuple(content.get(key, [name for name in fitting if not unpriced or name not in NEED_PRICES]))


def _missing_price(project: Project, content: dict[str, Any]) -> str:
    """Return why the systems of a study cannot be compared by price, or nothing."""
    baseline = content.get("baseline", content["systems"][-1])
    try:
        for name in content["systems"]:
            if name != baseline:
                price_ratio(project.systems, name, baseline)
    except ConfigError as error:
        return str(error)
    return ""


def _training_plan(project: Project, source: Source) -> dict[str, Any]:
    training = source.content["training"]
    for index in range(len(training["workloads"])):
        _require(source, ("training", "workloads", index), "a workload", project.workload_names())
    systems = [name for name in source.content["systems"] if "source" not in project.systems[name]]
    if not systems:
        raise source.error(
            ("training",), "a system to run on", "published systems only: they have no training cells here"
        )
    layouts = training["layouts"]
    if isinstance(layouts, list):
        layouts = dict.fromkeys(systems, layouts)
        places: dict[str, Location] = dict.fromkeys(systems, ("training", "layouts"))
    else:
        for name in layouts:
            if name not in systems:
                raise source.unknown_key(("training", "layouts", name), systems)
        missing = [name for name in systems if name not in layouts]
        if missing:
            raise source.error(("training", "layouts"), f"layouts for {missing[0]}", "none", f"{missing[0]}: [1x1]")
        places = {name: ("training", "layouts", name) for name in systems}
    for name, names in layouts.items():
        system = project.systems[name]
        most = (system.get("nodes", 1), system.get("accelerators_per_node"))
        for index, layout in enumerate(names):
            nodes, accelerators = layout_of(layout)
            if nodes > most[0] or (most[1] is not None and accelerators > most[1]):
                raise source.error(
                    (*places[name], index), f"at most {most[0]}x{most[1] or 'N'}, which {name} has", layout
                )
    return {"workloads": training["workloads"], "layouts": layouts, "seeds": training["seeds"]}


def _inference_plan(project: Project, source: Source) -> dict[str, Any]:
    inference = source.content["inference"]
    measured = [name for name in source.content["systems"] if "source" not in project.systems[name]]
    if measured:
        where = ("systems", source.content["systems"].index(measured[0]))
        raise source.error(where, "a system with published results: inference is not measured yet", measured[0])
    benchmarks = {}
    for index, name in enumerate(inference["benchmarks"]):
        _require(source, ("inference", "benchmarks", index), "a card in config/benchmarks/", project.cards)
        rules = project.cards[name].content.get("inference")
        if rules is None:
            raise project.cards[name].error((), "the key inference, for the study " + source.name, "no such key")
        scenarios = [scenario for scenario in inference["scenarios"] if scenario in rules["scenarios"]]
        benchmarks[name] = {"names": rules["mlperf_names"], "scenarios": scenarios}
    systems = {
        name: {
            "name": project.systems[name]["source"]["system"],
            "collection": project.systems[name]["source"]["collection"],
            "accelerators": project.systems[name]["accelerators_per_node"],
        }
        for name in source.content["systems"]
    }
    return {"benchmarks": benchmarks, "protocol": inference["protocol"], "systems": systems}


def _check_only(project: Project, main: Source) -> None:
    cells = [cell for study in project.studies.values() for cell in study.cells()]
    for pattern in project.patterns:
        if not any(selected(cell, [pattern]) for cell in cells):
            example = cells[0].name if cells else "no study has cells"
            raise main.error(
                ("only",), f"a pattern that matches a cell, such as {example}", pattern, f'--config only="{example}"'
            )


def _require(source: Source, where: Location, what: str, known: "dict[str, Any] | list[str]") -> None:
    name = value_at(source.content, where)
    if name not in known:
        raise source.unknown(where, what, known, str(name))


def frozen_gaps(project: Project) -> Iterator[ConfigError]:
    """Yield an error for each frozen study that lacks records and does not say `partial: true`."""
    for study in project.studies.values():
        live = set(project.live_cells(study)) if not project.patterns else set(study.cells())
        frozen = [cell for cell in study.cells() if cell not in live]
        missing = [cell for cell in frozen if not Path(cell.record).is_file()]
        if missing and not study.partial:
            yield study.source.error(
                ("frozen",),
                f"a record for each of the {len(frozen)} frozen cells",
                f"{len(missing)} missing, the first is {missing[0].record}",
                "partial: true",
            )
