"""The MedianLVQ part of prototypes.py: accuracy, time and memory."""

from __future__ import annotations

import argparse
import importlib
import resource
import sys
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs

from _common import Array, SectionedPage, timed, yes_no
from _prototypes_common import (
    bar_cells,
    cross_validate,
    ours,
    peak_memory,
    run_in_new_process,
    theirs,
)

TESTS = Path(__file__).parents[1] / "tests" / "prototypes"
#: data and the accuracy to reach
BARS = {"iris": 0.96, "wine": 0.97, "breast cancer": 0.945, "digits": 0.90}
#: rows, objective, and the implementation to compare with
RACES = [
    (10_000, "sigmoid", "plain NumPy"),
    (10_000, "glvq", "plain NumPy"),
    (3_000, "sigmoid", "prosemble"),
]


def measure_median(page: SectionedPage, args: argparse.Namespace) -> None:
    """Write accuracy, then time and memory."""
    page.add(
        "Accuracy as above: 5 folds, 3 prototypes per class, the defaults of each library. "
        "*Different* is the least number of different prototypes in a fold, out of all; "
        "*monotone*: the cost never rose, in any fold.",
        "",
    )
    page.table(
        "data",
        "ours",
        "ours, 3 seeds",
        "prosemble",
        "bar",
        "met",
        "different, ours",
        "prosemble",
        "monotone",
    )
    for data, bar in BARS.items():
        scores = []
        models = []
        for seed in range(3):
            score, fitted = cross_validate(lambda: ours("MedianLVQ", 3), data, seed)
            scores.append(score)
            models += fitted
        peer = "not run"
        peer_different = ""
        if data != "digits" or args.slow:
            peer_score, peer_models = cross_validate(lambda: theirs("MedianLVQ", 3), data, 0)
            peer = f"{peer_score:.3f}"
            peer_different = count_different(peer_models)
        mean = float(np.mean(scores))
        is_monotone = all(np.all(np.diff(model.loss_history_) <= 0) for model in models)
        page.row(
            data,
            f"{scores[0]:.3f}",
            f"{mean:.3f}",
            peer,
            *bar_cells(scores[0], mean, bar),
            count_different(models),
            peer_different,
            yes_no(is_monotone),
        )
    measure_time(page, args)


def count_different(models: list[Any]) -> str:
    """Return the least number of different prototypes of a model, "k of n"."""
    counts = [len(np.unique(np.asarray(model.prototypes_), axis=0)) for model in models]
    return f"{min(counts)} of {len(models[0].prototypes_)}"


# --- time and memory -----------------------------------------------------------------------------


def make_rows(n: int) -> tuple[Array, Array]:
    """Return n rows of 20 features in 4 overlapping classes."""
    return make_blobs(n, n_features=20, centers=4, cluster_std=8.0, random_state=0)


def fit_ours(X: Array, y: Array, objective: str) -> Array:
    """Return the prototypes that contrafact finds, with the slope of the plain search."""
    options = {"beta": 7} if objective == "sigmoid" else {}
    return ours("MedianLVQ", 1, objective=objective, **options).fit(X, y).prototypes_


def fit_prosemble(X: Array, y: Array, objective: str) -> Array:
    """Return the prototypes that prosemble finds; it has one objective."""
    return np.asarray(theirs("MedianLVQ", 1).fit(X, y).prototypes_)


def fit_plain(X: Array, y: Array, objective: str) -> Array:
    """Return the prototypes of the plain NumPy search that the tests use."""
    sys.path.insert(0, str(TESTS))
    reference = importlib.import_module("reference_swap")
    D = cdist(X, X)
    start = []
    for label in np.unique(y):
        own = np.flatnonzero(y == label)
        total_distance = D[np.ix_(own, own)].sum(0)
        start.append(own[total_distance.argmin()])
    cost = {"sigmoid": reference.Sigmoid, "glvq": reference.Glvq}[objective]()
    rows = reference.reference_swap(D, y, start, cost)[0]
    return X[rows]


FITS: dict[str, Callable[[Array, Array, str], Array]] = {
    "ours": fit_ours,
    "plain NumPy": fit_plain,
    "prosemble": fit_prosemble,
}


def fit_once(kind: str, n: int, objective: str) -> dict[str, Any]:
    """Fit one prototype per class in this process, after a small fit.

    Returns clock and processor seconds, memory before the fit and its peak in MB, and the rows
    that were chosen.
    """
    X, y = make_rows(n)
    if kind == "prosemble":
        # It compiles anew for every size, so its warm-up is one round at this size.
        theirs("MedianLVQ", 1, max_iter=1).fit(X, y)
    else:
        FITS[kind](*make_rows(200), objective)
    before = peak_memory()
    prototypes, seconds = timed(lambda: FITS[kind](X, y, objective))
    rows = cdist(prototypes, X).argmin(1)
    return {
        "clock": seconds.wall,
        "cpu": seconds.cpu,
        "before": before,
        "peak": peak_memory(),
        "rows": sorted(map(int, rows)),
    }


def fit_limited(gigabytes: int, *args: Any) -> dict[str, Any]:
    """Fit with a limit on the address space."""
    limit = gigabytes << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    return fit_once(*args)


def measure_time(page: SectionedPage, args: argparse.Namespace) -> None:
    """Write time and memory next to plain NumPy and prosemble."""
    page.add(
        "",
        "Time and memory: blobs of 20 features in 4 classes, 1 prototype per class; each fit in a "
        "process of its own, on one core, after a small one (prosemble: after one round at the "
        f"same size, for which it compiles), in turns, best of {args.turns} (prosemble: once). "
        "*Plain NumPy* is the same swap search on the whole matrix in float64 "
        "(tests/prototypes/reference_swap.py), including the matrix and the start; for its sake "
        "the sigmoid of ours has β = 7 here. Peak is resident memory; *before* is the part that "
        "was used ahead of the fit.",
        "",
    )
    page.table(
        "N",
        "objective",
        "who",
        "seconds",
        "CPU s",
        "slower than ours",
        "CPU ratio",
        "before, MB",
        "peak, MB",
        "same prototypes as ours",
    )
    for n, objective, rival in RACES:
        runs: dict[str, list[dict[str, Any]]] = {"ours": [], rival: []}
        for turn in range(args.turns):
            for kind in runs:
                if kind != "prosemble" or turn == 0:
                    runs[kind].append(run_in_new_process(fit_once, kind, n, objective))
        write_race(page, n, objective, runs)
    if args.slow:
        try:
            answer = run_in_new_process(fit_limited, 14, "prosemble", 10_000, "sigmoid")
            outcome = f"took {answer['clock']:.0f} s, peak {answer['peak']:.0f} MB"
        except (MemoryError, BrokenProcessPool, RuntimeError) as error:
            outcome = f"failed with {type(error).__name__}"
        page.add("", f"prosemble at N = 10,000 with 14 GB of address space {outcome}.")


def write_race(
    page: SectionedPage,
    n: int,
    objective: str,
    runs: dict[str, list[dict[str, Any]]],
) -> None:
    """Write one row per implementation."""
    clock = {kind: min(run["clock"] for run in found) for kind, found in runs.items()}
    cpu = {kind: min(run["cpu"] for run in found) for kind, found in runs.items()}
    our_rows = runs["ours"][0]["rows"]
    for kind, found in runs.items():
        first = found[0]
        page.row(
            n,
            objective,
            kind,
            f"{clock[kind]:.2f}",
            f"{cpu[kind]:.2f}",
            f"**{clock[kind] / clock['ours']:.1f}**",
            f"{cpu[kind] / cpu['ours']:.1f}",
            f"{first['before']:.0f}",
            f"{max(run['peak'] for run in found):.0f}",
            yes_no(first["rows"] == our_rows),
        )
