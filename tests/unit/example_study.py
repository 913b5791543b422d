"""Two studies in miniature for the tests of records, tables and figures: one measured here, one published."""

from pathlib import Path
from typing import Any

from pandas import DataFrame, Series, concat

from faceoff.records.collect import collect
from faceoff.records.expected import expected_cells
from faceoff.records.frame import frame_of
from faceoff.records.published import read_collection
from faceoff.records.record import write_record

ROOT = Path(__file__).resolve().parents[2]
COLLECTION = ROOT / "config" / "published" / "mlperf-inference-v1.1.csv"

WORKLOADS: dict[str, dict[str, Any]] = {
    "ncf-tiny": {
        "title": "NCF",
        "benchmark": "ncf",
        "preset": "tiny",
        "area": "recommendation",
        "dataset": "MovieLens 100K",
        "network": "NeuMF, 129 k parameters",
        "metric": {"name": "HR@10", "unit": "fraction", "higher_is_better": True},
        "target": 0.63,
        "round": "v0.7",
        "framework": "pytorch",
        "samples": 99_057,
        "rate": 61_000.0,
    },
    "resnet50-tiny": {
        "title": "ResNet-50 v1.5",
        "benchmark": "resnet50",
        "preset": "tiny",
        "area": "image classification",
        "dataset": "digits",
        "network": "14 layers, 57 k parameters",
        "metric": {"name": "top-1", "unit": "fraction", "higher_is_better": True},
        "target": 0.97,
        "round": "v0.7",
        "framework": "tensorflow",
        "samples": 1300,
        "rate": 2150.0,
    },
}

LAPTOP: dict[str, Any] = {
    "study": "laptop",
    "title": "Two benchmarks on one machine",
    "baseline": "laptop",
    "systems": {"laptop": {"title": "Laptop", "node": "laptop", "host": {}, "accelerator": {"title": "CPU core"}}},
    "workloads": WORKLOADS,
}

MODELS: dict[str, tuple[str, dict[str, str]]] = {
    "resnet50": ("ResNet-50", {"99": "resnet50"}),
    "bert": ("BERT", {"99": "bert-99", "99.9": "bert-99.9"}),
    "ssd": ("SSD-ResNet34", {"99": "ssd-resnet34"}),
    "dlrm": ("DLRM", {"99": "dlrm-99", "99.9": "dlrm-99.9"}),
    "rnnt": ("RNN-T", {"99": "rnnt"}),
    "unet3d": ("3D U-Net", {"99": "3d-unet-99", "99.9": "3d-unet-99.9"}),
}
RULES = {
    "dataset": "SQuAD v1.1",
    "metric": "F1",
    "unit": "%",
    "fp32_reference": 90.874,
    "goals": {"99": 89.96526, "99.9": 90.783126},
    "server_latency_bound_ms": 130,
}

SERVERS: dict[str, Any] = {
    "study": "r7525-a100-a30",
    "title": "PowerEdge R7525: three A100 against three A30",
    "baseline": "r7525-a30",
    "systems": {
        "r7525-a30": {
            "title": "3x A30",
            "node": "PowerEdge R7525",
            "accelerators_per_node": 3,
            "host": {"processors": "2x AMD EPYC 7763", "memory": "1 TB", "os": "CentOS 8.4.2105"},
            "accelerator": {"title": "NVIDIA A30", "power_limit_w": 165},
        },
        "r7525-a100": {
            "title": "3x A100",
            "node": "PowerEdge R7525",
            "accelerators_per_node": 3,
            "host": {"processors": "2x AMD EPYC 7502", "memory": "512 GB", "os": "CentOS 8.2"},
            "accelerator": {"title": "NVIDIA A100-PCIe-40GB", "power_limit_w": 250},
            "price": {"ratio": 1.423, "relative_to": "r7525-a30", "date": "2021-09-07", "source": "Dell list prices"},
        },
    },
    "workloads": {
        f"{benchmark}-reference": {"benchmark": benchmark, "title": title, "area": "inference", "inference": RULES}
        for benchmark, (title, _) in MODELS.items()
    },
}


def training_cell(root: Path, workload: str, layout: str, seed: int, system: str = "laptop") -> dict[str, Any]:
    name = f"train/{workload}/{system}/{layout}/seed{seed}"
    benchmark, preset = workload.split("-")
    return {
        "cell": name,
        "kind": "training",
        "source": "measured",
        "workload": workload,
        "benchmark": benchmark,
        "preset": preset,
        "variant": "",
        "system": system,
        "layout": layout,
        "seed": seed,
        "record": str(root / name / "record.json"),
        "rerun": f"snakemake --cores all results/{name}/record.json",
    }


def training_record(cell: dict[str, Any], epochs: float = 5.0, outcome: str = "ok", **changes: Any) -> dict[str, Any]:
    """A record as a supervisor writes it: `epochs` to the target, at a rate that depends on layout and seed."""
    workload = WORKLOADS[cell["workload"]]
    count = int(cell["layout"].split("x")[1])
    rate = workload["rate"] * count * (1 - 0.06 * (count - 1)) * (1 + 0.01 * (cell["seed"] % 5))
    train = epochs * workload["samples"] / rate
    elapsed = train * 1.1 + 0.1
    points = range(1, int(epochs) + 1)
    target = workload["target"]
    end = target - 0.02 if outcome == "dnf" else target + 0.005
    curve = [
        {
            "epoch": float(n),
            "step": 40 * n,
            "time_s": elapsed * n / epochs,
            "quality": end - 0.3 * (1 - n / epochs) ** 2,
            "loss": 0.6 / n,
        }
        for n in points
    ]

    def seconds(value: float) -> dict[str, Any]:
        return {"value": value, "unit": "s"}

    measured = {
        "time_to_target": seconds(elapsed) if outcome == "ok" else None,
        "elapsed": seconds(elapsed),
        "epochs": {"value": epochs, "unit": "epoch"},
        "throughput": {"value": rate, "unit": "samples/s"},
        "quality": {"value": end, "unit": workload["metric"]["name"]},
        "imports": seconds(1.9),
        "prepare": seconds(0.2),
        "init": seconds(0.4),
        "train": seconds(train),
        "eval": seconds(0.1 * train),
        "wait": seconds(0.0),
        "global_batch": {"value": 2048, "unit": "samples"},
    }
    scored = outcome in ("ok", "dnf")
    reason = f"{workload['metric']['name']} {end:.3f} < {target} after {epochs:g} epochs" if outcome == "dnf" else ""
    record: dict[str, Any] = {
        "kind": "training",
        "cell": {key: cell[key] for key in ("workload", "system", "layout", "seed")},
        "spec": {
            "benchmark": cell["benchmark"],
            "framework": workload["framework"],
            "round": workload["round"],
            "precision": "fp32",
            "target": target,
            "metric": workload["metric"],
        },
        "fingerprint": "f00d",
        "outcome": outcome,
        "reason": reason,
        "measured": measured if scored else None,
        "curve": curve if scored else None,
        "resumed": False,
        "telemetry": {"window_s": elapsed, "means": {}, "maxima": {}, "energy": None},
        "provenance": {
            "identity": {"cpu": {"model": "AMD EPYC 7763", "sockets": 1}, "kernel": "6.8.0"},
            "identity_sha256": "1de",
            "versions": {"torch": "2.14.1", "tensorflow-cpu": "2.21.0", "numpy": "2.4.0"},
            "devices": [f"AMD EPYC 7763 core {n}" for n in range(count)],
            "host": "laptop",
            "started": f"2026-11-30T09:{cell['seed']:02d}:00+00:00",
            "ended": f"2026-11-30T09:{cell['seed']:02d}:30+00:00",
            "log": f"logs/{cell['cell']}.log",
            "rerun": cell["rerun"],
        },
    }
    return record | changes


def laptop_rows(root: Path) -> DataFrame:
    """Three seeds of two workloads on two layouts; one dnf, one resumed, one failed."""
    cells = [
        training_cell(root, workload, layout, seed)
        for workload in WORKLOADS
        for layout in ("1x1", "1x2")
        for seed in (1, 2, 3)
    ]
    epochs = iter([4, 6, 5, 5, 4, 12, 7, 8, 7, 8, 7, 9])
    for cell in cells:
        count = float(next(epochs))
        match cell["workload"], cell["layout"], cell["seed"]:
            case "ncf-tiny", "1x2", 3:
                record = training_record(cell, count, "dnf")
            case "ncf-tiny", "1x1", 2:
                record = training_record(cell, count, resumed=True)
            case "resnet50-tiny", "1x2", 3:
                record = training_record(cell, count, "failed", reason="out of memory: 2.1 GiB asked for, 1.7 GiB free")
            case _:
                record = training_record(cell, count)
        write_record(Path(cell["record"]), record)
    return frame_of(collect("laptop", cells, {}, {}))


def published_cells() -> list[dict[str, Any]]:
    benchmarks = {
        benchmark: {"names": names, "scenarios": ["Offline"] if benchmark == "unet3d" else ["Offline", "Server"]}
        for benchmark, (_, names) in MODELS.items()
    }
    systems = {
        name: {"name": published, "collection": COLLECTION.stem, "accelerators": 3}
        for name, published in (("r7525-a30", "R7525_A30x3_TRT"), ("r7525-a100", "R7525_A100-PCIE-40GBx3_TRT"))
    }
    return expected_cells({"inference": {"benchmarks": benchmarks, "protocol": "v1.1", "systems": systems}})


def published_rows() -> DataFrame:
    collections = {COLLECTION.stem: read_collection(COLLECTION)}
    return frame_of(collect("r7525-a100-a30", published_cells(), collections, {}))


def three_systems() -> tuple[DataFrame, dict[str, Any]]:
    """The published study and a third system, first in the presentation and last in rows, at half the A30's rate."""
    rows = published_rows()
    half = rows[rows["system"] == "r7525-a30"]
    half = half.assign(system="r7525-t4", result=half["result"] / 2)
    third = {"title": "3x T4", "price": {"ratio": 0.4, "relative_to": "r7525-a30", "note": "A guess."}}
    presentation = {**SERVERS, "systems": {"r7525-t4": third, **SERVERS["systems"]}}
    return concat([rows, half], ignore_index=True), presentation


def asked_otherwise(rows: DataFrame) -> DataFrame:
    """The rows of which seed 1 of ncf-tiny on 1x1 was asked for another target."""
    other = (rows["workload"] == "ncf-tiny") & (rows["layout"] == "1x1") & (rows["seed"] == 1)
    note = Series(None, index=rows.index, dtype="object").mask(other, "target: recorded 0.61, now 0.63")
    return rows.assign(
        question=rows["workload"].mask(other, "other"), question_note=note, target=rows["target"].mask(other, 0.61)
    )
