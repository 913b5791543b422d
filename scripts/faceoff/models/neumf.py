"""NeuMF in PyTorch: matrix factorisation and a perceptron over embeddings of users and items, joined by one layer.

X. He et al.: Neural Collaborative Filtering, WWW 2017, section 3.4; initialisation as in MLPerf Training's reference.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class NeuMF(nn.Module):  # type: ignore[misc]
    """Scores pairs of user and item.

    `factors` is the width of the factorisation's embeddings, `layers` the widths of the perceptron, the first of which
    is a user's and an item's embedding side by side. Parameters: (users + items) * (factors + layers[0] / 2),
    plus a * b + b for neighbours a, b in `layers`, plus layers[-1] + factors + 1.
    """

    def __init__(self, users: int, items: int, factors: int, layers: Sequence[int]) -> None:
        super().__init__()
        self.user_factors = nn.Embedding(users, factors)
        self.item_factors = nn.Embedding(items, factors)
        self.user_features = nn.Embedding(users, layers[0] // 2)
        self.item_features = nn.Embedding(items, layers[0] // 2)
        self.layers = nn.ModuleList(nn.Linear(width, following) for width, following in pairwise(layers))
        self.output = nn.Linear(layers[-1] + factors, 1)
        for embedding in (self.user_factors, self.item_factors, self.user_features, self.item_features):
            nn.init.normal_(embedding.weight, std=0.01)
        for layer in self.layers:
            nn.init.xavier_uniform_(layer.weight)
        limit = math.sqrt(3 / self.output.in_features)
        nn.init.uniform_(self.output.weight, -limit, limit)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Return the logits, float [n], of `users` and `items`, integer [n]."""
        factors = self.user_factors(users) * self.item_factors(items)
        features = torch.cat((self.user_features(users), self.item_features(items)), dim=-1)
        for layer in self.layers:
            features = torch.relu(layer(features))
        return self.output(torch.cat((factors, features), dim=-1)).squeeze(-1)
