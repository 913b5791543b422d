"""The same training on NVIDIA GPUs."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from training_cells import ncf_spec, run_ranks, write_dataset

GPUS = torch.cuda.device_count()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(GPUS == 0, reason="no NVIDIA GPU")]


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "groups")


def run(spec: dict[str, Any], manifest: Path, segment: Path, world_size: int = 1) -> dict[str, Any]:
    statuses = run_ranks(spec, manifest, segment, world_size, device="cuda")
    errors = [json.loads(path.read_text())["traceback"] for path in segment.glob("error-*.json")]
    assert statuses == [0] * world_size, errors
    return json.loads((segment / "result.json").read_text())


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16", "fp16"])
def test_target_reached(manifest: Path, tmp_path: Path, precision: str) -> None:
    if precision in ("tf32", "bf16") and torch.cuda.get_device_capability(0) < (8, 0):
        pytest.skip(f"this GPU has no {precision}")
    result = run(ncf_spec(precision=precision), manifest, tmp_path)
    assert result["outcome"] == "ok"
    assert result["devices"] == [torch.cuda.get_device_name(0)]
    assert {"torch", "cuda", "cudnn", "nccl"} <= set(result["versions"])


def test_gpus_learn_as_the_cpu_does(manifest: Path, tmp_path: Path) -> None:
    spec = ncf_spec(target=2.0, budget={"epochs": 4, "seconds": 60})
    assert run_ranks(spec, manifest, tmp_path / "cpu") == [0]
    cpu = json.loads((tmp_path / "cpu" / "result.json").read_text())
    gpu = run(spec, manifest, tmp_path / "gpu")
    # Other generators draw other samples, so the losses agree only about.
    for one, other in zip(cpu["curve"], gpu["curve"], strict=True):
        assert one["loss"] == pytest.approx(other["loss"], rel=0.2)


@pytest.mark.skipif(GPUS < 2, reason="one NVIDIA GPU")
def test_gpus_share_the_work_of_one(manifest: Path, tmp_path: Path) -> None:
    spec = ncf_spec(target=2.0, budget={"epochs": 2, "seconds": 60})
    one, two = run(spec, manifest, tmp_path / "1"), run(spec, manifest, tmp_path / "2", world_size=2)
    assert [point["loss"] for point in two["curve"]] == pytest.approx(
        [point["loss"] for point in one["curve"]], rel=1e-3
    )
    assert len(two["devices"]) == 2
