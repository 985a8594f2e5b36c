"""Elastic dissimilarities by their definition."""

import numpy as np

from contrafact.prototypes.dissimilarity import soft_dtw


def test_soft_dtw_by_its_definition():
    """Minus the log of a sum over all warping paths, by enumeration on short series."""
    X = np.random.default_rng(0).normal(size=(2, 2, 4))

    def paths(i, j):
        if (i, j) == (0, 0):
            return [[(0, 0)]]
        before = [(a, b) for a, b in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if min(a, b) >= 0]
        return [[*path, (i, j)] for cell in before for path in paths(*cell)]

    cost = ((X[0][:, :, None] - X[1][:, None]) ** 2).sum(0)
    totals = [sum(cost[cell] for cell in path) for path in paths(3, 3)]
    np.testing.assert_allclose(soft_dtw(X[0], X[1]), -np.log(np.exp(-np.array(totals)).sum()))
