"""Regularizers of prototype models: as functions, and as terms that any gradient model takes.

GMLVQ(n_prototypes=3, regularizers=(Diversity(0.01), SparseRelevance(0.1)))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from .layers import Euclidean, Matrix, Relevance

# --- functions ----------------------------------------------------------------------------------------------


def prototype_diversity_loss(
    prototypes: Tensor,
    labels: Tensor,
    sigma: float | Literal["median"] = 1.0,
    *,
    eps: float = 1e-6,
    seed: int = 0,
) -> Tensor:
    """How alike the prototypes of a class are: −Σ_c log det(K_c + εI),  K_ij = exp(−‖p_i − p_j‖²/(2σ²)).

    Prototypes at exactly the same place have no direction to part in: the kernel sees them a hair's breadth
    apart, in directions drawn from `seed`.

    Parameters
    ----------
    prototypes, labels : (K, …) and (K,), any integers.
    sigma : width of the kernel; "median": the median distance between prototypes of one class.

    Examples
    --------
    >>> apart, close = torch.tensor([[0.0], [2.0]]), torch.tensor([[0.0], [0.1]])
    >>> labels = torch.tensor([7, 7])
    >>> bool(prototype_diversity_loss(close, labels) > prototype_diversity_loss(apart, labels))
    True
    """
    p = prototypes.flatten(1)
    K = len(p)
    together = labels[:, None] == labels
    off_diagonal = together & ~torch.eye(K, dtype=torch.bool, device=p.device)
    with torch.no_grad():
        distance = torch.cdist(p, p, compute_mode="donot_use_mm_for_euclid_dist")
        coincident = ((distance == 0) & off_diagonal).any(1)
        width = torch.as_tensor(1.0 if sigma == "median" else sigma, dtype=p.dtype, device=p.device)
        if sigma == "median":
            among = distance[off_diagonal & (distance > 0)]
            width = among.median() if len(among) else width
        width = width.clamp_min(torch.finfo(p.dtype).tiny ** 0.25)  # its square must not vanish
        # A hash by sine: cheap, the same on every device, and torch.compile can see through it.
        counter = torch.arange(1, p.numel() + 1, dtype=p.dtype, device=p.device).reshape(p.shape)
        jitter = 1e-3 * width * (counter * 12.9898 + seed).sin() / p.shape[1] ** 0.5
    u = torch.where(coincident[:, None], p + jitter, p) / width
    kernel = (-(u[:, None] - u).square().sum(2) / 2).exp()
    # Classes do not see each other, so the kernel of all has the determinant Π_c det(K_c + εI).
    ridge = max(eps, 4 * K * torch.finfo(p.dtype).eps)  # what rounding needs, in single precision
    blocks = torch.where(together, kernel, 0.0) + ridge * torch.eye(
        K, dtype=p.dtype, device=p.device
    )
    factor: Tensor = torch.linalg.cholesky(blocks)
    return -2 * factor.diagonal().log().sum()


def sparse_relevance_proximal(relevances: Tensor, l1_weight: float, lr: float = 1.0) -> Tensor:
    """The proximal step of l1·‖x‖₁: sign(x)·max(|x| − l1·lr, 0)."""
    return relevances.sign() * (relevances.abs() - l1_weight * lr).clamp_min(0)


def elastic_net_proximal(
    relevances: Tensor, l1_weight: float, l2_weight: float, lr: float = 1.0
) -> Tensor:
    """The proximal step of l1·‖x‖₁ + l2/2·‖x‖²: the one above, divided by 1 + l2·lr."""
    return sparse_relevance_proximal(relevances, l1_weight, lr) / (1 + l2_weight * lr)


def orthogonality_loss(prototypes: Tensor, labels: Tensor) -> Tensor:
    """Mean squared cosine between prototypes of different classes: 0 where classes are orthogonal."""
    unit = torch.nn.functional.normalize(prototypes.flatten(1), dim=1)
    apart = labels[:, None] != labels
    return (unit @ unit.T).square()[apart].mean()


# --- terms --------------------------------------------------------------------------------------------------


class Regularizer:
    """A term of the objective: a penalty with a gradient, or a change of the metric after every step."""

    def penalty(self, layer: Euclidean, labels: Tensor) -> Tensor | float:
        return 0.0

    def after_step(self, layer: Euclidean, lr: float) -> None:
        """Change the layer's metric in place; it is normalized afterwards."""


@dataclass(frozen=True)
class Diversity(Regularizer):
    """weight · `prototype_diversity_loss`: keeps the prototypes of a class apart.

    A number for `sigma` is in units of the training data's spread.
    """

    weight: float
    sigma: float | Literal["median"] = "median"

    def penalty(self, layer: Euclidean, labels: Tensor) -> Tensor:
        return self.weight * prototype_diversity_loss(layer.prototypes, labels, self.sigma)


@dataclass(frozen=True)
class Orthogonality(Regularizer):
    """weight · `orthogonality_loss`: turns the prototypes of different classes away from each other."""

    weight: float

    def penalty(self, layer: Euclidean, labels: Tensor) -> Tensor:
        return self.weight * orthogonality_loss(layer.prototypes - layer.center, labels)


@dataclass(frozen=True)
class SparseRelevance(Regularizer):
    """Features that hardly matter stop mattering at all: a proximal step after each gradient step.

    It acts where zero means zero: on the relevances λ themselves, or on the columns of Ω as groups,
    Ω_j·max(1 − l1·lr/‖Ω_j‖, 0). With `l2_weight`, an elastic net. Adam's steps do not shrink with the
    gradient: below some weight they undo the zeros.
    """

    l1_weight: float
    l2_weight: float = 0.0

    @torch.no_grad()
    def after_step(self, layer: Euclidean, lr: float) -> None:
        if isinstance(layer, Relevance):
            layer.relevances.copy_(
                elastic_net_proximal(layer.relevances, self.l1_weight, self.l2_weight, lr)
            )
            return
        omega = columns_of(layer, self)
        size = omega.norm(dim=-2, keepdim=True)
        shrunk = elastic_net_proximal(size, self.l1_weight, self.l2_weight, lr)
        omega.mul_(torch.where(size > 0, shrunk / size, 0.0))


@dataclass(frozen=True)
class RelevanceFloor(Regularizer):
    """No feature falls below this share of the relevance, Σ = 1; of the columns of Ω, ‖Ω_j‖² counts."""

    minimum: float

    @torch.no_grad()
    def after_step(self, layer: Euclidean, lr: float) -> None:
        layer.normalize()
        if isinstance(layer, Relevance):
            layer.relevances.copy_(self._raised(layer.relevances))
            return
        omega = columns_of(layer, self)
        share = omega.square().sum(-2, keepdim=True)
        # A column that vanished has lost its direction: it comes back along its own axis.
        axis = torch.eye(*omega.shape[-2:], dtype=omega.dtype, device=omega.device)
        direction = torch.where(share > 0, omega / share.sqrt(), axis.expand_as(omega))
        omega.copy_(direction * self._raised(share).sqrt())

    def _raised(self, share: Tensor) -> Tensor:
        """`minimum` for everyone, the rest as it was shared: sums to 1 where `share` does."""
        n = share.shape[-1]
        if not 0 <= self.minimum * n <= 1:
            raise ValueError(
                f"minimum must lie in [0, 1/{n}] for {n} features, got {self.minimum}."
            )
        spare = (share - self.minimum).clamp_min(0)
        total = spare.sum(-1, keepdim=True)
        return self.minimum + torch.where(
            total > 0, spare * (1 - n * self.minimum) / total, 1 / n - self.minimum
        )


def columns_of(layer: Euclidean, term: Regularizer) -> Tensor:
    """Ω of a layer that has one."""
    if not isinstance(layer, Matrix):
        raise ValueError(
            f"{type(term).__name__} needs a model with relevances: GRLVQ, GMLVQ, LGMLVQ, or a soft one with "
            "metric='relevance', 'matrix' or 'local'."
        )
    return layer.omega
