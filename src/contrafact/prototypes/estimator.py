"""PrototypeClassifier: a scikit-learn classifier that predicts the nearest prototype's class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from ..data.arrays import read_array
from ..validation import Real, Rule, check_parameters
from .losses import class_scores
from .user_data import Array as Array
from .user_data import (
    check_weights,
    flatten_instances,
    naming,
    read_labels,
    read_pair,
)

if TYPE_CHECKING:
    import pandas as pd

Counts = int | Mapping[Any, int]


class PrototypeClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Predict the class of the nearest prototype.

    X holds rows (n, features), series (n, channels, length) or images (n, channels, height,
    width). All predictions, probabilities and margins are made of one distance, `distances`.

    Attributes
    ----------
    classes_ : array of shape (classes,)
        The labels.
    prototypes_ : array of shape (K, *shape)
        The prototypes.
    prototype_labels_ : array of shape (K,)
        Their labels.
    temperature_ : float
        Of `predict_proba`, in units of the distances.
    shape_ : tuple of int
        Shape of one instance.
    n_features_in_ : int
        Number of values of one instance.
    """

    #: whether distances are squared
    squared: ClassVar[bool] = True
    #: accepted values of the parameters that a class adds to those of its bases, by name
    rules: ClassVar[Mapping[str, Rule]] = {}
    classes_: Array
    prototypes_: Array
    prototype_labels_: Array
    temperature_: float
    shape_: tuple[int, ...]
    n_features_in_: int

    @abstractmethod
    def _distances(self, X: Array) -> Array:
        """Compute the distances (n, K) of checked, flat instances."""

    # --- predictions ------------------------------------------------------------------------------

    def distances(self, X: Any) -> Array:
        """Compute the distances to all prototypes.

        Parameters
        ----------
        X : array of shape (n, *shape)
            Instances.

        Returns
        -------
        array of shape (n, K)
            Distances; squared where the attribute `squared` is true.
        """
        check_is_fitted(self)
        return self._distances(self._check_instances(X))

    def predict(self, X: Any) -> Array:
        """Predict the class of the nearest prototype.

        Parameters
        ----------
        X : array of shape (n, *shape)
            Instances.

        Returns
        -------
        array of shape (n,)
            Labels; of equally near prototypes, that of the first class.
        """
        d = self.distances(X)
        order = np.argsort(self.prototype_labels_, kind="stable")
        labels = self.prototype_labels_[order]
        nearest = d[:, order].argmin(1)
        return np.asarray(labels[nearest])

    def predict_proba(self, X: Any) -> Array:
        """Compute class probabilities.

            P(c | x) ∝ exp(−d_c / temperature_)

        with d_c the distance to the nearest prototype of class c.

        Parameters
        ----------
        X : array of shape (n, *shape)
            Instances.

        Returns
        -------
        array of shape (n, classes)
            Probabilities, in the order of `classes_`.
        """
        d = torch.from_numpy(self.distances(X))
        scores = class_scores(
            d,
            self._owner(),
            len(self.classes_),
            self.temperature_,
        )
        return np.asarray(scores.softmax(1))

    def margins(self, X: Any) -> Array:
        """Compute how clear each prediction is.

            (d_other − d_win) / (d_other + d_win)

        with d_win the distance to the nearest prototype and d_other that to the nearest prototype
        of another class.

        Parameters
        ----------
        X : array of shape (n, *shape)
            Instances.

        Returns
        -------
        array of shape (n,)
            Margins from 0 (on the boundary) to 1 (on a prototype).
        """
        d = self.distances(X)
        winner = d.argmin(1)
        winner_label = self.prototype_labels_[winner]
        same_class = winner_label[:, None] == self.prototype_labels_  # (n, K)
        d_win = d.min(1)
        d_other = np.where(same_class, np.inf, d).min(1)
        total = d_other + d_win
        margin: Array = np.isinf(d_other).astype(float)  # 1 where no other class has a prototype
        np.divide(
            d_other - d_win,
            total,
            out=margin,
            where=(total > 0) & np.isfinite(d_other),
        )
        return margin

    def reject(
        self,
        X: Any,
        threshold: float = 0.1,
    ) -> NDArray[np.bool_]:
        """Find the rows that are too close to the boundary to decide.

        Parameters
        ----------
        X : array of shape (n, *shape)
            Instances.
        threshold : float, default=0.1
            Smallest margin of a row that is decided, at least 0.

        Returns
        -------
        bool array of shape (n,)
            True where the margin is below the threshold.
        """
        rules = {"threshold": Real(at_least=0)}
        check_parameters(f"{type(self).__name__}.reject", rules, {"threshold": threshold})
        return np.asarray(self.margins(X) < threshold)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the accuracy.

        Parameters
        ----------
        X : array of shape (n, *shape)
            Instances.
        y : array of shape (n,)
            Their labels.
        sample_weight : array of shape (n,), optional
            Weights; default: all equal.

        Returns
        -------
        float
            The share of rows whose class is predicted.
        """
        predicted = self.predict(X)
        labels = read_labels(y, "y", len(predicted))
        weight = None if sample_weight is None else check_weights(sample_weight, predicted)
        right = labels == predicted
        return float(np.average(right, weights=weight))

    def prototype_statistics(self, X: Any, y: Any) -> pd.DataFrame:
        """Describe which rows each prototype wins.

        Parameters
        ----------
        X : array of shape (n, *shape)
            Instances.
        y : array of shape (n,)
            Their labels.

        Returns
        -------
        pandas.DataFrame
            One line per prototype: `label`, `wins` (the number of rows nearest to it), `purity`
            (the share of them that has its label), `radius` and `mean_distance` (the largest and
            the mean distance of these rows).
        """
        import pandas as pd

        d = self.distances(X)
        winner = d.argmin(1)
        d_win = d.min(1)
        right = read_labels(y, "y", len(d)) == self.prototype_labels_[winner]
        n_prototypes = len(self.prototype_labels_)
        wins = np.bincount(winner, minlength=n_prototypes)
        n_right = np.bincount(winner, right, minlength=n_prototypes)
        total_distance = np.bincount(winner, d_win, minlength=n_prototypes)
        radius = np.zeros(n_prototypes)
        np.maximum.at(radius, winner, d_win)
        with np.errstate(invalid="ignore"):
            return pd.DataFrame(
                {
                    "label": self.prototype_labels_,
                    "wins": wins,
                    "purity": n_right / wins,
                    "radius": np.where(wins > 0, radius, np.nan),
                    "mean_distance": total_distance / wins,
                }
            )

    # --- checks -----------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        """Check every parameter against the rules of the class and of its bases."""
        rules: dict[str, Rule] = {}
        for kind in reversed(type(self).__mro__):
            rules.update(vars(kind).get("rules", {}))
        check_parameters(type(self).__name__, rules, self.get_params(deep=False))

    def _check_instances(self, X: Any) -> Array:
        """Check instances against those of `fit`; returns them flat (n, features)."""
        X, shape = flatten_instances(X)
        if len(shape) > 1 and shape != self.shape_:
            raise ValueError(f"X holds instances of shape {shape}; fit saw {self.shape_}.")
        with naming("X"):
            checked = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(checked)

    def _check_rows(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        reset: bool = True,
    ) -> tuple[Array, Array, Array | None]:
        """Check instances, labels and weights; rows of weight 0 are left out."""
        X, shape = flatten_instances(X)
        if y is not None:
            y = read_array(y, "y")
        with naming("X, y"):
            X, y = validate_data(self, X, y, dtype=np.float64, reset=reset)
        with naming("y"):
            check_classification_targets(y)
        if reset:
            n_features = X.shape[1]
            self.shape_ = shape if len(shape) > 1 else (n_features,)
        if sample_weight is None:
            return np.asarray(X), np.asarray(y), None
        weight = check_weights(sample_weight, X)
        kept = weight > 0
        return X[kept], y[kept], weight[kept]

    def _check_training_data(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
    ) -> tuple[Array, Array, Array | None]:
        """Check rows and set `classes_`; returns instances, class columns and weights."""
        X, y, weight = self._check_rows(X, y, sample_weight)
        self.classes_, columns = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y holds one class only ({self.classes_.tolist()}); {type(self).__name__} needs "
                "two or more classes."
            )
        return X, columns, weight

    def _check_pair(self, pair: Any, name: str) -> tuple[Array, Array]:
        """Check instances and their labels; returns them flat, and the labels as columns."""
        X, y = read_pair(pair, name)
        with naming(name):
            rows = self._check_instances(X)
            labels = read_labels(y, "y", len(rows))
        unknown = set(labels.tolist()) - set(self.classes_.tolist())
        if unknown:
            raise ValueError(
                f"{name} holds labels {sorted(unknown)} that y does not; classes: "
                f"{self.classes_.tolist()}."
            )
        return rows, np.asarray(np.searchsorted(self.classes_, labels))

    def _counts(self, n_prototypes: Counts, t: Array) -> Array:
        """Return the prototypes per class, by column; never more than the class has rows."""
        names = self.classes_.tolist()
        if isinstance(n_prototypes, Mapping):
            if set(n_prototypes) != set(names):
                raise ValueError(
                    f"n_prototypes must name every class once; got {dict(n_prototypes)} for "
                    f"classes {names}."
                )
            wanted = np.array([n_prototypes[name] for name in names])
        else:
            wanted = np.full(len(names), n_prototypes)
        available = np.bincount(t, minlength=len(names))
        return np.asarray(np.minimum(wanted, available))

    def _owner(self) -> Tensor:
        """Return the class (K,) of each prototype, as a column."""
        columns = np.searchsorted(self.classes_, self.prototype_labels_)
        return torch.from_numpy(columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


def generator(random_state: Any) -> np.random.RandomState:
    """Make a random generator of a seed; None draws one and leaves NumPy's global state alone."""
    if random_state is None:
        return np.random.RandomState()
    rng: np.random.RandomState = check_random_state(random_state)
    return rng
