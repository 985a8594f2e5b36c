"""A grid that runs in seconds, and explainers that misbehave; importable by child processes."""

from __future__ import annotations

import os
import time

import numpy as np
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.benchmark import Benchmark
from contrafact.engine.result import Counterfactuals

METRICS = ["valid", "l2", "sparsity", "knn_distance"]


def toy(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 1, 8))
    y = np.where(X[:, 0, :4].mean(1) > 0, "up", "down")
    return cf.Dataset(f"toy{seed}", "series", X[:40], y[:40], X[40:], y[40:])


class Liar(cf.NearestUnlike):
    """Returns the instances and calls them valid."""

    def explain(self, X, target=None, **options):
        result = super().explain(X, target, **options)
        n = len(result)
        return Counterfactuals(
            **{
                **vars(result),
                "X_cf": X[result.source],
                "cf_labels": result.target,
                "valid": np.ones(n, bool),
                "status": np.full(n, "valid"),
            }
        )


class Crasher(cf.NearestUnlike):
    def explain(self, X, target=None, **options):
        raise RuntimeError("no bread today")


class Dier(cf.NearestUnlike):
    def explain(self, X, target=None, **options):
        os._exit(3)


class Hanger(cf.NearestUnlike):
    def explain(self, X, target=None, **options):
        time.sleep(1000)


class Blank(cf.NearestUnlike):
    """Returns NaN for every other row, and forgets the last."""

    def explain(self, X, target=None, **options):
        result = super().explain(X, target, **options)[:-1]
        X_cf = np.array(result.X_cf)
        X_cf[::2] = np.nan
        object.__setattr__(result, "X_cf", X_cf)  # past the checks of the constructor
        return result


def small(**options):
    settings = {"seeds": [0, 1], "instances": 6, "metrics": METRICS, **options}
    explainers = {"line": "LineSearch", "mask": {"method": "RandomMask", "options": {"k": 2}}}
    return Benchmark(
        {"a": toy(0), "b": toy(1)}, {"LR": LogisticRegression()}, explainers, **settings
    )


def comparable(frame):
    """Without what a clock says."""
    return frame.drop(columns=["seconds", "fit_seconds"])
