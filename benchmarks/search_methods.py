"""Measure NativeGuide, CoMTE, SETS, TSEvo and the baselines.

    make bench-search

Speed next to tscf-eval, a grid of validity, and whether `calls` is the truth. The peer has a
virtual environment of its own (benchmarks/.venv) and is never a dependency; both sides run in one
process, on one thread, on the same model and rows, in turns. Times are reported as ratios within
this run. Every line is written to benchmarks/results/search_methods.md as soon as it is measured;
`--part` replaces one section of that page and leaves the others.
"""

from __future__ import annotations

import os

# Read when NumPy and Numba are imported.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

import contrafact as cf
from _common import RESULTS, Array, SectionedPage, accuracy, make_parser, random_rows
from _search_calls import measure_calls
from _search_common import METHODS, MODELS, TOLERANCE, count_segments, is_changed
from _search_peer import measure_races, measure_sets

DATASETS = ("GunPoint", "ArrowHead", "BasicMotions", "ItalyPowerDemand")
PACKAGES = (
    "contrafact",
    "tscf-eval",
    "deap",
    "tslearn",
    "aeon",
    "torch",
    "scikit-learn",
    "numpy",
)
#: all others have a valid answer as soon as there is a guide
NOT_GUIDED = ("SETS", "TSEvo")


def measure_validity(page: SectionedPage, args: argparse.Namespace, name: str) -> None:
    """Run all methods on all models of a data set."""
    data = cf.load_dataset(name)
    X = random_rows(data.X_test, args.rows or 40)
    classes = ", ".join(map(repr, np.unique(data.y_train).tolist()))
    page.add(
        f"{len(X)} test rows, {X.shape[1]} channel(s) of {X.shape[2]} values, classes {classes}. "
        "Valid: share of all rows; with a guide: of the rows for whose target the model has a "
        f"reference row. Changed (by more than {TOLERANCE:g}) and segments: over the valid rows.",
        "",
    )
    page.table(
        "model",
        "method",
        "valid",
        "with a guide",
        "changed",
        "segments",
        "model rows per row",
        "fallback",
    )
    shortfalls = []
    for model_name, train in MODELS.items():
        model = train(data)
        classifier = cf.as_classifier(model)
        test_accuracy = accuracy(classifier, data.X_test, data.y_test)
        known = classifier.predict(data.X_train)
        for method_name, make in METHODS.items():
            if method_name == "NativeGuide cam" and model_name != "FCN":
                continue
            explainer = make().fit(model, data.X_train, data.y_train, modality="series")
            result = explainer.explain(X)
            has_guide = np.isin(result.target, known)
            share = result.valid[has_guide].mean() if has_guide.any() else np.nan
            changed = is_changed(result.X, result.X_cf)[result.valid]
            fallback = result.info.get("fallback")
            page.row(
                f"{model_name} ({test_accuracy:.2f})",
                method_name,
                f"{result.valid.mean():.3g}",
                f"{share:.3g}",
                f"{changed.mean():.3f}",
                f"{count_segments(changed).mean():.1f}",
                f"{result.calls.mean():.0f}",
                "" if fallback is None else f"{fallback.mean():.2f}",
            )
            if share < 1:
                reasons = explain_failures(result, has_guide)
                remark = " (not required)" if method_name in NOT_GUIDED else ""
                shortfalls.append(f"- {model_name}, {method_name}: {share:.3g}{remark}. {reasons}")
    title = "Below 1 where a guide exists:" if shortfalls else "No cell is below 1."
    page.add("", title, *shortfalls)


def explain_failures(result: cf.Counterfactuals, has_guide: Array) -> str:
    """Return the different messages of the rows that failed although a guide exists."""
    failed = has_guide & ~result.valid
    return "; ".join(sorted(set(result.message[failed])))


Measure = Callable[[SectionedPage, argparse.Namespace], None]
PARTS: dict[str, tuple[str, Measure]] = {
    "speed": ("Beside tscf-eval: logistic regression", partial(measure_races, study="logistic")),
    "rocket": ("Beside tscf-eval: ROCKET", partial(measure_races, study="rocket")),
    "channels": ("Beside tscf-eval: several channels", partial(measure_races, study="channels")),
    "sets": ("SETS", measure_sets),
    **{
        f"grid-{name}": (f"Validity: {name}", partial(measure_validity, name=name))
        for name in DATASETS
    },
    "calls": ("Query accounting", measure_calls),
}


def main() -> None:
    """Run the parts and write their sections."""
    parser = make_parser(__doc__)
    parser.add_argument("--part", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("--rows", type=int, help="instances; each part has its own default")
    parser.add_argument(
        "--peer-rows", type=int, help="number of them given to the slow methods of the peer"
    )
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS / "search_methods.md")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    page = SectionedPage(args.out, [title for title, _ in PARTS.values()])
    for part in args.part:
        title, measure = PARTS[part]
        page.begin(
            title,
            f"python benchmarks/search_methods.py --part {part}",
            PACKAGES,
            "one thread",
        )
        measure(page, args)


if __name__ == "__main__":
    main()
