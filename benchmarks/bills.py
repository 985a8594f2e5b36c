"""Count the model rows that every method spends by default, on models of many kinds.

    make bench-bills

GunPoint, five test rows, default parameters, no budget given; and the same without a limit, which
shows the rows that the default budget cut. Writes benchmarks/results/bills.md.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import contrafact as cf
from _common import (
    conditions,
    flatten_rows,
    make_parser,
    random_rows,
    table_head,
    table_row,
    write_page,
)
from contrafact.engine.budget import DEFAULT_CALLS_PER_COUNTERFACTUAL as DEFAULT_CALLS
from contrafact.explainers.registry import explainer_classes

N_ROWS = 5
#: explains only prototype models, by a closed form
LEFT_OUT = ("PrototypeCounterfactual",)


def train_models(data: cf.Dataset) -> dict[str, Any]:
    """Train one model of each kind on flattened rows, and a network."""
    X = flatten_rows(data.X_train)
    y = data.y_train
    logistic = LogisticRegression(max_iter=1000).fit(X, y)

    def as_function(rows: Any) -> Any:
        return logistic.predict_proba(flatten_rows(rows))

    return {
        "logistic regression": logistic,
        "the same as a function": as_function,
        "SVC": SVC(probability=True, random_state=0).fit(X, y),
        "random forest": RandomForestClassifier(100, random_state=0).fit(X, y),
        "Gaussian process": GaussianProcessClassifier(random_state=0).fit(X, y),
        "network": cf.fit_classifier("fcn", data.X_train, y, max_epochs=40, random_state=0),
    }


class Bill(NamedTuple):
    """What a method cost on a model, by default and without a limit."""

    method: str
    model: str
    default: cf.Counterfactuals
    unlimited: cf.Counterfactuals

    @property
    def is_cut(self) -> Any:
        """Which searches the default budget ended."""
        return self.default.calls != self.unlimited.calls

    @property
    def is_told(self) -> Any:
        """Which messages say that it did."""
        return np.array(["default budget" in message for message in self.default.message])

    def line(self) -> str:
        """Return one line of the table."""
        changed = self.default.changed.reshape(N_ROWS, -1).mean(1)
        return table_row(
            self.method,
            self.model,
            f"{np.median(self.default.calls):,.0f}",
            f"{self.default.calls.max():,}",
            f"{self.unlimited.calls.max():,}",
            f"{self.default.valid.sum()} of {N_ROWS}",
            f"{changed.mean():.2f}",
            self.is_cut.sum() or "",
        )


def measure(data: cf.Dataset) -> Iterator[Bill]:
    """Explain the same rows with every method and model."""
    X = random_rows(data.X_test, N_ROWS)
    models = train_models(data)
    for method, kind in explainer_classes().items():
        if method in LEFT_OUT:
            continue
        for name, model in models.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                explainer = kind().fit(model, data.X_train, data.y_train)
                unlimited = explainer.explain(X, budget=cf.Budget(calls=math.inf))
                yield Bill(method, name, explainer.explain(X), unlimited)


def main() -> None:
    """Measure and write the page."""
    make_parser(__doc__).parse_args()
    bills = []
    for bill in measure(cf.load_dataset("GunPoint")):
        bills.append(bill)
        print(bill.line(), flush=True)
    dearest = max(bills, key=lambda bill: bill.default.calls.max())
    over = sum((bill.default.calls > DEFAULT_CALLS).sum() for bill in bills)
    cut = sum(bill.is_cut.sum() for bill in bills)
    wrong = sum((bill.is_cut != bill.is_told).sum() for bill in bills)
    write_page(
        "bills.md",
        "# Model rows per instance, by default",
        "",
        conditions("make bench-bills", ["scikit-learn"]),
        f"GunPoint, {N_ROWS} test rows, default parameters, no budget given: {DEFAULT_CALLS:,} "
        f"model rows per instance at most. {', '.join(LEFT_OUT)} is left out: it explains only "
        "prototype models, and solves for the counterfactual.",
        "",
        f"- Dearest: {dearest.method} on {dearest.model}, {dearest.default.calls.max():,} rows "
        "for one instance.",
        f"- Of {N_ROWS * len(bills)} instances, {over} cost more than the default budget; it "
        f"ended the search of {cut}.",
        f"- `message` says so where it did, and only there: {wrong} exceptions.",
        "",
        "Values changed: mean share. Cut: instances whose search the default budget ended, "
        "because the same search without a limit costs more. SVC and Gaussian process cost two "
        "rows for each question: their `predict` need not follow `predict_proba`, so both are "
        "asked.",
        "",
        *table_head(
            "method",
            "model",
            "rows, median",
            "rows, most",
            "most without a limit",
            "valid",
            "values changed",
            "cut",
        ),
        *[bill.line() for bill in bills],
        "",
    )


if __name__ == "__main__":
    main()
