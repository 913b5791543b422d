"""Clock, checkpoint and placement."""

from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faceoff.errors import ConfigError, FaceoffError
from faceoff.training import clock as clock_module
from faceoff.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from faceoff.training.clock import Clock
from faceoff.training.placement import Placement, cpu_name, derive_seed, global_batch


class Time:
    """A hand that is moved."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1e9 + self.now


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> Time:
    hand = Time()
    monkeypatch.setattr(clock_module, "time", hand)
    return hand


def test_parts_of_the_clock_exclude_each_other(hand: Time) -> None:
    clock = Clock(launched=hand.time() - 2)
    hand.now += 1
    clock.imported()
    with clock.part("init"):
        hand.now += 4
        with clock.part("prepare"):
            hand.now += 8
        hand.now += 16
    hand.now += 32
    clock.start_window()
    with clock.part("train"):
        hand.now += 64
        clock.add("wait", 5)
    assert clock.totals()["window"] == 64
    with clock.part("eval"):
        hand.now += 128
    clock.stop_window()
    hand.now += 256
    assert clock.totals() == {
        "imports": 3,
        "init": 20,
        "prepare": 8,
        "train": 64,
        "wait": 5,
        "eval": 128,
        "checkpoint": 0,
        "window": 192,
    }
    assert clock.score("v0.5") == 28 + 192
    assert clock.score("v0.7") == 192


def test_segments_of_a_run_add_up(hand: Time) -> None:
    first = Clock(hand.time())
    first.start_window()
    with first.part("train"):
        hand.now += 10
    second = Clock(hand.time())
    second.resume(first.totals())
    second.start_window()
    with second.part("train"):
        hand.now += 7
    assert second.totals()["train"] == 17
    assert second.score("v1.0") == 17


def test_an_exception_ends_a_part(hand: Time) -> None:
    clock = Clock(hand.time())
    with suppress(ZeroDivisionError), clock.part("train"):
        hand.now += 1
        raise ZeroDivisionError
    hand.now += 2
    assert clock.totals()["train"] == 1


def checkpoint(fingerprint: str = "a" * 64) -> Checkpoint:
    state = {
        "model/w": np.arange(6, dtype=np.float32).reshape(2, 3).T,
        "step": np.array(7.5, dtype=np.float64),
        "none": np.zeros((0, 4), dtype=np.int64),
    }
    return Checkpoint(30, state, {"train": 1 / 3}, [{"epoch": 1.0, "loss": 0.1}], [{"from_step": 0}], fingerprint)


def test_checkpoint_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    written = checkpoint()
    write_checkpoint(path, written)
    read = read_checkpoint(path, "a" * 64)
    assert read is not None
    assert read.state.keys() == written.state.keys()
    for name, array in written.state.items():
        np.testing.assert_array_equal(read.state[name], array)
        assert (read.state[name].dtype, read.state[name].shape) == (array.dtype, array.shape)
    assert (read.step, read.clock, read.curve, read.segments) == (30, written.clock, written.curve, written.segments)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_checkpoints_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    assert read_checkpoint(path, "a" * 64) is None
    write_checkpoint(path, checkpoint("b" * 64))
    with pytest.raises(FaceoffError, match="written by other code"):
        read_checkpoint(path, "a" * 64)
    content = path.read_bytes()
    for damaged in (content[:-1], content[:20], b"", b"\xff" * 100):
        path.write_bytes(damaged)
        with pytest.raises(FaceoffError, match=r"no readable checkpoint: .*; the next attempt begins anew"):
            read_checkpoint(path, "b" * 64)


@given(items=st.integers(0, 10**9), world_size=st.integers(1, 100))
def test_shares_part_the_items(items: int, world_size: int) -> None:
    shares = [Placement(rank, 0, world_size, "cpu").share(items) for rank in range(world_size)]
    assert shares[0].start == 0
    assert shares[-1].stop == items
    assert all(share.stop == following.start for share, following in pairwise(shares))
    sizes = [share.stop - share.start for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_global_batch() -> None:
    assert global_batch({"size": 2048, "per": "global"}, 2) == 2048
    assert global_batch({"size": 64, "per": "accelerator"}, 16) == 1024
    with pytest.raises(ConfigError, match="a global batch of 2048 does not divide among 3 accelerators"):
        global_batch({"size": 2048, "per": "global"}, 3)


@given(st.lists(st.tuples(st.integers(0, 2**63), st.integers(0, 10**6), st.integers(0, 1000)), unique=True))
def test_seeds_differ(paths: list[tuple[int, int, int]]) -> None:
    seeds = [derive_seed(*path) for path in paths]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_seed_is_the_same_on_every_machine() -> None:
    # sha256("1/order/2"), its first eight bytes halved
    assert derive_seed(1, "order", 2) == 1493370279577090964


def test_cpu_name_is_of_this_process() -> None:
    assert cpu_name().strip()
