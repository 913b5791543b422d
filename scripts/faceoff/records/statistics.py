"""What may be said of a handful of runs, and what may not.

Under 5 runs: the runs and their range, no interval and no verdict. From 5: Welch's t on the logarithm of time.
From 10: a bootstrap of the logarithm. Every result carries its method and its numbers of runs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

RUNS_FOR_INTERVAL = 5
RUNS_FOR_BOOTSTRAP = 10
CONFIDENCE = 0.95
RESAMPLES = 10_000


@dataclass(frozen=True)
class Summary:
    """Runs of one group: their number, range and geometric mean; `interval` is None under 5 runs."""

    n: int
    low: float
    high: float
    mean: float
    interval: tuple[float, float] | None
    method: str


@dataclass(frozen=True)
class Comparison:
    """The ratio of two groups' geometric means; `interval` is None and `verdict` empty under 5 runs in either."""

    ratio: float
    interval: tuple[float, float] | None
    method: str
    n: tuple[int, int]
    verdict: str


def summarise(values: Sequence[float]) -> Summary:
    """Summarise positive values (times in s, rates in samples/s). Raises ValueError for none or for one <= 0."""
    logs = _logs(values)
    n = len(logs)
    mean, low, high = (float(np.exp(x)) for x in (logs.mean(), logs[0], logs[-1]))
    if n < RUNS_FOR_INTERVAL:
        return Summary(n, low, high, mean, None, f"dots and range, n = {n}")
    if n < RUNS_FOR_BOOTSTRAP:
        half = _student(n - 1) * float(logs.std(ddof=1)) / math.sqrt(n)
        bounds = (logs.mean() - half, logs.mean() + half)
        method = f"t interval on log, 95 %, n = {n}"
    else:
        bounds = _percentiles(_resampled_means(logs, np.random.default_rng(0)))
        method = f"bootstrap on log, 95 %, n = {n}"
    return Summary(n, low, high, mean, _exp(bounds), method)


def compare(values: Sequence[float], baseline: Sequence[float]) -> Comparison:
    """Return the ratio values / baseline of geometric means of positive values.

    Welch's t with the degrees of freedom of Satterthwaite (1946) from 5 runs in each group, a percentile bootstrap of
    10,000 resamples from 10 in each. The verdict is `higher`, `lower` or `no difference shown`. Raises ValueError for
    an empty group or a value <= 0.
    """
    a, b = _logs(values), _logs(baseline)
    n = (len(a), len(b))
    difference = float(a.mean() - b.mean())
    count = f"n = {n[0]} and {n[1]}"
    if min(n) < RUNS_FOR_INTERVAL:
        return Comparison(math.exp(difference), None, f"range only, {count}", n, "")
    if min(n) < RUNS_FOR_BOOTSTRAP:
        half = _welch_half_width(a, b)
        bounds = (difference - half, difference + half)
        method = f"Welch's t on log, 95 %, {count}"
    else:
        generator = np.random.default_rng(0)
        bounds = _percentiles(_resampled_means(a, generator) - _resampled_means(b, generator))
        method = f"bootstrap on log, 95 %, {count}"
    verdict = "higher" if bounds[0] > 0 else "lower" if bounds[1] < 0 else "no difference shown"
    return Comparison(math.exp(difference), _exp(bounds), method, n, verdict)


def olympic_mean(times: Sequence[float], runs: int) -> float | None:
    """Return the mean without the fastest and the slowest of the first `runs` times, MLPerf's result of a benchmark.

    A run that missed the target has the time infinity: one is dropped as the slowest, two leave no result. None when
    there is no result or there are fewer times than the rule asks for. Raises ValueError for `runs` under 3.
    Source: MLPerf Training rules, "Benchmark results".
    """
    if runs < 3:
        raise ValueError(f"runs: expected 3 or more, found {runs}")
    if len(times) < runs:
        return None
    kept = sorted(times[:runs])[1:-1]
    return None if math.isinf(kept[-1]) else math.fsum(kept) / len(kept)


def dnf_allowance(round_: str) -> int:
    """Return how many runs may miss the target: 1 from MLPerf Training v0.7 on (it counts as the slowest), else 0."""
    major, _, minor = round_.removeprefix("v").partition(".")
    if not (major.isdigit() and minor.isdigit()):
        raise ValueError(f"round: expected vMAJOR.MINOR, found {round_!r}")
    return int((int(major), int(minor)) >= (0, 7))


def seed_sensitive(epochs: Sequence[float], interval: float) -> str:
    """Say whether the epochs to the target depend on the seed, within one layout: `yes`, `no` or `cannot tell`.

    Yes is a range of at least two evaluation intervals (`interval`, in epochs) and over 10 % of the mean.
    """
    if len(epochs) < RUNS_FOR_INTERVAL:
        return "cannot tell"
    spread = max(epochs) - min(epochs)
    mean = math.fsum(epochs) / len(epochs)
    return "yes" if spread >= 2 * interval and spread > 0.1 * mean else "no"


def confounded_with_batch(epochs_by_batch: Mapping[float, Sequence[float]], interval: float) -> bool:
    """Say whether the mean epochs to the target follow the global batch (samples) over a system's layouts.

    True when they rise or fall throughout with the batch, by at least one evaluation interval in all: then neither the
    accelerators nor the seed can be named as the cause.
    """
    means = [math.fsum(epochs_by_batch[batch]) / len(epochs_by_batch[batch]) for batch in sorted(epochs_by_batch)]
    steps = np.diff(means)
    monotonic = bool((steps > 0).all() or (steps < 0).all())
    return len(means) > 1 and monotonic and abs(means[-1] - means[0]) >= interval


@dataclass(frozen=True)
class Speedup:
    """How many times as fast one run is as another: `time` = `throughput` x `epochs` x `overhead`."""

    time: float
    throughput: float
    epochs: float
    overhead: float


def split_speedup(run: Mapping[str, float], baseline: Mapping[str, float]) -> Speedup:
    """Split baseline time / run time into its causes. Both hold `time_s`, `throughput` (samples/s) and `epochs`.

    The overhead is what throughput and epochs leave: evaluation, initialisation, padding of the last batch.
    """
    time = baseline["time_s"] / run["time_s"]
    throughput = run["throughput"] / baseline["throughput"]
    epochs = baseline["epochs"] / run["epochs"]
    return Speedup(time, throughput, epochs, time / (throughput * epochs))


_MUST_EQUAL = ("round", "benchmark", "preset", "accuracy", "scenario")


def refusal(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    """Say why two rows of records may not be divided by each other: the first key that differs; empty if they may."""
    metric = "result_metric" if a["kind"] == "inference" else "quality_metric"
    for key in (*_MUST_EQUAL, metric):
        if a[key] != b[key]:
            return f"{key}: {a[key]} and {b[key]}"
    if a["kind"] == "training" and a.get("question") != b.get("question"):
        return "records of different questions"
    return ""


def marks(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Return what a reader must know beside the ratio of two rows of records."""
    found = []
    if a["source"] != b["source"]:
        found.append("published beside measured")
    if a["precision"] != b["precision"]:
        found.append(f"unequal precision: {a['precision']} and {b['precision']}")
    if a["cpu"] != b["cpu"]:
        found.append(f"unequal hosts: {a['cpu']} and {b['cpu']}")
    return found


def _logs(values: Sequence[float]) -> np.ndarray:
    """Sorted, so that neither the order of the runs nor of the resamples can matter."""
    array = np.sort(np.asarray(values, dtype=float))
    if array.size == 0 or not (np.isfinite(array).all() and array[0] > 0):
        raise ValueError(f"expected positive finite values, found {list(values)}")
    return np.log(array)


def _welch_half_width(a: np.ndarray, b: np.ndarray) -> float:
    variances = (float(a.var(ddof=1)) / a.size, float(b.var(ddof=1)) / b.size)
    total = sum(variances)
    if total == 0:
        return 0.0
    share = variances[0] / total
    freedom = 1 / (share**2 / (a.size - 1) + (1 - share) ** 2 / (b.size - 1))
    return _student(freedom) * math.sqrt(total)


def _student(freedom: float) -> float:
    """Return how many standard errors an interval reaches to each side."""
    from scipy.special import stdtrit  # slow to import, and not needed under 5 runs

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def _resampled_means(logs: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return logs[generator.integers(0, logs.size, (RESAMPLES, logs.size))].mean(axis=1)


def _percentiles(means: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def _exp(bounds: tuple[float, float]) -> tuple[float, float]:
    return math.exp(bounds[0]), math.exp(bounds[1])
