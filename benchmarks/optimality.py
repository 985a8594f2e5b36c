"""Compare heuristic methods with the smallest counterfactual, where that is known.

    make bench-optimality

On prototype models `PrototypeCounterfactual` finds the smallest counterfactual and proves it.
Everything runs on one thread; times are processor times. Writes benchmarks/results/optimality.md.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

import contrafact as cf
from _common import (
    Array,
    accuracy,
    conditions,
    flatten_rows,
    make_parser,
    random_rows,
    runner_up,
    table_head,
    table_row,
    timed,
    write_page,
)
from contrafact.engine.acceptance import CLEAR_MARGIN
from contrafact.prototypes import GMLVQ

DATASETS = ("GunPoint", "digits")
Norm = Literal["l2", "l1"]
NORMS: tuple[Norm, ...] = ("l2", "l1")
#: no valid counterfactual can be shorter than this multiple of the certified optimum
SHORTEST = 1 - 1e-6


@dataclass
class Case:
    """A model, the instances to explain, their targets and constraints, and the methods."""

    name: str
    model: GMLVQ
    accuracy: float
    X: Array
    y: Array
    x: Array
    target: Array
    constraints: cf.Constraints | None
    methods: dict[str, cf.Explainer]

    def explain(self, explainer: cf.Explainer, **options: Any) -> cf.Counterfactuals:
        """Explain all instances."""
        return explainer.explain(self.x, self.target, constraints=self.constraints, **options)

    def fit_exact(self, norm: Norm) -> cf.PrototypeCounterfactual:
        """Return the exact solver, warmed up: the first run pays for loading."""
        exact = cf.PrototypeCounterfactual(norm).fit(self.model, self.X, self.y)
        self.explain(exact)
        return exact


def make_case(name: str, n: int) -> Case:
    """Return n instances of GunPoint without constraints, or of digits with pixels in range.

    Instances of GunPoint are test series; those of digits are drawn from train and test images.
    """
    data = cf.load_dataset(name)
    X = data.X_train
    X_test = data.X_test
    methods: dict[str, cf.Explainer] = {
        "NearestUnlike": cf.NearestUnlike(),
        "LineSearch": cf.LineSearch(),
    }
    if name == "digits":
        X = flatten_rows(X)
        X_test = flatten_rows(X_test)
        pool = np.concatenate([X_test, X])
        constraints = cf.Constraints(lower=0, upper=16)
        bounds = (0.0, 16.0)
    else:
        pool = X_test
        constraints = None
        # SVCE needs bounds. These hold every optimum: the other methods have no bounds either.
        bounds = (-10.0, 10.0)
        methods["CELS"] = cf.CELS()
        methods["Glacier"] = cf.Glacier()
    for p in (2, 1.5, 1):
        methods[f"SVCE, norm {p:g}"] = cf.SVCE(norm=p, bounds=bounds)

    model = GMLVQ(n_prototypes=3, random_state=0).fit(X, data.y_train)
    x = random_rows(pool, n)
    return Case(
        name=name,
        model=model,
        accuracy=accuracy(model, X_test, data.y_test),
        X=X,
        y=data.y_train,
        x=x,
        target=runner_up(model.predict_proba(x), model.classes_),
        constraints=constraints,
        methods=methods,
    )


# --- the exact solver ----------------------------------------------------------------------------


def certificates() -> list[str]:
    """Return the table of the exact solver alone, on more rows."""
    lines = table_head(
        "data",
        "norm",
        "rows",
        "valid",
        "certified",
        "largest gap",
        "largest gap / distance",
        "ms per row",
    )
    for name in DATASETS:
        case = make_case(name, 1000)
        for norm in NORMS:
            exact = case.fit_exact(norm)
            result, seconds = timed(lambda exact=exact, case=case: case.explain(exact))
            gap = result.info["gap"]
            relative_gap = gap / result.info["distance"]
            lines.append(
                table_row(
                    name,
                    norm,
                    len(result),
                    f"{result.valid.mean():.3f}",
                    f"{result.info['certified'].mean():.3f}",
                    f"{gap.max():.0e}",
                    f"{relative_gap.max():.0e}",
                    f"{1e3 * seconds.cpu / len(result):.2f}",
                )
            )
            print(lines[-1], flush=True)
    return lines


# --- methods next to the optimum -----------------------------------------------------------------


@dataclass
class Optimum:
    """The certified results for one norm, and the processor seconds they took."""

    norm: Norm
    result: cf.Counterfactuals
    seconds: float


def compare(
    case: Case,
    method: str,
    result: cf.Counterfactuals,
    seconds: float,
    optimum: Optimum,
) -> str:
    """Return the table row of a method: its length as a multiple of the optimum."""
    norm = optimum.norm
    length = result.evaluate([norm])[norm].to_numpy()
    ratio = (length / optimum.result.info["distance"])[result.valid]
    if ratio.min() < SHORTEST:
        print(f"BUG: {method}, {norm}: {ratio.min()} of the certified optimum", flush=True)
    nearest = case.model.distances(result.X_cf).argmin(1)
    same_prototype = (nearest == optimum.result.info["prototype"])[result.valid]
    return table_row(
        method,
        f"{result.valid.mean():.3f}",
        f"{np.median(ratio):.3f}",
        f"{np.quantile(ratio, 0.9):.3f}",
        f"{ratio.max():.3f}",
        f"{np.mean(ratio <= 1.01):.2f}",
        f"{ratio.min():.6f}",
        f"{same_prototype.mean():.2f}",
        f"{result.changed_fraction.mean():.2f}",
        f"{seconds / optimum.seconds:.1f}",
    )


def find_optimum(case: Case, norm: Norm) -> tuple[Optimum, list[str]]:
    """Solve a case exactly; returns the optimum and its rows of the table."""
    exact = case.fit_exact(norm)
    result, seconds = timed(lambda: case.explain(exact))
    assert result.info["certified"].all()
    optimum = Optimum(norm, result, seconds.cpu)
    rows = [compare(case, "exact", result, seconds.cpu, optimum)]
    if len(case.model.classes_) == 2:
        # With two classes a lead in probability is a confidence, which the solver handles exactly.
        confidence = 0.5 + CLEAR_MARGIN / 2
        clear, seconds = timed(lambda: case.explain(exact, confidence=confidence))
        rows.append(compare(case, "exact, clear of the boundary", clear, seconds.cpu, optimum))
    return optimum, rows


def compare_methods(case: Case) -> list[str]:
    """Return the section of a data set: one table per norm."""
    optima: dict[Norm, Optimum] = {}
    tables: dict[Norm, list[str]] = {}
    for norm in NORMS:
        optima[norm], rows = find_optimum(case, norm)
        tables[norm] = [
            *table_head(
                "method",
                "valid",
                "median",
                "90 %",
                "worst",
                "within 1 %",
                "smallest",
                "same prototype",
                "changed",
                "time",
            ),
            *rows,
        ]
    for method, explainer in case.methods.items():
        explainer.fit(case.model, case.X, case.y)
        plain, seconds = timed(lambda explainer=explainer: case.explain(explainer))
        refined, refining = timed(
            lambda plain=plain: cf.refine(plain, case.model, constraints=case.constraints)
        )
        total = seconds.cpu + refining.cpu
        for norm in NORMS:
            optimum = optima[norm]
            rows = [
                compare(case, method, plain, seconds.cpu, optimum),
                compare(case, f"{method}, refined", refined, total, optimum),
            ]
            tables[norm] += rows
            for row in rows:
                print(case.name, norm, row, flush=True)
    limits = "no constraints" if case.constraints is None else "values within 0 and 16"
    lines = []
    for norm in NORMS:
        distance = optima[norm].result.info["distance"]
        lines += [
            f"## {case.name}, {norm}",
            "",
            f"GMLVQ, 3 prototypes per class, test accuracy {case.accuracy:.3f}; {len(case.x)} "
            f"random instances of {case.x[0].size} values, {limits}; median of the optimum "
            f"{np.median(distance):.3f}.",
            "",
            *tables[norm],
            "",
        ]
    return lines


# --- text ----------------------------------------------------------------------------------------


INTRODUCTION = [
    "# How far from the smallest counterfactual?",
    "",
    "On a GMLVQ model `PrototypeCounterfactual` finds the smallest counterfactual and proves that "
    "there is none smaller. The columns *median* to *smallest* are the length of a method's change "
    "divided by that of the optimum, over the valid rows: 1 is the best possible, below 1 is "
    "impossible. *within 1 %*: share of the valid rows that are at most 1 % longer. *same "
    "prototype*: share of the valid rows that end up nearest to the prototype of the optimum. "
    "*changed*: share of the values. *time*: processor time as a ratio to the exact solver's, same "
    "rows, same norm. All methods get the same target, the model's runner-up class. *refined*: "
    "after `refine`. CELS and Glacier take series only.",
    "",
    "A method is not told which norm it is measured in: Glacier and SVCE with norm 2 minimize l2, "
    "SVCE with norm 1 minimizes l1, CELS and `refine` aim at few changed values, and the baselines "
    "minimize nothing. All but the exact solver stop a little inside the class (with a lead of "
    f"{CLEAR_MARGIN:g} in probability), so that rounding can't undo the flip; *exact, clear of the "
    "boundary* is the optimum under the same condition, reported where the condition can be solved "
    "exactly, which is with two classes.",
    "",
]
READING = [
    "From the run of 18 November 2026. Every method is valid on every row, and no valid row lies "
    "below the optimum.",
    "",
    "- Measured in its own norm, SVCE is within 1 % on 99 % of the rows of GunPoint in l2 (worst "
    "1.012) and on 90 % in l1 (worst 1.188), and Glacier, which takes a small part of the time, on "
    "89 % in l2 (worst 2.28). Stopping clear of the boundary costs nothing here.",
    "- On digits, with ten classes and a box, SVCE has a median of 1.000 in l2 (worst 1.022, 99 % "
    "within 1 %) and 1.001 in l1 (worst 1.055, 89 %). Three further draws of 150 rows have worst "
    "ratios of 1.010, 1.074 and 1.018 in l2, and of 1.084, 1.057 and 1.084 in l1. Without runs "
    "that start at reference rows which differ from each other it was 1.191 in l1, and on the "
    "further draws 1.303, 1.082 and 1.084: the nearest points of a class lie in several places. "
    "How many runs start there was chosen on eight draws, these among them. The box is given as "
    "`Constraints`.",
    "- CELS does not search for the smallest change and does not find it: 2.9 times the optimum in "
    "l2 and 1.9 in l1 in the median, 2.6 and 1.4 after `refine`. The worst ratios, in the "
    "hundreds, are of rows that lie almost on the boundary, where the optimum is nearly 0 and CELS "
    "still copies a segment of its guide.",
    "- `refine` makes the baselines 1.2 to 6.3 times shorter in the median. Where a method was "
    "already near the optimum it gains hardly anything in length, but it does in changed values: "
    "SVCE with norm 1 on GunPoint, from 12 % to 1 %.",
    "- The exact solver takes below 1 ms per row, less than every method that searches.",
]


def main() -> None:
    """Measure all cases; the page is written after each."""
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=150, help="instances of each data set")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    head = conditions(f"python benchmarks/optimality.py --rows {args.rows}")
    lines = [head, "", *INTRODUCTION, "## Reading", "", *READING, ""]
    lines += ["## The solver's own certificate", "", *certificates(), ""]
    for name in DATASETS:
        lines += compare_methods(make_case(name, args.rows))
        write_page("optimality.md", *lines)


if __name__ == "__main__":
    main()
