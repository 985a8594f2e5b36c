"""Data, models and measuring shared by the parts of prototypes.py."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import re
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from _common import Array, yes_no

LOADERS = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
}

#: sections of benchmarks/results/prototypes.md, in their order
PAGE_TITLES = (
    "Accuracy",
    "Defaults, and other libraries, on 13 data sets",
    "Defaults on sets that had no part in their choice",
    "MedianLVQ",
    "Fit and predict time, memory",
)


# --- models --------------------------------------------------------------------------------------


def ours(model: str, per_class: int, **options: Any) -> Any:
    """Return an unfitted model of contrafact; imported here, to measure its memory."""
    models = importlib.import_module("contrafact.prototypes")
    return getattr(models, model)(per_class, **options)


def theirs(model: str, per_class: int, **options: Any) -> Any:
    """Return an unfitted model of prosemble; imported here, to measure its memory."""
    models = importlib.import_module("prosemble.models")
    return getattr(models, model)(n_prototypes_per_class=per_class, **options)


# --- data ----------------------------------------------------------------------------------------


def load_rows(data: str) -> tuple[Array, Array]:
    """Return all rows and labels; the pixels of digits are divided by 16."""
    X, y = LOADERS[data](return_X_y=True)
    if data == "digits":
        X = X / 16
    return X, y


class Fold(NamedTuple):
    """Training and test rows of one fold."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


def make_folds(data: str, seed: int) -> list[Fold]:
    """Return five stratified folds, standardized by their training rows, except for digits."""
    X, y = load_rows(data)
    splitter = StratifiedKFold(5, shuffle=True, random_state=seed)
    standardize = data != "digits"
    folds = []
    for train, test in splitter.split(X, y):
        scaler = StandardScaler(with_mean=standardize, with_std=standardize).fit(X[train])
        fold = Fold(scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test])
        folds.append(fold)
    return folds


def cross_validate(make: Callable[[], Any], data: str, seed: int) -> tuple[float, list[Any]]:
    """Return the mean test accuracy and the fitted models."""
    scores = []
    models = []
    for fold in make_folds(data, seed):
        model = make().fit(fold.X, fold.y)
        predicted = np.asarray(model.predict(fold.X_test))
        scores.append(np.mean(predicted == fold.y_test))
        models.append(model)
    return float(np.mean(scores)), models


def bar_cells(first: float, mean: float, bar: float | None) -> tuple[str, str]:
    """Return the bar, and whether the first seed and the mean of all seeds reach it."""
    if bar is None:
        return "", ""
    return f"≥ {bar:g}", f"{yes_no(first >= bar)}, {yes_no(mean >= bar)}"


# --- processes and memory ------------------------------------------------------------------------


def run_in_new_process(work: Callable[..., Any], *args: Any) -> Any:
    """Return work(*args), computed in a new process that keeps to one core."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, keep_to_one_core) as pool:
        return pool.submit(work, *args).result()


def keep_to_one_core() -> None:
    """Pin this process to one core: XLA ignores numbers of threads, but not the affinity."""
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def peak_memory() -> float:
    """Return the largest resident memory of this process so far, in MB.

    `getrusage` would count that of its parent, too.
    """
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024
