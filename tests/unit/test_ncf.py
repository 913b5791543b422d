from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from training_cells import ITEMS, USERS, ncf_spec, write_dataset

from faceoff.benchmarks.ncf import NcfTask, contains, rank_of_first
from faceoff.data.manifest import Manifest, load_manifest
from faceoff.errors import DataError
from faceoff.models.neumf import NeuMF
from faceoff.training.placement import Placement
from faceoff.training.pytorch import Context


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return load_manifest(write_dataset(tmp_path_factory.mktemp("data") / "groups"))


def task(data: Manifest, rank: int = 0, world_size: int = 1, seed: int = 1) -> NcfTask:
    placement = Placement(rank, rank, world_size, "cpu")
    return NcfTask(ncf_spec()["hyperparameters"], data, Context(placement, torch.device("cpu"), 256, seed))


@pytest.mark.parametrize(
    ("sizes", "parameters"),
    [
        # MovieLens-20M and the layers of MLPerf Training v0.5's reference
        ((138493, 26744, 64, (256, 256, 128, 64)), 31_832_577),
        # MovieLens-100K, preset tiny
        ((943, 1682, 16, (64, 32, 16)), 128_641),
    ],
)
def test_parameters(sizes: tuple[int, int, int, tuple[int, ...]], parameters: int) -> None:
    users, items, factors, layers = sizes
    with torch.device("meta"):
        network = NeuMF(users, items, factors, layers)
    found = sum(parameter.numel() for parameter in network.parameters())
    dense = sum(a * b + b for a, b in pairwise(layers))
    assert found == (users + items) * (factors + layers[0] // 2) + dense + layers[-1] + factors + 1
    assert found == parameters


def test_forward_by_hand() -> None:
    network = NeuMF(2, 2, factors=1, layers=(2, 1))
    values = {
        "user_factors.weight": [[2.0], [3.0]],
        "item_factors.weight": [[5.0], [7.0]],
        "user_features.weight": [[1.0], [-1.0]],
        "item_features.weight": [[10.0], [20.0]],
        "layers.0.weight": [[1.0, -1.0]],
        "layers.0.bias": [12.0],
        "output.weight": [[100.0, 1.0]],
        "output.bias": [0.5],
    }
    network.load_state_dict({name: torch.tensor(value) for name, value in values.items()})
    logits = network(torch.tensor([0, 1]), torch.tensor([0, 1]))
    # 100 * 2 * 5 + relu(1 - 10 + 12) + 0.5 and 100 * 3 * 7 + relu(-1 - 20 + 12) + 0.5
    assert logits.tolist() == [1003.5, 2100.5]


def test_an_epoch_holds_each_pair_once_and_no_false_negative(data: Manifest) -> None:
    pairs = data.array("train_pairs.npy")
    taken = {(int(user), int(item)) for user, item in pairs}
    users, items, labels = task(data)._draw(epoch=3)
    assert len(users) == 5 * len(pairs)
    positives = [(int(u), int(i)) for u, i, label in zip(users, items, labels, strict=True) if label == 1]
    negatives = [(int(u), int(i)) for u, i, label in zip(users, items, labels, strict=True) if label == 0]
    assert len(positives) == len(pairs)
    assert set(positives) == taken
    assert not set(negatives) & taken
    # Four negatives of its user for each pair.
    assert (np.bincount([user for user, _ in negatives]) == 4 * np.bincount(pairs[:, 0])).all()
    # Of 80 items each user took 12: all others are drawn sooner or later.
    assert len(set(negatives)) > 0.4 * USERS * (ITEMS - 12)
    assert labels[:1000].mean() == pytest.approx(0.2, abs=0.05)


def test_epochs_and_seeds_differ(data: Manifest) -> None:
    first, again, other_epoch, other_seed = (
        task(data)._draw(0),
        task(data)._draw(0),
        task(data)._draw(1),
        task(data, seed=2)._draw(0),
    )
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], other_epoch[0])
    assert not torch.equal(first[0], other_seed[0])


@pytest.mark.parametrize("world_size", [2, 4])
def test_ranks_divide_each_global_batch(data: Manifest, world_size: int) -> None:
    whole = list(task(data).batches(26, 4))  # 28 steps an epoch: into the next
    parts = [list(task(data, rank, world_size).batches(26, 4)) for rank in range(world_size)]
    for step, batch in enumerate(whole):
        shares = [part[step] for part in parts]
        assert {len(share[0]) for share in shares} == {256 // world_size}
        for index, tensor in enumerate(batch):
            assert torch.equal(torch.cat([share[index] for share in shares]), tensor)


def test_batches_resume_anywhere(data: Manifest) -> None:
    whole = list(task(data).batches(0, 40))
    resumed = list(task(data).batches(30, 10))
    assert all(torch.equal(a, b) for x, y in zip(whole[30:], resumed, strict=True) for a, b in zip(x, y, strict=True))


@pytest.mark.parametrize("world_size", [1, 7])
def test_quality_is_the_share_of_hits(data: Manifest, world_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("faceoff.benchmarks.ncf.PAIRS_AT_ONCE", 70)  # two users at once
    torch.manual_seed(5)
    network = task(data).build_network()
    test, negatives = data.array("test_pairs.npy"), data.array("test_negatives.npy")
    hits = 0
    with torch.inference_mode():
        for (user, item), others in zip(test, negatives, strict=True):
            candidates = torch.tensor([item, *others])
            scores = network(torch.full((len(candidates),), int(user)), candidates)
            hits += int((scores[1:] >= scores[0]).sum() < 10)
        tasks = [task(data, rank, world_size) for rank in range(world_size)]
        rows = torch.cat([one.evaluate(network) for one in tasks]).double()
    assert rows.shape == (USERS, 1)
    assert tasks[0].quality(rows) == hits / USERS
    assert 0 < hits < USERS


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20))
def test_ties_count_against_the_item(scores: list[int]) -> None:
    expected = sorted([*scores[1:], scores[0] - 0.5], reverse=True).index(scores[0] - 0.5)
    assert rank_of_first(torch.tensor([scores])).tolist() == [expected]


@given(st.sets(st.integers(0, 50), min_size=1), st.lists(st.integers(0, 60)))
def test_contains(values: set[int], asked: list[int]) -> None:
    found = contains(torch.tensor(sorted(values)), torch.tensor(asked, dtype=torch.int64))
    assert found.tolist() == [value in values for value in asked]


def test_example_is_a_batch(data: Manifest) -> None:
    example: Any = task(data, rank=1, world_size=4).example()
    (batch,) = task(data, rank=1, world_size=4).batches(0, 1)
    assert [(tensor.shape, tensor.dtype) for tensor in example] == [(tensor.shape, tensor.dtype) for tensor in batch]


def test_data_is_verified(data: Manifest, tmp_path: Path) -> None:
    manifest = write_dataset(tmp_path / "cut")
    path = tmp_path / "cut" / "train_pairs.npy"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DataError, match="train_pairs"):
        task(load_manifest(manifest))
