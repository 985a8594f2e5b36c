"""Guide: what is unlike an instance? A point of the target class to move toward."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self

from ..data.dataset import as_labels
from ..models.classifier import Array, Classifier, Rows, as_classifier
from ..prototypes.diversity import select_diverse


class Guide(ABC):
    """Finds points of a target class near an instance.

    Candidates come from the reference rows that *the model* puts in the class: a mislabeled or misclassified
    neighbor can never make a valid counterfactual. Subclasses write `_prepare` and `_nearest`.

    Fitted attributes: `classifier_`, `reference_`, and the points to choose from: `candidates_` (m, *shape),
    `candidate_class_` (columns of `classes`), `candidate_proba_`.
    """

    def fit(self, model: Any, X: Rows, y: Any = None) -> Self:
        """Ask the model once for the class of every reference row. `y` only names a raw model's outputs."""
        classifier = model if isinstance(model, Classifier) else as_classifier(model)
        classifier.infer_classes(X, None if y is None else as_labels(y, "y"))
        self.classifier_ = classifier
        self.reference_ = classifier.as_input(X)
        verdict = classifier.verdict(X)
        self.candidates_ = self.reference_
        self.candidate_class_, self.candidate_proba_ = verdict.label, verdict.proba
        self._prepare()
        return self

    def guide(
        self, X: Rows, target: Any, k: int = 1, *, confidence: float | None = None
    ) -> tuple[Tensor, Tensor]:
        """The k best guides of each instance.

        Parameters
        ----------
        X : (n, *shape) instances.
        target : one label, or one for each instance.
        k : how many guides; nearest first.
        confidence : only candidates whose target probability is at least this, where the class has k such.

        Returns
        -------
        arrays (n, k, *shape) and index (n, k): the reference row (or cluster) of each guide, −1 where the
        class has fewer than k candidates (the array there repeats the instance).
        """
        x = self.classifier_.as_input(X)
        labels = np.broadcast_to(np.asarray(target), (len(x),))
        classes = self.classifier_.classes.tolist()
        unknown = [label for label in labels.tolist() if label not in classes]
        if unknown:
            known = ", ".join(map(repr, classes))
            raise ValueError(
                f"target {unknown[0]!r} is not a class of this model. Classes: {known}."
            )
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}.")
        arrays = x[:, None].expand(-1, k, *x.shape[1:]).clone()
        index = torch.full((len(x), k), -1, dtype=torch.long, device=x.device)
        for c, label in enumerate(classes):
            rows = torch.from_numpy(np.flatnonzero(labels == label)).to(x.device)
            pool = self._pool(c, k, confidence)
            found = min(k, len(pool))
            if len(rows) and found:
                arrays[rows, :found], index[rows, :found] = self._nearest(x[rows], pool, found)
        return arrays, index

    def _pool(self, c: int, k: int, confidence: float | None) -> Tensor:
        """Positions of class c's candidates; only the confident ones where they are enough."""
        pool = (self.candidate_class_ == c).nonzero().flatten()
        if confidence is not None:
            firm = pool[self.candidate_proba_[pool, c] >= confidence]
            pool = firm if len(firm) >= k else pool
        return pool

    def _prepare(self) -> None:  # noqa: B027 - most guides need nothing here
        """Work on the candidates once, at fit; may replace them."""

    @abstractmethod
    def _nearest(self, x: Tensor, pool: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The k nearest among the candidates `pool`: arrays (n, k, *shape), index (n, k)."""


class PointGuide(Guide):
    """Guides to points made from the reference rows: subclasses write `_make`.

    A point that the model itself does not put in its class is replaced by the member of the class nearest to
    it, so that every guide is a point of its class.

    Parameters
    ----------
    diverse : with k > 1, points that differ from each other, rather than the k nearest.
    """

    diverse: bool = False

    @abstractmethod
    def _make(self) -> tuple[Tensor, Tensor]:
        """Points (m, *shape) and the class (column) of each."""

    def _prepare(self) -> None:
        n_classes = len(self.classifier_.classes)
        members = [(self.candidate_class_ == c).nonzero().flatten() for c in range(n_classes)]
        points, of_class = self._make()
        verdict = self.classifier_.verdict(points)
        proba = verdict.proba
        for i in (verdict.label.cpu() != of_class).nonzero().flatten().tolist():
            inside = members[int(of_class[i])]
            medoid = inside[(self.reference_[inside] - points[i]).flatten(1).norm(dim=1).argmin()]
            points[i], proba[i] = self.reference_[medoid], self.candidate_proba_[medoid]
        self.candidates_, self.candidate_proba_ = points, proba
        self.candidate_class_ = of_class.to(points.device)

    def _nearest(self, x: Tensor, pool: Tensor, k: int) -> tuple[Tensor, Tensor]:
        distance = (x[:, None] - self.candidates_[pool]).flatten(2).norm(dim=2)
        distance, order = distance.sort(dim=1, stable=True)
        if self.diverse and 1 < k < len(pool):
            chosen = select_diverse(self.candidates_[pool[order]], k, quality=nearness(distance))
            order = order.gather(1, chosen)
        index = pool[order[:, :k]]
        return self.candidates_[index], index


def nearness(distance: Tensor) -> Tensor:
    """How near candidates are, sorted by distance, beside the nearest: their quality as guides."""
    return distance[:, :1].clamp_min(1e-12) / distance.clamp_min(1e-12)


def to_numpy(x: Tensor) -> Array:
    """float64 array, as aeon's distances want it."""
    return np.asarray(x.detach().cpu().numpy(), dtype=np.float64)
