"""CELS and Glacier: speed beside tscf-eval, engine overhead, validity grid, refinement. One command:

    make bench-gradient

The peer lives in a virtual environment of its own (benchmarks/.venv) and is never a dependency; both sides
run in one process on the same model and rows. Times are told as ratios within this run. Writes one page per
part into benchmarks/results.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from aeon.classification.convolution_based import RocketClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import contrafact as cf
from contrafact.models import Classifier
from contrafact.models.classifier import Array

RESULTS = Path(__file__).parent / "results"
DATASETS = ("GunPoint", "ItalyPowerDemand", "ArrowHead", "BasicMotions")


def sample(data: cf.Dataset, n: int) -> Array:
    """Random test rows: archive files are often sorted by class."""
    return data.X_test[np.random.default_rng(0).permutation(len(data.X_test))[:n]]


def fcn(data: cf.Dataset) -> Classifier:
    return cf.fit_classifier("fcn", data.X_train, data.y_train, max_epochs=100, random_state=0)


def flat(estimator: Any, data: cf.Dataset) -> Any:
    return estimator.fit(data.X_train.reshape(len(data.X_train), -1), data.y_train)


MODELS: dict[str, Callable[[cf.Dataset], Any]] = {
    "FCN": fcn,
    "logistic regression": lambda d: flat(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)), d
    ),
    "MLP": lambda d: flat(
        make_pipeline(StandardScaler(), MLPClassifier((64,), max_iter=500, random_state=0)), d
    ),
    "random forest": lambda d: flat(RandomForestClassifier(100, random_state=0), d),
    "ROCKET(500)": lambda d: RocketClassifier(n_kernels=500, random_state=0).fit(
        d.X_train, d.y_train
    ),
}


class Watched:
    """Notes every batch that goes to the model, to replay them bare."""

    def __init__(self, classifier: Classifier) -> None:
        self.classifier, self.forward, self.backward = classifier, [], []
        evaluate, logits = classifier._evaluate, classifier.logits
        classifier._evaluate = lambda x: (self.forward.append(len(x)), evaluate(x))[1]  # type: ignore[method-assign]
        classifier.logits = lambda x: (self.backward.append(len(x)), logits(x))[1]  # type: ignore[method-assign]

    def replay(self, x: torch.Tensor) -> float:
        """Seconds for the same passes through the bare module."""
        module = self.classifier.module.eval()  # type: ignore[attr-defined]
        start = time.perf_counter()
        for size in self.backward:
            rows = x[:size].clone().requires_grad_()
            torch.autograd.grad(module(rows).sum(), rows)
        with torch.no_grad():
            for size in self.forward:
                module(x[:size])
        return time.perf_counter() - start


class PeerModel:
    """Our classifier with the attributes tscf-eval asks for."""

    def __init__(self, classifier: Classifier) -> None:
        self.classifier, self.classes_ = classifier, classifier.classes

    def predict_proba(self, X: Array) -> Array:
        return self.classifier.predict_proba(X.reshape(len(X), 1, -1))

    def predict(self, X: Array) -> Array:
        return self.classifier.predict(X.reshape(len(X), 1, -1))


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise TimeoutError when the block takes longer."""

    def ring(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def peer_row(
    name: str, model: Any, data: cf.Dataset, X: Array, cap: int
) -> tuple[str, float, int, int]:
    """tscf-eval with its defaults: ">" where capped, seconds per row, valid rows, rows tried."""
    from tscf_eval.counterfactuals import CELS, Glacier

    explainer = {"CELS": CELS, "Glacier": Glacier}[name](
        model=model, data=(data.X_train[:, 0], data.y_train)
    )
    times, valid, capped = [], 0, False
    for x in X:
        start = time.perf_counter()
        try:
            with at_most(cap):
                answer, _, _ = explainer.explain(x[0])
            before, after = (model.predict(z.reshape(1, 1, -1))[0] for z in (x, answer))
            valid += before != after
        except TimeoutError:
            capped = True
        times.append(time.perf_counter() - start)
    return (">" if capped else ""), float(np.mean(times)), valid, len(X)


def beside_peer(cap: int, lines: list[str]) -> None:
    data = cf.load_dataset("GunPoint")
    lines += ["# Beside tscf-eval 1.2.0 (its defaults), GunPoint, same model, same process", ""]
    lines += [
        "| model | method | rows, one batch | valid | s per row | peer rows | valid | s per row | ratio |"
    ]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    for model_name, n in (("FCN", 100), ("ROCKET(500)", 50)):
        model = MODELS[model_name](data)
        X = sample(data, n)
        peer = PeerModel(cf.as_classifier(model)) if model_name == "FCN" else model
        for name, method in (("CELS", cf.CELS()), ("Glacier", cf.Glacier())):
            method.fit(model, data.X_train, data.y_train)
            method.explain(X[:2])
            start = time.perf_counter()
            result = method.explain(X)
            ours = (time.perf_counter() - start) / n
            mark, theirs, valid, tried = peer_row(name, peer, data, X[:2], cap)
            lines.append(
                f"| {model_name} | {name} | {n} | {result.valid.mean():.2f} | {ours:.3f} "
                f"| {tried} | {valid}/{tried} | {mark}{theirs:.1f} | {mark}{theirs / ours:.0f} |"
            )
            print(lines[-1], flush=True)
    lines.append("")


def overhead_and_refinement(lines: list[str]) -> None:
    data = cf.load_dataset("GunPoint")
    model = fcn(data)
    accuracy = np.mean(model.predict(data.X_test) == data.y_test)
    X = sample(data, 100)
    cels = cf.CELS().fit(model, data.X_train, data.y_train)
    cels.explain(X[:4])
    watched = Watched(model)
    start = time.perf_counter()
    result = cels.explain(X)
    total = time.perf_counter() - start
    bare = watched.replay(model.as_input(X))
    start = time.perf_counter()
    refined = cf.refine(result, model)
    refining = time.perf_counter() - start
    rows = (refined.calls - result.calls).mean()
    lines += ["# Engine overhead and refinement, CELS, GunPoint, FCN, 100 rows in one batch", ""]
    changed, kept = result.changed_fraction.mean(), refined.changed_fraction.mean()
    firm = cf.refine(result, model, confidence=0.8)
    lines += [
        f"- FCN test accuracy {accuracy:.3f}; validity {result.valid.mean():.2f}, "
        f"refined {refined.valid.mean():.2f}.",
        f"- Time / time of the same {len(watched.backward)} forward+backward passes: **{total / bare:.2f}**.",
        f"- Changed fraction {changed:.3f}, refined **{kept:.3f}** with {rows:.0f} model rows per instance, "
        f"mean P(target) {refined.target_proba[:, 1].mean():.2f}, 1-minimal: {one_minimal(refined, model)}; "
        f"refining took {refining / total:.1f}x the time of CELS.",
        f"- Refined with confidence=0.8: {firm.changed_fraction.mean():.3f}.",
        "",
    ]
    print("\n".join(lines[-6:]), flush=True)


def one_minimal(result: cf.Counterfactuals, model: Any) -> bool:
    """Can no single changed value of any row be given back?"""
    row, *where = np.nonzero(result.changed)
    trial = result.X_cf[row].copy()
    trial[(np.arange(len(row)), *where)] = result.X[(row, *where)]
    return not np.any(cf.as_classifier(model).predict(trial) == result.target[row])


def grid(lines: list[str]) -> None:
    lines += ["# Validity and changed fraction, up to 100 test rows", ""]
    lines += [
        "| data | model | method | valid | changed | model rows | fallback |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in DATASETS:
        data = cf.load_dataset(name)
        X = sample(data, 100)
        for model_name, train in MODELS.items():
            model = train(data)
            for method in (
                cf.CELS(),
                cf.Glacier(),
                cf.NearestUnlike(),
                cf.LineSearch(),
                cf.RandomMask(),
            ):
                result = method.fit(model, data.X_train, data.y_train, modality="series").explain(X)
                fallback = (
                    f"{result.info['fallback'].mean():.2f}" if "fallback" in result.info else ""
                )
                lines.append(
                    f"| {name} | {model_name} | {type(method).__name__} | {result.valid.mean():.2f} "
                    f"| {result.changed_fraction.mean():.2f} | {result.calls.mean():.0f} | {fallback} |"
                )
                print(lines[-1], flush=True)
    lines.append("")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cap", type=int, default=120, help="seconds per row of the peer")
    parser.add_argument("--parts", nargs="+", default=["overhead", "peer", "grid"])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    versions = ", ".join(
        f"{p} {importlib.metadata.version(p)}" for p in ("torch", "aeon", "scikit-learn", "numpy")
    )
    run = {
        "overhead": overhead_and_refinement,
        "peer": lambda lines: beside_peer(args.cap, lines),
        "grid": grid,
    }
    RESULTS.mkdir(exist_ok=True)
    for part in args.parts:
        lines = [
            f"`make bench-gradient`, {date.today()}, contrafact {cf.__version__}, {versions}, "
            f"Python {platform.python_version()}, {torch.get_num_threads()} threads.",
            "",
        ]
        run[part](lines)
        (RESULTS / f"gradient_{part}.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
