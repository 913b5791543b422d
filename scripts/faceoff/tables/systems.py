"""The systems side by side: data sheets of the accelerators, hosts, and what the records found there."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pandas import DataFrame

from faceoff.records.labels import pinned_core
from faceoff.tables.text import Table

_SYSTEM = {"node": "node", "nodes": "nodes", "accelerators_per_node": "accelerators a node"}
_SHEET = {
    "title": "accelerator",
    "architecture": "architecture",
    "compute_capability": "compute capability",
    "cuda_cores": "CUDA cores",
    "tensor_cores": "tensor cores",
    "fp32_tflops": "FP32 (TFLOP/s)",
    "fp16_tensor_tflops": "FP16 tensor, dense (TFLOP/s)",
    "int8_tops": "INT8, dense (TOP/s)",
    "memory_gb": "memory (GB)",
    "memory_type": "memory type",
    "memory_bandwidth_gb_s": "memory bandwidth (GB/s)",
    "power_limit_w": "power limit (W)",
    "slot": "slot",
}
_HOST = {"processors": "host processors", "memory": "host memory", "os": "operating system"}
_PRICE = {"ratio": "price ratio", "relative_to": "price relative to", "amount": "price", "currency": "currency"}
_PRICE |= {"date": "price of", "source": "price from", "note": "price: note"}
_FOUND = {
    "cpu": "found: processors",
    "memory_gb": "found: memory (GB)",
    "os": "found: operating system",
    "driver": "found: driver",
}


def tabulate(rows: DataFrame, presentation: Mapping[str, Any]) -> Table:
    """Return a row a fact and a column a system; what was configured first, then what records found."""
    systems = presentation["systems"]
    facts = [
        *_facts(_SYSTEM, systems, lambda system: system),
        *_facts(_SHEET, systems, lambda system: system.get("accelerator") or {}),
        *_facts(_HOST, systems, lambda system: system.get("host") or {}),
        *_facts({"software": "software"}, systems, lambda system: system),
        *_facts(_PRICE, systems, lambda system: _price(system, systems)),
    ]
    found = {name: rows[rows["system"] == name] for name in systems}
    devices = {systems[name]["title"]: _devices(own) for name, own in found.items()}
    facts.append({"": "found: accelerators", **devices})
    for column, label in _FOUND.items():
        facts.append({"": label, **{systems[name]["title"]: _values(own[column]) for name, own in found.items()}})
    facts = [fact for fact in facts if any(value not in (None, "") for key, value in fact.items() if key)]
    return Table("Systems", ["", *(system["title"] for system in systems.values())], facts)


def _facts(labels: Mapping[str, str], systems: Mapping[str, Any], part: Any) -> list[dict[str, Any]]:
    return [
        {"": label, **{system["title"]: part(system).get(key) for system in systems.values()}}
        for key, label in labels.items()
    ]


def _price(system: Mapping[str, Any], systems: Mapping[str, Any]) -> dict[str, Any]:
    """Return a system's price, with the title of the system that it is relative to."""
    price = dict(system.get("price") or {})
    if price.get("relative_to") in systems:
        price["relative_to"] = systems[price["relative_to"]]["title"]
    return price


def _devices(rows: DataFrame) -> str:
    """Return the most devices of each name that any record has; ranks on CPU have pinned cores of a processor."""
    most: Counter[tuple[str, bool]] = Counter()
    for devices in rows["devices"].dropna():
        most |= Counter((pinned_core(device) or device, bool(pinned_core(device))) for device in devices)
    return " / ".join(
        f"{count} pinned core{'s' if count > 1 else ''} of {name}" if pinned else f"{count}x {name}"
        for (name, pinned), count in sorted(most.items())
    )


def _values(column: Any) -> str:
    return " / ".join(sorted(str(value) for value in column.dropna().unique()))
