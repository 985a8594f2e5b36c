"""Random weights and points for the tests of linear maximization."""

import math

import numpy as np
import torch

INF = math.inf
NORMS = [1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0, INF]


def weights(kind, shape, seed=0):
    rng = np.random.default_rng(seed)
    w = {
        "normal": lambda: rng.normal(size=shape),
        "cauchy": lambda: rng.standard_cauchy(size=shape),
        "lognormal": lambda: rng.choice([-1, 1], shape) * np.exp(3 * rng.normal(size=shape)),
    }[kind]()
    return torch.from_numpy(w)


def points(shape, seed=1):
    """In [0, 1], a third of them on the boundary."""
    x = torch.from_numpy(np.random.default_rng(seed).random(shape))
    x.flatten(1)[:, ::3] = x.flatten(1)[:, ::3].round()
    return x


def norm(delta, p):
    return torch.linalg.vector_norm(delta.double().flatten(1), p, dim=1)


def slack(w, x, lo=0.0, hi=1.0):
    return torch.where(w > 0, hi - x, torch.where(w < 0, x - lo, 0.0)).double()


def value(w, delta):
    return (w.double() * delta.double()).flatten(1).sum(1)
