"""Prototype models beside prosemble 2.4.0: accuracy, time, memory. One command:

    make bench-prototypes

The peer lives in a virtual environment of its own (benchmarks/.venv-prosemble) and is never a dependency.
Both sides see the same folds and rows, on one thread, in turns; times are told as ratios within
this run. Every line is written to benchmarks/results/prototypes.md as soon as it is known; `--part` renews
one section of that page and leaves the others.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["NUMBA_NUM_THREADS"] = "1"  # read by imports
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import argparse
import importlib
import importlib.metadata
import multiprocessing
import platform
import re
import resource
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_blobs
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

RESULT = Path(__file__).parent / "results" / "prototypes.md"
TESTS = Path(__file__).parents[1] / "tests" / "prototypes"
TITLES = {"accuracy": "Accuracy", "median": "MedianLVQ", "speed": "Fit and predict time, memory"}
LOADERS = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
}

# model, data, prototypes per class, accuracy asked for
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
MEDIAN = {"iris": 0.96, "wine": 0.97, "breast cancer": 0.945, "digits": 0.90}
SPEED = [
    ("GLVQ", "iris", 1),
    ("GMLVQ", "iris", 1),
    ("GLVQ", "breast cancer", 1),
    ("GMLVQ", "breast cancer", 1),
    ("GLVQ", "digits", 3),
    ("GMLVQ", "digits", 3),
]


class Page:
    """The results: sections that are replaced one by one, and written line by line."""

    def __init__(self) -> None:
        text = RESULT.read_text(encoding="utf-8") if RESULT.exists() else ""
        blocks = [block.partition("\n") for block in re.split(r"(?m)^# ", text)[1:]]
        self.sections = {title: body.strip().splitlines() for title, _, body in blocks}

    def begin(self, part: str, *lines: str) -> None:
        self.title = TITLES[part]
        packages = "contrafact", "prosemble", "torch", "jax", "numba", "scikit-learn", "numpy"
        versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages)
        self.sections[self.title] = []
        self.add(
            f"`python benchmarks/prototypes.py --part {part}`, {date.today()}, {versions}, Python "
            f"{platform.python_version()}; one thread for both, load average {os.getloadavg()[0]:.1f} on "
            f"{os.cpu_count()} cores at the start.",
            "",
            *lines,
        )

    def add(self, *lines: str) -> None:
        print("\n".join(lines), flush=True)
        self.sections[self.title] += lines
        known = [title for title in TITLES.values() if title in self.sections]
        text = "\n\n".join("\n".join([f"# {title}", "", *self.sections[title]]) for title in known)
        RESULT.write_text(text + "\n", encoding="utf-8")


def ours(model: str, per_class: int, **options: Any) -> Any:
    return getattr(importlib.import_module("contrafact.prototypes"), model)(per_class, **options)


def theirs(model: str, per_class: int, **options: Any) -> Any:
    kind = getattr(importlib.import_module("prosemble.models"), model)
    return kind(n_prototypes_per_class=per_class, **options)


def rows_of(data: str) -> tuple[Any, Any]:
    X, y = LOADERS[data](return_X_y=True)
    return (X / 16 if data == "digits" else X), y


def folds(data: str, seed: int) -> list[tuple[Any, Any, Any, Any]]:
    """Training rows and labels, test rows and labels; standardized by the training rows, but for digits."""
    X, y = rows_of(data)
    made = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
        scaler = StandardScaler(with_mean=data != "digits", with_std=data != "digits").fit(X[train])
        made.append((scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]))
    return made


def over_folds(make: Callable[[], Any], data: str, seed: int) -> tuple[float, list[Any]]:
    """Mean test accuracy, and the models."""
    scores, models = [], []
    for X, y, X_test, y_test in folds(data, seed):
        models.append(make().fit(X, y))
        scores.append(np.mean(np.asarray(models[-1].predict(X_test)) == y_test))
    return float(np.mean(scores)), models


def verdict(first: float, mean: float, bar: float | None) -> str:
    """The bar, and if it is met on the first seed and on the mean of all."""
    if bar is None:
        return "| | |"
    return (
        f"| ≥ {bar:g} | {', '.join('yes' if value >= bar else 'no' for value in (first, mean))} |"
    )


def accuracy(page: Page, _: argparse.Namespace) -> None:
    page.begin(
        "accuracy",
        "Mean test accuracy of 5 stratified folds (shuffled, seed 0: the same for both), and for ours also "
        "the mean over fold seeds 0, 1, 2. Rows are standardized within the fold; digits are divided by 16. "
        "100 epochs and the same number of prototypes on both sides, else the defaults of each (prosemble: "
        "Adam 0.01, random rows of the class to start from, identity transfer, σ = 1 for RSLVQ). *Met* tells "
        "seed 0 and the mean.",
        "",
        "| model | data | per class | ours | ours, 3 seeds | prosemble | bar | met |",
        "|---|---|---|---|---|---|---|---|",
    )
    for model, data, per_class, bar in ACCURACY:
        make = partial(ours, model, per_class, random_state=0)
        seeds = [over_folds(make, data, seed)[0] for seed in range(3)]
        peer = over_folds(partial(theirs, model, per_class), data, 0)[0]
        mean = float(np.mean(seeds))
        page.add(
            f"| {model} | {data} | {per_class} | {seeds[0]:.3f} | {mean:.3f} | {peer:.3f} "
            + verdict(seeds[0], mean, bar)
        )


def measure(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds on the clock, and of the processor in all threads."""
    clock, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - cpu


def in_turns(works: list[Callable[[], Any]], repeats: int) -> Any:
    """(works, 2): least clock and processor seconds of each."""
    return np.array([[measure(work) for work in works] for _ in range(repeats)]).min(0)


def speed_of(model: str, data: str, per_class: int, repeats: int) -> tuple[Any, Any, Any]:
    """Of ours and theirs: seconds of the first fit; clock and processor seconds of another; ms to predict."""
    X, y = rows_of(data)
    X = X if data == "digits" else StandardScaler().fit_transform(X)
    many = X[np.random.default_rng(0).integers(len(X), size=10_000)]
    make = partial(ours, model, per_class, random_state=0), partial(theirs, model, per_class)
    for new in make:
        new()  # imports
    fits = [lambda new=new: new().fit(X, y) for new in make]
    first = [measure(fit)[0] for fit in fits]
    again = in_turns(fits, repeats)
    fitted = [fit() for fit in fits]
    predicts = [lambda model=model: np.asarray(model.predict(many)) for model in fitted]
    in_turns(predicts, 1)
    return first, again, in_turns(predicts, repeats)[:, 0] * 1e3


def speed(page: Page, args: argparse.Namespace) -> None:
    page.begin(
        "speed",
        f"All rows of the data, 100 epochs, one core, the defaults of each: ours in float64, prosemble in "
        f"float32. Every fit is of a fresh instance. *First* is the first in a new process, with all imports "
        f"done; *again* the least of {args.repeats} further ones, in turns. *CPU* counts processor seconds "
        "of all threads, which other work on the machine disturbs less. Predict: 10,000 rows, warm. The bar: "
        "ours no slower than prosemble's fit of another fresh instance.",
        "",
        "| model | data | per class | ours first, s | prosemble first | ours again | prosemble again "
        "| prosemble / ours | CPU ours | CPU prosemble | CPU ratio | predict ours, ms | prosemble "
        "| bar met |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    )
    for model, data, per_class in SPEED:
        first, again, predicted = alone(speed_of, model, data, per_class, args.repeats)
        (clock, cpu), (peer_clock, peer_cpu) = again
        page.add(
            f"| {model} | {data} | {per_class} | {first[0]:.2f} | {first[1]:.2f} | {clock:.3f} "
            f"| {peer_clock:.3f} | **{peer_clock / clock:.1f}** | {cpu:.3f} | {peer_cpu:.3f} "
            f"| {peer_cpu / cpu:.1f} | {predicted[0]:.1f} | {predicted[1]:.1f} "
            f"| {'yes' if clock <= peer_clock else 'no'} |"
        )
    page.add(
        "",
        "Growth of the peak of resident memory over 50 fits of fresh instances, after 5 others, each in a "
        "process of its own:",
        "",
        "| model | data | library | before, MB | growth, MB |",
        "|---|---|---|---|---|",
    )
    for model, data, library in (
        ("GMLVQ", "iris", "ours"),
        ("GMLVQ", "digits", "ours"),
        ("GMLVQ", "iris", "prosemble"),
    ):
        before, after = alone(growth, model, data, library)
        page.add(f"| {model} | {data} | {library} | {before:.0f} | {after - before:.1f} |")


def peak() -> float:
    """Largest resident memory of this process so far, MB; `getrusage` would count its parent's too."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024


def alone(work: Callable[..., Any], *args: Any) -> Any:
    """The answer of a new process, which keeps to one core."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), one_core) as pool:
        return pool.submit(work, *args).result()


def one_core() -> None:
    """XLA heeds no number of threads, but the number of cores it may use."""
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def growth(model: str, data: str, library: str) -> tuple[float, float]:
    X, y = rows_of(data)
    peaks = []
    for count in (5, 50):
        for _ in range(count):
            (ours if library == "ours" else theirs)(model, 3 if data == "digits" else 1).fit(X, y)
        peaks.append(peak())
    return peaks[0], peaks[1]


def blobs(n: int) -> tuple[Any, Any]:
    return make_blobs(n, n_features=20, centers=4, cluster_std=8.0, random_state=0)


def median_fit(kind: str, n: int, objective: str) -> dict[str, Any]:
    """Fit one prototype per class in this process, after a small fit: seconds, memory, and what was found."""
    X, y = blobs(n)
    found: dict[str, Any] = {}

    def contrafact(X: Any, y: Any) -> None:
        found["prototypes"] = ours("MedianLVQ", 1, objective=objective).fit(X, y).prototypes_

    def prosemble(X: Any, y: Any) -> None:
        found["prototypes"] = np.asarray(theirs("MedianLVQ", 1).fit(X, y).prototypes_)

    def plain(X: Any, y: Any) -> None:
        sys.path.insert(0, str(TESTS))
        reference = importlib.import_module("reference_swap")
        D = cdist(X, X)
        classes = [np.flatnonzero(y == c) for c in np.unique(y)]
        start = [own[D[np.ix_(own, own)].sum(0).argmin()] for own in classes]
        cost = {"sigmoid": reference.Sigmoid, "glvq": reference.Glvq}[objective]()
        found["prototypes"] = X[reference.reference_swap(D, y, start, cost)[0]]

    work = {"ours": contrafact, "plain NumPy": plain, "prosemble": prosemble}[kind]
    if (
        kind == "prosemble"
    ):  # compiles anew for every size, so the first round is not the small fit of others
        theirs("MedianLVQ", 1, max_iter=1).fit(X, y)
    else:
        work(*blobs(200))
    before = peak()
    clock, cpu = measure(lambda: work(X, y))
    rows = cdist(found["prototypes"], X).argmin(1)
    return {
        "clock": clock,
        "cpu": cpu,
        "before": before,
        "peak": peak(),
        "rows": sorted(map(int, rows)),
    }


def limited(gigabytes: int, *args: Any) -> Any:
    resource.setrlimit(resource.RLIMIT_AS, (gigabytes << 30,) * 2)
    return median_fit(*args)


def median(page: Page, args: argparse.Namespace) -> None:
    page.begin(
        "median",
        "Accuracy as above: 5 folds, 3 prototypes per class, the defaults of each. *Different* is the least "
        "number of different prototypes in a fold, of all; *monotone*: the cost never rose, in any fold.",
        "",
        "| data | ours | ours, 3 seeds | prosemble | bar | met | different, ours | prosemble | monotone |",
        "|---|---|---|---|---|---|---|---|---|",
    )
    for data, bar in MEDIAN.items():
        runs = [over_folds(lambda: ours("MedianLVQ", 3), data, seed) for seed in range(3)]
        models = [model for _, fitted in runs for model in fitted]
        peer, peer_different = "not run", ""
        if data != "digits" or args.slow:
            score, peer_models = over_folds(lambda: theirs("MedianLVQ", 3), data, 0)
            peer, peer_different = f"{score:.3f}", different(peer_models)
        monotone = all(np.all(np.diff(model.loss_history_) <= 0) for model in models)
        first, mean = runs[0][0], float(np.mean([score for score, _ in runs]))
        page.add(
            f"| {data} | {first:.3f} | {mean:.3f} | {peer} {verdict(first, mean, bar)} "
            f"{different(models)} | {peer_different} | {'yes' if monotone else 'no'} |"
        )
    median_time(page, args)


def different(models: list[Any]) -> str:
    counts = [len(np.unique(np.asarray(model.prototypes_), axis=0)) for model in models]
    return f"{min(counts)} of {len(models[0].prototypes_)}"


def median_time(page: Page, args: argparse.Namespace) -> None:
    page.add(
        "",
        f"Time and memory: blobs of 20 features in 4 classes, 1 prototype per class; each fit in a process "
        f"of its own, on one core, after a small one (prosemble: after one round at the same size, for which "
        f"it compiles), in turns, least of {args.turns} (prosemble: once). *Plain NumPy* is the same swap "
        "search on the whole matrix in float64 (tests/prototypes/reference_swap.py), with the matrix and the "
        "start counted. Peak is resident memory, of which *before* was there ahead of the fit.",
        "",
        "| N | objective | who | seconds | CPU s | slower than ours | CPU ratio | before, MB | peak, MB "
        "| same prototypes as ours |",
        "|---|---|---|---|---|---|---|---|---|---|",
    )
    for n, objective, rival in (
        (10_000, "sigmoid", "plain NumPy"),
        (10_000, "glvq", "plain NumPy"),
        (3_000, "sigmoid", "prosemble"),
    ):
        runs: dict[str, list[Any]] = {"ours": [], rival: []}
        for turn in range(args.turns):
            for kind in runs:
                if kind != "prosemble" or turn == 0:
                    runs[kind].append(alone(median_fit, kind, n, objective))
        clock, cpu = (
            {kind: min(r[key] for r in runs[kind]) for kind in runs} for key in ("clock", "cpu")
        )
        for kind, found in runs.items():
            same = "yes" if found[0]["rows"] == runs["ours"][0]["rows"] else "no"
            page.add(
                f"| {n} | {objective} | {kind} | {clock[kind]:.2f} | {cpu[kind]:.2f} "
                f"| **{clock[kind] / clock['ours']:.1f}** | {cpu[kind] / cpu['ours']:.1f} "
                f"| {found[0]['before']:.0f} | {max(r['peak'] for r in found):.0f} | {same} |"
            )
    if args.slow:
        try:
            answer = alone(limited, 14, "prosemble", 10_000, "sigmoid")
            said = f"took {answer['clock']:.0f} s, peak {answer['peak']:.0f} MB"
        except (MemoryError, BrokenProcessPool, RuntimeError) as error:
            said = f"failed with {type(error).__name__}"
        page.add("", f"prosemble at N = 10,000 with 14 GB of address space {said}.")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=list(TITLES), help="one part only")
    parser.add_argument("--repeats", type=int, default=5, help="fits of each in the speed part")
    parser.add_argument("--turns", type=int, default=3, help="fits of each in the median part")
    parser.add_argument(
        "--slow",
        action="store_true",
        help="also prosemble's MedianLVQ on digits, and at N = 10,000 within 14 GB (hard on the machine)",
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    RESULT.parent.mkdir(exist_ok=True)
    page = Page()
    run = {"accuracy": accuracy, "median": median, "speed": speed}
    for part in [args.part] if args.part else run:
        run[part](page, args)


if __name__ == "__main__":
    main()
