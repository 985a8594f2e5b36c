"""Count the model rows that every method spends by default, on models of many kinds.

    make bench-bills

GunPoint, five test rows, default parameters, no budget given. Writes benchmarks/results/bills.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

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


def measure(data: cf.Dataset) -> Iterator[tuple[str, str, cf.Counterfactuals]]:
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
                yield method, name, explainer.explain(X)


def describe(method: str, model: str, result: cf.Counterfactuals) -> str:
    """Return one line of the table."""
    changed = result.changed.reshape(len(result), -1).mean(1)
    bound = ["default budget" in message for message in result.message]
    return table_row(
        method,
        model,
        f"{np.median(result.calls):,.0f}",
        f"{result.calls.max():,}",
        f"{result.valid.sum()} of {len(result)}",
        f"{changed.mean():.2f}",
        sum(bound) or "",
    )


def main() -> None:
    """Measure and write the page."""
    make_parser(__doc__).parse_args()
    lines = table_head(
        "method", "model", "rows, median", "rows, most", "valid", "values changed", "rows cut"
    )
    for cell in measure(cf.load_dataset("GunPoint")):
        lines.append(describe(*cell))
        print(lines[-1], flush=True)
    write_page(
        "bills.md",
        "# Model rows per instance, by default",
        "",
        conditions("make bench-bills", ["scikit-learn"]),
        f"GunPoint, {N_ROWS} test rows, default parameters, no budget given. Values changed: mean "
        "share. Rows cut: those whose search the default budget ended.",
        "",
        *lines,
        "",
    )


if __name__ == "__main__":
    main()
