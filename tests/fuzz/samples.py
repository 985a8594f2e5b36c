"""Data, models and results that right arguments are made of."""

from functools import cache

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact import benchmark
from task_building import open_tasks

X = np.random.default_rng(0).normal(size=(24, 4))
Y = (X.mean(1) > 0).astype(int)
SERIES = np.random.default_rng(1).normal(size=(20, 1, 16)).cumsum(2)
SERIES_Y = (SERIES.mean((1, 2)) > np.median(SERIES.mean((1, 2)))).astype(int)
IMAGES = np.random.default_rng(2).uniform(size=(12, 1, 6, 6))
TARGET = np.array([1, 0, 1])


def row_model():
    """A fitted model of rows."""
    return _row_model()


@cache
def _row_model():
    return LogisticRegression().fit(X, Y)


def series_model(X):
    """P of two classes, by the mean of a series."""
    p = 1 / (1 + np.exp(-2 * (X.reshape(len(X), -1).mean(1) - np.median(SERIES.mean((1, 2))))))
    return np.stack([1 - p, p], 1)


def image_model(X):
    """P of two classes, by the mean of an image."""
    p = (X.reshape(len(X), -1).mean(1) > np.median(IMAGES.mean((1, 2, 3)))) * 0.8 + 0.1
    return np.stack([1 - p, p], 1)


@cache
def fitted(name, kind="row"):
    if kind == "row":
        return getattr(cf, name)().fit(row_model(), X, Y)
    return getattr(cf, name)().fit(series_model, SERIES, SERIES_Y)


@cache
def result(kind="row"):
    """A small true result."""
    if kind == "image":
        labels = np.arange(len(IMAGES)) % 2
        return cf.NearestUnlike().fit(image_model, IMAGES, labels).explain(IMAGES[:3])
    rows = X[:3] if kind == "row" else SERIES[:3]
    return fitted("LineSearch", kind).explain(rows)


@cache
def scores():
    """A table of scores, as a benchmark makes it."""
    rng = np.random.default_rng(3)
    rows = []
    for dataset in "abcd":
        for explainer in ("one", "two", "three"):
            for source in range(3):
                rows.append((dataset, "m", explainer, 0, source, True, *rng.uniform(size=2)))
    columns = ["dataset", "classifier", "explainer", "seed", "instance", "valid", "l1", "sparsity"]
    return pd.DataFrame(rows, columns=columns)


@cache
def planted():
    return benchmark.planted_series(12, 16, width=4)


def tensor(values, dtype=torch.float64):
    return torch.tensor(np.asarray(values), dtype=dtype)


def tasks():
    """Tasks of three series, with guides."""
    opened = open_tasks(series_model, SERIES[:3].copy(), modality="series")
    return opened.attach(guide=tensor(SERIES[3:6]))
