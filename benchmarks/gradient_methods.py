"""Measure CELS and Glacier: speed next to tscf-eval, engine overhead, validity and refinement.

    make bench-gradient

The peer has a virtual environment of its own (benchmarks/.venv) and is never a dependency; both
sides run in one process on the same model and rows. Times are reported as ratios within this run.
Writes one page per part into benchmarks/results.
"""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import contrafact as cf
from _common import (
    Array,
    accuracy,
    conditions,
    fit_fcn,
    fit_forest,
    fit_rocket,
    flatten_rows,
    make_parser,
    random_rows,
    table_head,
    table_row,
    timed,
    write_page,
)

DATASETS = ("GunPoint", "ItalyPowerDemand", "ArrowHead", "BasicMotions")


def fit_scaled(estimator: Any, data: cf.Dataset) -> Any:
    """Fit a scikit-learn estimator to flattened, standardized rows."""
    model = make_pipeline(StandardScaler(), estimator)
    return model.fit(flatten_rows(data.X_train), data.y_train)


def fit_logistic(data: cf.Dataset) -> Any:
    """Train a logistic regression."""
    return fit_scaled(LogisticRegression(max_iter=1000), data)


def fit_mlp(data: cf.Dataset) -> Any:
    """Train a perceptron with one hidden layer."""
    return fit_scaled(MLPClassifier((64,), max_iter=500, random_state=0), data)


MODELS: dict[str, Callable[[cf.Dataset], Any]] = {
    "FCN": fit_fcn,
    "logistic regression": fit_logistic,
    "MLP": fit_mlp,
    "random forest": fit_forest,
    "ROCKET(500)": fit_rocket,
}


# --- next to the peer ----------------------------------------------------------------------------


class PeerModel:
    """A contrafact classifier with the attributes that tscf-eval expects."""

    def __init__(self, classifier: cf.Classifier) -> None:
        self.classifier = classifier
        self.classes_ = classifier.classes

    def predict_proba(self, X: Array) -> Array:
        """Return class probabilities of univariate series."""
        return self.classifier.predict_proba(X.reshape(len(X), 1, -1))

    def predict(self, X: Array) -> Array:
        """Return the labels of univariate series."""
        return self.classifier.predict(X.reshape(len(X), 1, -1))


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise TimeoutError when the block takes longer."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def run_peer(
    name: str,
    model: Any,
    data: cf.Dataset,
    X: Array,
    cap: int,
) -> tuple[str, float, int]:
    """Run tscf-eval with its defaults, at most `cap` seconds per row.

    Returns ">" if a row was stopped (the time is then a lower bound) and "" otherwise, the seconds
    per row, and the number of valid rows.
    """
    from tscf_eval.counterfactuals import CELS, Glacier

    method = {"CELS": CELS, "Glacier": Glacier}[name]
    explainer = method(model=model, data=(data.X_train[:, 0], data.y_train))
    times = []
    valid = 0
    capped = False
    for x in X:
        start = time.perf_counter()
        try:
            with time_limit(cap):
                answer, _, _ = explainer.explain(x[0])
            before = model.predict(x.reshape(1, 1, -1))[0]
            after = model.predict(answer.reshape(1, 1, -1))[0]
            valid += before != after
        except TimeoutError:
            capped = True
        times.append(time.perf_counter() - start)
    mark = ">" if capped else ""
    return mark, float(np.mean(times)), valid


def compare_with_peer(cap: int) -> Iterator[str]:
    """Explain the same rows with both libraries."""
    data = cf.load_dataset("GunPoint")
    yield "# Beside tscf-eval 1.2.0 (its defaults), GunPoint, same model, same process"
    yield ""
    yield from table_head(
        "model",
        "method",
        "rows, one batch",
        "valid",
        "s per row",
        "peer rows",
        "valid",
        "s per row",
        "ratio",
    )
    for model_name, n in (("FCN", 100), ("ROCKET(500)", 50)):
        model = MODELS[model_name](data)
        X = random_rows(data.X_test, n)
        peer_model = PeerModel(cf.as_classifier(model)) if model_name == "FCN" else model
        for method in (cf.CELS(), cf.Glacier()):
            name = type(method).__name__
            method.fit(model, data.X_train, data.y_train)
            method.explain(X[:2])  # the first run pays for loading
            result, seconds = timed(lambda method=method, X=X: method.explain(X))
            ours = seconds.wall / n
            tried = X[:2]
            mark, theirs, peer_valid = run_peer(name, peer_model, data, tried, cap)
            yield table_row(
                model_name,
                name,
                n,
                f"{result.valid.mean():.2f}",
                f"{ours:.3f}",
                len(tried),
                f"{peer_valid}/{len(tried)}",
                f"{mark}{theirs:.1f}",
                f"{mark}{theirs / ours:.0f}",
            )
    yield ""


# --- engine overhead and refinement --------------------------------------------------------------


class PassRecorder:
    """Record the sizes of all batches that go to the model, to repeat the bare passes."""

    def __init__(self, classifier: cf.Classifier) -> None:
        self.classifier = classifier
        self.forward: list[int] = []
        self.backward: list[int] = []
        evaluate = classifier._evaluate
        logits = classifier.logits

        def recorded_evaluate(x: Any) -> Any:
            self.forward.append(len(x))
            return evaluate(x)

        def recorded_logits(x: Any) -> Any:
            self.backward.append(len(x))
            return logits(x)

        classifier._evaluate = recorded_evaluate  # type: ignore[method-assign]
        classifier.logits = recorded_logits  # type: ignore[method-assign]

    def repeat(self, x: torch.Tensor) -> None:
        """Send batches of the same sizes through the bare module."""
        module = self.classifier.module.eval()  # type: ignore[attr-defined]
        for size in self.backward:
            rows = x[:size].clone().requires_grad_()
            torch.autograd.grad(module(rows).sum(), rows)
        with torch.no_grad():
            for size in self.forward:
                module(x[:size])


def is_one_minimal(result: cf.Counterfactuals, model: Any) -> bool:
    """Check that undoing any single changed value of any row loses the target class."""
    row, *where = np.nonzero(result.changed)
    trial = result.X_cf[row].copy()  # one copy of its row per changed value
    trial[(np.arange(len(row)), *where)] = result.X[(row, *where)]
    still_valid = cf.as_classifier(model).predict(trial) == result.target[row]
    return not np.any(still_valid)


def overhead_and_refinement() -> Iterator[str]:
    """Compare CELS with its bare model passes, and measure what `refine` saves and costs."""
    data = cf.load_dataset("GunPoint")
    model = fit_fcn(data)
    test_accuracy = accuracy(model, data.X_test, data.y_test)
    X = random_rows(data.X_test, 100)
    cels = cf.CELS().fit(model, data.X_train, data.y_train)
    cels.explain(X[:4])  # the first run pays for loading

    recorder = PassRecorder(model)
    result, total = timed(lambda: cels.explain(X))
    n_passes = len(recorder.backward)
    x = model.as_input(X)
    _, bare = timed(lambda: recorder.repeat(x))

    refined, refining = timed(lambda: cf.refine(result, model))
    firm = cf.refine(result, model, confidence=0.8)
    refine_rows = (refined.calls - result.calls).mean()
    p_target = refined.target_proba[:, 1].mean()

    yield "# Engine overhead and refinement, CELS, GunPoint, FCN, 100 rows in one batch"
    yield ""
    yield (
        f"- FCN test accuracy {test_accuracy:.3f}; validity {result.valid.mean():.2f}, "
        f"refined {refined.valid.mean():.2f}."
    )
    yield (
        f"- Time / time of the same {n_passes} forward+backward passes: "
        f"**{total.wall / bare.wall:.2f}**."
    )
    yield (
        f"- Changed fraction {result.changed_fraction.mean():.3f}, "
        f"refined **{refined.changed_fraction.mean():.3f}** "
        f"with {refine_rows:.0f} model rows per instance, mean P(target) {p_target:.2f}, "
        f"1-minimal: {is_one_minimal(refined, model)}; "
        f"refining took {refining.wall / total.wall:.1f}x the time of CELS."
    )
    yield f"- Refined with confidence=0.8: {firm.changed_fraction.mean():.3f}."
    yield ""


# --- validity ------------------------------------------------------------------------------------


def validity_grid() -> Iterator[str]:
    """Run the gradient methods and the baselines on all data sets and models."""
    yield "# Validity and changed fraction, up to 100 test rows"
    yield ""
    yield from table_head("data", "model", "method", "valid", "changed", "model rows", "fallback")
    for name in DATASETS:
        data = cf.load_dataset(name)
        X = random_rows(data.X_test, 100)
        for model_name, train in MODELS.items():
            model = train(data)
            for method in (
                cf.CELS(),
                cf.Glacier(),
                cf.NearestUnlike(),
                cf.LineSearch(),
                cf.RandomMask(),
            ):
                method.fit(model, data.X_train, data.y_train, modality="series")
                result = method.explain(X)
                fallback = result.info.get("fallback")
                yield table_row(
                    name,
                    model_name,
                    type(method).__name__,
                    f"{result.valid.mean():.2f}",
                    f"{result.changed_fraction.mean():.2f}",
                    f"{result.calls.mean():.0f}",
                    "" if fallback is None else f"{fallback.mean():.2f}",
                )
    yield ""


def main() -> None:
    """Run the parts and write their pages."""
    parser = make_parser(__doc__)
    parts = ["overhead", "peer", "grid"]
    parser.add_argument("--cap", type=int, default=120, help="seconds per row of the peer")
    parser.add_argument("--parts", nargs="+", default=parts, choices=parts)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    run: dict[str, Callable[[], Iterator[str]]] = {
        "overhead": overhead_and_refinement,
        "peer": lambda: compare_with_peer(args.cap),
        "grid": validity_grid,
    }
    for part in args.parts:
        lines = [
            conditions(
                "make bench-gradient",
                packages=("aeon", "scikit-learn", "numpy"),
                threads=torch.get_num_threads(),
            ),
            "",
        ]
        for line in run[part]():
            print(line, flush=True)
            lines.append(line)
        write_page(f"gradient_{part}.md", *lines)


if __name__ == "__main__":
    main()
