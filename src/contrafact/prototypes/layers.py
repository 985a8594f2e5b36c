"""Squared distances to prototypes, plain and in learned metrics: the part of a model that is trained."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Euclidean(nn.Module):
    """d(x, w) = ‖x − w‖².

    `center` is only where the arithmetic has its origin: |x|² + |w|² − 2x·w loses digits far from it.
    """

    center: Tensor
    #: names of the parameters besides the prototypes
    metric_parameters: tuple[str, ...] = ()

    def __init__(self, prototypes: Tensor, center: Tensor | None = None) -> None:
        super().__init__()
        self.prototypes = nn.Parameter(prototypes)
        self.register_buffer(
            "center", torch.zeros_like(prototypes[0]) if center is None else center
        )

    def forward(self, x: Tensor) -> Tensor:
        """(n, K) squared distances of rows (n, D), in the dtype and on the device of x."""
        center = self.center.to(x)
        return self._between(x - center, self.prototypes.to(x) - center)

    def _between(self, x: Tensor, w: Tensor) -> Tensor:
        return squared_distance(x, w)

    def normalize(self) -> None:
        """Bring the metric back to its scale, after a step."""

    def placed(self, center: Tensor, scale: float) -> Euclidean:
        """The same layer for data in other units, x·scale + center: d grows by scale²."""
        prototypes = self.prototypes.detach().to(center) * scale + center
        metric = {name: getattr(self, name).detach().to(center) for name in self.metric_parameters}
        return type(self)(prototypes, center=center, **metric)


class Relevance(Euclidean):
    """d(x, w) = Σ_j λ_j (x_j − w_j)²,   λ ≥ 0, Σλ = 1 (GRLVQ)."""

    metric_parameters = ("relevances",)

    def __init__(
        self, prototypes: Tensor, relevances: Tensor, center: Tensor | None = None
    ) -> None:
        super().__init__(prototypes, center)
        self.relevances = nn.Parameter(relevances)

    def _between(self, x: Tensor, w: Tensor) -> Tensor:
        lam = self.relevances.to(x)
        squared = (x.square() @ lam)[:, None] + w.square() @ lam - 2 * x @ (lam * w).T
        return squared.clamp_min(0)

    @torch.no_grad()
    def normalize(self) -> None:
        self.relevances.clamp_(min=0)
        self.relevances.div_(positive(self.relevances.sum()))


class Matrix(Euclidean):
    """d(x, w) = ‖Ω(x − w)‖²,   Ω of shape (rank, D), trace ΩᵀΩ = 1 (GMLVQ)."""

    metric_parameters = ("omega",)

    def __init__(self, prototypes: Tensor, omega: Tensor, center: Tensor | None = None) -> None:
        super().__init__(prototypes, center)
        self.omega = nn.Parameter(omega)

    def _between(self, x: Tensor, w: Tensor) -> Tensor:
        omega = self.omega.to(x)
        return squared_distance(x @ omega.T, w @ omega.T)

    @torch.no_grad()
    def normalize(self) -> None:
        self.omega.div_(positive(self.omega.norm()))


class LocalMatrix(Matrix):
    """d(x, w_k) = ‖Ω_k(x − w_k)‖²,   Ω of shape (K, rank, D), trace Ω_kᵀΩ_k = 1 (LGMLVQ)."""

    def _between(self, x: Tensor, w: Tensor) -> Tensor:
        omega = self.omega.to(x)
        images = (x @ omega.flatten(0, 1).T).unflatten(1, omega.shape[:2])
        differences: Tensor = images - torch.einsum("kd,krd->kr", w, omega)
        return differences.square().sum(2)

    @torch.no_grad()
    def normalize(self) -> None:
        self.omega.div_(positive(self.omega.flatten(1).norm(dim=1))[:, None, None])


def squared_distance(x: Tensor, w: Tensor) -> Tensor:
    """‖x_i − w_k‖² for all pairs, by one matrix product; the caller centers the data."""
    return (x.square().sum(1, keepdim=True) + w.square().sum(1) - 2 * x @ w.T).clamp_min(0)


def positive(scale: Tensor) -> Tensor:
    """`scale`, checked: a metric whose relevances are all zero tells nothing apart."""
    if not bool((scale > 0).all()):
        raise ValueError("Every relevance became zero: use a smaller l1_weight or lr.")
    return scale


def make_layer(metric: str, rank: int | None, prototypes: Tensor) -> Euclidean:
    """A layer whose metric starts as the Euclidean one, at scale 1.

    `rank` keeps the axes along which the prototypes differ most.
    """
    K, D = prototypes.shape
    if metric == "euclidean":
        return Euclidean(prototypes)
    if metric == "relevance":
        return Relevance(prototypes, torch.full_like(prototypes[0], 1 / D))
    omega = torch.eye(D, dtype=prototypes.dtype, device=prototypes.device)
    if rank is not None and rank < D:
        omega = torch.linalg.svd(prototypes - prototypes.mean(0)).Vh[:rank]
    omega = omega / omega.norm()
    if metric == "matrix":
        return Matrix(prototypes, omega)
    return LocalMatrix(prototypes, omega.repeat(K, 1, 1))
