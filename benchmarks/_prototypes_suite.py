"""Data sets, folds and workers of prototype_suite.py.

A worker is this file, run by the Python of one library: it reads jobs from its input, one line of
JSON each, and answers each with a line. It imports no library but its own.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

N_SEEDS = 3
N_FOLDS = 5
MAX_ROWS = 400
TABLES = ("iris", "wine", "breast cancer", "digits")
BUNDLED = ("GunPoint", "ItalyPowerDemand", "ArrowHead")
ARCHIVE = ("TwoLeadECG", "MoteStrain", "CBF", "Coffee", "ECG200", "Chinatown")
#: sets that have no part in the choice of defaults
UNSEEN_BUNDLED = ("OSULeaf", "BasicMotions")
UNSEEN_ARCHIVE = ("Lightning7", "Epilepsy", "FordA_subset", "FordB_subset")


# --- data ----------------------------------------------------------------------------------------


def load_set(name: str, folder: Path) -> tuple[Any, Any]:
    """Return all rows, flat, and labels as numbers; at most MAX_ROWS, stratified."""
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import LabelEncoder

    if name in TABLES:
        datasets = importlib.import_module("sklearn.datasets")
        X, y = getattr(datasets, f"load_{name.replace(' ', '_')}")(return_X_y=True)
    else:
        if name in BUNDLED + UNSEEN_BUNDLED:
            data = importlib.import_module("contrafact").load_dataset(name)
            parts = [(data.X_train, data.y_train), (data.X_test, data.y_test)]
        else:
            stored = np.load(folder / f"{name}.npz")
            parts = [(stored[f"X_{part}"], stored[f"y_{part}"]) for part in ("train", "test")]
        X = np.concatenate([rows for rows, _ in parts])
        y = np.concatenate([labels for _, labels in parts])
    X = X.reshape(len(X), -1).astype(np.float64)
    y = LabelEncoder().fit_transform(y)
    if len(X) > MAX_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MAX_ROWS, stratify=y, random_state=0)
    return X, y


def write_set(name: str, folder: Path, target: Path) -> None:
    """Write rows, labels and, for every seed, the fold in which a row is tested.

    `inner` marks the rows that are held out of the training rows of a fold, to choose by.
    """
    from sklearn.model_selection import StratifiedKFold, train_test_split

    X, y = load_set(name, folder)
    fold = np.zeros((N_SEEDS, len(X)), int)
    inner = np.zeros((N_SEEDS, N_FOLDS, len(X)), bool)
    for seed in range(N_SEEDS):
        splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
        for i, (train, test) in enumerate(splitter.split(X, y)):
            fold[seed, test] = i
            number = seed * N_FOLDS + i
            _, held = train_test_split(
                train, test_size=0.25, stratify=y[train], random_state=number
            )
            inner[seed, i, held] = True
    np.savez(target, X=X, y=y, fold=fold, inner=inner)


def folds(path: Path, seed: int, is_inner: bool) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Return X, y, X_test, y_test of every fold, standardized by the training rows."""
    stored = np.load(path)
    X, y = stored["X"], stored["y"]
    for i in range(N_FOLDS):
        test = stored["fold"][seed] == i
        train = ~test
        if is_inner:
            test = stored["inner"][seed, i]
            train &= ~test
        mean, std = X[train].mean(0), X[train].std(0)
        Z = (X - mean) / np.where(std > 0, std, 1)
        yield Z[train], y[train], Z[test], y[test]


# --- models --------------------------------------------------------------------------------------


def make_model(job: dict[str, Any]) -> Any:
    """Return an unfitted model."""
    name, per_class, seed = job["model"], job["per_class"], job["seed"]
    if job["library"] == "prosemble":
        models = importlib.import_module("prosemble.models")
        return getattr(models, name)(n_prototypes_per_class=per_class, random_seed=seed)
    if job["library"] == "sklvq":
        models = importlib.import_module("sklvq")
        return getattr(models, name)(prototype_n_per_class=per_class, random_state=seed)
    kind = getattr(importlib.import_module("contrafact.prototypes"), name)
    settings = {
        key: job["options"][key] for key in ("steepness", "softness") if key in job["options"]
    }
    options = {key: value for key, value in job["options"].items() if key not in settings}
    return type(name, (kind,), settings)(per_class, random_state=seed, **options)


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """Fit and test on every fold."""
    accuracy, seconds = [], []
    for X, y, X_test, y_test in folds(Path(job["path"]), job["seed"], job["inner"]):
        model = make_model(job)
        start = time.process_time()
        model.fit(X, y)
        seconds.append(time.process_time() - start)
        accuracy.append(float(np.mean(np.asarray(model.predict(X_test)) == y_test)))
    return {"accuracy": accuracy, "seconds": seconds}


class Worker:
    """A process that answers jobs with the Python of one library."""

    def __init__(self, python: str) -> None:
        self.process = subprocess.Popen(
            [python, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a job."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker of {job['library']} ended at {job}")
        answered: dict[str, Any] = json.loads(line)
        return answered


def work() -> None:
    """Answer jobs until there are none."""
    warnings.simplefilter("ignore")
    answers = sys.stdout
    sys.stdout = sys.stderr  # what libraries print must not be taken for an answer
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    work()
