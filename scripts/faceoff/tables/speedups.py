"""Speed-ups in training, against the baseline system and against one accelerator, split into their causes."""

from collections.abc import Iterator, Mapping
from typing import Any

from pandas import DataFrame, concat

from faceoff.records.convergence import seed_sensitivity
from faceoff.records.labels import honest_labels, in_order, one_question
from faceoff.records.statistics import Comparison, compare, marks, refusal, split_speedup
from faceoff.tables.text import Table, significant

_COLUMNS = (
    "workload",
    "system",
    "layout",
    "against",
    "headline",
    "time",
    "time interval",
    "throughput",
    "throughput interval",
    "of epochs",
    "of overhead",
    "verdict",
    "statistics",
    "notes",
)

_MEANING = (
    "Ratios of geometric means, over 1 where the system is better than the one in `against`. Time: time to target "
    "there / here = throughput x of epochs x of overhead. Throughput: samples/s here / there. Of epochs: epochs to the "
    "target there / here. Of overhead: what the two leave: evaluation, initialisation, padding of the last batch. "
    "Headline: the ratio to quote; throughput where the epochs hang on the seed or a run missed the target. Verdict: "
    "on the headline, from 5 runs on each side. Interval: 95 %, by the method under `statistics`."
)


def tabulate(rows: DataFrame, presentation: Mapping[str, Any]) -> Table:
    """Return time and throughput as ratios over 1 where the system is faster: time = throughput x epochs x overhead.

    Where a workload is seed-sensitive on either system, throughput is the headline.
    """
    titles = {name: system["title"] for name, system in presentation["systems"].items()}
    table = []
    rows = in_order(rows[rows["kind"] == "training"], presentation)
    for run, base in _pairs(rows, presentation.get("baseline", "")):
        first, second = run.iloc[0].to_dict(), base.iloc[0].to_dict()
        row = {
            "workload": first["workload"],
            "system": titles[first["system"]],
            "layout": first["layout"],
            "against": f"{titles[second['system']]} {second['layout']}",
        }
        refused = refusal(first, second)
        if not refused and not one_question(concat([run, base])):
            refused = "records of different questions"
        table.append(row | ({"notes": f"no ratio: {refused}"} if refused else _ratios(run, base, marks(first, second))))
    notes = [_MEANING if table else "Nothing to compare.", *honest_labels(rows, presentation)]
    return Table("Speed-ups in training", _COLUMNS, table, "\n\n".join(notes))


def _pairs(rows: DataFrame, baseline: str) -> Iterator[tuple[DataFrame, DataFrame]]:
    """Yield runs beside those of the baseline system on the same layout, then beside those of layout 1x1."""
    rows = rows[rows["outcome"].isin(["ok", "dnf"])]
    groups = dict(list(rows.groupby(["workload", "system", "layout"], sort=False)))
    for (workload, system, layout), own in groups.items():
        for other in ((workload, baseline, layout), (workload, system, "1x1")):
            if other in groups and other != (workload, system, layout):
                yield own, groups[other]


def _ratios(run: DataFrame, base: DataFrame, told: list[str]) -> dict[str, Any]:
    throughput = compare(list(run["throughput"]), list(base["throughput"]))
    reached, base_reached = (own[own["outcome"] == "ok"] for own in (run, base))
    both = [run.assign(system="run"), base.assign(system="base")]
    sensitive = any(seed_sensitivity(own) == "yes" for own in both)
    row: dict[str, Any] = {
        "throughput": significant(throughput.ratio),
        "throughput interval": _interval(throughput),
        "headline": "throughput" if sensitive else "time",
        "verdict": throughput.verdict,
        "statistics": throughput.method,
        "notes": "; ".join(told),
    }
    if len(reached) < len(run) or len(base_reached) < len(base):
        missed = f"{len(reached)} of {len(run)} against {len(base_reached)} of {len(base)} reached the target"
        return {**row, "headline": "throughput", "notes": "; ".join([missed, *told])}
    time = compare(list(base["time_to_target_s"]), list(run["time_to_target_s"]))
    split = split_speedup(_means(run), _means(base))
    row |= {
        "time": significant(time.ratio),
        "time interval": _interval(time),
        "of epochs": significant(split.epochs),
        "of overhead": significant(split.overhead),
    }
    return row if sensitive else {**row, "verdict": time.verdict, "statistics": time.method}


def _means(rows: DataFrame) -> dict[str, float]:
    """Geometric means, so that the split multiplies to the ratio that `compare` gives."""
    columns = {"time_s": "time_to_target_s", "throughput": "throughput", "epochs": "epochs"}
    return {key: compare(list(rows[column]), [1.0]).ratio for key, column in columns.items()}


def _interval(comparison: Comparison) -> str:
    return "{:.4g} to {:.4g}".format(*comparison.interval) if comparison.interval else ""
