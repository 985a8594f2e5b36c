"""Choose and check the defaults of prototype models on 13 data sets, beside prosemble and sklvq.

    make bench-prototype-suite DATA=folder

`folder` holds .npz files of the UCR/UEA archive (X_train, y_train, X_test, y_test); other sets come
with scikit-learn and aeon. Each library has a virtual environment of its own and all see the same
folds and standardized rows. Answers are kept in build/prototype_suite.jsonl, so a stopped run goes
on where it was; every run writes its sections of benchmarks/results/prototypes.md: one of these 13
sets, one of sets that have no part in the choice.
"""

from __future__ import annotations

import os

# Read when NumPy, Numba and JAX are imported, here and in the workers.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import json
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from _common import make_parser
from _prototypes_suite import (
    ARCHIVE,
    BUNDLED,
    N_SEEDS,
    TABLES,
    UNSEEN_ARCHIVE,
    UNSEEN_BUNDLED,
    Worker,
    write_set,
)
from _prototypes_suite_page import write_page, write_unseen

HERE = Path(__file__).parent
BUILD = HERE.parent / "build"
RECORDS = BUILD / "prototype_suite.jsonl"
#: options to choose from, by model; the first are those of version 0.1
CHOICES: dict[str, list[dict[str, float | str]]] = {
    "GLVQ": [{"beta": 1.5}, {"beta": 10}, {"beta": 20}, {"steepness": 5}, {"steepness": 8}],
    "GRLVQ": [
        {"beta": 1.5, "metric_learning_rate": 0.1},
        {"beta": 10, "metric_learning_rate": 0.1},
        {"steepness": 5, "metric_learning_rate": 0.1},
        {"steepness": 5},
    ],
    "GMLVQ": [
        {"beta": 1.5, "metric_learning_rate": 0.1},
        {"steepness": 2, "metric_learning_rate": 0.1},
        {"steepness": 1},
        {"steepness": 1.5},
        {"steepness": 2},
    ],
    "RSLVQ": [{"softness": 0.2}, {"softness": 0.1}, {"softness": 0.4}],
    "CELVQ": [{"softness": 0.2}, {"softness": 0.1}, {"softness": 0.4}],
    "MedianLVQ": [
        {"beta": 7},
        {"beta": 15},
        {"steepness": 3},
        {"steepness": 3.5},
        {"steepness": 5},
        {"objective": "rslvq"},
    ],
}
#: libraries that have a model
LIBRARIES = {
    "GLVQ": ("contrafact", "prosemble", "sklvq"),
    "GMLVQ": ("contrafact", "prosemble", "sklvq"),
    "GRLVQ": ("contrafact", "prosemble"),
    "RSLVQ": ("contrafact", "prosemble"),
    "CELVQ": ("contrafact", "prosemble"),
    "MedianLVQ": ("contrafact",),
}


def make_jobs(part: str, models: list[str], names: list[str]) -> Iterator[dict[str, Any]]:
    """Return what to fit, one seed after another: a run that is stopped has seen every set."""
    is_choice = part == "choice"
    for seed, model, name in product(range(N_SEEDS), models, names):
        base = {"model": model, "data": name, "seed": seed, "inner": is_choice}
        ours = {**base, "library": "contrafact"}
        if is_choice:
            for per_class, options in product((3, 1), CHOICES[model]):
                yield {**ours, "per_class": per_class, "options": options}
            continue
        before = CHOICES[model][0]
        if part == "unseen":
            if "beta" in before:
                for per_class, options in product((3, 1), (before, {})):
                    yield {**ours, "per_class": per_class, "options": options}
            continue
        for library in LIBRARIES[model]:
            yield {**base, "library": library, "per_class": 3, "options": {}}
        if "beta" in before:
            for per_class, options in ((3, before), (1, before), (1, {})):
                yield {**ours, "per_class": per_class, "options": options}


def key(job: dict[str, Any]) -> str:
    """Return what tells a job from others."""
    names = ("library", "model", "data", "seed", "inner", "per_class", "options")
    return json.dumps([job[name] for name in names])


def read_records() -> list[dict[str, Any]]:
    """Return the answers so far."""
    if not RECORDS.exists():
        return []
    return [json.loads(line) for line in RECORDS.read_text().splitlines()]


def run(jobs: Iterator[dict[str, Any]], pythons: dict[str, str]) -> None:
    """Answer all jobs that have no answer yet, in turns between the libraries."""
    workers: dict[str, Worker] = {}
    done = {key(record) for record in read_records()}
    for job in jobs:
        if key(job) in done:
            continue
        library = job["library"]
        if library not in workers:
            workers[library] = Worker(pythons[library])
        path = BUILD / "prototype_suite" / f"{job['data']}.npz"
        answer = workers[library].ask({**job, "path": str(path)})
        with RECORDS.open("a") as file:
            file.write(json.dumps({**job, **answer}) + "\n")


def main() -> None:
    """Run what is missing and write the page."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, help="folder of archive sets; without: the others")
    parts = ["choice", "comparison", "unseen"]
    parser.add_argument("--part", choices=parts, help="one part only")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--models", nargs="+", default=list(CHOICES), choices=list(CHOICES))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(N_SEEDS)))
    parser.add_argument("--libraries", nargs="+", default=["contrafact", "prosemble", "sklvq"])
    parser.add_argument("--prosemble", default=str(HERE / ".venv-prosemble/bin/python"))
    parser.add_argument("--sklvq", default=str(HERE / ".venv-sklvq/bin/python"))
    args = parser.parse_args()
    seen = [*TABLES, *BUNDLED, *(ARCHIVE if args.data else ())]
    unseen = [*UNSEEN_BUNDLED, *(UNSEEN_ARCHIVE if args.data else ())]
    (BUILD / "prototype_suite").mkdir(parents=True, exist_ok=True)
    pythons = {"contrafact": sys.executable, "prosemble": args.prosemble, "sklvq": args.sklvq}
    chosen = [part for part in parts if args.part in (None, part)]
    for part in [] if args.page else chosen:
        names = unseen if part == "unseen" else seen
        for name in names:
            path = BUILD / "prototype_suite" / f"{name}.npz"
            if not path.exists():
                write_set(name, args.data, path)
        jobs = make_jobs(part, args.models, names)
        run(
            (job for job in jobs if job["seed"] in args.seeds and job["library"] in args.libraries),
            pythons,
        )
    if chosen != ["unseen"]:
        write_page(read_records(), CHOICES, seen)
    if "unseen" in chosen:
        write_unseen(read_records(), CHOICES, unseen)


if __name__ == "__main__":
    main()
