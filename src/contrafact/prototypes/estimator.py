"""What every prototype model is: a scikit-learn classifier that names the nearest prototype's class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)
from torch import Tensor

from .layers import Euclidean
from .losses import class_scores

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]
Counts = int | Mapping[Any, int]


class PrototypeClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Names the class of the nearest prototype.

    X holds rows (n, features), series (n, channels, length) or images (n, channels, height, width). One
    distance, `distances`, serves everything a model says.

    Fitted attributes: `classes_`, `prototypes_` (K, *shape), `prototype_labels_` (K,), `temperature_`,
    `shape_` (of one instance), `n_features_in_` (numbers in one instance).
    """

    #: whether probabilities are a softmax of squared distances
    squared: ClassVar[bool] = True
    classes_: Array
    prototypes_: Array
    prototype_labels_: Array
    temperature_: float
    shape_: tuple[int, ...]
    n_features_in_: int

    @abstractmethod
    def _distances(self, X: Array) -> Array:
        """(n, K) distances of checked instances."""

    # --- what the model says --------------------------------------------------------------------------------

    def distances(self, X: Any) -> Array:
        """(n, K) distances to all prototypes, squared where `squared` says so."""
        check_is_fitted(self)
        return self._distances(self._read(X))

    def predict(self, X: Any) -> Array:
        """The class of the nearest prototype; of equally near ones, the first class."""
        d = self.distances(X)
        order = np.argsort(self.prototype_labels_, kind="stable")
        return np.asarray(self.prototype_labels_[order][d[:, order].argmin(1)])

    def predict_proba(self, X: Any) -> Array:
        """P(c | x) ∝ exp(−d_c / temperature_), d_c the distance to the nearest prototype of class c."""
        d = torch.from_numpy(self.distances(X))
        scores = class_scores(d, self._owner(), len(self.classes_), self.temperature_)
        return np.asarray(scores.softmax(1))

    def margins(self, X: Any) -> Array:
        """(d_other − d_win) / (d_other + d_win): 1 where a row sits on its prototype, 0 on the boundary."""
        d = self.distances(X)
        own = self.prototype_labels_[d.argmin(1)][:, None] == self.prototype_labels_
        win, other = d.min(1), np.where(own, np.inf, d).min(1)
        relative: Array = np.divide(
            other - win, other + win, out=np.zeros_like(win), where=other + win > 0
        )
        return relative

    def reject(self, X: Any, threshold: float = 0.1) -> NDArray[np.bool_]:
        """Rows too close to call: those whose margin is below the threshold."""
        return np.asarray(self.margins(X) < threshold)

    def prototype_statistics(self, X: Any, y: Any) -> pd.DataFrame:
        """One line per prototype: its label, the rows it wins, their purity, and how far they reach.

        `radius` and `mean_distance` are the largest and the mean distance of the rows it wins.
        """
        import pandas as pd

        d, y = self.distances(X), np.asarray(y)
        winner, best = d.argmin(1), d.min(1)
        wins = np.bincount(winner, minlength=len(self.prototype_labels_))
        right = np.bincount(winner, y == self.prototype_labels_[winner], minlength=len(wins))
        radius = np.zeros(len(wins))
        np.maximum.at(radius, winner, best)
        total = np.bincount(winner, best, minlength=len(wins))
        with np.errstate(invalid="ignore"):
            return pd.DataFrame(
                {
                    "label": self.prototype_labels_,
                    "wins": wins,
                    "purity": right / wins,
                    "radius": np.where(wins > 0, radius, np.nan),
                    "mean_distance": total / wins,
                }
            )

    # --- reading --------------------------------------------------------------------------------------------

    def _read(self, X: Any) -> Array:
        """Instances as at fit, flat (n, features)."""
        X, shape = flattened(X)
        if len(shape) > 1 and shape != self.shape_:
            raise ValueError(f"X holds instances of shape {shape}; fit saw {self.shape_}.")
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    def _read_rows(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True
    ) -> tuple[Array, Array, Array | None]:
        """Instances (n, features), labels, weights; rows of weight 0 are left out."""
        X, shape = flattened(X)
        X, y = validate_data(self, X, y, dtype=np.float64, reset=reset)
        check_classification_targets(y)
        if reset:
            self.shape_ = shape if len(shape) > 1 else (X.shape[1],)
        if sample_weight is None:
            return np.asarray(X), np.asarray(y), None
        weight = check_array(
            sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
        )
        check_consistent_length(X, weight)
        if weight.ndim != 1 or weight.min() < 0 or weight.max() == 0:
            raise ValueError(
                "sample_weight must be one number of at least 0 per row, not all zero weights; got shape "
                f"{weight.shape}, values from {weight.min()} to {weight.max()}."
            )
        return X[weight > 0], y[weight > 0], weight[weight > 0]

    def _read_training(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> tuple[Array, Array, Array | None]:
        """As `_read_rows`, with the classes of y, of which there must be two, as columns."""
        X, y, weight = self._read_rows(X, y, sample_weight)
        self.classes_, t = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y holds one class only ({self.classes_.tolist()}); {type(self).__name__} needs two or more "
                "classes."
            )
        return X, t, weight

    def _counts(self, n_prototypes: Counts, t: Array) -> Array:
        """Prototypes per class, by column; never more than the class has rows."""
        names = self.classes_.tolist()
        if isinstance(n_prototypes, Mapping):
            unknown, missing = set(n_prototypes) - set(names), set(names) - set(n_prototypes)
            if unknown or missing:
                raise ValueError(
                    f"n_prototypes must name every class once; got {dict(n_prototypes)} for classes {names}."
                )
            counts = np.array([n_prototypes[name] for name in names])
        else:
            counts = np.full(len(names), n_prototypes)
        if counts.min() < 1 or counts.dtype.kind not in "iu":
            raise ValueError(f"n_prototypes must be integers of at least 1, got {n_prototypes!r}.")
        return np.asarray(np.minimum(counts, np.bincount(t, minlength=len(names))))

    def _owner(self) -> Tensor:
        """(K,) the class of each prototype, as a column."""
        return torch.from_numpy(np.searchsorted(self.classes_, self.prototype_labels_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


class LayeredClassifier(PrototypeClassifier):
    """A prototype model whose distance is a layer, `layer_`: it has gradients, and exact counterfactuals."""

    layer_: Euclidean

    def _distances(self, X: Array) -> Array:
        x = torch.from_numpy(
            np.require(X, requirements=["C", "W"])
        )  # torch takes no read-only memory
        with torch.no_grad():
            parts = [self.layer_(part) for part in x.split(4096)]
        return np.asarray(torch.cat(parts))

    def metric_(self) -> Array | None:
        """Ω as (rank, D), or (K, rank, D) where every prototype has its own; None: plainly Euclidean."""
        check_is_fitted(self)
        for name in self.layer_.metric_parameters:
            values = getattr(self.layer_, name).detach().cpu().numpy()
            return np.diag(np.sqrt(values)) if values.ndim == 1 else values
        return None

    def differentiable_twin(self) -> Any:
        """Rows (n, features) → logits whose softmax is `predict_proba`: what `as_classifier` descends on."""
        check_is_fitted(self)
        layer, owner, n_classes, T = (
            self.layer_,
            self._owner(),
            len(self.classes_),
            self.temperature_,
        )
        return lambda x: class_scores(layer(x), owner.to(x.device), n_classes, T)

    def _settle(self, layer: Euclidean, labels: Array) -> None:
        """Take over a layer in the user's units."""
        self.layer_ = layer.requires_grad_(False)
        self.prototypes_ = layer.prototypes.detach().cpu().numpy().reshape(-1, *self.shape_)
        self.prototype_labels_ = labels


def generator(random_state: Any) -> np.random.RandomState:
    """Random numbers from a seed; None draws one, and leaves NumPy's global state alone."""
    if random_state is None:
        return np.random.RandomState()
    rng: np.random.RandomState = check_random_state(random_state)
    return rng


def flattened(X: Any) -> tuple[Any, tuple[int, ...]]:
    """Series and images as rows, and the shape of one instance; anything else as it came."""
    shape = tuple(X.shape if hasattr(X, "shape") else np.asarray(X).shape)
    return (np.asarray(X).reshape(shape[0], -1) if len(shape) > 2 else X), shape[1:]


def likely_temperature(d: Tensor, t: Tensor, owner: Tensor, weight: Array | None = None) -> float:
    """The temperature under which the labels t are most probable: argmin over T of −Σ log P(t | x).

    Convex in β = 1/T, with slope Σ (E_P[s] − s_t) for scores s = −d_c. Where no row is wrong T would sink to
    0: it stays above 1/30 of the mean nearest distance.
    """
    s = class_scores(d.double(), owner, int(owner.max()) + 1, 1.0)
    unit = float(-s.amax(1).mean()) or 1.0
    s = s / unit
    w = 1.0 if weight is None else torch.from_numpy(weight).to(s)
    chosen = s.gather(1, t[:, None])[:, 0]

    def slope(log_beta: float) -> float:
        expected = ((np.exp(log_beta) * s).softmax(1) * s).sum(1)
        return float((w * (expected - chosen)).sum())

    low, high = np.log(1e-3), np.log(30)
    if slope(high) <= 0:
        return unit / 30
    return (
        unit * 1e3
        if slope(low) >= 0
        else unit / float(np.exp(brentq(slope, low, high, xtol=1e-12)))
    )
