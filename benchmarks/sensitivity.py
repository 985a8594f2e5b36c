"""Vary the parameters of five methods over orthogonal arrays, around their defaults.

    make bench-sensitivity

Two data sets, a multilayer perceptron each, 12 test series, one seed; everything runs on one
thread. Writes benchmarks/results/sensitivity.md.
"""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd
import torch
from sklearn.neural_network import MLPClassifier

import contrafact as cf
from _common import (
    accuracy,
    conditions,
    flatten_rows,
    make_parser,
    table_head,
    table_row,
    write_page,
)
from contrafact.benchmark import parameter_effects
from contrafact.benchmark.parts import select_instances

DATASETS = ("GunPoint", "ItalyPowerDemand")
METRICS = ["valid", "sparsity", "rmse", "noise_survival", "calls"]
ROWS = 12
#: by method: values of each parameter, the default in the middle, or first of two
LEVELS: dict[str, dict[str, list[Any]]] = {
    "CELS": {
        "budget_coeff": [0.2, 0.6, 1.8],
        "tv_coeff": [0.1, 0.5, 2.5],
        "threshold": [0.25, 0.5, 0.75],
        "init": ["small", "uniform"],
    },
    "Glacier": {
        "tau": [0.4, 0.5, 0.7],
        "learning_rate": [0.01, 0.02, 0.08],
        "patience": [10, 40, 160],
        "weights": ["uniform", "local"],
    },
    "TSNUC": {
        "n_centroids": [1, 3, 6],
        "lambda_distance": [0.0, 0.01, 1.0],
        "learning_rate": [2e-4, 1e-3, 5e-3],
        "shorten": [True, False],
    },
    "SVCE": {
        "norm": [1.2, 1.5, 2.0],
        "n_iter": [25, 75, 150],
        "restarts": [1, 5, 10],
        "objective": ["logp", "margin"],
    },
    "Graft": {
        "level": ["smallest", "steady"],
        "n_donors": [8, 32, 96],
        "max_rows": [100, 250, 600],
    },
}


def main() -> None:
    """Run the arrays and write the page."""
    make_parser(__doc__).parse_args()
    torch.set_num_threads(1)
    lines = [
        conditions("python benchmarks/sensitivity.py", packages=["scikit-learn"]),
        "",
        "Orthogonal arrays of 9 runs per method and data set, around the defaults (marked \\*): "
        f"multilayer perceptron of 32 units, {ROWS} test series, one seed. Means over the runs "
        "with a value, then the share of the variance among the runs that a parameter explains. "
        "With four parameters in 9 runs an effect is mixed with interactions of others: large "
        "shares are to be trusted, small ones are not.",
        "",
    ]
    for name in DATASETS:
        data = cf.load_dataset(name)
        flat = flatten_rows(data.X_train)
        model = MLPClassifier(32, max_iter=1000, random_state=0).fit(flat, data.y_train)
        score = accuracy(model, flatten_rows(data.X_test), data.y_test)
        lines += [f"# {name} (test accuracy {score:.2f})", ""]
        classifier = cf.as_classifier(model)
        rows, target = select_instances(classifier, data.X_test, ROWS, "stratified", 0)
        for method, levels in LEVELS.items():
            effects = parameter_effects(
                make_method(method, data),
                classifier,
                (data.X_train, data.y_train),
                data.X_test[rows],
                levels,
                METRICS,
                array="L9",
                target=target,
            )
            print(name, method, flush=True)
            lines += section(method, effects.main, effects.shares)
    write_page("sensitivity.md", *lines)


def make_method(name: str, data: cf.Dataset) -> cf.Explainer:
    """Return the method with its defaults; the autoencoder of TSNUC is trained once."""
    if name != "TSNUC":
        method: cf.Explainer = getattr(cf, name)()
        return method
    autoencoder = cf.fit_autoencoder("cnn", data.X_train, max_epochs=120)
    return cf.TSNUC(autoencoder=autoencoder, max_epochs=120)


def section(method: str, main: pd.DataFrame, shares: pd.DataFrame) -> list[str]:
    """Return the lines about one method."""
    defaults = getattr(cf, method)().get_params()
    if method == "TSNUC":
        defaults |= {"n_centroids": 3, "shorten": True}  # those of the preset
    lines = [f"## {method}", "", *table_head("parameter", "value", *METRICS)]
    for _, row in main.iterrows():
        default = "\\*" if row["value"] == defaults[row["parameter"]] else ""
        cells = [f"{row[metric]:.3g}" for metric in METRICS]
        lines.append(table_row(f"`{row['parameter']}`", f"{row['value']}{default}", *cells))
    lines += ["", *table_head("share of the variance", *METRICS)]
    for _, row in shares[~shares["term"].str.contains("×")].iterrows():
        lines.append(table_row(f"`{row['term']}`", *(f"{row[metric]:.0%}" for metric in METRICS)))
    return [*lines, ""]


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of decoded centroids, and of perceptrons not converged
        main()
