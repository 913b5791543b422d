import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from mlperf_logging.compliance_checker.mlp_parser import parse_file
from safetensors.numpy import load_file
from training_cells import ncf_spec, run_ranks, start_ranks, write_dataset

from faceoff.files import sha256_file
from faceoff.training.checkpoint import read_checkpoint
from faceoff.training.rank import reason_of


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "groups")


def read(segment: Path) -> dict[str, Any]:
    return json.loads((segment / "result.json").read_text())


def losses(result: dict[str, Any]) -> list[float]:
    return [point["loss"] for point in result["curve"]]


def qualities(result: dict[str, Any]) -> list[float]:
    return [point["quality"] for point in result["curve"]]


def test_target_reached(manifest: Path, tmp_path: Path) -> None:
    started = time.time()
    assert run_ranks(ncf_spec(), manifest, tmp_path) == [0]
    result = read(tmp_path)
    measured = {name: entry["value"] for name, entry in result["measured"].items()}
    assert result["outcome"] == "ok"
    assert result["reason"] == ""
    assert not result["resumed"]
    assert measured["quality"] == result["curve"][-1]["quality"] >= 0.95
    assert all(quality < 0.95 for quality in qualities(result)[:-1])
    assert measured["steps"] == measured["epochs"] * 28
    assert measured["time_to_target"] == measured["elapsed"] > measured["train"] > measured["wait"] > 0
    parts = sum(measured[part] for part in ("train", "eval", "checkpoint"))
    assert parts <= measured["elapsed"]
    assert started < result["window"]["start"] < result["window"]["end"] < time.time()
    assert measured["throughput"] == pytest.approx(measured["steps"] * 256 / measured["train"])
    assert result["model_sha256"] == sha256_file(tmp_path / "model.safetensors")
    assert result["dataset_sha256"] == sha256_file(manifest)
    assert len(result["devices"]) == 1


def test_log_is_mlperf(manifest: Path, tmp_path: Path) -> None:
    run_ranks(ncf_spec(target=2.0, evaluate_every=0.5, budget={"epochs": 1.5, "seconds": 60}), manifest, tmp_path)
    lines, errors = parse_file(str(tmp_path / "mllog.txt"), "0.7.0")
    assert not errors
    found = {line.key: line.value for line in lines}
    once = [line.key for line in lines if not line.key.startswith(("block", "eval_"))]
    assert len(once) == len(set(once))
    assert found["run_stop"]["metadata"]["status"] == "aborted"
    assert found["seed"]["value"] == 1
    assert found["global_batch_size"]["value"] == 256
    assert found["train_samples"]["value"] == 120 * 12 * 5
    assert found["eval_samples"]["value"] == 120
    assert found["opt_adam_beta_2"]["value"] == 0.999
    epochs = [line.value["metadata"]["epoch_num"] for line in lines if line.key == "eval_accuracy"]
    assert epochs == [0.5, 1.0, 1.5]
    order = [
        "cache_clear",
        "init_start",
        "init_stop",
        "run_start",
        "block_start",
        "block_stop",
        "eval_start",
        "run_stop",
    ]
    assert sorted(order, key=[line.key for line in lines].index) == order
    assert str(Path.cwd()) not in (tmp_path / "mllog.txt").read_text()


def test_one_seed_gives_one_run(manifest: Path, tmp_path: Path) -> None:
    spec = ncf_spec(target=2.0, budget={"epochs": 3, "seconds": 60})
    for name in ("a", "b"):
        assert run_ranks(spec, manifest, tmp_path / name) == [0]
    assert run_ranks({**spec, "seed": 2}, manifest, tmp_path / "c") == [0]
    first, second, other = (read(tmp_path / name) for name in ("a", "b", "c"))
    assert losses(first) == losses(second)
    assert first["model_sha256"] == second["model_sha256"]
    assert losses(first) != losses(other)


def test_ranks_share_the_work_of_one(manifest: Path, tmp_path: Path) -> None:
    spec = ncf_spec(target=2.0, budget={"epochs": 2, "seconds": 60})
    assert run_ranks(spec, manifest, tmp_path / "1") == [0]
    assert run_ranks(spec, manifest, tmp_path / "2", world_size=2) == [0, 0]
    one, two = read(tmp_path / "1"), read(tmp_path / "2")
    assert losses(two) == pytest.approx(losses(one), rel=1e-5)
    assert qualities(two) == pytest.approx(qualities(one), abs=2 / 120)
    assert two["measured"]["global_batch"] == one["measured"]["global_batch"]
    assert len(two["devices"]) == 2


def test_killed_run_resumes_as_if_unbroken(manifest: Path, tmp_path: Path) -> None:
    spec = ncf_spec(target=2.0, budget={"epochs": 20, "seconds": 60})
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert run_ranks(spec, manifest, whole) == [0]

    (rank,) = start_ranks(spec, manifest, broken)
    while not (broken / "checkpoint.safetensors").exists():
        assert rank.is_alive()
        time.sleep(0.01)
    os.kill(rank.pid, signal.SIGKILL)
    rank.join()
    assert rank.exitcode == -signal.SIGKILL
    checkpoint = read_checkpoint(broken / "checkpoint.safetensors", "c0de" * 16)
    assert checkpoint is not None
    assert 28 <= checkpoint.step < 20 * 28
    assert run_ranks(spec, manifest, broken) == [0]

    first, second = read(whole), read(broken)
    assert second["resumed"]
    assert losses(second) == losses(first)
    assert qualities(second) == qualities(first)
    assert second["model_sha256"] == first["model_sha256"]
    assert [(part["from_step"], part["to_step"]) for part in second["segments"]] == [
        (0, checkpoint.step),
        (checkpoint.step, 20 * 28),
    ]
    times = [point["time_s"] for point in second["curve"]]
    assert times == sorted(times)


def test_killed_ranks_resume_as_if_unbroken(manifest: Path, tmp_path: Path) -> None:
    spec = ncf_spec(target=2.0, precision="fp16", evaluate_every=0.5, budget={"epochs": 4, "seconds": 60})
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert run_ranks(spec, manifest, whole, world_size=2) == [0, 0]
    ranks = start_ranks(spec, manifest, broken, world_size=2)
    while not (broken / "checkpoint.safetensors").exists():
        assert ranks[0].is_alive()
        time.sleep(0.01)
    for rank in ranks:
        os.kill(rank.pid, signal.SIGKILL)
        rank.join()
    assert run_ranks(spec, manifest, broken, world_size=2) == [0, 0]
    assert losses(read(broken)) == losses(read(whole))
    assert read(broken)["model_sha256"] == read(whole)["model_sha256"]


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        ({"epochs": 1, "seconds": 60}, " < 2 after 1 epochs (budget: 1 epochs)"),
        ({"epochs": 1000, "seconds": 0.2}, " epochs (budget: 0.2 s)"),
    ],
)
def test_budget_spent(manifest: Path, tmp_path: Path, budget: dict[str, float], reason: str) -> None:
    assert run_ranks(ncf_spec(target=2.0, budget=budget), manifest, tmp_path) == [0]
    result = read(tmp_path)
    assert result["outcome"] == "dnf"
    assert result["reason"].startswith("HR@10 ")
    assert result["reason"].endswith(reason)
    assert result["measured"]["time_to_target"]["value"] is None
    assert result["measured"]["elapsed"]["value"] < 60


def test_first_round_counts_initialisation(manifest: Path, tmp_path: Path) -> None:
    assert run_ranks(ncf_spec(round="v0.5"), manifest, tmp_path) == [0]
    measured = {name: entry["value"] for name, entry in read(tmp_path)["measured"].items()}
    parts = ("prepare", "init", "train", "eval", "checkpoint")
    assert measured["time_to_target"] >= sum(measured[part] for part in parts)
    assert measured["init"] > 0


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_reaches_the_target(manifest: Path, tmp_path: Path, precision: str) -> None:
    assert run_ranks(ncf_spec(precision=precision), manifest, tmp_path) == [0]
    assert read(tmp_path)["outcome"] == "ok"
    weights = load_file(tmp_path / "model.safetensors")
    assert {array.dtype.name for array in weights.values()} == {"float32"}


def test_divergence(manifest: Path, tmp_path: Path) -> None:
    assert run_ranks(ncf_spec(learning_rate=1e30), manifest, tmp_path) == [1]
    error = json.loads((tmp_path / "error-0.json").read_text())
    assert error["type"] == "DivergenceError"
    assert error["reason"].startswith(("loss is nan at step ", "loss is inf at step "))
    assert error["reason"].endswith("(epoch 1)")
    assert not (tmp_path / "result.json").exists()


def test_out_of_memory(manifest: Path, tmp_path: Path) -> None:
    factors = 1 << 40  # more than a process can address
    assert run_ranks(ncf_spec(factors=factors), manifest, tmp_path) == [1]
    error = json.loads((tmp_path / "error-0.json").read_text())
    assert error["reason"].startswith(f"out of memory: you tried to allocate {120 * factors * 4} bytes")
    assert "build_network" in error["traceback"]


def test_wrong_cells_are_refused(manifest: Path, tmp_path: Path) -> None:
    refused = {
        "batch: 16384 samples; an epoch has only 7200": {"batch": {"size": 16384, "per": "global"}},
        "optimizer: expected adam or sgd; found 'lion'": {"optimizer": "lion"},
        "precision tf32 is of NVIDIA GPUs; use fp32 or bf16 on a CPU": {"precision": "tf32"},
    }
    for reason, change in refused.items():
        assert run_ranks(ncf_spec(**change), manifest, tmp_path) == [1]
        assert json.loads((tmp_path / "error-0.json").read_text())["reason"] == reason


def test_reasons_of_other_frameworks() -> None:
    class ResourceExhaustedError(Exception):  # as TensorFlow names it
        pass

    assert (
        reason_of(ResourceExhaustedError("OOM when\nallocating tensor")) == "out of memory: OOM when allocating tensor"
    )
    assert reason_of(MemoryError()) == "out of memory: MemoryError"
    assert reason_of(ValueError("two\nlines")) == "two lines"
    assert reason_of(KeyError()) == "KeyError"
