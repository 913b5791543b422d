"""The cells that a study expects, as `rows` describes them, from the plan that the configuration makes."""

from collections.abc import Iterator, Mapping
from typing import Any

from faceoff.study.selection import Workload, training_cells


def expected_cells(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the cells of a plan: measured training cells, then published results of inference.

    The plan holds products, not lists of cells: {"study": ..., "training": {"workloads", "layouts", "seeds",
    "questions": {workload: what its cells are asked now}} or None,
    "inference": {"benchmarks": {benchmark: {"names": {accuracy: MLPerf's name}, "scenarios"}}, "protocol", "systems":
    {system: {"name", "collection", "accelerators"}}} or None}.
    """
    training, inference = plan.get("training"), plan.get("inference")
    return [*(_training(training) if training else ()), *(_inference(inference) if inference else ())]


def _training(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for cell in training_cells(plan):
        workload = Workload.parse(cell.workload)
        yield {
            "cell": f"train/{cell.name}",
            "kind": "training",
            "source": "measured",
            "benchmark": workload.benchmark,
            "preset": workload.preset,
            "variant": workload.variant,
            **cell.as_dict(),
            "record": cell.record,
            "question": plan["questions"][cell.workload],
            "rerun": cell.rerun,
        }


def _inference(plan: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for benchmark, asked in plan["benchmarks"].items():
        for accuracy, mlperf_name in asked["names"].items():
            for scenario in asked["scenarios"]:
                for system, published in plan["systems"].items():
                    yield {
                        "cell": f"infer/{benchmark}-reference/{accuracy}/{system}/{scenario}/{plan['protocol']}",
                        "kind": "inference",
                        "source": "published",
                        "workload": f"{benchmark}-reference",
                        "benchmark": benchmark,
                        "preset": "reference",
                        "variant": "",
                        "system": system,
                        "layout": f"1x{published['accelerators']}",
                        "accuracy": accuracy,
                        "scenario": scenario,
                        "protocol": plan["protocol"],
                        "collection": published["collection"],
                        "published_system": published["name"],
                        "mlperf_name": mlperf_name,
                    }
