"""Regularizers: terms that every prototype model learned by gradient descent takes.

GMLVQ(n_prototypes=3, regularizers=(Diversity(0.01), SparseRelevance(0.1)))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from typing_extensions import override

from ..validation import OneOf, Real, Rule, check_parameters
from .layers import Euclidean, Matrix, Relevance
from .penalties import diversity, orthogonality, shrink


class Regularizer:
    """A term of the objective: a penalty with a gradient, or a change of the metric after a step.

    Subclasses override one of the two methods. A dataclass may list the accepted values of its
    fields in `rules`.
    """

    #: accepted values of the fields, by name
    rules: ClassVar[Mapping[str, Rule]] = {}

    def __post_init__(self) -> None:
        """Check the fields of a dataclass."""
        check_parameters(type(self).__name__, self.rules, vars(self))

    def penalty(self, layer: Euclidean, labels: Tensor) -> Tensor | float:
        """Return what is added to the loss.

        Parameters
        ----------
        layer : Euclidean
            The layer that is trained, with its `prototypes` (K, D).
        labels : int Tensor of shape (K,)
            Class of each prototype, as a column.

        Returns
        -------
        Tensor of shape () or float
            The penalty.
        """
        return 0.0

    def after_step(self, layer: Euclidean, learning_rate: float) -> None:
        """Change the metric of the layer in place; it is normalized afterwards.

        Parameters
        ----------
        layer : Euclidean
            The layer that is trained.
        learning_rate : float
            Length of the step that was taken.
        """


@dataclass(frozen=True)
class Diversity(Regularizer):
    """Keep the prototypes of a class apart: weight · `prototype_diversity_loss`.

    Parameters
    ----------
    weight : float
        Weight of the term, at least 0.
    sigma : float or "median", default="median"
        Width of the kernel. A number is in units of the training data's spread.

    Examples
    --------
    >>> Diversity(0.01)
    Diversity(weight=0.01, sigma='median')
    """

    weight: float
    sigma: float | Literal["median"] = "median"

    rules: ClassVar[Mapping[str, Rule]] = {
        "weight": Real(at_least=0),
        "sigma": Real(above=0) | OneOf("median"),
    }

    @override
    def penalty(self, layer: Euclidean, labels: Tensor) -> Tensor:
        return self.weight * diversity(layer.prototypes, labels, self.sigma)


@dataclass(frozen=True)
class Orthogonality(Regularizer):
    """Turn prototypes of different classes away from each other: weight · `orthogonality_loss`.

    Parameters
    ----------
    weight : float
        Weight of the term, at least 0.

    Examples
    --------
    >>> Orthogonality(0.1)
    Orthogonality(weight=0.1)
    """

    weight: float

    rules: ClassVar[Mapping[str, Rule]] = {"weight": Real(at_least=0)}

    @override
    def penalty(self, layer: Euclidean, labels: Tensor) -> Tensor:
        return self.weight * orthogonality(layer.prototypes - layer.center, labels)


@dataclass(frozen=True)
class SparseRelevance(Regularizer):
    """Set the relevance of features that hardly matter to exactly 0.

    A proximal step follows each gradient step. It acts on the relevances λ themselves, or on the
    columns of Ω as groups, Ω_j·max(1 − l1·learning_rate/‖Ω_j‖, 0). Adam's steps do not shrink with
    the gradient: below some weight they undo the zeros.

    Parameters
    ----------
    l1_weight : float
        Weight of the absolute values.
    l2_weight : float, default=0.0
        Weight of the squares; above 0 the term is an elastic net.

    Examples
    --------
    >>> SparseRelevance(0.1)
    SparseRelevance(l1_weight=0.1, l2_weight=0.0)
    """

    l1_weight: float
    l2_weight: float = 0.0

    rules: ClassVar[Mapping[str, Rule]] = {
        "l1_weight": Real(at_least=0),
        "l2_weight": Real(at_least=0),
    }

    @override
    @torch.no_grad()
    def after_step(self, layer: Euclidean, learning_rate: float) -> None:
        if isinstance(layer, Relevance):
            layer.relevances.copy_(self._shrunk(layer.relevances, learning_rate))
            return
        omega = columns_of(layer, self)
        size = omega.norm(dim=-2, keepdim=True)  # (..., 1, D)
        shrunk = self._shrunk(size, learning_rate)
        omega.mul_(torch.where(size > 0, shrunk / size, 0.0))

    def _shrunk(self, values: Tensor, learning_rate: float) -> Tensor:
        """Return the values after the step of `elastic_net_proximal`."""
        sparse = shrink(values, self.l1_weight * learning_rate)
        return sparse / (1 + self.l2_weight * learning_rate)


@dataclass(frozen=True)
class RelevanceFloor(Regularizer):
    """Keep every feature's share of the relevance above a minimum; all shares sum to 1.

    The share of a column of Ω is ‖Ω_j‖².

    Parameters
    ----------
    minimum : float
        The smallest share, from 0 to 1 / features.

    Examples
    --------
    >>> RelevanceFloor(0.01)
    RelevanceFloor(minimum=0.01)
    """

    minimum: float

    rules: ClassVar[Mapping[str, Rule]] = {"minimum": Real(at_least=0, at_most=1)}

    @override
    @torch.no_grad()
    def after_step(self, layer: Euclidean, learning_rate: float) -> None:
        layer.normalize()
        if isinstance(layer, Relevance):
            layer.relevances.copy_(self._raised(layer.relevances))
            return
        omega = columns_of(layer, self)
        share = omega.square().sum(-2, keepdim=True)  # (..., 1, D)
        # A column that vanished has lost its direction: it comes back along an axis.
        axis = torch.zeros_like(omega)
        column = torch.arange(omega.shape[-1], device=omega.device)
        axis[..., column % omega.shape[-2], column] = 1.0
        normalized = omega / share.sqrt()
        direction = torch.where(share > 0, normalized, axis)
        omega.copy_(direction * self._raised(share).sqrt())

    def _raised(self, share: Tensor) -> Tensor:
        """Give everyone the minimum and share out the rest; sums to 1 where `share` does."""
        n = share.shape[-1]
        if not 0 <= self.minimum * n <= 1:
            raise ValueError(
                f"minimum must lie in [0, 1/{n}] for {n} features, got {self.minimum}."
            )
        spare = (share - self.minimum).clamp_min(0)
        total = spare.sum(-1, keepdim=True)
        proportional = spare * (1 - n * self.minimum) / total
        even = 1 / n - self.minimum
        return self.minimum + torch.where(total > 0, proportional, even)


def columns_of(layer: Euclidean, term: Regularizer) -> Tensor:
    """Return Ω of a layer that has one.

    Parameters
    ----------
    layer : Euclidean
        The layer that is trained.
    term : Regularizer
        The term that needs Ω, for the message.

    Returns
    -------
    Tensor of shape (rank, D) or (K, rank, D)
        Ω, the parameter itself.
    """
    if not isinstance(layer, Matrix):
        raise ValueError(
            f"{type(term).__name__} needs a model with relevances: GRLVQ, GMLVQ, LGMLVQ, or "
            "RSLVQ and CELVQ with metric='relevance', 'matrix' or 'local'."
        )
    return layer.omega
