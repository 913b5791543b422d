"""Configuration: what is right loads, what is wrong gives one message with file, line, key and the corrected line."""

import re
from pathlib import Path

import pytest
import yaml
from checkouts import ROOT, copy_checkout, run
from hypothesis import given
from hypothesis import strategies as st

from faceoff.errors import ConfigError
from faceoff.records.prices import price_ratio
from faceoff.study.cells import TrainingCell
from faceoff.study.drawings import FIGURES, TABLES
from faceoff.study.loading import load_project
from faceoff.study.selection import Workload, selected, training_cells
from faceoff.study.specs import presentation, training_spec


def load(root: Path, **settings):
    return load_project(root, {**yaml.safe_load((root / "config/config.yaml").read_text()), **settings})


def edit(root: Path, file: str, old: str, new: str) -> int:
    """Replace one text in a file; return the line it is on."""
    path = root / file
    text = path.read_text()
    assert text.count(old) >= 1, f"{old!r} is not in {file}"
    path.write_text(text.replace(old, new, 1))
    return text[: text.index(old)].count("\n") + 1


def test_default_configuration_loads():
    project = load(ROOT)
    laptop = project.studies["laptop"]
    assert len(laptop.cells()) == 2 * 2 * 3
    assert laptop.cells()[0].record == "results/train/ncf-tiny/laptop/1x1/seed1/record.json"


def test_seeds_are_outermost_so_that_systems_interleave():
    plan = {"workloads": ["a-tiny"], "layouts": {"t4": ["1x1"], "v100": ["1x1"]}, "seeds": [1, 2]}
    assert [(cell.seed, cell.system) for cell in training_cells(plan)] == [
        (1, "t4"),
        (1, "v100"),
        (2, "t4"),
        (2, "v100"),
    ]


STUDY = "config/studies/laptop.yaml"
NCF = "config/benchmarks/ncf.yaml"
WRONG = {
    "unknown key": (
        STUDY,
        "  seeds:",
        "  sedes:",
        ["training.sedes", "unknown key sedes", "write:    seeds: [1, 2, 3]"],
    ),
    "unknown workload": (
        STUDY,
        "ncf-tiny",
        "nfc-tiny",
        ["training.workloads[0]", "nfc-tiny", "ncf-tiny, resnet50-tiny]"],
    ),
    "unknown system": (STUDY, "systems: [laptop]", "systems: [labtop]", ["systems[0]", "labtop", "systems: [laptop]"]),
    "unknown figure": (STUDY, "scaling", "scalling", ["figures[3]", "scalling", "scaling"]),
    "figure of another kind": (STUDY, "scaling", "performance_per_dollar", ["draws inference, which this study lacks"]),
    "type of seeds": (STUDY, "seeds: [1, 2, 3]", "seeds: 1", ["training.seeds", "a list", "found:    1", "seeds: [1]"]),
    "seed as text": (STUDY, "seeds: [1, 2, 3]", "seeds: [1, two]", ["training.seeds[1]", "a whole number", "two"]),
    "seed twice": (STUDY, "seeds: [1, 2, 3]", "seeds: [1, 1]", ["training.seeds", "each once"]),
    "layout": (STUDY, "layouts: [1x1, 1x2]", "layouts: [1x1, 2]", ["training.layouts"]),
    "missing key": (
        STUDY,
        'title: "This machine: one accelerator against two"\n',
        "",
        ["the key title", "write:    title:"],
    ),
    "broken YAML": (STUDY, "systems: [laptop]", "systems: [laptop", ["is not valid YAML"]),
    "key twice": (STUDY, "systems: [laptop]", "systems: [laptop]\nsystems: [laptop]", ["systems is given twice"]),
    "unknown precision": (
        "config/benchmarks/ncf.yaml",
        "precision: fp32",
        "precision: fp31",
        ["precision", "fp31", "precision: fp32"],
    ),
    "exponent without a dot": (
        "config/benchmarks/ncf.yaml",
        "target: 0.63",
        "target: 63e-2",
        ["a number", "63e-2", "target: 0.63"],
    ),
    "unknown hyperparameter": (
        "config/benchmarks/ncf.yaml",
        "factors: 16",
        "factor: 16",
        ["unknown key factor", "factors: 16"],
    ),
    "hyperparameter of another type": (
        "config/benchmarks/ncf.yaml",
        "factors: 16",
        "factors: sixteen",
        ["factors", "sixteen"],
    ),
    "unknown data set": (
        "config/benchmarks/ncf.yaml",
        "dataset: movielens-100k",
        "dataset: movielens",
        ["dataset: movielens-100k"],
    ),
    "unknown accelerator": (
        "config/systems.yaml",
        "accelerator: a30",
        "accelerator: a31",
        ["accelerator", "a31", "accelerator: a30"],
    ),
    "unknown collection": (
        "config/systems.yaml",
        "collection: mlperf-inference-v1.1",
        "collection: mlperf",
        ["collection: mlperf-inference-v1.1"],
    ),
    "name that leaves results": (
        "config/systems.yaml",
        "  r7525-a30:",
        "  ../../r7525-a30:",
        ["systems", "a name of small letters", "../../r7525-a30"],
    ),
    "no number": (STUDY, "seeds: [1, 2, 3]", "seeds: [1, .nan]", ["training.seeds[1]", "a finite number"]),
    "control character": (STUDY, "layouts: [1x1, 1x2]", 'layouts: ["1x1\\n"]', ["training.layouts[0]", "printable"]),
    "key that is no text": (NCF, "factors: 64", "factors: 64\n  1: 2", ["hyperparameters.1", "a key that is text"]),
    "hyperparameter left empty": (NCF, "factors: 16", "factors:", ["factors", "None"]),
    "round without results": (
        "config/studies/r7525-a100-a30.yaml",
        "protocol: v1.1",
        "protocol: round one",
        ["inference.protocol", "the round whose rules hold"],
    ),
    "seed with a point": (STUDY, "seeds: [1, 2, 3]", "seeds: [1.0]", ["training.seeds[0]", "a whole number", "1.0"]),
    "key that is a list": (STUDY, "systems: [laptop]", "? [a, b]\n: 1\nsystems: [laptop]", ["a key that is text"]),
    "anchor in itself": ("config/systems.yaml", "stacks:\n", "stacks: &a {x: *a}\nstack:\n", ["holds itself"]),
    "number as text": (NCF, "learning_rate: 0.004", "learning_rate: 4e-3", ["4e-3", "learning_rate: 0.004"]),
    "price of two kinds": (
        "config/systems.yaml",
        "      ratio: 1.423\n",
        "      ratio: 1.423\n      amount: 3\n",
        ["systems.r7525-a100.price", "either ratio (with relative_to) or amount"],
    ),
    "figure without prices": (
        "config/systems.yaml",
        "relative_to: r7525-a30",
        "relative_to: laptop",
        ["figures[1]", "prices of the systems"],
    ),
    "unknown study": ("config/config.yaml", "laptop", "labtop", ["studies[0]", "labtop", "[laptop, r7525"]),
    "unknown setting": (
        "config/config.yaml",
        "max_attempts: 3",
        "max_attempt: 3",
        ["unknown key max_attempt", "max_attempts: 3"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_configuration_is_explained(name: str, checkout: Path):
    file, old, new, expected = WRONG[name]
    line = edit(checkout, file, old, new)
    with pytest.raises(ConfigError) as caught:
        load(checkout)
    message = str(caught.value)
    for text in (file, *expected):
        assert text in message, message
    if name not in (
        "missing key",
        "key twice",
        "broken YAML",
        "key that is no text",
        "hyperparameter left empty",
        "key that is a list",
        "anchor in itself",
        "price of two kinds",
        "figure without prices",
    ):
        assert f"{file}, line {line}:" in message, message


def test_a_wrong_configuration_ends_snakemake_with_one_message(checkout: Path):
    edit(checkout, STUDY, "ncf-tiny", "nfc-tiny")
    result = run("snakemake", "-n", "--cores", "1", "results/figures", cwd=checkout, check=False)
    assert result.returncode == 1
    printed = result.stdout + result.stderr
    assert printed.count("config/studies/laptop.yaml, line") == 1
    assert "write:" in printed
    assert "Traceback" not in printed


def test_setting_from_the_command_line_is_named_as_such():
    with pytest.raises(ConfigError, match=r"with --config"):
        load(ROOT, on_drift="ignore")


def test_only_must_match_a_cell():
    with pytest.raises(ConfigError, match="a pattern that matches a cell"):
        load(ROOT, only="gnmt")


def test_a_frozen_study_runs_nothing_and_needs_its_records(checkout: Path):
    edit(checkout, STUDY, "systems: [laptop]", "systems: [laptop]\nfrozen: true")
    project = load(checkout)
    assert project.live_cells(project.studies["laptop"]) == []
    result = run("snakemake", "-n", "--cores", "1", "results/figures", cwd=checkout, check=False)
    assert result.returncode == 1
    assert "12 missing" in result.stdout + result.stderr
    assert "partial: true" in result.stdout + result.stderr


def test_overlay_holds_private_prices(tmp_path: Path):
    root = copy_checkout(tmp_path / "private")
    overlay = root / "config/systems.local.yaml"
    prices = [
        f"r7525-{gpu}: {{price: {{amount: {amount}, currency: USD}}}}" for gpu, amount in (("a30", 2), ("a100", 3))
    ]
    overlay.write_text(f"systems: {{{', '.join(prices)}}}\n")
    systems = load(root).systems
    assert systems["r7525-a100"]["price"] == {"amount": 3, "currency": "USD"}, "no list price beside one's own"
    assert price_ratio(systems, "r7525-a100", "r7525-a30") == 1.5
    assert price_ratio(systems, "r7525-a30", "r7525-a100") == pytest.approx(1 / 1.5)
    for wrong, expected in (
        ("{r7525-a30: {price: {amount: cheap}}}", "systems.local.yaml, line 2: systems.r7525-a30.price.amount"),
        ("{r7525-a30: {price: {ratoi: 2}}}", "unknown key ratoi"),
        ("{r7525-a10: {price: {amount: 2}}}", "unknown key r7525-a10"),
    ):
        overlay.write_text(f"# private\nsystems: {wrong}\n")
        with pytest.raises(ConfigError, match=re.escape(expected)):
            load(root)


def test_a_figure_divides_by_the_baseline_that_the_study_names(checkout: Path):
    edit(
        checkout,
        "config/systems.yaml",
        "  laptop:",
        "  server: {title: Server, accelerator: auto, stack: default}\n  laptop:",
    )
    edit(checkout, STUDY, "systems: [laptop]", "systems: [laptop, server]\nbaseline: laptop")
    project = load(checkout)
    shown = {name: presentation(project, project.studies["laptop"], drawing) for name, drawing in TABLES.items()}
    assert shown["speedups"]["baseline"] == "laptop"
    assert "baseline" not in shown["bad_cells"]


def test_a_study_draws_all_that_fits_unless_it_says_what(checkout: Path):
    figures = "figures: [throughput_by_model, performance_per_dollar]\n"
    edit(checkout, "config/studies/r7525-a100-a30.yaml", figures, "")
    assert load(checkout).studies["r7525-a100-a30"].figures == ("throughput_by_model", "performance_per_dollar")
    edit(checkout, "config/systems.yaml", "relative_to: r7525-a30", "relative_to: laptop")
    assert load(checkout).studies["r7525-a100-a30"].figures == ("throughput_by_model",)


def test_spec_holds_what_a_cell_depends_on_and_no_more():
    project = load(ROOT)
    spec = training_spec(project, project.studies["laptop"].cells()[0])
    assert spec["hyperparameters"]["factors"] == 16
    assert spec["layout"] == {"nodes": 1, "accelerators": 1}
    assert not {"title", "color", "price", "slurm"} & set(spec)


def test_presentation_of_a_figure_holds_prices_only_where_it_shows_them():
    project = load(ROOT)
    study = project.studies["r7525-a100-a30"]
    shown = {
        name: presentation(project, study, FIGURES[name]) for name in ("throughput_by_model", "performance_per_dollar")
    }
    assert "price" in str(shown["performance_per_dollar"])
    assert "price" not in str(shown["throughput_by_model"])


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("ncf", True),
        ("ncf-tiny", True),
        ("ncf/laptop", True),
        ("*/*/1x2", True),
        ("resnet50", False),
        ("ncf/t4", False),
        ("ncf/laptop/1x2/seed3", True),
        ("ncf/laptop/1x2/seed4", False),
        ("nc", False),
    ],
)
def test_patterns_of_only(pattern: str, matches: bool):
    assert selected(TrainingCell("ncf-tiny", "laptop", "1x2", 3), [pattern]) is matches


@given(st.from_regex(r"[a-z0-9_]+-(tiny|small|reference)(\+[a-z0-9][a-z0-9.-]*)?", fullmatch=True))
def test_a_workload_is_spelt_as_it_is_read(name: str):
    assert str(Workload.parse(name)) == name


@given(st.integers(0, 2**32 - 1), st.integers(1, 99), st.integers(1, 99))
def test_a_cell_is_spelt_as_it_is_read(seed: int, nodes: int, accelerators: int):
    cell = TrainingCell("ncf-tiny", "laptop", f"{nodes}x{accelerators}", seed)
    assert TrainingCell.parse(cell.name) == cell
