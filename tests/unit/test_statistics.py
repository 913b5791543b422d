"""Statistics against scipy, published numbers, and laws that hold for every input."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from faceoff.records import statistics as s

TIMES = st.floats(0.1, 1e5)


def groups(low: int, high: int) -> st.SearchStrategy[list[float]]:
    return st.lists(TIMES, min_size=low, max_size=high)


def test_under_five_runs_there_is_a_range_and_nothing_else():
    summary = s.summarise([3.0, 1.0, 2.0, 4.0])
    assert (summary.n, summary.low, summary.interval) == (4, pytest.approx(1.0), None)
    assert summary.high == pytest.approx(4.0)
    assert summary.method == "dots and range, n = 4"
    comparison = s.compare([1.0] * 30, [2.0, 2.1, 1.9, 2.0])
    assert (comparison.interval, comparison.verdict) == (None, "")
    assert comparison.method == "range only, n = 30 and 4"


def test_from_five_runs_the_interval_is_welchs_on_log_time():
    a, b = [10.0, 11.0, 12.5, 9.0, 10.2, 11.1], [14.0, 15.5, 13.2, 16.0, 14.8]
    logs = [[math.log(x) for x in times] for times in (a, b)]
    expected = stats.ttest_ind(*logs, equal_var=False).confidence_interval()
    comparison = s.compare(a, b)
    assert comparison.interval == pytest.approx((math.exp(expected.low), math.exp(expected.high)))
    assert (comparison.verdict, comparison.n) == ("lower", (6, 5))
    assert comparison.method == "Welch's t on log, 95 %, n = 6 and 5"


def test_one_group_of_five_to_nine_has_a_t_interval_on_log():
    times = [10.0, 11.0, 12.5, 9.0, 10.2]
    logs = [math.log(x) for x in times]
    low, high = stats.t.interval(0.95, 4, loc=sum(logs) / 5, scale=stats.sem(logs))
    assert s.summarise(times).interval == pytest.approx((math.exp(low), math.exp(high)))


def test_from_ten_runs_the_interval_is_a_bootstrap_near_scipys():
    times = [7.1, 8.2, 6.9, 7.7, 9.0, 8.8, 7.3, 7.9, 8.1, 6.6, 7.0, 8.4]
    logs = [math.log(x) for x in times]
    expected = stats.bootstrap((logs,), lambda x, axis: x.mean(axis=axis), method="percentile").confidence_interval
    found = s.summarise(times)
    assert found.method == "bootstrap on log, 95 %, n = 12"
    assert found.interval == pytest.approx((math.exp(expected.low), math.exp(expected.high)), rel=0.01)
    assert s.compare(times, times).method == "bootstrap on log, 95 %, n = 12 and 12"


@pytest.mark.parametrize("bad", [[], [1.0, 0.0], [1.0, -2.0], [1.0, math.nan], [math.inf]])
def test_what_is_no_positive_number_is_refused(bad: list[float]):
    with pytest.raises(ValueError, match="positive finite"):
        s.summarise(bad)


@given(groups(1, 15))
def test_a_group_against_itself_is_one(times: list[float]):
    comparison = s.compare(times, times)
    assert comparison.ratio == 1.0
    assert comparison.verdict in ("", "no difference shown")


@settings(max_examples=40)
@given(groups(1, 12), groups(1, 12), st.floats(0.01, 100))
def test_a_change_of_unit_changes_no_ratio(a: list[float], b: list[float], scale: float):
    plain, scaled = s.compare(a, b), s.compare([x * scale for x in a], [x * scale for x in b])
    assert scaled.ratio == pytest.approx(plain.ratio, rel=1e-9)
    assert scaled.interval == (plain.interval and pytest.approx(plain.interval, rel=1e-6))


@settings(max_examples=40)
@given(groups(1, 12), st.randoms())
def test_the_order_of_runs_does_not_matter(times: list[float], random):
    shuffled = random.sample(times, len(times))
    assert s.summarise(shuffled) == s.summarise(times)
    assert s.compare(shuffled, [5.0, 6.0]) == s.compare(times, [5.0, 6.0])


@settings(max_examples=40)
@given(groups(5, 9), groups(5, 9))
def test_exchanged_groups_give_the_reciprocal(a: list[float], b: list[float]):
    forth, back = s.compare(a, b), s.compare(b, a)
    assert forth.ratio * back.ratio == pytest.approx(1)
    assert forth.interval is not None
    assert back.interval is not None
    assert forth.interval[0] * back.interval[1] == pytest.approx(1, rel=1e-6)
    assert forth.interval[0] <= forth.ratio * (1 + 1e-12)
    assert {forth.verdict, back.verdict} in ({"higher", "lower"}, {"no difference shown"})


def test_olympic_mean_drops_fastest_and_slowest():
    assert s.olympic_mean([5.0, 1.0, 2.0, 3.0, 100.0], 5) == pytest.approx(10 / 3)
    assert s.olympic_mean([1.0, 2.0, 3.0, 4.0], 5) is None
    assert s.olympic_mean([1.0, 2.0, 3.0, 4.0, math.inf], 5) == pytest.approx(3.0)  # one may miss the target
    assert s.olympic_mean([1.0, 2.0, 3.0, math.inf, math.inf], 5) is None
    with pytest.raises(ValueError, match="3 or more"):
        s.olympic_mean([1.0], 2)


@pytest.mark.parametrize(("round_", "allowed"), [("v0.5", 0), ("v0.6", 0), ("v0.7", 1), ("v1.0", 1), ("v4.1", 1)])
def test_one_missed_target_is_allowed_from_v07_on(round_: str, allowed: int):
    assert s.dnf_allowance(round_) == allowed


def test_a_round_that_is_none_is_refused():
    with pytest.raises(ValueError, match=r"vMAJOR\.MINOR"):
        s.dnf_allowance("demo")


@pytest.mark.parametrize(
    ("epochs", "interval", "expected"),
    [
        ([3] * 10, 1, "no"),  # NVIDIA's ten GNMT runs of v0.5 on 8 V100
        ([5, 6, 7, 6, 5], 1, "yes"),  # Google's GNMT of v0.7 took 5 to 7 epochs
        ([48, 48, 48, 48, 53], 5, "no"),  # SSD of v0.6: one evaluation later
        ([61, 61, 63, 61, 61], 1, "no"),  # two evaluations, but under 10 %
        ([12, 16, 19, 14], 1, "cannot tell"),
    ],
)
def test_seed_sensitive(epochs: list[float], interval: float, expected: str):
    assert s.seed_sensitive(epochs, interval) == expected


def test_a_trend_over_layouts_is_confounded_with_the_global_batch():
    gnmt_on_t4 = {128: [12], 256: [7], 384: [5], 512: [4]}
    assert s.confounded_with_batch(gnmt_on_t4, 1)
    assert not s.confounded_with_batch({2048: [5, 6, 4]}, 1)
    assert not s.confounded_with_batch({128: [12], 256: [7], 384: [9]}, 1)
    assert not s.confounded_with_batch({128: [61.0], 256: [61.5]}, 4)


def test_gnmts_superlinear_speedup_is_the_epochs():
    """3.1 times on two T4 with 7 epochs in place of 12 is 1.81 times the throughput."""
    one = {"time_s": 3.1, "throughput": 1000.0, "epochs": 12.0}
    two = {"time_s": 1.0, "throughput": 1000.0 * 3.1 / (12 / 7), "epochs": 7.0}
    split = s.split_speedup(two, one)
    assert split.time == pytest.approx(3.1)
    assert split.throughput == pytest.approx(1.808, abs=5e-4)
    assert split.overhead == pytest.approx(1.0)


@given(st.lists(TIMES, min_size=6, max_size=6))
def test_the_parts_of_a_speedup_multiply_to_it(values: list[float]):
    keys = ("time_s", "throughput", "epochs")
    split = s.split_speedup(dict(zip(keys, values[:3], strict=True)), dict(zip(keys, values[3:], strict=True)))
    assert split.throughput * split.epochs * split.overhead == pytest.approx(split.time)


ROW = {
    "kind": "inference",
    "source": "published",
    "round": "v1.1",
    "benchmark": "bert",
    "preset": "reference",
    "accuracy": "99",
    "scenario": "Server",
    "result_metric": "Scheduled samples per second",
    "quality_metric": "F1 (%)",
    "precision": "int8",
    "cpu": "2x AMD EPYC 7502",
}


@pytest.mark.parametrize("key", ["round", "benchmark", "preset", "accuracy", "scenario", "result_metric"])
def test_a_ratio_of_unlike_results_is_refused(key: str):
    assert s.refusal(ROW, ROW) == ""
    assert s.refusal(ROW, ROW | {key: "other"}) == f"{key}: {ROW[key]} and other"


def test_marks_of_a_ratio():
    assert s.marks(ROW, ROW) == []
    other = ROW | {"source": "measured", "precision": "fp16", "cpu": "2x AMD EPYC 7763"}
    assert s.marks(ROW, other) == [
        "published beside measured",
        "unequal precision: int8 and fp16",
        "unequal hosts: 2x AMD EPYC 7502 and 2x AMD EPYC 7763",
    ]
