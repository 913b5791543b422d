"""Figures: their texts and marks as artists, never pixels."""

import importlib
import itertools
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from example_study import (
    LAPTOP,
    SERVERS,
    WORKLOADS,
    asked_otherwise,
    laptop_rows,
    published_rows,
    three_systems,
    training_cell,
    training_record,
)
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from pandas import DataFrame, concat

from faceoff.errors import ConfigError
from faceoff.figures import (
    epochs_to_target,
    performance_per_dollar,
    quality_curve,
    scaling,
    style,
    throughput,
    throughput_by_model,
    time_to_target,
)
from faceoff.records.collect import collect
from faceoff.records.frame import frame_of
from faceoff.records.record import write_record

TRAINING = [time_to_target, epochs_to_target, throughput, scaling, quality_curve]
INFERENCE = [throughput_by_model, performance_per_dollar]
Case = tuple[DataFrame, dict[str, Any]]


def name_of(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


def shown_texts(figure: Figure) -> list[Text]:
    """Every text that is drawn: of ticks only those within the axes."""
    texts = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    for axes in figure.axes:
        texts += [*axes.texts, axes.title, axes._left_title, axes._right_title, axes.xaxis.label, axes.yaxis.label]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [text for text in texts if text.get_visible() and text.get_text().strip()]


def words(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in shown_texts(figure))


def footer(figure: Figure) -> str:
    return " ".join(words(figure).split())


def lines(figure: Figure, marker: str | None = None) -> list[Line2D]:
    return [line for axes in figure.axes for line in axes.lines if marker is None or line.get_marker() == marker]


def heights(figure: Figure, marker: str) -> list[float]:
    """The y values of every dot of a marker."""
    return [float(y) for line in lines(figure, marker) for y in line.get_ydata()]


def bars(figure: Figure) -> list[Any]:
    return [
        patch
        for axes in figure.axes
        for container in axes.containers
        if isinstance(container, BarContainer)
        for patch in container
    ]


def assert_nothing_overlaps(figure: Figure) -> None:
    """Every text within the figure, none over another: their boxes, shrunk by a pixel, share no area."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()
    whole = figure.bbox
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in shown_texts(figure)]
    for text, box in boxes:
        inside = box.x0 >= whole.x0 and box.y0 >= whole.y0 and box.x1 <= whole.x1 and box.y1 <= whole.y1
        assert inside, f"{text!r} reaches out of the figure"
    for (text, box), (other, under) in itertools.combinations(boxes, 2):
        width = min(box.x1, under.x1) - max(box.x0, under.x0)
        height = min(box.y1, under.y1) - max(box.y0, under.y0)
        assert width < 2 or height < 2, f"{text!r} overlaps {other!r}"


def two_servers(root: Path) -> Case:
    """Six benchmarks on two systems of up to four accelerators: missing cells, missed targets, another GPU in one."""
    titles = {"resnet50": "ResNet-50", "ssd": "SSD", "maskrcnn": "Mask R-CNN", "gnmt": "GNMT", "ncf": "NCF"}
    titles["transformer"] = "Transformer"
    workloads = {
        f"{name}-reference": {**WORKLOADS["ncf-tiny"], "benchmark": name, "title": title, "preset": "reference"}
        for name, title in titles.items()
    }
    systems = {"r740-t4": {"title": "R740, T4"}, "r740-v100": {"title": "R740, V100-PCIe"}}
    rows = []
    for number, (workload, system, n, seed) in enumerate(
        (workload, system, n, seed)
        for workload in workloads
        for system, most in (("r740-t4", 4), ("r740-v100", 3))
        for n in range(1, most + 1)
        for seed in range(1, 6)
    ):
        cell = training_cell(root, workload, f"1x{n}", seed, system)
        rows.append(cell)
        if number % 31 == 7:
            continue
        record = training_record(
            {**cell, "workload": "ncf-tiny"},
            epochs=float(9 + (seed * 7 + n) % 5 if "gnmt" in workload else 11),
            outcome="dnf" if number % 23 == 5 else "ok",
        )
        record["cell"]["workload"] = workload
        record["spec"]["round"] = "v0.5"
        for key in ("time_to_target", "elapsed"):
            if record["measured"][key]:
                record["measured"][key]["value"] *= 4000 if system == "r740-t4" else 1300
        record["provenance"]["devices"] = [
            "Tesla T4" if system == "r740-t4" else f"Tesla V100 {16 * (1 + seed // 5)}GB"
        ]
        record["provenance"]["identity"]["driver"] = "418.40" if seed < 5 else "510.47"
        write_record(Path(cell["record"]), record)
    presentation = {
        "study": "r740-t4-v100",
        "title": "PowerEdge R740: T4 against V100-PCIe",
        "baseline": "r740-t4",
        "systems": systems,
        "workloads": workloads,
    }
    return frame_of(collect("r740-t4-v100", rows, {}, {})), presentation


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return laptop_rows(tmp_path_factory.mktemp("laptop")), LAPTOP


@pytest.fixture(scope="module")
def servers() -> Case:
    return published_rows(), SERVERS


@pytest.fixture(scope="module")
def r740(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return two_servers(tmp_path_factory.mktemp("r740"))


@pytest.fixture(scope="module")
def drawn(laptop: Case, servers: Case, r740: Case) -> Callable[..., Figure]:
    """Draw a module's figure of a study once; a test must leave it as it is."""
    cases = {"laptop": laptop, "servers": servers, "r740": r740, "three": three_systems()}
    return cache(lambda module, case: module.draw(*cases[case]))


Drawn = Callable[..., Figure]


@pytest.mark.parametrize("module", TRAINING, ids=name_of)
def test_no_text_overlaps_in_the_laptop_study(module: Any, drawn: Drawn):
    assert_nothing_overlaps(drawn(module, "laptop"))


@pytest.mark.parametrize("module", TRAINING, ids=name_of)
def test_no_text_overlaps_in_a_large_study(module: Any, drawn: Drawn):
    assert_nothing_overlaps(drawn(module, "r740"))


@pytest.mark.parametrize("case", ["servers", "three"])
@pytest.mark.parametrize("module", INFERENCE, ids=name_of)
def test_no_text_overlaps_with_all_published_results(module: Any, case: str, drawn: Drawn):
    assert_nothing_overlaps(drawn(module, case))


@pytest.mark.parametrize("module", [*TRAINING, *INFERENCE], ids=name_of)
def test_a_study_without_a_record_is_drawn_and_says_so(module: Any, laptop: Case, servers: Case):
    rows, presentation = laptop if module in TRAINING else servers
    nothing = rows.assign(outcome="not run", curve=None, ended=None, devices=None, cpu=None, versions=None)
    for name in ("time_to_target_s", "elapsed_s", "epochs", "throughput", "result"):
        nothing[name] = float("nan")
    figure = module.draw(nothing, presentation)
    assert f"partial: 0 of {len(rows)} cells" in words(figure)
    assert_nothing_overlaps(figure)


@pytest.mark.parametrize("module", [*TRAINING, *INFERENCE], ids=name_of)
def test_a_study_of_the_other_kind_has_nothing_to_draw(module: Any, laptop: Case, servers: Case):
    figure = module.draw(*(servers if module in TRAINING else laptop))
    assert re.search(r"No training cell|No inference cell|No pair of inference results", footer(figure))


@pytest.mark.parametrize("module", [*TRAINING, *INFERENCE], ids=name_of)
def test_equal_input_gives_equal_files(module: Any, laptop: Case, servers: Case, tmp_path: Path):
    rows, presentation = laptop if module in TRAINING else servers
    kinds = ("svg", "png", "pdf") if module is scaling else ("svg",)
    for folder in ("a", "b"):
        style.save(module.draw(rows.copy(), presentation), [tmp_path / folder / f"figure.{kind}" for kind in kinds])
    for kind in kinds:
        first, second = (tmp_path / folder / f"figure.{kind}" for folder in ("a", "b"))
        assert first.read_bytes() == second.read_bytes()
    assert b"<dc:date>" not in (tmp_path / "a" / "figure.svg").read_bytes()


@pytest.mark.parametrize("module", TRAINING, ids=name_of)
def test_every_laptop_figure_says_what_it_is_worth(module: Any, drawn: Drawn):
    text = footer(drawn(module, "laptop"))
    assert "Tiny presets check the workflow and rank no hardware." in text
    assert "ncf-tiny: MovieLens 100K, NeuMF, 129 k parameters" in text
    assert "resnet50-tiny: digits, 14 layers, 57 k parameters" in text
    assert "n = 12 cells: 10 ok, 1 dnf, 1 failed" in text
    assert "newest record 2026-11-30" in text
    assert "tensorflow-cpu 2.21.0 · torch 2.14.1" in text
    assert "failed: resnet50-tiny laptop 1x2 seed 3: out of memory: 2.1 GiB asked for" in text
    assert "partial" not in text
    assert "MLPerf" not in text
    assert "dollar" not in text


def test_every_seed_is_a_dot_at_its_time(laptop: Case, drawn: Drawn):
    rows, figure = laptop[0], drawn(time_to_target, "laptop")
    assert sorted(heights(figure, "o")) == pytest.approx(sorted(rows["time_to_target_s"].dropna()))
    assert heights(figure, "x") == pytest.approx(list(rows.loc[rows["outcome"] == "dnf", "elapsed_s"]))
    (hollow,) = [line for line in lines(figure, "o") if line.get_markerfacecolor() == "white"]
    assert list(hollow.get_ydata()) == pytest.approx(list(rows.loc[rows["resumed"].eq(True), "time_to_target_s"]))
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["Laptop", "reached the target", "resumed", "did not reach it (dnf)"]
    assert "2 of 3 reached\n1 failed" in words(figure)
    assert "run start to run stop (s)" in words(figure)


def test_under_five_runs_there_is_a_range_only(drawn: Drawn):
    figure = drawn(time_to_target, "laptop")
    methods = {line.get_gid() for line in lines(figure) if line.get_gid()}
    assert methods == {"dots and range, n = 3", "dots and range, n = 2"}
    assert not lines(figure, "D")
    assert "no interval and no verdict" in footer(figure)
    assert "seed-sensitive: cannot tell (n < 5)" in words(drawn(epochs_to_target, "laptop"))


def test_from_five_runs_there_is_an_interval_unless_too_many_missed(r740: Case, drawn: Drawn):
    rows, figure = r740[0], drawn(time_to_target, "r740")
    methods = [line.get_gid() for line in lines(figure) if line.get_gid()]
    groups = rows.groupby(["workload", "system", "layout"])["outcome"]
    complete = sum((outcomes == "ok").sum() == 5 for _, outcomes in groups)
    untouched = sum(not outcomes.eq("dnf").any() for _, outcomes in groups)
    assert methods.count("t interval on log, 95 %, n = 5") == len(lines(figure, "D")) == complete
    assert len(methods) == untouched < len(groups)
    assert "Seed-sensitive: GNMT: throughput is the fair comparison there." in footer(figure)
    assert "with initialisation (h)" in words(figure)
    assert "4/5" in words(figure)


def test_a_partial_study_marks_drift_mixed_hardware_and_standing(r740: Case, drawn: Drawn):
    rows, text = r740[0], footer(drawn(throughput, "r740"))
    done = int((rows["outcome"] != "not run").sum())
    assert done < len(rows)
    assert f"partial: {done} of {len(rows)} cells" in text
    assert "driver: 418.40 -> 510.47" in text
    assert "Mixed hardware: R740, V100-PCIe has records of Tesla V100 16GB, Tesla V100 32GB" in text
    assert "Unverified MLPerf™ Training v0.5 Closed" in text
    assert "Results not verified by MLCommons Association." in text
    assert "Tiny presets" not in text


def test_throughput_counts_runs_that_missed_their_target(laptop: Case, drawn: Drawn):
    rows, figure = laptop[0], drawn(throughput, "laptop")
    ncf = rows[rows["workload"] == "ncf-tiny"]["throughput"]
    assert {value / 1000 for value in ncf} <= {*heights(figure, "o"), *heights(figure, "x")}
    assert "thousand samples/s" in words(figure)


def test_epochs_are_confounded_where_the_batch_grows_with_the_layout(tmp_path: Path):
    cells = [training_cell(tmp_path, "ncf-tiny", f"1x{n}", 1) for n in (1, 2, 3, 4)]
    for cell, epochs, batch in zip(cells, (12.0, 7.0, 5.0, 4.0), (128, 256, 384, 512), strict=True):
        record = training_record(cell, epochs)
        record["measured"]["global_batch"]["value"] = batch
        write_record(Path(cell["record"]), record)
    figure = epochs_to_target.draw(frame_of(collect("laptop", cells, {}, {})), LAPTOP)
    assert "confounded with global batch" in words(figure)
    assert_nothing_overlaps(figure)


def test_efficiency_is_of_throughput_against_one_accelerator(laptop: Case, drawn: Drawn):
    rows, presentation = laptop
    figure = drawn(scaling, "laptop")
    ncf = rows[rows["workload"] == "ncf-tiny"]
    means = ncf.groupby("layout")["throughput"].agg(lambda rates: rates.prod() ** (1 / len(rates)))
    expected = means["1x2"] / (2 * means["1x1"])
    assert f"{100 * expected:.0f} %" in words(figure)
    joined = next(line for line in figure.axes[0].lines if line.get_linestyle() == "-")
    assert list(joined.get_ydata()) == pytest.approx([1.0, expected])
    single = (rows["workload"] == "ncf-tiny") & (rows["layout"] == "1x1")
    assert "no throughput of layout 1x1" in words(scaling.draw(rows[~single], presentation))


def test_one_layout_is_nothing_to_scale(laptop: Case):
    rows, presentation = laptop
    figure = scaling.draw(rows[rows["layout"] == "1x2"], presentation)
    assert not figure.axes
    assert "one layout, 1x2: nothing to scale" in words(figure)


def test_a_curve_ends_where_its_run_did(drawn: Drawn):
    figure = drawn(quality_curve, "laptop")
    curves = [line for line in lines(figure, "o") if len(line.get_xdata()) > 1]
    assert len(curves) == 11
    (missed,) = lines(figure, "x")
    assert missed.get_ydata()[0] == pytest.approx(0.61)
    targets = [line.get_ydata()[0] for axes in figure.axes for line in axes.lines[:1]]
    assert targets == [0.63, 0.97]


def test_bars_are_the_published_results(servers: Case, drawn: Drawn):
    rows, figure = servers[0], drawn(throughput_by_model, "servers")
    assert sorted(bar.get_height() for bar in bars(figure)) == sorted(rows["result"])
    text = words(figure)
    for told in (
        "1.85x",
        "2.03x",
        "1.69x",
        "1.99x",
        "1.74x",
        "3.46x*",
        "1.93x*",
        "2.99x",
        "1.75x*",
        "764,569",
        "155.6",
    ):
        assert told in text
    assert text.count("samples/s") == 6
    note = footer(figure)
    assert "Above the bars: 3x A100 / 3x A30." in note
    assert "Server: scheduled samples per second" in note
    assert "MLPerf™ Inference v1.1 Closed: ResNet-50, BERT, SSD-ResNet34, DLRM, RNN-T, 3D U-Net" in note
    assert "Results verified by MLCommons Association. The MLPerf™ name and logo are trademarks" in note
    assert "github.com/mlcommons/inference_results_v1.1 at 7fc43356" in note
    assert "Hosts differ, so no ratio is of the accelerators alone." in note
    assert "3x A30: 2x AMD EPYC 7763, 1 TB, CentOS 8.4.2105; 3x A100: 2x AMD EPYC 7502, 512 GB, CentOS 8.2" in note


def test_a_result_that_is_not_ok_is_a_word_and_no_bar(servers: Case):
    rows, presentation = servers
    rows = rows.copy()
    place = rows.index[(rows["workload"] == "rnnt-reference") & (rows["system"] == "r7525-a100")]
    rows.loc[place[0], ["outcome", "reason", "result"]] = ["failed", "out of memory", float("nan")]
    rows.loc[place[1], "round"] = "v1.0"
    figure = throughput_by_model.draw(rows, presentation)
    assert len(bars(figure)) == 31
    assert "failed" in words(figure)
    assert "no ratio" in words(figure)
    assert "2.99x" not in words(figure)
    assert "failed: rnnt-reference r7525-a100 1x3 Offline: out of memory" in footer(figure)


def test_of_several_systems_each_ratio_is_above_its_own_bar(drawn: Drawn):
    figure = drawn(throughput_by_model, "three")
    axes = figure.axes[0]
    told = [text for text in axes.texts if text.get_text().endswith("x")]
    assert [text.get_text() for text in told] == ["0.50x", "1.85x", "0.50x", "2.03x"]
    bar_of = {round(bar.get_x() + bar.get_width() / 2, 6): bar.get_height() for bar in bars(figure)[:6]}
    assert [bar_of[round(text.xy[0], 6)] for text in told] == [26964.05, 99815.7, 22503.065, 91264.18]
    assert "Above each bar: its ratio to 3x A30." in footer(figure)


def test_per_dollar_of_several_systems_names_each_and_stays_within_its_axes(drawn: Drawn):
    figure = drawn(performance_per_dollar, "three")
    figure.draw_without_rendering()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["3x T4", "3x A100"]
    renderer = FigureCanvasAgg(figure).get_renderer()
    for axes in figure.axes:
        assert axes.texts
        assert all(text.get_window_extent(renderer).x1 <= axes.bbox.x1 for text in axes.texts)
    assert "1.25   break-even 0.50" in words(figure)  # half the throughput at 0.4 of the price


def test_results_published_elsewhere_are_not_called_verified(servers: Case):
    rows, presentation = servers
    for place in ("someone/results", "mlcommons-fan/results"):
        elsewhere = rows.assign(retrieved=f"2026-11-30 from github.com/{place} at 7fc43356")
        text = footer(throughput_by_model.draw(elsewhere, presentation))
        assert "Unverified MLPerf™ Inference v1.1 Closed" in text
        assert "Not verified by MLCommons Association." in text
        assert "Results verified" not in text


@pytest.mark.parametrize("module", TRAINING, ids=name_of)
def test_a_variant_is_named_and_fits(module: Any, laptop: Case):
    rows, presentation = laptop
    named = "resnet50-tiny+pytorch"
    variant = rows[rows["workload"] == "resnet50-tiny"].assign(workload=named, variant="pytorch")
    workloads = {**presentation["workloads"], named: presentation["workloads"]["resnet50-tiny"]}
    figure = module.draw(concat([rows, variant], ignore_index=True), {**presentation, "workloads": workloads})
    titles = [" ".join(axes.get_title(loc="left").split()) for axes in figure.axes]
    assert len(set(titles)) == 3
    assert titles[2].startswith("ResNet-50 v1.5 (tiny), variant pytorch")
    assert_nothing_overlaps(figure)


@pytest.mark.parametrize("module", TRAINING, ids=name_of)
def test_records_of_different_questions_are_told_apart(module: Any, laptop: Case):
    figure = module.draw(asked_otherwise(laptop[0]), laptop[1])
    assert "Other question: 1 of 6 cells of ncf-tiny: target: recorded 0.61, now 0.63" in footer(figure)
    if module is scaling:
        assert "records of different questions:\nLaptop" in words(figure)
        assert [len([line for line in axes.lines if line.get_marker() == "o"]) for axes in figure.axes] == [0, 1]
    else:
        title = figure.axes[0].get_title(loc="left")
        assert title.startswith("NCF (tiny) to HR@10 0.61 / 0.63")
    if module in (time_to_target, throughput):
        ranges = [line for line in figure.axes[0].lines if line.get_gid()]
        assert [line.get_gid() for line in ranges] == [f"dots and range, n = {2 + (module is throughput)}"]
        assert "different questions" in words(figure)
    assert_nothing_overlaps(figure)


def test_a_title_shows_the_target_that_the_runs_had(laptop: Case):
    rows, presentation = laptop
    title = quality_curve.draw(rows.assign(target=0.9), presentation).axes[0].get_title(loc="left")
    assert title == "NCF (tiny) to HR@10 0.9"


def test_a_pinned_core_is_called_one(drawn: Drawn):
    assert "An accelerator here is one pinned core of AMD EPYC 7763." in footer(drawn(scaling, "laptop"))
    assert "pinned core" not in footer(drawn(throughput_by_model, "servers"))


def test_per_dollar_is_the_ratio_over_the_price(drawn: Drawn):
    figure = drawn(performance_per_dollar, "servers")
    widths = sorted(bar.get_width() for bar in bars(figure))
    assert (len(widths), widths[0], widths[-1]) == (16, pytest.approx(1.185, abs=5e-4), pytest.approx(2.4316, abs=5e-4))
    text, note = words(figure), footer(figure)
    assert "2.43*   break-even 3.46" in text
    assert "1.19   break-even 1.69" in text
    assert [line.get_xdata() for line in lines(figure) if list(line.get_xdata()) == [1, 1]]
    assert "Price of 3x A100: 1.423 times the baseline's (Dell list prices of 2021-09-07)." in note
    assert "no MLPerf™ Inference metric, neither official nor verified" in note
    assert "Hosts differ" in note
    assert "Submitted by Dell" in note


def test_per_dollar_of_amounts_in_one_currency(servers: Case):
    rows, presentation = servers
    a30, a100 = presentation["systems"].values()
    priced = {
        "r7525-a30": {**a30, "price": {"amount": 20_000, "currency": "USD"}},
        "r7525-a100": {**a100, "price": {"amount": 48_460, "currency": "USD"}},
    }
    figure = performance_per_dollar.draw(rows, {**presentation, "systems": priced})
    over = sorted(bar.get_width() for bar in bars(figure) if bar.get_width() > 1)
    assert over == pytest.approx([1.2344, 1.4281, 1.4281], abs=5e-4)  # RNN-T and twice DLRM, Server


@pytest.mark.parametrize("price", [None, {"ratio": 1.4, "relative_to": "other"}, {"amount": 10, "currency": "USD"}])
def test_a_price_that_says_nothing_is_told(servers: Case, price: dict[str, Any] | None):
    rows, presentation = servers
    systems = {name: dict(system) for name, system in presentation["systems"].items()}
    systems["r7525-a100"]["price"] = price
    with pytest.raises(
        ConfigError, match=r"systems\.r7525-a100\.price: expected \{ratio: 1\.2, relative_to: r7525-a30\}"
    ):
        performance_per_dollar.draw(rows, {**presentation, "systems": systems})


def test_tiny_presets_have_nothing_per_dollar(servers: Case):
    rows, presentation = servers
    figure = performance_per_dollar.draw(rows.assign(preset="tiny"), presentation)
    assert not figure.axes
    assert "No pair of inference results beyond tiny presets" in footer(figure)


def test_published_beside_measured_is_said(laptop: Case, servers: Case):
    rows = concat([servers[0], laptop[0].assign(kind="inference", scenario="Offline", workload="bert-reference")])
    rows["outcome"] = rows["outcome"].where(rows["source"] == "published", "failed")
    rows["reason"] = rows["reason"].where(rows["source"] == "published", "no memory")
    presentation = {**SERVERS, "systems": {**SERVERS["systems"], **LAPTOP["systems"]}}
    assert "Published beside measured" in footer(throughput_by_model.draw(rows, presentation))


def test_a_system_without_a_colour_gets_one_of_the_palette():
    systems = {"a": {"title": "A"}, "b": {"title": "B", "color": "#123456"}, "c": {"title": "C"}}
    assert style.colors({"systems": systems}) == {"a": style.PALETTE[0], "b": "#123456", "c": style.PALETTE[2]}


@pytest.mark.parametrize("module", [*TRAINING, *INFERENCE], ids=name_of)
def test_no_text_is_smaller_than_a_slide_allows(module: Any, drawn: Drawn):
    figure = drawn(module, "laptop" if module in TRAINING else "servers")
    assert min(text.get_fontsize() for text in shown_texts(figure)) >= 10
    assert tuple(figure.get_size_inches()) == pytest.approx((13.333, 7.5))


def test_every_module_with_draw_is_tested():
    folder = Path(style.__file__).parent
    names = {path.stem for path in folder.glob("*.py") if "\ndef draw(" in path.read_text()}
    assert names == {name_of(module) for module in (*TRAINING, *INFERENCE)}
    assert all(callable(importlib.import_module(f"faceoff.figures.{name}").draw) for name in names)
