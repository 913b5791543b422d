"""Whether the epochs to the target hang on the seed or on the global batch, from the rows of training cells."""

from pandas import DataFrame

from faceoff.records.statistics import RUNS_FOR_INTERVAL, confounded_with_batch, seed_sensitive


def evaluation_interval(rows: DataFrame) -> float:
    """Return the epochs between two evaluations, from the runs' curves; 0 when no run was evaluated."""
    intervals = [
        second["epoch"] - first["epoch"]
        for curve in rows["curve"].dropna()
        for first, second in zip(({"epoch": 0.0}, *curve[:-1]), curve, strict=True)
    ]
    return max(intervals, default=0.0)


def seed_sensitivity(rows: DataFrame) -> str:
    """Return `yes` when any layout of any system is seed-sensitive, `no` when none is, or `cannot tell`."""
    interval = evaluation_interval(rows)
    reached = rows[rows["outcome"] == "ok"]
    answers = {seed_sensitive(list(own["epochs"]), interval) for _, own in reached.groupby(["system", "layout"])}
    return next((answer for answer in ("yes", "cannot tell", "no") if answer in answers), "cannot tell")


def batch_confounded(rows: DataFrame) -> bool:
    """Return whether, for any system in rows, the mean epochs follow the layouts' global batch."""
    interval = evaluation_interval(rows)
    reached = rows[rows["outcome"] == "ok"]
    return any(
        confounded_with_batch({batch: list(runs["epochs"]) for batch, runs in own.groupby("global_batch")}, interval)
        for _, own in reached.groupby("system")
    )


def convergence_notes(rows: DataFrame) -> list[str]:
    """Return the flags of one workload in words."""
    answer = seed_sensitivity(rows)
    few = f" (n < {RUNS_FOR_INTERVAL})" if answer == "cannot tell" else ""
    notes = [f"seed-sensitive: {answer}{few}"]
    if batch_confounded(rows):
        notes.append("confounded with global batch")
    return notes
