"""Kohonen's rules, step by step."""

import itertools

import numpy as np

from contrafact.prototypes import LVQ1, LVQ21


def test_lvq1_is_the_classical_rule():
    """The winner moves α(x − w) toward a row of its class, else away; α = 2 learning_rate."""
    X, y = np.array([[0.0, 0.0], [2.0, 1.0], [5.0, 0.5], [1.5, 3.0]]), np.array([0, 0, 1, 1])
    start, owner, alpha = np.array([[0.5, 1.0], [4.0, 0.0]]), np.array([0, 1]), 0.2

    def classical(order):
        w = start.copy()
        for i in order:
            k = ((X[i] - w) ** 2).sum(1).argmin()
            w[k] += (1 if owner[k] == y[i] else -1) * alpha * (X[i] - w[k])
        return w

    model = LVQ1(
        optimizer="sgd",
        learning_rate=alpha / 2,
        scheduler=None,
        batch_size=1,
        max_iter=1,
        random_state=0,
    )
    found = model.fit(X, y, initial_prototypes=(start, owner)).prototypes_
    ways = np.array([classical(order) for order in itertools.permutations(range(4))])
    assert (
        np.abs(ways - found).max((1, 2)).min() < 1e-12
    )  # it took the rows in one of the 24 orders
    assert np.abs(ways[0] - ways).max() > 0.01  # which is not all the same
    assert np.abs(start - found).max() > 0.1


def test_lvq21_moves_both_and_only_inside_the_window():
    X, y = np.array([[1.9], [9.0]]), np.array([0, 1])
    start = np.array(
        [[0.0], [4.0]]
    )  # 1.9 lies between; 9 is 5 from the one and 9 from the other: outside
    model = LVQ21(
        window=0.2,
        optimizer="sgd",
        learning_rate=0.1,
        scheduler=None,
        batch_size=1,
        max_iter=1,
        random_state=0,
    )
    found = model.fit(X, y, initial_prototypes=(start, y)).prototypes_
    np.testing.assert_allclose(found, [[0.2 * 1.9], [4.0 + 0.2 * 2.1]], atol=1e-12)
