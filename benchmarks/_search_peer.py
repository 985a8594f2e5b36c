"""The parts of search_methods.py that run tscf-eval next to contrafact."""

from __future__ import annotations

import argparse
import importlib.metadata
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from aeon.classification.convolution_based import RocketClassifier

import contrafact as cf
from _common import Array, Seconds, SectionedPage, accuracy, flatten_rows, random_rows, timed
from _search_common import MODELS, TOLERANCE, changed_fraction, is_changed

#: instances also given to contrafact one by one
SINGLE = 5


class FlatModel:
    """A model of flat rows that takes series of several channels, as tscf-eval gives them."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.classes_ = model.classes_

    def decision_function(self, X: Array) -> Array:
        """Return the scores of flattened series."""
        return self.model.decision_function(flatten_rows(X))

    def predict_proba(self, X: Array) -> Array:
        """Return the class probabilities of flattened series."""
        return self.model.predict_proba(flatten_rows(X))


@dataclass
class PeerRun:
    """The answers of tscf-eval, and their cost per row."""

    X_cf: Array
    seconds: Array  # processor and wall clock
    model_rows: float


def run_peer(make: Callable[[], Any], X: Array) -> PeerRun:
    """Explain X with tscf-eval, row by row."""
    random.seed(0)  # its selection draws from the global generator
    explainer = make()
    predict_proba = explainer.predict_proba
    model_rows = 0

    def counted(Z: Array) -> Array:
        nonlocal model_rows
        model_rows += len(Z)
        return predict_proba(Z)

    explainer.predict_proba = counted
    answers, seconds = timed(lambda: [explainer.explain(x)[0] for x in X])
    return PeerRun(
        X_cf=np.array(answers).reshape(X.shape),
        seconds=per_row(seconds, len(X)),
        model_rows=model_rows / len(X),
    )


def per_row(seconds: Seconds, n: int) -> Array:
    """Return processor and wall seconds per row."""
    return np.array(seconds) / n


def milliseconds(seconds: Array) -> tuple[str, str]:
    """Format processor and wall milliseconds."""
    cpu, wall = 1000 * seconds
    return f"{cpu:.2f}", f"{wall:.2f}"


# --- races ---------------------------------------------------------------------------------------


@dataclass
class Race:
    """A method of contrafact and the same of tscf-eval."""

    name: str
    method: cf.Explainer
    make_peer: Callable[[], Any]
    #: rows for contrafact, rows for the peer, repeats
    size: tuple[int, int, int]
    #: least ratio of the peer's time to ours
    bar: float | None = None


@dataclass
class Outcome:
    """What both sides of a race gave; times are best processor and wall seconds per row."""

    race: Race
    result: cf.Counterfactuals
    peer: PeerRun
    #: rows that the peer solved
    solved_by_peer: Array
    #: share of changed values of each row
    changed: Array
    peer_changed: Array
    batch_seconds: Array
    single_seconds: Array
    peer_seconds: Array


def run_race(race: Race, model: Any, data: cf.Dataset) -> Outcome:
    """Run both sides in turns; the best of all repeats counts."""
    n, n_peer, repeats = race.size
    method = race.method
    X = random_rows(data.X_test, n)
    X_peer = X[:n_peer]
    takes_channels = X.shape[1] > 1 or isinstance(model, RocketClassifier)
    peer_input = X_peer if takes_channels else X_peer[:, 0]

    method.fit(model, data.X_train, data.y_train, modality="series")
    method.explain(X[:2])  # the first run pays for compiling
    run_peer(race.make_peer, peer_input[:1])
    batch_times = []
    single_times = []
    peer_times = []
    for _ in range(repeats):
        result, seconds = timed(lambda: method.explain(X))
        batch_times.append(per_row(seconds, n))
        peer = run_peer(race.make_peer, peer_input)
        peer_times.append(peer.seconds)
        _, seconds = timed(lambda: [method.explain(x[None]) for x in X[:SINGLE]])
        single_times.append(per_row(seconds, SINGLE))

    predict = cf.as_classifier(model).predict
    peer_cf = peer.X_cf.reshape(X_peer.shape)
    return Outcome(
        race=race,
        result=result,
        peer=peer,
        solved_by_peer=predict(peer_cf) != predict(X_peer),
        changed=changed_fraction(X, result.X_cf),
        peer_changed=changed_fraction(X_peer, peer_cf),
        batch_seconds=np.min(batch_times, axis=0),
        single_seconds=np.min(single_times, axis=0),
        peer_seconds=np.min(peer_times, axis=0),
    )


def write_outcome(page: SectionedPage, outcome: Outcome) -> None:
    """Write three rows: contrafact in a batch and one by one, and the peer."""
    race = outcome.race
    result = outcome.result
    n, n_peer, _ = race.size
    batch_ratio = outcome.peer_seconds / outcome.batch_seconds
    single_ratio = outcome.peer_seconds / outcome.single_seconds
    verdict = ""
    if race.bar is not None:
        verdict = f"≥ {race.bar:g}: {'met' if batch_ratio.min() >= race.bar else 'NOT met'}"
    page.row(
        race.name,
        f"contrafact, {n} in one batch",
        *milliseconds(outcome.batch_seconds),
        f"{result.valid.mean():.2f}",
        f"{outcome.changed[result.valid].mean():.3f}",
        f"{result.calls.mean():.0f}",
        f"**{batch_ratio[0]:.1f}** / {batch_ratio[1]:.1f}",
        verdict,
    )
    page.row(
        "",
        f"contrafact, {SINGLE} one by one",
        *milliseconds(outcome.single_seconds),
        "",
        "",
        "",
        f"{single_ratio[0]:.1f} / {single_ratio[1]:.1f}",
        "",
    )
    page.row(
        "",
        f"tscf-eval, {n_peer} one by one",
        *milliseconds(outcome.peer_seconds),
        f"{outcome.solved_by_peer.mean():.2f}",
        f"{outcome.peer_changed[outcome.solved_by_peer].mean():.3f}",
        f"{outcome.peer.model_rows:.0f}",
        "",
        "",
    )


def compare_on_same_rows(outcome: Outcome) -> str:
    """Compare the changes on the rows that both sides solved."""
    n_peer = len(outcome.solved_by_peer)
    by_peer = outcome.solved_by_peer
    by_us = outcome.result.valid[:n_peer]
    both = by_us & by_peer
    our_changed = outcome.changed[:n_peer]
    ours = our_changed[both]
    theirs = outcome.peer_changed[both]
    return (
        f"- {outcome.race.name}: the peer solved {by_peer.sum()} of {n_peer} rows, contrafact "
        f"{by_us.sum()}; of the peer's {by_peer.sum()} it solved {both.sum()}. There the "
        f"changed fraction is {ours.mean():.3f} against {theirs.mean():.3f}: smaller in "
        f"{(ours < theirs).sum()} rows, larger in {(ours > theirs).sum()}."
    )


def measure_races(page: SectionedPage, args: argparse.Namespace, study: str) -> None:
    """Run the races of a study: "logistic", "rocket" or "channels"."""
    data = cf.load_dataset("BasicMotions" if study == "channels" else "GunPoint")
    model_name = "ROCKET(500)" if study == "rocket" else "logistic regression"
    model = MODELS[model_name](data)
    n = min(args.rows or (50 if study == "rocket" else 100), len(data.X_test))
    n_peer = min(args.peer_rows or (10 if study == "rocket" else 12), n)
    quick_repeats = max(5, args.repeats)
    quick = "" if study == "rocket" else f" ({quick_repeats} for windows and CoMTE)"
    test_accuracy = accuracy(cf.as_classifier(model), data.X_test, data.y_test)
    page.add(
        f"{data.name}, {model_name} (test accuracy {test_accuracy:.2f}). Both sides in turns, the "
        f"best of {args.repeats} repeats{quick}; ratio: tscf-eval's time over ours. Changed: share "
        f"of values that moved by more than {TOLERANCE:g}, over the valid rows. Model rows of "
        "contrafact include the instance and the answer.",
        "",
    )
    page.table(
        "method",
        "side",
        "CPU ms per row",
        "wall ms per row",
        "valid",
        "changed",
        "model rows per row",
        "CPU / wall ratio",
        "bar",
    )
    slow_size = (n, n_peer, args.repeats)
    quick_size = (n, min(20, n), quick_repeats)
    notes = []
    for race in make_races(study, model, data, slow_size, quick_size):
        outcome = run_race(race, model, data)
        write_outcome(page, outcome)
        notes.append(compare_on_same_rows(outcome))
    page.add("", "On the same rows:", "", *notes, "", REMARKS[study])


def make_races(
    study: str,
    model: Any,
    data: cf.Dataset,
    slow_size: tuple[int, int, int],
    quick_size: tuple[int, int, int],
) -> Iterator[Race]:
    """Yield the races of a study; the sizes are for slow and for quick methods of the peer."""
    from tscf_eval.counterfactuals import COMTE, TSEvo, native_guide

    peer_model = FlatModel(model) if study == "channels" else model
    X_train = flatten_rows(data.X_train) if study == "logistic" else data.X_train
    reference = (X_train, data.y_train)

    def make_native_guide(tslearn: bool = True, **options: Any) -> Any:
        native_guide.TSLEARN_AVAILABLE = tslearn
        return native_guide.NativeGuide(model, reference, **options)

    for metric in ("euclidean", "dtw"):
        if study == "logistic":
            yield Race(
                f"NativeGuide window, {metric}",
                cf.NativeGuide("window", metric=metric),
                partial(make_native_guide, method="ng", distance=metric),
                quick_size,
                bar=3.0,
            )
            yield Race(
                f"NativeGuide blend, {metric}",
                cf.NativeGuide("blend", metric=metric),
                partial(make_native_guide, method="blend", distance=metric),
                slow_size,
            )
        if study != "rocket":
            yield Race(
                f"CoMTE, {metric}",
                cf.CoMTE(n_distractors=10, metric=metric),
                partial(COMTE, peer_model, reference, distance=metric),
                quick_size,
            )
    if study == "logistic":
        yield Race(
            "NativeGuide window, peer without tslearn",
            cf.NativeGuide(),
            partial(make_native_guide, method="ng", distance="euclidean", tslearn=False),
            quick_size,
            bar=3.0,
        )
    if study != "channels":
        yield Race(
            "TSEvo",
            cf.TSEvo(population=52, generations=100),
            partial(TSEvo, model, reference),
            slow_size,
            bar=20.0,
        )
    if study == "logistic":
        n, n_peer, _ = slow_size
        yield Race(
            "TSEvo, thrifty=False",
            cf.TSEvo(population=52, generations=100, thrifty=False),
            partial(TSEvo, model, reference),
            (n, min(n_peer, 3), 1),
        )


EVOLUTION = (
    "TSEvo: the peer's defaults, population 50, which it rounds up to 52, and 100 generations; "
    "ours the same. Ours asks the model only about offspring whose answer can matter."
)
REMARKS = {
    "logistic": "The peer's NativeGuide window is its method `ng`. Its default neighbor is by dtw, "
    "ours by Euclidean distance; both are shown, the same on both sides. Its blend raises the "
    "weight by 0.01 until the class flips. Without tslearn, an option of its installation, it "
    "finds neighbors by code of its own, in less time. Its CoMTE aims at a target probability of "
    "0.95, ours at the decision; on one channel both can only return another series. " + EVOLUTION,
    "rocket": EVOLUTION,
    "channels": "Ten distractors on both sides. The peer aims at a target probability of 0.95, "
    "ours at the decision.",
}


# --- SETS ----------------------------------------------------------------------------------------


def measure_sets(page: SectionedPage, args: argparse.Namespace) -> None:
    """Try SETS of tscf-eval, and measure ours."""
    from tscf_eval.counterfactuals import SETS

    data = cf.load_dataset("GunPoint")
    model = MODELS["logistic regression"](data)
    X = random_rows(data.X_test, args.rows or 100)
    reference = (flatten_rows(data.X_train), data.y_train)
    try:
        peer = SETS(model, reference, n_shapelet_samples=200)
        outcome = f"ran: {[peer.explain(x[0])[1] for x in X[:3]]}"
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        outcome = f"stops with `{type(error).__name__}: {error}`"
    aeon = importlib.metadata.version("aeon")
    page.add(f"tscf-eval's SETS on GunPoint, logistic regression, aeon {aeon}: {outcome}.", "")

    method = cf.SETS()
    _, fitting = timed(lambda: method.fit(model, data.X_train, data.y_train))
    method.explain(X[:2])
    result, seconds = timed(lambda: method.explain(X))
    cpu, wall = 1000 * per_row(seconds, len(X))
    page.add(
        f"contrafact's SETS there, {len(X)} rows in one batch: fit {fitting.cpu:.1f} s CPU "
        f"(mining), then {cpu:.1f} ms CPU per row ({wall:.1f} ms wall), validity "
        f"{result.valid.mean():.2f}, changed {is_changed(X, result.X_cf).mean():.3f}, "
        f"{result.calls.mean():.0f} model rows per row, by fallback "
        f"{result.info['fallback'].mean():.2f}."
    )
