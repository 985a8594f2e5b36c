"""Guide: find a point of the target class to move toward."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import NotFittedError
from torch import Tensor
from typing_extensions import Self, override

from ..data.cleaning import describe_nonfinite
from ..data.dataset import as_labels
from ..models.adapters import as_classifier
from ..models.class_labels import read_targets
from ..models.classifier import Array, Classifier, Rows
from ..models.verdict import all_finite
from ..prototypes.diversity import select_diverse
from ..validation import Instance, Integer, Nothing, Real, brief, check_parameters
from .stored_answers import Answers

#: accepted values of the arguments of `Guide.guide`
QUESTION_RULES = {
    "k": Integer(at_least=1, at_most=10_000),
    "confidence": Nothing() | Real(at_least=0, at_most=1),
    "preferred": Nothing() | Instance(Tensor, "a Tensor of bool"),
}


def _read_rows(X: Rows, classifier: Classifier) -> Tensor:
    """Convert instances to a tensor as the model takes it, and check that they are finite."""
    x = classifier.as_input(X)
    if x.ndim < 2 or 0 in x.shape[1:]:
        raise ValueError(f"X has shape {tuple(x.shape)}. Accepted: (n, *shape), not empty.")
    if not all_finite(x):
        raise ValueError(describe_nonfinite(x, "X"))
    return x


class Guide(ABC):
    """Find points of a target class near an instance.

    Candidates come from the reference rows that *the model* puts in the class: a mislabeled or
    misclassified neighbor can never make a valid counterfactual. Subclasses write `_nearest` and,
    where the candidates need work at fit, `_prepare`.

    Attributes
    ----------
    classifier_ : Classifier
        The model.
    reference_ : Tensor of shape (n, *shape)
        The reference rows.
    candidates_ : Tensor of shape (m, *shape)
        The points to choose from.
    candidate_class_ : int Tensor of shape (m,)
        Their classes, as columns of the model's `classes`.
    candidate_proba_ : Tensor of shape (m, classes)
        The model's probabilities for them.
    """

    classifier_: Classifier
    reference_: Tensor
    candidates_: Tensor
    candidate_class_: Tensor
    candidate_proba_: Tensor

    def __repr__(self) -> str:
        names = inspect.signature(type(self)).parameters
        given = [f"{name}={brief(getattr(self, name))}" for name in names if hasattr(self, name)]
        return f"{type(self).__name__}({', '.join(given)})"

    def fit(
        self,
        model: Any,
        X: Rows,
        y: Any = None,
    ) -> Self:
        """Ask the model once for the class of every reference row.

        Parameters
        ----------
        model : object
            A model that `as_classifier` takes, or a Classifier.
        X : array or Tensor of shape (n, *shape)
            Reference rows.
        y : array of shape (n,), optional
            Their labels; they only name the outputs of a model that does not name them itself.

        Returns
        -------
        self
            The fitted object.
        """
        classifier = as_classifier(model)
        x = _read_rows(X, classifier)
        if len(x) == 0:
            raise ValueError("X is empty; a guide needs reference rows.")
        labels = None if y is None else as_labels(y, "y", len(x))
        classifier.infer_classes(x, labels)
        self.classifier_ = classifier
        self.reference_ = x
        self.candidates_ = self.reference_
        self.candidate_class_, self.candidate_proba_ = self._ask_about(self.reference_)
        self._prepare()
        return self

    def guide(
        self,
        X: Rows,
        target: Any,
        k: int = 1,
        *,
        confidence: float | None = None,
        preferred: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Find the k best guides of each instance.

        Parameters
        ----------
        X : array or Tensor of shape (n, *shape)
            Instances.
        target : label or array of shape (n,)
            Target class: one label, or one for each instance.
        k : int, default=1
            Number of guides.
        confidence : float, optional
            Use only candidates whose target probability is at least this, where the class has k
            of them; default: all candidates.
        preferred : Tensor of bool, shape (m,), optional
            Use only these candidates, where the class has k of them; default: all candidates.

        Returns
        -------
        arrays : Tensor of shape (n, k, *shape)
            The guides, nearest first.
        index : int Tensor of shape (n, k)
            The candidate (reference row, cluster or prototype) of each guide; −1 where the class
            has fewer than k (the array there repeats the instance).

        Raises
        ------
        ValueError
            If the target is not a class of the model.
        """
        values = {"k": k, "confidence": confidence, "preferred": preferred}
        check_parameters(type(self).__name__, QUESTION_RULES, values)
        if not hasattr(self, "classifier_"):
            raise NotFittedError(f"{type(self).__name__} is not fitted; call fit(model, X) first.")
        x = _read_rows(X, self.classifier_)
        shape = tuple(self.reference_.shape[1:])
        if x.shape[1:] != shape:
            raise ValueError(f"X holds instances of shape {tuple(x.shape[1:])}; fit saw {shape}.")
        columns = read_targets(target, self.classifier_.classes, len(x))
        if columns is None:
            raise ValueError("target must be a label, or one per instance, got None.")
        repeated = x[:, None].expand(-1, k, *x.shape[1:])
        arrays = repeated.clone()
        index = torch.full((len(x), k), -1, dtype=torch.long, device=x.device)
        for c in range(len(self.classifier_.classes)):
            wanted = np.flatnonzero(columns == c)
            if len(wanted) == 0:
                continue
            rows = torch.from_numpy(wanted).to(x.device)
            pool = self._pool(c, k, confidence, preferred)
            n_found = min(k, len(pool))
            if n_found:
                nearest, position = self._nearest(x[rows], pool, n_found)
                arrays[rows, :n_found] = nearest
                index[rows, :n_found] = position
        return arrays, index

    def _ask_about(self, X: Tensor) -> Answers:
        """Ask the model about the reference rows."""
        verdict = self.classifier_.reference_verdict(X)
        return Answers(verdict.label, verdict.proba)

    def _pool(
        self,
        c: int,
        k: int,
        confidence: float | None,
        preferred: Tensor | None,
    ) -> Tensor:
        """Return the positions of class c's candidates; only the best kinds that have k of them."""
        pool = (self.candidate_class_ == c).nonzero().flatten()
        if confidence is not None:
            confident = pool[self.candidate_proba_[pool, c] >= confidence]
            pool = confident if len(confident) >= k else pool
        if preferred is not None:
            better = pool[preferred[pool]]
            pool = better if len(better) >= k else pool
        return pool

    def _prepare(self) -> None:  # noqa: B027 - most guides need nothing here
        """Prepare the candidates once, at fit; may replace them."""

    @abstractmethod
    def _nearest(
        self,
        x: Tensor,
        pool: Tensor,
        k: int,
    ) -> tuple[Tensor, Tensor]:
        """Find the k nearest of the candidates `pool`: arrays (n, k, *shape) and index (n, k)."""


class PointGuide(Guide):
    """Guide to points made from the reference rows; subclasses write `_make`.

    A point that the model itself does not put in its class is replaced by the member of the class
    nearest to it, so that every guide is a point of its class.

    Parameters
    ----------
    diverse : bool, default=False
        With k > 1, choose points that differ from each other rather than the k nearest.
    """

    diverse: bool = False

    @abstractmethod
    def _make(self) -> tuple[Tensor, Tensor]:
        """Make points (m, *shape) and return them with the class (column) of each."""

    @override
    def _prepare(self) -> None:
        points, of_class = self._make()
        verdict = self.classifier_.verdict(points)
        proba = verdict.proba
        misplaced = verdict.label.cpu() != of_class
        for i in misplaced.nonzero().flatten().tolist():
            medoid = self._nearest_member(points[i], int(of_class[i]))
            points[i] = self.reference_[medoid]
            proba[i] = self.candidate_proba_[medoid]
        self.candidates_ = points
        self.candidate_proba_ = proba
        self.candidate_class_ = of_class.to(points.device)

    def _nearest_member(self, point: Tensor, c: int) -> Tensor:
        """Return the position of the reference row of class c nearest to a point."""
        members = (self.candidate_class_ == c).nonzero().flatten()
        differences = self.reference_[members] - point
        nearest = differences.flatten(1).norm(dim=1).argmin()
        return members[nearest]

    @override
    def _nearest(
        self,
        x: Tensor,
        pool: Tensor,
        k: int,
    ) -> tuple[Tensor, Tensor]:
        differences = x[:, None] - self.candidates_[pool]  # (n, pool, *shape)
        distance = differences.flatten(2).norm(dim=2)
        distance, order = distance.sort(dim=1, stable=True)
        if self.diverse and 1 < k < len(pool):
            sorted_pool = pool[order]  # (n, pool)
            sorted_points = self.candidates_[sorted_pool]
            chosen = select_diverse(sorted_points, k, quality=nearness(distance))
            order = order.gather(1, chosen)
        nearest = order[:, :k]
        index = pool[nearest]
        return self.candidates_[index], index


def nearness(distance: Tensor) -> Tensor:
    """Compute the quality of guides: the nearest distance over theirs.

    Takes distances (n, m), sorted, and returns numbers (n, m) from 0 to 1.
    """
    at_least = distance.clamp_min(1e-12)
    return at_least[:, :1] / at_least


def to_numpy(x: Tensor) -> Array:
    """Return a float64 array, as aeon's distances need it."""
    array = x.detach().cpu().numpy()
    return np.asarray(array, dtype=np.float64)
