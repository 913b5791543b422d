"""Inference throughput per dollar of whole systems, relative to the baseline system, and the break-even price."""

from collections.abc import Mapping
from typing import Any

from pandas import DataFrame

from faceoff.records.labels import honest_labels, in_order
from faceoff.records.prices import price_ratio
from faceoff.records.ratios import inference_ratios
from faceoff.tables.text import Table

_COLUMNS = (
    "workload",
    "accuracy",
    "scenario",
    "system",
    "throughput per dollar",
    "break-even price ratio",
    "price ratio",
    "notes",
)
_MEANING = (
    "Relative to {baseline}. Throughput per dollar: throughput ratio / price ratio, of whole systems. Break-even: the "
    "price ratio at which it is 1, which is the throughput ratio, of geometric means where a case has several runs. "
    "Derived here: no MLPerf™ Inference metric, neither official nor verified."
)


def tabulate(rows: DataFrame, presentation: Mapping[str, Any]) -> Table:
    """Return a row for each case and system that has a price; tiny presets are left out.

    Raises ConfigError for a price that cannot be compared with the baseline's.
    """
    systems, baseline = presentation["systems"], presentation.get("baseline", "")
    rows = in_order(rows[(rows["kind"] == "inference") & (rows["preset"] != "tiny")], presentation)
    priced = [name for name in systems if name != baseline and systems[name].get("price")]
    prices = {name: price_ratio(systems, name, baseline) for name in priced}
    table = []
    for ratio in inference_ratios(rows, baseline):
        if ratio.system not in prices:
            continue
        price = prices[ratio.system]
        row: dict[str, Any] = {
            "workload": ratio.workload,
            "accuracy": ratio.accuracy,
            "scenario": ratio.scenario,
            "system": systems[ratio.system]["title"],
            "price ratio": round(price, 4),
        }
        if ratio.ratio:
            row |= {"throughput per dollar": round(ratio.ratio / price, 4)}
            row |= {"break-even price ratio": round(ratio.ratio, 4)}
        refused = f"no ratio: {ratio.refused}" if ratio.refused else "" if ratio.ratio else "no result on both systems"
        row["notes"] = "; ".join(filter(None, [refused, "one run for both accuracies" if ratio.same_run else ""]))
        table.append(row)
    if not table:
        nothing = "No inference result beyond tiny presets" if priced else "No price is configured"
        return Table("Throughput per dollar", _COLUMNS, [], f"{nothing}: nothing per dollar.")
    notes = [_MEANING.format(baseline=systems[baseline]["title"]), *_prices(prices, systems)]
    return Table("Throughput per dollar", _COLUMNS, table, "\n\n".join([*notes, *honest_labels(rows, presentation)]))


def _prices(prices: Mapping[str, float], systems: Mapping[str, Any]) -> list[str]:
    lines = []
    for name, ratio in prices.items():
        price = systems[name]["price"]
        origin = " of ".join(str(price[key]) for key in ("source", "date") if price.get(key)) or "configured"
        told = f"Price of {systems[name]['title']}: {ratio:g} times the baseline's ({origin}). {price.get('note', '')}"
        lines.append(told.strip())
    return lines
