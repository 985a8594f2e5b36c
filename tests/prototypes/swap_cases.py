"""Data, costs and searches that the tests of the swap search share."""

import numpy as np
from reference_swap import Glvq, Rslvq, Sigmoid

from contrafact.prototypes.swap import SwapSearch
from contrafact.prototypes.swap_costs import GLVQCost, RSLVQCost, SigmoidCost

OBJECTIVES = {"glvq": Glvq(), "sigmoid": Sigmoid(), "rslvq": Rslvq(0.7)}


def make_cost(name, weights):
    if name == "rslvq":
        return RSLVQCost(weights, 0.7)
    return SigmoidCost(weights, 7.0) if name == "sigmoid" else GLVQCost(weights)


def make_data(n=90, n_classes=3, features=4, seed=0, spread=1.5):
    rng = np.random.default_rng(seed)
    y = np.sort(rng.integers(0, n_classes, n))
    return rng.normal(size=(n, features)) + spread * rng.normal(size=(n_classes, features))[y], y


def first_of_each(y, count):
    return np.concatenate([np.flatnonzero(y == c)[:count] for c in np.unique(y)])


def search(columns, y, name, start, weights=None):
    weights = np.ones(len(y)) if weights is None else weights
    found = SwapSearch(columns, y, make_cost(name, weights), start)
    history, _, ended = found.run(100)
    assert ended
    return found.indices, history
