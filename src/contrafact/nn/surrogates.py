"""Models of other kinds: in place of a model that cannot be trained again, or beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from typing_extensions import override

from ..models.adapters import as_classifier
from ..models.classifier import Array, Classifier
from ..models.verdict import Verdict
from ..process_state import keeping_threads
from ..tables import Table, TableSpace

#: MiniRocket's kernels are nine points long.
SHORTEST_SERIES = 9
#: enough to tell classes apart, at a fraction of the usual cost
N_KERNELS = 2_000

#: makes an estimator from a seed
Make = Callable[[int], Any]


def fit_surrogate(
    number: int,
    X: Array,
    answers: Array,
    modality: str,
    random_state: int,
) -> Classifier:
    """Fit one of several kinds of model to the answers of another model.

    Parameters
    ----------
    number : int
        Which kind, in turn: for series MiniRocket and a forest; for rows a forest, gradient
        boosting and logistic regression; for images a forest and logistic regression.
    X : array of shape (n, ...)
        Instances.
    answers : array of shape (n,)
        The labels that the other model gives them.
    modality : {"series", "image", "row"}
        Kind of data.
    random_state : int
        Seed.

    Returns
    -------
    Classifier
        The fitted surrogate.
    """
    kinds = _kinds(modality, X.shape[-1])
    return _fit(kinds[number % len(kinds)], X, answers, random_state)


def fit_other_kind(
    model: Any,
    X: Array,
    labels: Array,
    modality: str,
    random_state: int,
) -> Classifier:
    """Fit a model that decides by other features than a given one.

    A forest looks at single values, networks and convolutions at shapes: the other kind of a
    forest is MiniRocket for series and logistic regression else, that of all others a forest.

    Parameters
    ----------
    model : object
        The model that is explained.
    X : array of shape (n, ...)
        Instances.
    labels : array of shape (n,)
        Their labels.
    modality : {"series", "image", "row"}
        Kind of data.
    random_state : int
        Seed.

    Returns
    -------
    Classifier
        The fitted model.
    """
    kinds = _kinds(modality, X.shape[-1])
    has_trees = any(word in repr(model) for word in ("Forest", "Tree", "Boosting"))
    make = next(kind for kind in kinds if (kind is _forest) != has_trees and kind is not _boosting)
    return _fit(make, X, labels, random_state)


class InCoordinates(Classifier):
    """Ask a model of coordinates with the frames of a table.

    Parameters
    ----------
    inner : Classifier
        The model.
    space : TableSpace
        Its coordinates.
    """

    def __init__(self, inner: Classifier, space: TableSpace) -> None:
        super().__init__(inner.classes, inner.batch_size)
        self.inner = inner
        self.space = space
        self.rows_per_evaluation = inner.rows_per_evaluation
        self.rows_per_verdict = inner.rows_per_verdict

    @override
    def _evaluate(self, x: Any) -> Verdict:
        table = Table.read(x, like=self.space.table)
        return self.inner._evaluate(self.space.embed(torch.from_numpy(table.codes)))


@keeping_threads()
def _fit(make: Make, X: Array, labels: Array, random_state: int) -> Classifier:
    rows = X if make is _mini_rocket else X.reshape(len(X), -1)
    return as_classifier(make(random_state).fit(rows, labels))


def _kinds(modality: str, length: int) -> tuple[Make, ...]:
    if modality == "series" and length >= SHORTEST_SERIES:
        return _mini_rocket, _forest
    if modality == "row":
        return _forest, _boosting, _logistic
    return _forest, _logistic


def _mini_rocket(seed: int) -> Any:
    from aeon.classification.convolution_based import MiniRocketClassifier

    return MiniRocketClassifier(n_kernels=N_KERNELS, random_state=seed)


def _forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=seed)


def _boosting(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed)


def _logistic(seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, random_state=seed))
