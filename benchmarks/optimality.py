"""How far from the smallest counterfactual are the methods that only search for it? One command:

    make bench-optimality

On prototype models the smallest one is known, with a proof (`PrototypeCounterfactual`). Everything runs on
one thread; times are processor times. Writes benchmarks/results/optimality.md.
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

import contrafact as cf
from contrafact.engine.batch import CLEAR_MARGIN
from contrafact.models.classifier import Array
from contrafact.prototypes import GMLVQ

RESULT = Path(__file__).parent / "results" / "optimality.md"
Norm = Literal["l2", "l1"]
NORMS: tuple[Norm, ...] = ("l2", "l1")
#: below this multiple of the certified optimum nothing valid can lie
LEAST = 1 - 1e-6


@dataclass
class Case:
    """A model, what it is asked, and who is asked about it under which constraints."""

    name: str
    model: GMLVQ
    X: Array
    y: Array
    x: Array
    target: Array
    constraints: cf.Constraints | None
    methods: dict[str, cf.Explainer]
    accuracy: float

    def explain(self, explainer: cf.Explainer, **options: Any) -> cf.Counterfactuals:
        return explainer.explain(self.x, self.target, constraints=self.constraints, **options)


def svce(bounds: tuple[float, float]) -> dict[str, cf.Explainer]:
    return {f"SVCE, norm {p:g}": cf.SVCE(norm=p, bounds=bounds) for p in (2, 1.5, 1)}


def case(name: str, n: int) -> Case:
    """GunPoint's test series, without constraints; digits, train and test, with pixels kept in range."""
    data = cf.load_dataset(name)
    X, X_test, y = data.X_train, data.X_test, data.y_train
    methods: dict[str, cf.Explainer] = {
        "NearestUnlike": cf.NearestUnlike(),
        "LineSearch": cf.LineSearch(),
    }
    constraints = None
    if name == "digits":
        X, X_test = (rows.reshape(len(rows), -1) for rows in (X, X_test))
        constraints, bounds = cf.Constraints(lower=0, upper=16), (0.0, 16.0)
    else:
        # Wide enough to hold every optimum: the others know no bounds either.
        methods |= {"CELS": cf.CELS(), "Glacier": cf.Glacier()}
        bounds = (-10.0, 10.0)
    model = GMLVQ(n_prototypes=3, random_state=0).fit(X, y)
    pool = X_test if name != "digits" else np.concatenate([X_test, X])
    x = pool[np.random.default_rng(0).permutation(len(pool))[:n]]
    proba = model.predict_proba(x)
    proba[np.arange(len(x)), proba.argmax(1)] = -1
    target = model.classes_[proba.argmax(1)]
    accuracy = float(model.score(X_test, data.y_test))
    return Case(name, model, X, y, x, target, constraints, methods | svce(bounds), accuracy)


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call gives, and the processor seconds it took: the machine may be busy with other work."""
    start = time.process_time()
    return call(), time.process_time() - start


def certificates() -> list[str]:
    """The solver by itself, on more rows."""
    lines = [
        "| data | norm | rows | valid | certified | largest gap | largest gap / distance | ms per row |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in ("GunPoint", "digits"):
        asked = case(name, 1000)
        for norm in NORMS:
            exact = cf.PrototypeCounterfactual(norm).fit(asked.model, asked.X, asked.y)
            asked.explain(exact)  # whatever runs first pays for loading
            result, seconds = timed(lambda exact=exact, asked=asked: asked.explain(exact))
            gap, distance = result.info["gap"], result.info["distance"]
            lines.append(
                f"| {name} | {norm} | {len(result)} | {result.valid.mean():.3f} | "
                f"{result.info['certified'].mean():.3f} | {gap.max():.0e} | {(gap / distance).max():.0e} | "
                f"{1e3 * seconds / len(result):.2f} |"
            )
            print(lines[-1], flush=True)
    return lines


def line(
    asked: Case,
    method: str,
    result: cf.Counterfactuals,
    best: cf.Counterfactuals,
    norm: Norm,
    cost: float,
) -> str:
    ratio = (result.evaluate([norm])[norm].to_numpy() / best.info["distance"])[result.valid]
    if ratio.min() < LEAST:
        print(f"BUG: {method}, {norm}: {ratio.min()} of the certified optimum", flush=True)
    nearest = asked.model.distances(result.X_cf).argmin(1)
    same = (nearest == best.info["prototype"])[result.valid]
    return (
        f"| {method} | {result.valid.mean():.3f} | {np.median(ratio):.3f} | {np.quantile(ratio, 0.9):.3f} | "
        f"{ratio.max():.3f} | {np.mean(ratio <= 1.01):.2f} | {ratio.min():.6f} | {same.mean():.2f} | "
        f"{result.changed_fraction.mean():.2f} | {cost:.1f} |"
    )


def gaps(asked: Case) -> list[str]:
    head = [
        "| method | valid | median | 90 % | worst | within 1 % | smallest | same prototype | changed "
        "| time |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    tables: dict[Norm, list[str]] = {norm: list(head) for norm in NORMS}
    best: dict[Norm, cf.Counterfactuals] = {}
    exact_seconds: dict[Norm, float] = {}
    for norm in NORMS:
        exact = cf.PrototypeCounterfactual(norm).fit(asked.model, asked.X, asked.y)
        asked.explain(exact)
        best[norm], exact_seconds[norm] = timed(lambda exact=exact: asked.explain(exact))
        assert best[norm].info["certified"].all()
        tables[norm].append(line(asked, "exact", best[norm], best[norm], norm, 1))
        if len(asked.model.classes_) == 2:
            clear, spent = timed(
                lambda exact=exact: asked.explain(exact, confidence=0.5 + CLEAR_MARGIN / 2)
            )
            cost = spent / exact_seconds[norm]
            tables[norm].append(
                line(asked, "exact, clear of the boundary", clear, best[norm], norm, cost)
            )
    for method, explainer in asked.methods.items():
        explainer.fit(asked.model, asked.X, asked.y)
        plain, seconds = timed(lambda explainer=explainer: asked.explain(explainer))
        refined, more = timed(
            lambda plain=plain: cf.refine(plain, asked.model, constraints=asked.constraints)
        )
        for norm in NORMS:
            for result, label, spent in (
                (plain, method, seconds),
                (refined, f"{method}, refined", seconds + more),
            ):
                cost = spent / exact_seconds[norm]
                tables[norm].append(line(asked, label, result, best[norm], norm, cost))
                print(asked.name, norm, tables[norm][-1], flush=True)
    limits = "values within 0 and 16" if asked.constraints is not None else "no constraints"
    lines = []
    for norm in NORMS:
        lines += [
            f"## {asked.name}, {norm}",
            "",
            f"GMLVQ, 3 prototypes per class, test accuracy {asked.accuracy:.3f}; {len(asked.x)} random "
            f"instances of {asked.x[0].size} values, {limits}; median of the optimum "
            f"{np.median(best[norm].info['distance']):.3f}.",
            "",
            *tables[norm],
            "",
        ]
    return lines


INTRODUCTION = [
    "# How far from the smallest counterfactual?",
    "",
    "On a GMLVQ model `PrototypeCounterfactual` finds the smallest counterfactual and proves that there is "
    "none smaller. The columns *median* to *smallest* are the length of a method's change over that of the "
    "optimum, valid rows only: 1 is the best possible, below 1 is impossible. *within 1 %*: share of the "
    "valid rows that are at most 1 % longer. *same prototype*: share of them that end up nearest to the "
    "prototype of the optimum. *changed*: share of the values. *time*: processor time as a ratio to the "
    "exact solver's, same rows, same norm. Everyone gets the same target, the model's runner-up class. "
    "*refined*: after `refine`. CELS and Glacier take series only.",
    "",
    "A method is not told which norm it is measured in: Glacier and SVCE with norm 2 minimize l2, SVCE with "
    "norm 1 minimizes l1, CELS and `refine` want few changed values, and the floors want nothing. All but "
    "the exact solver stop a little inside the class (a lead of "
    f"{CLEAR_MARGIN:g} in probability), so that rounding can't undo the flip; *exact, clear of the boundary* "
    "is the optimum under the same condition, told where it is exact, which is with two classes.",
    "",
]
READING = [
    "Of the run of 16 November 2026. Every method is valid on every row, and no valid row lies below the "
    "optimum.",
    "",
    "- Measured in its own norm, SVCE is within 1 % on all of GunPoint's rows (median 1.002 in l2, 1.004 in "
    "l1), and Glacier, which takes a small part of the time, on 91 % of them. Of Glacier's 14 other rows 12 "
    "went to another prototype than the optimum's (worst 1.95). Stopping clear of the boundary costs nothing "
    "here.",
    "- On digits, with ten classes and a box, SVCE is off by 8 % in the median in l2 (worst 1.42) and by "
    "43 % in l1 (worst 3.5). 9 % and 23 % of its rows ended at another prototype, too few to explain the "
    "medians: its runs stop short of the optimum within the right region, too.",
    "- CELS does not look for the smallest change, and does not find it: 4.2 times the optimum in l2 and 4.4 "
    "in l1 in the median, 3.6 and 2.4 after `refine`. The worst ratios, in the hundreds, are of rows that "
    "lie on the boundary almost, where the optimum is nearly 0 and CELS still copies a stretch of its guide.",
    "- `refine` makes floors 1.4 to 7 times shorter in the median, and gains nothing to speak of where a "
    "method was near the optimum already, except in changed values: SVCE with norm 1 on GunPoint, from 99 % "
    "to 4 %.",
    "- The exact solver takes below 1 ms per row, less than every method that searches.",
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=150, help="instances of each data set")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    head = (
        f"`python benchmarks/optimality.py --rows {args.rows}`, {date.today()}, contrafact {cf.__version__}, "
        f"torch {torch.__version__.split('+')[0]}, Python {platform.python_version()}, 1 thread."
    )
    RESULT.parent.mkdir(exist_ok=True)
    lines = [*INTRODUCTION, "## Reading", "", *READING, "", "## The solver's own certificate", ""]
    lines += [*certificates(), ""]
    for name in ("GunPoint", "digits"):  # written after each
        lines += gaps(case(name, args.rows))
        RESULT.write_text("\n".join([head, "", *lines]), encoding="utf-8")


if __name__ == "__main__":
    main()
