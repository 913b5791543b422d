"""Systems of an inference study divided by its baseline, where that is allowed."""

from dataclasses import dataclass

from pandas import DataFrame

from faceoff.records.statistics import compare, marks, refusal

CASE = ["workload", "accuracy", "scenario"]


@dataclass(frozen=True)
class SystemRatio:
    """`ratio` of a system's result to the baseline's; None when a result is missing or `refused` says why not."""

    workload: str
    accuracy: str
    scenario: str
    system: str
    ratio: float | None
    refused: str
    marks: tuple[str, ...]
    same_run: bool


def inference_ratios(rows: DataFrame, baseline: str) -> list[SystemRatio]:
    """Return one ratio for each workload, accuracy, scenario and system but the baseline, in the order of rows.

    Several runs of one case count by their geometric mean.
    """
    rows = rows[rows["kind"] == "inference"]
    found = []
    for (workload, accuracy, scenario), case in rows.fillna({"accuracy": "", "scenario": ""}).groupby(CASE, sort=False):
        base = case[(case["system"] == baseline) & (case["outcome"] == "ok")]
        for system, own in case[case["system"] != baseline].groupby("system", sort=False):
            good = own[own["outcome"] == "ok"]
            ratio, refused, same_run = None, "", False
            told: tuple[str, ...] = ()
            if len(base) and len(good):
                first, second = good.iloc[0].to_dict(), base.iloc[0].to_dict()
                refused, told = refusal(first, second), tuple(marks(first, second))
                same_run = bool(good["notes"].fillna("").str.startswith("same run as").all())
                if not refused:
                    ratio = compare(list(good["result"]), list(base["result"])).ratio
            found.append(SystemRatio(workload, accuracy, scenario, system, ratio, refused, told, same_run))
    return found
