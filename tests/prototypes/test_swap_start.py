"""Where the swap search starts."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from swap_cases import make_data

from contrafact.prototypes.swap_columns import EuclideanColumns
from contrafact.prototypes.swap_start import starting_points


@pytest.mark.parametrize("init", ["greedy", "kmeans++", "random"])
def test_starting_points_are_distinct_and_never_more_than_places(init):
    X = np.array([[0.0], [0.0], [1.0], [0.0], [5.0], [6.0], [7.0], [7.0]])
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    columns = EuclideanColumns(X)
    for seed in range(10):
        rng = np.random.RandomState(seed)
        start = starting_points(columns, y, np.array([3, 3]), np.ones(8), init, rng)
        assert y[start].tolist() == [0, 0, 1, 1, 1]
        assert len(np.unique(X[start])) == 5


def test_the_greedy_start_is_the_weighted_medoid():
    X, y = make_data(50, 2, 3, seed=8)
    weights = np.random.default_rng(0).uniform(0, 2, 50)
    start = starting_points(
        EuclideanColumns(X), y, np.array([1, 1]), weights, "greedy", np.random.RandomState(0)
    )
    for c in (0, 1):
        members = np.flatnonzero(y == c)
        sums = weights[members] @ cdist(X[members], X[members])
        assert start[c] == members[sums.argmin()]
