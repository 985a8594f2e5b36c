"""Models and a brute-force search that the tests of the guides share."""

import numpy as np
import torch


def by_first(X):
    """Class 1 where the first value is above 0."""
    p = 1 / (1 + np.exp(-np.asarray(X).reshape(len(X), -1)[:, 0]))
    return np.stack([1 - p, p], 1)


class Parity(torch.nn.Module):
    """Three classes scattered over the rows without any pattern in space; computes in `dtype`."""

    def __init__(self, dtype=torch.float64):
        super().__init__()
        self.unused = torch.nn.Parameter(torch.zeros(1, dtype=dtype))

    def forward(self, x):
        column = (x.double().flatten(1) * 37).sum(1).floor().long() % 3
        return torch.nn.functional.one_hot(column, 3).to(x.dtype)


def brute_force(x, reference, member, k, distance=None):
    """Index (n, k) of the nearest members, the first row of equals; −1 where there are fewer."""
    x, reference = x.astype(np.float64), reference.astype(np.float64)
    if distance is None:
        distance = ((x[:, None] - reference) ** 2).reshape(len(x), len(reference), -1).sum(2)
    distance = np.where(member, distance, np.inf)
    order = np.argsort(distance, axis=1, kind="stable")[:, :k]
    index = np.where(np.isfinite(np.take_along_axis(distance, order, 1)), order, -1)
    return np.pad(index, ((0, 0), (0, k - index.shape[1])), constant_values=-1)
