from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faceoff.data.movielens_100k import HEADER, leave_last_out, prepare, read_ratings, sample_negatives
from faceoff.errors import DataError


@st.composite
def ratings(draw) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    users = draw(st.integers(1, 6))
    pairs = [(user, draw(st.integers(0, 9))) for user in range(users)]
    pairs += draw(st.lists(st.tuples(st.integers(0, users - 1), st.integers(0, 9)), max_size=40))
    pairs = draw(st.permutations(sorted(set(pairs))))
    times = draw(st.lists(st.integers(0, 5), min_size=len(pairs), max_size=len(pairs)))
    users_items = np.array(pairs, dtype=np.int64)
    return users_items[:, 0], users_items[:, 1], np.array(times, dtype=np.int64)


@given(ratings())
def test_leave_last_out_splits_every_pair_once_and_holds_out_the_last(table) -> None:
    users, items, times = table
    train, test = leave_last_out(users, items, times)
    assert sorted(map(tuple, np.concatenate([train, test]).tolist())) == sorted(
        zip(users.tolist(), items.tolist(), strict=True)
    )
    assert test[:, 0].tolist() == list(range(users.max() + 1))
    for user, item in test.tolist():
        own = [(times[row], row) for row in np.flatnonzero(users == user)]
        assert items[max(own)[1]] == item


@given(ratings(), st.integers(0, 2**32 - 1))
def test_negatives_are_distinct_unseen_and_the_same_for_the_same_seed(table, seed: int) -> None:
    users, items, _ = table
    n_users = int(users.max()) + 1
    negatives = sample_negatives(users, items, n_users, 60, 20, seed)
    seen = set(zip(users.tolist(), items.tolist(), strict=True))
    for user, row in enumerate(negatives.tolist()):
        assert len(set(row)) == 20
        assert not seen & {(user, item) for item in row}
    np.testing.assert_array_equal(negatives, sample_negatives(users, items, n_users, 60, 20, seed))


def test_too_few_unseen_items() -> None:
    users, items = np.zeros(5, dtype=np.int64), np.arange(5)
    with pytest.raises(DataError, match="user 0 left 3 items unrated; 4 negatives are needed"):
        sample_negatives(users, items, 1, 8, 4, seed=0)


def test_of_equal_times_the_last_in_the_table_is_held_out(tmp_path: Path) -> None:
    rows = [(1, 7, 5, 20), (1, 3, 1, 20), (1, 9, 4, 10), (2, 1, 3, 5)] + [
        (3, item, 3, item) for item in range(100, 301)
    ]
    source = tmp_path / "ml.inter"
    source.write_text(HEADER + "\n" + "".join("\t".join(map(str, row)) + "\n" for row in rows))
    facts = prepare(source, tmp_path)
    assert facts == {"users": 3, "items": 300, "ratings": 205, "train_pairs": 202, "negatives": 99}
    assert np.load(tmp_path / "test_pairs.npy").tolist() == [[0, 2], [1, 0], [2, 299]]
    assert np.load(tmp_path / "train_pairs.npy")[:2].tolist() == [[0, 8], [0, 6]]


@pytest.mark.filterwarnings("ignore:loadtxt")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "header"),
        ("user\titem\n1\t2\n", "header"),
        (HEADER + "\n", "4 numbers"),
        (HEADER + "\n1\t2\t3\n", "4 numbers"),
        (HEADER + "\n1\t2\tx\t4\n", "no readable table"),
        (HEADER + "\n0\t1\t3\t4\n", "count from 1"),
        (HEADER + "\n1\t1\t3\t4\n3\t1\t3\t4\n", "no user without ratings"),
    ],
)
def test_broken_table(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "ml.inter").write_text(text)
    with pytest.raises(DataError, match=message):
        read_ratings(tmp_path / "ml.inter")
