"""Explain a model of another library, and compare `valid` with its own `predict`."""

import json
import platform
import signal
import warnings
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import numpy as np

import contrafact as cf
from global_state import changes, snapshot

#: seconds of CPU time that fitting and explaining one model may take
TIME_LIMIT = 600


class Ledger:
    """What was tried with a library: one entry per model; `beside`: packages it worked with."""

    def __init__(self, library, beside=()):
        self.library = library
        self.beside = beside
        self.entries = []

    def add(self, model, outcome, **details):
        self.entries.append({"model": model, "outcome": outcome, **details})

    def write(self, folder):
        """Write the entries; keep others of an earlier run with the same versions."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.library}.json"
        content = {
            "library": self.library,
            "version": version(self.library),
            "python": platform.python_version(),
        }
        earlier = json.loads(path.read_text()) if path.exists() else {}
        if not content.items() <= earlier.items():
            earlier = {"beside": {}, "entries": []}
        beside = {package: version(package) for package in self.beside}
        content["beside"] = {**earlier["beside"], **beside}
        renewed = {entry["model"]: entry for entry in earlier["entries"] + self.entries}
        content["entries"] = [renewed[model] for model in sorted(renewed)]
        path.write_text(json.dumps(content, indent=1))


class TooLong(Exception):
    """The time limit is over."""


@contextmanager
def time_limit(seconds=TIME_LIMIT):
    """Raise TooLong in the block when this much CPU time is over."""

    def stop(*_):
        raise TooLong(f"longer than {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def rows_of_data(n=60):
    """Three classes of positive rows, as every kind of naive Bayes takes them."""
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    some = np.random.default_rng(0).permutation(len(X))[:n]
    return X[some], y[some]


def series_data(n=24, channels=1, length=64):
    """Two classes of noisy waves: slow and fast."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    time = np.linspace(0, 2 * np.pi, length)
    speed = np.where(y == 1, 5.0, 2.0)[:, None, None]
    shift = 0.3 * rng.normal(size=(n, channels, 1))
    X = np.sin(speed * time + shift) + 0.2 * rng.normal(size=(n, channels, length))
    return X, np.where(y == 1, "fast", "slow")


def check_explained(ledger, name, model, X, y, predict=None, method=None, wrap=None):
    """Explain four instances; `valid` has to be what `predict` says, in a batch and row by row.

    `predict` takes what is returned, in the shape of X; `wrap` is handed to contrafact in place of
    the model, where the two differ. At least one has to be valid, unless the model gives all of X
    the same class.
    """
    ledger.add(name, "failed", reason="an exception")  # replaced below, if there is none
    method = method or cf.LineSearch()
    predict = predict or model.predict
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = snapshot()
        explainer = method.fit(model if wrap is None else wrap, X, y)
        result = explainer.explain(X[:4])
        changed = changes(before, snapshot())
        constant = len(np.unique(predict(X))) == 1
        batch = np.asarray(predict(result.X_cf)).ravel()
        single = np.concatenate([np.ravel(predict(x[None])) for x in result.X_cf])
    gradients = "exact" if explainer.classifier_.differentiable else "none"
    by_batch = batch == result.target
    by_row = single == result.target
    errors = result.message[result.status == "error"].tolist()
    agrees = bool((result.valid == by_batch).all() and (result.valid == by_row).all())
    found = bool(result.valid.any()) or constant
    good = agrees and found and not errors and not changed
    ledger.add(
        name,
        "explained" if good else "failed",
        valid=int(result.valid.sum()),
        of=len(result),
        constant=constant,
        gradients=gradients,
        remarks=result.provenance.get("remarks", []),
    )
    assert not errors, errors[0]
    assert not changed, "contrafact changed " + "; ".join(changed)
    np.testing.assert_array_equal(result.valid, by_batch)
    np.testing.assert_array_equal(result.valid, by_row)
    assert found, "no counterfactual is valid, though the model knows several classes"
    return result
