"""MovieLens 100K: 100,000 ratings of 1,682 films by 943 users, each user's last rating held out.

F. M. Harper, J. A. Konstan: The MovieLens Datasets, ACM TiiS 5(4), 2015. Split and ranking among 99 unseen items follow
X. He et al.: Neural Collaborative Filtering, WWW 2017, section 4.1.
"""

from pathlib import Path
from typing import Any

import numpy as np

from faceoff.data.arrays import save_array
from faceoff.errors import DataError

HEADER = "user_id:token\titem_id:token\trating:float\ttimestamp:float"
NEGATIVES = 99


def prepare(source: Path, output: Path) -> dict[str, Any]:
    """Split the ratings in `source` (ml-100k.inter: user, item, rating, timestamp, ids from 1) by leaving the last out.

    Writes to the directory `output`: train_pairs.npy int32 [n, 2] (user, item, from 0, in the order of user and time),
    test_pairs.npy int32 [users, 2], test_negatives.npy int32 [users, 99]. Returns the facts.
    Raises DataError for a table of another form.
    """
    users, items, times = read_ratings(source)
    train, test = leave_last_out(users, items, times)
    n_users, n_items = int(users.max()) + 1, int(items.max()) + 1
    negatives = sample_negatives(users, items, n_users, n_items, NEGATIVES, seed=0)
    save_array(output / "train_pairs.npy", train)
    save_array(output / "test_pairs.npy", test)
    save_array(output / "test_negatives.npy", negatives)
    return {
        "users": n_users,
        "items": n_items,
        "ratings": len(users),
        "train_pairs": len(train),
        "negatives": NEGATIVES,
    }


def read_ratings(source: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return users, items (int64 from 0) and timestamps (seconds since 1970) of a table of ratings."""
    try:
        with source.open(encoding="utf-8") as stream:
            header = stream.readline().rstrip("\n")
            if header != HEADER:
                raise DataError(f"{source}: header: expected {HEADER!r}, found {header!r}")
            table = np.loadtxt(stream, delimiter="\t", dtype=np.int64, ndmin=2)
    except (OSError, ValueError) as error:
        raise DataError(f"{source}: no readable table of ratings: {error}") from error
    if table.shape[0] == 0 or table.shape[1] != 4:
        raise DataError(f"{source}: expected rows of 4 numbers, found a table of shape {table.shape}")
    users, items, _, times = table.T
    if users.min() != 1 or items.min() != 1 or len(np.unique(users)) != users.max():
        raise DataError(f"{source}: expected user and item ids that count from 1 and no user without ratings")
    return users - 1, items - 1, times


def leave_last_out(users: np.ndarray, items: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return training pairs int32 [n - users, 2] and test pairs int32 [users, 2] (user, item).

    The test pair of a user is the last by timestamp; of equal timestamps, the last in the table, as a stable sort
    has it (the greatest item id would pick films that few have seen).
    """
    order = np.lexsort((times, users))
    pairs = np.stack([users[order], items[order]], axis=1).astype(np.int32)
    last = np.append(pairs[1:, 0] != pairs[:-1, 0], True)
    return pairs[~last], pairs[last]


def sample_negatives(
    users: np.ndarray, items: np.ndarray, n_users: int, n_items: int, count: int, seed: int
) -> np.ndarray:
    """Return int32 [n_users, count]: for each user, distinct items that the user never rated, drawn uniformly.

    Raises DataError when a user left fewer than `count` items unrated.
    """
    seen = np.zeros((n_users, n_items), dtype=bool)
    seen[users, items] = True
    random = np.random.RandomState(seed)
    negatives = np.empty((n_users, count), dtype=np.int32)
    for user in range(n_users):
        unseen = np.flatnonzero(~seen[user])
        if len(unseen) < count:
            raise DataError(f"user {user} left {len(unseen)} items unrated; {count} negatives are needed")
        negatives[user] = random.choice(unseen, count, replace=False)
    return negatives
