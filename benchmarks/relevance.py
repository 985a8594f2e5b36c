"""Select features by several rankings, with and without labels, and measure what is lost.

    make bench-relevance

To the features of each set as many are added that are copies of them with the rows shuffled, each
on its own: of the same variance, but telling nothing. Rankings are made on the training rows of a
fold; the best k features are kept, standardized, and given to 1-NN and GLVQ. Writes
benchmarks/results/relevance.md.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

from _common import Array, accuracy, conditions, table_head, table_row, timed, write_page
from _prototypes_suite import load_set
from contrafact.prototypes import GLVQ, GMLVQ, GRLVQ, unsupervised_relevance

SETS = ("digits", "wine", "breast cancer", "ItalyPowerDemand")
SEEDS = (0,)
Ranking = Callable[[Array, Array, Array, int], Array]

#: from rows in their units, standardized rows, labels and a seed to a score per feature
RANKINGS: dict[str, Ranking] = {
    "unsupervised_relevance": lambda X, Z, y, seed: unsupervised_relevance(Z, random_state=seed),
    "variance": lambda X, Z, y, seed: X.var(0),
    "GRLVQ": lambda X, Z, y, seed: GRLVQ(random_state=seed).fit(Z, y).relevances_,
    "GMLVQ": lambda X, Z, y, seed: GMLVQ(random_state=seed).fit(Z, y).relevances_,
    "random": lambda X, Z, y, seed: np.random.default_rng(seed).random(X.shape[1]),
}


def with_copies(X: Array, seed: int) -> Array:
    """Return X beside a copy of it in which every column is shuffled on its own."""
    rng = np.random.default_rng(seed)
    return np.column_stack([X, rng.permuted(X, axis=0)])


def standardize(train: Array, test: Array) -> tuple[Array, Array]:
    """Return both, standardized by the training rows."""
    spread = train.std(0)
    spread = np.where(spread > 0, spread, 1)
    return (train - train.mean(0)) / spread, (test - train.mean(0)) / spread


def measure(name: str) -> dict[str, Array]:
    """Return (folds, 4) of each ranking: real share, accuracy of 1-NN and GLVQ, and seconds."""
    X, y = load_set(name, Path())
    kept = X.shape[1] // 2
    found: dict[str, list[list[float]]] = {ranking: [] for ranking in [*RANKINGS, "all features"]}
    for seed in SEEDS:
        noisy = with_copies(X, seed)
        splits = StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y)
        for i, (train, test) in enumerate(splits):
            Z, Z_test = standardize(noisy[train], noisy[test])
            given = (noisy[train], Z, y[train], 5 * seed + i)
            for ranking in found:
                columns, seconds = np.arange(noisy.shape[1]), 0.0
                if ranking in RANKINGS:
                    score, spent = timed(partial(RANKINGS[ranking], *given))
                    columns, seconds = np.argsort(-score)[:kept], spent.cpu
                is_real = columns < X.shape[1]
                models = [KNeighborsClassifier(1), GLVQ(3, random_state=seed)]
                scores = [
                    accuracy(model.fit(Z[:, columns], y[train]), Z_test[:, columns], y[test])
                    for model in models
                ]
                found[ranking].append([is_real.mean(), *scores, seconds])
    return {ranking: np.array(values) for ranking, values in found.items()}


def main() -> None:
    """Measure all sets and write the page."""
    lines = [
        "# Relevance of features, with and without labels",
        "",
        conditions("python benchmarks/relevance.py", ("scikit-learn", "numpy")),
        "",
        "Every set has as many useless features as real ones: shuffled copies, of the same "
        "variance. Half as many features as are real are kept. *Real*: share of those kept "
        "that are real. Mean test accuracy ± standard error over 5 folds, at most 400 "
        "rows; rankings see the training rows alone, standardized (variance: as they are). GLVQ "
        "with 3 prototypes per class. *CPU s*: to rank.",
        "",
    ]
    for name in SETS:
        found = measure(name)
        lines += [f"## {name}", ""]
        lines += table_head("ranking", "labels", "real", "1-NN", "GLVQ", "CPU s")
        for ranking, values in found.items():
            mean = values.mean(0)
            error = values.std(0, ddof=1) / np.sqrt(len(values))
            needs = "yes" if ranking in ("GRLVQ", "GMLVQ") else "no"
            lines.append(
                table_row(
                    ranking,
                    needs if ranking in RANKINGS else "",
                    f"{mean[0]:.2f}",
                    *(f"{mean[i]:.3f} ± {error[i]:.3f}" for i in (1, 2)),
                    f"{mean[3]:.2f}" if ranking in RANKINGS else "",
                )
            )
        lines.append("")
        write_page("relevance.md", *lines)


if __name__ == "__main__":
    main()
