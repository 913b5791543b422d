"""The records of a study as a table: one row a cell, measured and published alike.

A cell, as the study asks for it, is a mapping

    {"cell": "train/ncf-tiny/laptop/1x2/seed1", "kind": "training", "source": "measured", "workload": "ncf-tiny",
     "benchmark": "ncf", "preset": "tiny", "variant": "", "system": "laptop", "layout": "1x2", "seed": 1,
     "record": "results/train/ncf-tiny/laptop/1x2/seed1/record.json", "rerun": "snakemake ..."}

and for published results of inference, without `seed`, `record` and `rerun`,

    {..., "kind": "inference", "source": "published", "accuracy": "99.9", "scenario": "Offline", "protocol": "v1.1",
     "collection": "mlperf-inference-v1.1", "published_system": "R7525_A30x3_TRT", "mlperf_name": "bert-99.9"}

It may also name `framework`, `round`, `precision` and `target`, which a row without a record then keeps.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from faceoff.files import canonical_json
from faceoff.records.question import question_hash, question_note, question_of
from faceoff.study.selection import layout_of

CURVE = pa.list_(
    pa.struct(
        [
            ("epoch", pa.float64()),
            ("step", pa.int64()),
            ("time_s", pa.float64()),
            ("quality", pa.float64()),
            ("loss", pa.float64()),
        ]
    )
)

_TEXT, _INT, _REAL, _YES = pa.string(), pa.int64(), pa.float64(), pa.bool_()
SCHEMA = pa.schema(
    {
        "study": _TEXT,
        "kind": _TEXT,
        "source": _TEXT,
        "cell": _TEXT,
        "workload": _TEXT,
        "benchmark": _TEXT,
        "preset": _TEXT,
        "variant": _TEXT,
        "framework": _TEXT,
        "system": _TEXT,
        "layout": _TEXT,
        "nodes": _INT,
        "accelerators": _INT,  # in each node
        "seed": _INT,
        "accuracy": _TEXT,
        "scenario": _TEXT,
        "protocol": _TEXT,
        "round": _TEXT,
        "precision": _TEXT,
        "question": _TEXT,  # hash of what was asked, apart from system, layout and seed
        "question_note": _TEXT,  # how that differs from what the configuration asks now
        "outcome": _TEXT,
        "reason": _TEXT,
        "time_to_target_s": _REAL,
        "elapsed_s": _REAL,
        "epochs": _REAL,
        "throughput": _REAL,
        "throughput_unit": _TEXT,
        "quality": _REAL,
        "quality_metric": _TEXT,
        "target": _REAL,
        "imports_s": _REAL,
        "prepare_s": _REAL,
        "init_s": _REAL,
        "train_s": _REAL,
        "eval_s": _REAL,
        "checkpoint_s": _REAL,
        "wait_s": _REAL,
        "global_batch": _INT,
        "resumed": _YES,
        "result": _REAL,
        "result_unit": _TEXT,
        "result_metric": _TEXT,
        "latency_p99_s": _REAL,
        "verdict": _TEXT,
        "devices": pa.list_(_TEXT),
        "device_count": _INT,
        "driver": _TEXT,
        "cpu": _TEXT,
        "memory_gb": _REAL,
        "os": _TEXT,
        "host": _TEXT,
        "started": _TEXT,
        "ended": _TEXT,
        "versions": _TEXT,  # JSON: package to version
        "energy_j": _REAL,
        "power_mean_w": _REAL,
        "power_max_w": _REAL,
        "identity": _TEXT,
        "drift": _YES,
        "drift_reason": _TEXT,
        "record": _TEXT,
        "record_sha256": _TEXT,
        "log": _TEXT,
        "rerun": _TEXT,
        "curve": CURVE,
        "division": _TEXT,
        "submitter": _TEXT,
        "retrieved": _TEXT,  # date and place that published numbers were read from
        "source_path": _TEXT,
        "notes": _TEXT,
    }
)
"""Columns and types; times in s, energy in J, power in W."""

# What a cell scored. A row that is neither `ok` nor `dnf` has none of it, so that no table or figure can show it.
SCORES = (
    "time_to_target_s",
    "elapsed_s",
    "epochs",
    "throughput",
    "quality",
    "result",
    "latency_p99_s",
    "energy_j",
    "power_mean_w",
    "power_max_w",
    "curve",
)
_SECONDS = ("elapsed", "imports", "prepare", "init", "train", "eval", "checkpoint", "wait")
_CELL_KEYS = (
    "cell",
    "kind",
    "source",
    "workload",
    "benchmark",
    "preset",
    "variant",
    "framework",
    "system",
    "layout",
    "seed",
    "accuracy",
    "scenario",
    "protocol",
    "round",
    "precision",
    "target",
    "record",
    "rerun",
)


def table_of(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table with the columns of `SCHEMA`; a key that a row lacks is null."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=SCHEMA)


def bare_row(study: str, cell: Mapping[str, Any], outcome: str, reason: str = "") -> dict[str, Any]:
    """Return the row of a cell that has no usable record: `not run`, or `invalid` with a reason."""
    row = {key: cell[key] for key in _CELL_KEYS if cell.get(key) is not None}
    nodes, accelerators = layout_of(cell["layout"])
    return {
        **row,
        "study": study,
        "nodes": nodes,
        "accelerators": accelerators,
        "outcome": outcome,
        "reason": reason,
        "resumed": False,
        "drift": False,
    }


def training_row(study: str, cell: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a training cell from its record, whose signature the caller has checked."""
    spec, provenance = record["spec"], record.get("provenance") or {}
    measured, telemetry = record.get("measured") or {}, record.get("telemetry") or {}
    identity = provenance.get("identity") or {}
    row = bare_row(study, cell, record["outcome"], record.get("reason") or "")
    question = question_of(spec)
    row |= {
        "question": question_hash(question),
        "question_note": question_note(question, cell["question"]) if cell.get("question") else None,
        "framework": spec["framework"],
        "round": spec["round"],
        "precision": spec["precision"],
        "target": spec["target"],
        "quality_metric": spec["metric"]["name"],
        "time_to_target_s": _number(measured.get("time_to_target")),
        "epochs": _number(measured.get("epochs")),
        "throughput": _number(measured.get("throughput")),
        "throughput_unit": _unit(measured.get("throughput")),
        "quality": _number(measured.get("quality")),
        **{f"{name}_s": _number(measured.get(name)) for name in _SECONDS},
        "global_batch": _number(measured.get("global_batch")),
        "resumed": bool(record.get("resumed")),
        "devices": provenance.get("devices"),
        "device_count": len(provenance["devices"]) if provenance.get("devices") else None,
        "driver": identity.get("driver"),
        "cpu": _processors(identity.get("cpu") or {}),
        "memory_gb": round(identity["memory_bytes"] / 1e9, 1) if "memory_bytes" in identity else None,
        "os": identity.get("os"),
        "host": provenance.get("host"),
        "started": provenance.get("started"),
        "ended": provenance.get("ended"),
        "versions": canonical_json(provenance.get("versions") or {}),
        "energy_j": _number(telemetry.get("energy")),
        "power_mean_w": (telemetry.get("means") or {}).get("power_w"),
        "power_max_w": (telemetry.get("maxima") or {}).get("power_w"),
        "identity": provenance.get("identity_sha256"),
        "record_sha256": record["sha256"],
        "log": provenance.get("log"),
        "rerun": provenance.get("rerun") or row.get("rerun"),
        "curve": record.get("curve"),
        "division": "closed" if cell["preset"] == "reference" else "open",
    }
    return without_scores(row)


def published_row(study: str, cell: Mapping[str, Any], entry: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the row of a published result; `entry` is a row of its collection, None when the collection lacks it."""
    if entry is None:
        what = f"{cell['published_system']} {cell['mlperf_name']} {cell['scenario']} {cell['protocol']}"
        return bare_row(study, cell, "not run", f"no result of {what} in {cell['collection']}")
    valid = entry["validity"] == "VALID"
    same_run = entry["same_run_as"]
    row = bare_row(study, cell, "ok" if valid else "invalid", "" if valid else f"published as {entry['validity']}")
    processors = f"{entry['processors']}x {entry['processor']}"
    versions = dict(part.rsplit(" ", 1) for part in re.split(r",\s*", entry["software"]))
    row |= {
        "round": entry["round"],
        "precision": entry["weights"],
        "quality": entry["quality"],
        "quality_metric": entry["quality_metric"],
        "result": entry["value"],
        "result_unit": entry["unit"],
        "result_metric": entry["metric"],
        "latency_p99_s": entry["latency_p99_ns"] / 1e9,
        "verdict": entry["validity"],
        "devices": [entry["accelerator"]] * entry["accelerators"],
        "device_count": entry["accelerators"],
        "driver": versions.get("Driver"),
        "cpu": processors,
        "host": f"{processors}, {entry['memory']}, {entry['os']}",
        "ended": entry["published"],
        "versions": canonical_json(versions),
        "division": entry["division"],
        "submitter": entry["organisation"],
        "retrieved": f"{entry['retrieved']} from github.com/{entry['repository']} at {entry['commit']}",
        "source_path": entry["source_path"],
        "notes": f"same run as {same_run}" if same_run else "",
    }
    return without_scores(row)


def without_scores(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row, and without its `SCORES` unless it is `ok` or `dnf`; only `ok` keeps a time to the target."""
    dropped = {"ok": (), "dnf": ("time_to_target_s",)}.get(row["outcome"], SCORES)
    return {key: None if key in dropped else value for key, value in row.items()}


def _number(entry: Any) -> Any:
    return entry["value"] if isinstance(entry, Mapping) else entry


def _unit(entry: Any) -> str | None:
    return entry["unit"] if isinstance(entry, Mapping) else None


def _processors(cpu: Mapping[str, Any]) -> str | None:
    if "sockets" not in cpu or "model" not in cpu:
        return cpu.get("model")
    cores = f", {cpu['physical_cores']} cores" if "physical_cores" in cpu else ""
    return f"{cpu['sockets']}x {cpu['model']}{cores}"
