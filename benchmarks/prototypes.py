"""Compare prototype models with prosemble 2.4.0: accuracy, time and memory.

    make bench-prototypes

The peer has a virtual environment of its own (benchmarks/.venv-prosemble) and is never a
dependency. Both sides see the same folds and rows, on one thread, in turns; times are reported as
ratios within this run. Every line is written to benchmarks/results/prototypes.md as soon as it is
measured; `--part` replaces one section of that page and leaves the others.
"""

from __future__ import annotations

import os

# Read when NumPy, Numba and JAX are imported.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from _common import RESULTS, Array, SectionedPage, make_parser, timed, yes_no
from _prototypes_common import (
    PAGE_TITLES,
    bar_cells,
    cross_validate,
    load_rows,
    ours,
    peak_memory,
    run_in_new_process,
    theirs,
)
from _prototypes_median import measure_median

PACKAGES = ("contrafact", "prosemble", "torch", "jax", "numba", "scikit-learn", "numpy")
TITLES = {"accuracy": "Accuracy", "median": "MedianLVQ", "speed": "Fit and predict time, memory"}

#: model, data, prototypes per class, accuracy to reach
ACCURACY: list[tuple[str, str, int, float | None]] = [
    ("GLVQ", "digits", 3, 0.94),
    ("GMLVQ", "iris", 1, 0.96),
    ("GMLVQ", "wine", 1, 0.985),
    ("GMLVQ", "breast cancer", 1, 0.97),
    ("GMLVQ", "digits", 3, 0.96),
    ("LGMLVQ", "digits", 1, 0.98),
    ("GRLVQ", "breast cancer", 1, None),
    ("RSLVQ", "breast cancer", 1, None),
    ("CELVQ", "breast cancer", 1, None),
    ("GRLVQ", "digits", 3, None),
    ("RSLVQ", "digits", 3, None),
    ("CELVQ", "digits", 3, None),
]
#: model, data, prototypes per class
SPEED = [
    ("GLVQ", "iris", 1),
    ("GMLVQ", "iris", 1),
    ("GLVQ", "breast cancer", 1),
    ("GMLVQ", "breast cancer", 1),
    ("GLVQ", "digits", 3),
    ("GMLVQ", "digits", 3),
]
#: data and library; the model is GMLVQ
MEMORY = [("iris", "ours"), ("digits", "ours"), ("iris", "prosemble")]


# --- accuracy ------------------------------------------------------------------------------------


def measure_accuracy(page: SectionedPage, args: argparse.Namespace) -> None:
    """Write the mean test accuracy over five folds."""
    page.add(
        "Mean test accuracy of 5 stratified folds (shuffled, seed 0: the same for both), and for "
        "ours also the mean over fold seeds 0, 1, 2. Rows are standardized within the fold; digits "
        "are divided by 16. 100 epochs and the same number of prototypes on both sides, otherwise "
        "the defaults of each (prosemble: Adam 0.01, random rows of the class to start from, "
        "identity transfer, σ = 1 for RSLVQ). *Met*: by seed 0, and by the mean.",
        "",
    )
    page.table("model", "data", "per class", "ours", "ours, 3 seeds", "prosemble", "bar", "met")
    for model, data, per_class, bar in ACCURACY:
        make_ours = partial(ours, model, per_class, random_state=0)
        make_theirs = partial(theirs, model, per_class)
        scores = [cross_validate(make_ours, data, seed)[0] for seed in range(3)]
        peer, _ = cross_validate(make_theirs, data, 0)
        mean = float(np.mean(scores))
        page.row(
            model,
            data,
            per_class,
            f"{scores[0]:.3f}",
            f"{mean:.3f}",
            f"{peer:.3f}",
            *bar_cells(scores[0], mean, bar),
        )


# --- speed and memory ----------------------------------------------------------------------------


def best_in_turns(works: list[Callable[[], Any]], repeats: int) -> Array:
    """Run all works in turns; returns (works, 2): best processor and clock seconds of each."""
    seconds = []
    for _ in range(repeats):
        seconds.append([timed(work)[1] for work in works])
    return np.array(seconds).min(0)


def time_models(model: str, data: str, per_class: int, repeats: int) -> tuple[Any, Any, Any]:
    """Time contrafact and prosemble, in this order.

    Returns the clock seconds of the first fit; (2, 2) processor and clock seconds of further fits;
    milliseconds to predict 10,000 rows.
    """
    X, y = load_rows(data)
    if data != "digits":
        X = StandardScaler().fit_transform(X)
    rows = np.random.default_rng(0).integers(len(X), size=10_000)
    many = X[rows]
    makers = [partial(ours, model, per_class, random_state=0), partial(theirs, model, per_class)]
    for make in makers:
        make()  # imports the library
    fits = [lambda make=make: make().fit(X, y) for make in makers]
    first = [timed(fit)[1].wall for fit in fits]
    again = best_in_turns(fits, repeats)
    fitted = [fit() for fit in fits]
    predicts = [lambda model=model: np.asarray(model.predict(many)) for model in fitted]
    best_in_turns(predicts, 1)
    predicting = best_in_turns(predicts, repeats)
    return first, again, predicting[:, 1] * 1e3


def measure_speed(page: SectionedPage, args: argparse.Namespace) -> None:
    """Write the times of fit and predict, then the growth of memory."""
    page.add(
        "All rows of the data, 100 epochs, one core, the defaults of each: ours in float64, "
        "prosemble in float32. Every fit is of a fresh instance. *First* is the first in a new "
        f"process, with all imports done; *again* the best of {args.repeats} further ones, in "
        "turns. *CPU* counts processor seconds of all threads, which other work on the machine "
        "disturbs less. Predict: 10,000 rows, warm. The bar: ours no slower than prosemble's fit "
        "of another fresh instance.",
        "",
    )
    page.table(
        "model",
        "data",
        "per class",
        "ours first, s",
        "prosemble first",
        "ours again",
        "prosemble again",
        "prosemble / ours",
        "CPU ours",
        "CPU prosemble",
        "CPU ratio",
        "predict ours, ms",
        "prosemble",
        "bar met",
    )
    for model, data, per_class in SPEED:
        first, again, predicting = run_in_new_process(
            time_models, model, data, per_class, args.repeats
        )
        cpu, clock = again[0]
        peer_cpu, peer_clock = again[1]
        page.row(
            model,
            data,
            per_class,
            f"{first[0]:.2f}",
            f"{first[1]:.2f}",
            f"{clock:.3f}",
            f"{peer_clock:.3f}",
            f"**{peer_clock / clock:.1f}**",
            f"{cpu:.3f}",
            f"{peer_cpu:.3f}",
            f"{peer_cpu / cpu:.1f}",
            f"{predicting[0]:.1f}",
            f"{predicting[1]:.1f}",
            yes_no(clock <= peer_clock),
        )
    measure_memory(page)


def measure_memory(page: SectionedPage) -> None:
    """Write how much memory grows over many fits."""
    page.add(
        "",
        "Growth of the peak of resident memory over 50 fits of fresh instances, after 5 others, "
        "each in a process of its own:",
        "",
    )
    page.table("model", "data", "library", "before, MB", "growth, MB")
    for data, library in MEMORY:
        before, after = run_in_new_process(memory_growth, data, library)
        page.row("GMLVQ", data, library, f"{before:.0f}", f"{after - before:.1f}")


def memory_growth(data: str, library: str) -> tuple[float, float]:
    """Return the peak memory in MB after 5 fits and after 50 more."""
    X, y = load_rows(data)
    make = ours if library == "ours" else theirs
    per_class = 3 if data == "digits" else 1
    peaks = []
    for count in (5, 50):
        for _ in range(count):
            make("GMLVQ", per_class).fit(X, y)
        peaks.append(peak_memory())
    return peaks[0], peaks[1]


def main() -> None:
    """Run one part or all."""
    parser = make_parser(__doc__)
    parser.add_argument("--part", choices=list(TITLES), help="one part only")
    parser.add_argument("--repeats", type=int, default=5, help="fits of each in the speed part")
    parser.add_argument("--turns", type=int, default=3, help="fits of each in the median part")
    parser.add_argument(
        "--slow",
        action="store_true",
        help="also run prosemble's MedianLVQ on digits, and at N = 10,000 within 14 GB (needs a "
        "large machine)",
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    page = SectionedPage(RESULTS / "prototypes.md", PAGE_TITLES)
    run = {"accuracy": measure_accuracy, "median": measure_median, "speed": measure_speed}
    for part in [args.part] if args.part else run:
        command = f"python benchmarks/prototypes.py --part {part}"
        page.begin(TITLES[part], command, PACKAGES, "one thread for both")
        run[part](page, args)


if __name__ == "__main__":
    main()
