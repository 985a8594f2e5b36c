"""The plain swap search: NumPy, double precision, all candidates at once, whole sweeps."""

from __future__ import annotations

import numpy as np


class Glvq:
    """−Σ w log(4 − μ); a set of prototypes counts by its nearest."""

    def join(self, pool, d):
        return np.minimum(pool, d)

    def f(self, mu):
        return -np.log(4 - mu)

    def cost(self, own, other, weights=1.0):
        total = own + other
        mu = np.divide(own - other, total, out=np.zeros_like(total), where=total > 0)
        return (self.f(mu) * weights).sum(-1)


class Sigmoid(Glvq):
    def __init__(self, beta=7.0):
        self.beta = beta

    def f(self, mu):
        scaled = self.beta * mu
        return scaled / np.sqrt(1 + scaled**2)


class Rslvq:
    """The likelihood ratio; a set counts by its soft minimum."""

    def __init__(self, temperature):
        self.temperature = temperature

    def join(self, pool, d):
        return -self.temperature * np.logaddexp(-pool / self.temperature, -d / self.temperature)

    def cost(self, own, other, weights=1.0):
        return (np.logaddexp(0, (own - other) / self.temperature) * weights).sum(-1)


def pools(D, y, indices, objective):
    own, other = np.full((2, len(y)), np.inf)
    for j in indices:
        own = np.where(y == y[j], objective.join(own, D[:, j]), own)
        other = np.where(y == y[j], other, objective.join(other, D[:, j]))
    return own, other


def set_cost(D, y, indices, objective, weights=1.0):
    """The cost of a set of prototypes, from its definition."""
    return float(objective.cost(*pools(D, y, indices, objective), weights))


def candidates_for(D, y, indices, k):
    """Samples of k's class that are not at the place of another prototype of that class."""
    rivals = [j for i, j in enumerate(indices) if i != k and y[j] == y[indices[k]]]
    free = (y == y[indices[k]]) & ~(D[:, rivals] == 0).any(1)
    free[rivals] = False
    return np.flatnonzero(free)


def reference_swap(D, y, start, objective, weights=1.0):
    """Swap until a sweep changes nothing; returns the prototypes and the costs after each swap."""
    indices = np.array(start)
    history, changed = [set_cost(D, y, indices, objective, weights)], True
    while changed:
        changed = False
        for k in range(len(indices)):
            own, other = pools(D, y, np.delete(indices, k), objective)
            mine = y == y[indices[k]]
            candidates, costs = candidates_for(D, y, indices, k), []
            for part in np.split(candidates, range(256, len(candidates), 256)):
                near = objective.join(np.where(mine, own, other), D[:, part].T)
                costs.append(
                    objective.cost(np.where(mine, near, own), np.where(mine, other, near), weights)
                )
            costs = np.concatenate(costs)
            if costs.size and costs.min() < history[-1] - 1e-12 * (abs(history[0]) + len(y)):
                indices[k] = candidates[costs.argmin()]
                history.append(float(costs.min()))
                changed = True
    return indices, history
