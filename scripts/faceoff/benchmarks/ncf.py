"""NCF: which item does a user take next? NeuMF trained on implicit feedback, measured by HR@10.

The data set's manifest gives train_pairs.npy and test_pairs.npy, int32 [n, 2] (user, item), test_negatives.npy,
int32 [n, k] items for each row of test_pairs.npy, and the facts `users` and `items`.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from faceoff.data.manifest import Manifest
from faceoff.models.neumf import NeuMF
from faceoff.training.pytorch import Context

HITS_AT = 10
PAIRS_AT_ONCE = 1 << 16  # of an evaluation

Batch = tuple[Tensor, Tensor, Tensor]  # users, items: int32 [n]; labels: float [n], 1 for an item that was taken


def create_pytorch_task(hyperparameters: dict[str, Any], data: Manifest, context: Context) -> "NcfTask":
    """Read the data set onto the device."""
    return NcfTask(hyperparameters, data, context)


class NcfTask:
    """NCF as the PyTorch trainer sees it (`faceoff.training.pytorch.Task`). All data lies on the device."""

    def __init__(self, hyperparameters: dict[str, Any], data: Manifest, context: Context) -> None:
        self._hyperparameters, self._context = hyperparameters, context
        self._n_users, self._n_items = data.facts["users"], data.facts["items"]
        pairs = torch.from_numpy(data.array("train_pairs.npy")).to(context.device)
        self._users, self._items = pairs.T.contiguous()
        self._taken = pair_keys(self._users, self._items, self._n_items).sort().values
        test, negatives = data.array("test_pairs.npy"), data.array("test_negatives.npy")
        share = context.placement.share(len(test))
        self._test_users = torch.from_numpy(test[share, :1]).to(context.device)
        candidates = torch.cat((torch.from_numpy(test[share, 1:]), torch.from_numpy(negatives[share])), dim=1)
        self._candidates = candidates.to(context.device)  # of each test user; the item that was taken comes first
        self.train_samples = len(pairs) * (1 + hyperparameters["negatives"])
        self.eval_samples = len(test)
        self._epoch: int | None = None  # of the samples now drawn
        self._samples: Batch

    def build_network(self) -> nn.Module:
        """Return NeuMF for the data set's users and items."""
        return NeuMF(self._n_users, self._n_items, self._hyperparameters["factors"], self._hyperparameters["layers"])

    def learning_rate(self, step: int) -> float:  # noqa: ARG002
        """Return the constant learning rate."""
        return self._hyperparameters["learning_rate"]

    def example(self) -> Batch:
        """Return a batch of the first user's not taking the first item."""
        share = self._context.placement.share(self._context.global_batch)
        zeros = torch.zeros(share.stop - share.start, dtype=torch.int32, device=self._context.device)
        return zeros, zeros, zeros.float()

    def batches(self, first_step: int, steps: int) -> Iterator[Batch]:
        """Yield shares of the epoch's samples in their order; a new epoch draws new samples."""
        size = self._context.global_batch
        share = self._context.placement.share(size)
        for step in range(first_step, first_step + steps):
            epoch, position = divmod(step, self.train_samples // size)
            if epoch != self._epoch:
                self._epoch, self._samples = epoch, self._draw(epoch)
            batch = slice(position * size + share.start, position * size + share.stop)
            users, items, labels = self._samples
            yield users[batch], items[batch], labels[batch]

    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        """Return the mean binary cross-entropy."""
        users, items, labels = batch
        return binary_cross_entropy_with_logits(network(users, items), labels)

    def evaluate(self, network: nn.Module) -> Tensor:
        """Return one row [hit] a test user."""
        per_user = self._candidates.shape[1]
        ranks = []
        for users, items in zip(
            self._test_users.split(PAIRS_AT_ONCE // per_user),
            self._candidates.split(PAIRS_AT_ONCE // per_user),
            strict=True,
        ):
            scores = network(users.expand(-1, per_user).flatten(), items.flatten()).view(-1, per_user)
            ranks.append(rank_of_first(scores))
        return (torch.cat(ranks) < HITS_AT)[:, None]

    def quality(self, rows: Tensor) -> float:
        """Return HR@10: the share of test users whose item is among the ten best."""
        return rows.mean().item()

    def _draw(self, epoch: int) -> Batch:
        """Return an epoch's samples in random order: each pair of the training set, and `negatives` untaken items."""
        per_pair = 1 + self._hyperparameters["negatives"]
        generator, device = self._context.generator("samples", epoch), self._context.device
        order = torch.randperm(self.train_samples, generator=generator, device=device)
        taken, pair = order % per_pair == 0, order // per_pair
        users, items = self._users[pair], self._items[pair]
        open_ = (~taken).nonzero().squeeze(1)
        while len(open_):
            drawn = torch.randint(self._n_items, open_.shape, generator=generator, device=device, dtype=torch.int32)
            items[open_] = drawn
            open_ = open_[contains(self._taken, pair_keys(users[open_], drawn, self._n_items))]
        return users, items, taken.float()


def pair_keys(users: Tensor, items: Tensor, n_items: int) -> Tensor:
    """Return one int64 for each pair of user and item."""
    return users.long() * n_items + items


def contains(ordered: Tensor, keys: Tensor) -> Tensor:
    """Return for each key, [n], whether it is in `ordered`, which is sorted and not empty."""
    places = torch.searchsorted(ordered, keys).clamp_(max=len(ordered) - 1)
    return ordered[places] == keys


def rank_of_first(scores: Tensor) -> Tensor:
    """Return the rank from 0, [n], of the first of the scores in each row [n, k]; ties count against it."""
    return (scores[:, 1:] >= scores[:, :1]).sum(dim=1)
