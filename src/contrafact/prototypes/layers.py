"""Layers that compute squared distances to prototypes, plain or in a learned metric."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from typing_extensions import override

from ..validation import brief

#: from rows (n, D) and prototypes (K, D) to distances (n, K)
DistanceFunction = Callable[[Tensor, Tensor], Tensor]
#: distances of a user's function may be below 0 by this share of the largest: that is rounding
ROUNDING = 1e-5


class Euclidean(nn.Module):
    """Compute d(x, w) = ‖x − w‖² from rows to prototypes.

    Parameters
    ----------
    prototypes : Tensor of shape (K, D)
        Where the prototypes are.
    center : Tensor of shape (D,), optional
        Origin of the arithmetic; default: zero. It does not change the distances, but
        |x|² + |w|² − 2x·w loses digits for data far from the origin.
    """

    center: Tensor
    #: whether d is ‖Ω(x − w)‖² for some Ω
    is_linear: bool = True
    #: names of the parameters besides the prototypes
    metric_parameters: tuple[str, ...] = ()

    def __init__(
        self,
        prototypes: Tensor,
        center: Tensor | None = None,
    ) -> None:
        super().__init__()
        if center is None:
            center = torch.zeros_like(prototypes[0])
        self.prototypes = nn.Parameter(prototypes)
        self.register_buffer("center", center)

    def forward(self, x: Tensor) -> Tensor:
        """Return the (n, K) squared distances of rows (n, D), in the dtype and device of x."""
        center = self.center.to(x)
        prototypes = self.prototypes.to(x)
        return self._between(x - center, prototypes - center)

    def _between(self, x: Tensor, w: Tensor) -> Tensor:
        """Compute the (n, K) squared distances of centered rows to centered prototypes."""
        return squared_distance(x, w)

    def normalize(self) -> None:
        """Bring the metric back to its scale, after a step."""

    def placed(self, center: Tensor, scale: float) -> Euclidean:
        """Return the same layer for data in other units, x·scale + center: d grows by scale²."""
        prototypes = self.prototypes.detach().to(center) * scale + center
        metric = {}
        for name in self.metric_parameters:
            metric[name] = getattr(self, name).detach().to(center)
        return type(self)(prototypes, center=center, **metric)


class Relevance(Euclidean):
    """Compute d(x, w) = Σ_j λ_j (x_j − w_j)² with λ ≥ 0 and Σλ = 1, as GRLVQ does.

    Parameters
    ----------
    prototypes : Tensor of shape (K, D)
        Where the prototypes are.
    relevances : Tensor of shape (D,)
        λ.
    center : Tensor of shape (D,), optional
        Origin of the arithmetic.
    """

    metric_parameters = ("relevances",)

    def __init__(
        self,
        prototypes: Tensor,
        relevances: Tensor,
        center: Tensor | None = None,
    ) -> None:
        super().__init__(prototypes, center)
        self.relevances = nn.Parameter(relevances)

    @override
    def _between(self, x: Tensor, w: Tensor) -> Tensor:
        lam = self.relevances.to(x)
        x_norms = x.square() @ lam  # (n,)
        w_norms = w.square() @ lam  # (K,)
        products = 2 * x @ (lam * w).T  # (n, K)
        squared = x_norms[:, None] + w_norms - products
        return squared.clamp_min(0)

    @override
    @torch.no_grad()
    def normalize(self) -> None:
        self.relevances.clamp_(min=0)
        total = self.relevances.sum()
        self.relevances.div_(require_positive(total))


class Matrix(Euclidean):
    """Compute d(x, w) = ‖Ω(x − w)‖² with trace ΩᵀΩ = 1, as GMLVQ does.

    Parameters
    ----------
    prototypes : Tensor of shape (K, D)
        Where the prototypes are.
    omega : Tensor of shape (rank, D)
        Ω.
    center : Tensor of shape (D,), optional
        Origin of the arithmetic.
    """

    metric_parameters = ("omega",)

    def __init__(
        self,
        prototypes: Tensor,
        omega: Tensor,
        center: Tensor | None = None,
    ) -> None:
        super().__init__(prototypes, center)
        self.omega = nn.Parameter(omega)

    @override
    def _between(self, x: Tensor, w: Tensor) -> Tensor:
        omega = self.omega.to(x)
        return squared_distance(x @ omega.T, w @ omega.T)

    @override
    @torch.no_grad()
    def normalize(self) -> None:
        size = self.omega.norm()
        self.omega.div_(require_positive(size))


class LocalMatrix(Matrix):
    """Compute d(x, w_k) = ‖Ω_k(x − w_k)‖² with trace Ω_kᵀΩ_k = 1, as LGMLVQ does.

    Ω has the shape (K, rank, D): every prototype has its own.
    """

    @override
    def _between(self, x: Tensor, w: Tensor) -> Tensor:
        omega = self.omega.to(x)
        stacked = omega.flatten(0, 1)  # (K * rank, D)
        x_images = (x @ stacked.T).unflatten(1, omega.shape[:2])  # (n, K, rank)
        w_images = torch.einsum("kd,krd->kr", w, omega)
        differences: Tensor = x_images - w_images
        return differences.square().sum(2)

    @override
    @torch.no_grad()
    def normalize(self) -> None:
        sizes = self.omega.flatten(1).norm(dim=1)  # (K,)
        self.omega.div_(require_positive(sizes)[:, None, None])


class Custom(Euclidean):
    """Compute distances by a function of the user, in the user's units.

    Parameters
    ----------
    prototypes : Tensor of shape (K, D)
        Where the prototypes are, in training units.
    function : function of two Tensors
        From rows (n, D) and prototypes (K, D) to distances (n, K).
    origin : Tensor of shape (D,), optional
        Data are origin + scale · (what is trained on); default: 0.
    scale : float, default=1.0
        See `origin`.
    """

    is_linear = False

    def __init__(
        self,
        prototypes: Tensor,
        function: DistanceFunction,
        origin: Tensor | None = None,
        scale: float = 1.0,
    ) -> None:
        super().__init__(prototypes, origin)
        self.function = function
        self.scale = scale

    @override
    def forward(self, x: Tensor) -> Tensor:
        origin = self.center.to(x)
        rows = x * self.scale + origin
        prototypes = self.prototypes.to(x) * self.scale + origin
        return call_distance(self.function, rows, prototypes)

    @override
    def placed(self, center: Tensor, scale: float) -> Custom:
        return Custom(self.prototypes.detach().to(center) * scale + center, self.function)


def call_distance(function: DistanceFunction, x: Tensor, w: Tensor) -> Tensor:
    """Call a distance of the user, and check that it returns one number per pair.

    Parameters
    ----------
    function : function of two Tensors
        The distance.
    x : Tensor of shape (n, D)
        Rows.
    w : Tensor of shape (K, D)
        Prototypes.

    Returns
    -------
    Tensor of shape (n, K)
        Distances.
    """
    d = function(x, w)
    if not isinstance(d, Tensor) or d.shape != (len(x), len(w)):
        raise TypeError(
            f"distance_fn must return a Tensor of shape ({len(x)}, {len(w)}), one number per row "
            f"and prototype; got {brief(d)}."
        )
    if d.numel() > 0:
        least, largest = map(float, d.detach().aminmax())
        if not least >= -ROUNDING * abs(largest):
            raise ValueError(f"distance_fn must return numbers of at least 0, got {least}.")
    return d.clamp_min(0)


def squared_distance(x: Tensor, w: Tensor) -> Tensor:
    """Compute ‖x_i − w_k‖² for all pairs by one matrix product.

    Parameters
    ----------
    x : Tensor of shape (n, D)
        Rows, centered by the caller.
    w : Tensor of shape (K, D)
        Prototypes, centered the same way.

    Returns
    -------
    Tensor of shape (n, K)
        Squared distances, never negative.
    """
    x_norms = x.square().sum(1, keepdim=True)  # (n, 1)
    w_norms = w.square().sum(1)  # (K,)
    squared = x_norms + w_norms - 2 * x @ w.T
    return squared.clamp_min(0)


def require_positive(scale: Tensor) -> Tensor:
    """Return `scale` if all of it is positive: a metric without relevances separates nothing."""
    if bool(scale.isnan().any()):
        raise ValueError("training diverged; try a smaller learning_rate.")
    if not bool((scale > 0).all()):
        raise ValueError("Every relevance became zero: use a smaller l1_weight or learning_rate.")
    return scale


def make_layer(
    metric: str,
    rank: int | None,
    prototypes: Tensor,
) -> Euclidean:
    """Build a layer whose metric starts as the Euclidean one, at scale 1.

    Parameters
    ----------
    metric : {"euclidean", "relevance", "matrix", "local"}
        Kind of the metric.
    rank : int or None
        Number of rows of Ω; it keeps the axes along which the prototypes differ most.
    prototypes : Tensor of shape (K, D)
        Where the prototypes start.

    Returns
    -------
    Euclidean
        A layer of the class that the metric asks for.
    """
    if metric == "euclidean":
        return Euclidean(prototypes)
    n_prototypes, n_features = prototypes.shape
    if metric == "relevance":
        relevances = torch.full_like(prototypes[0], 1 / n_features)
        return Relevance(prototypes, relevances)
    omega = _initial_omega(rank, prototypes)
    if metric == "matrix":
        return Matrix(prototypes, omega)
    return LocalMatrix(prototypes, omega.repeat(n_prototypes, 1, 1))


def _initial_omega(rank: int | None, prototypes: Tensor) -> Tensor:
    """Return Ω (rank, D) of norm 1: the identity, or the leading axes of the prototypes."""
    n_features = prototypes.shape[1]
    omega = torch.eye(
        n_features,
        dtype=prototypes.dtype,
        device=prototypes.device,
    )
    if rank is not None and rank < n_features:
        centered = prototypes - prototypes.mean(0)
        omega = torch.linalg.svd(centered).Vh[:rank]
    normalized: Tensor = omega / omega.norm()
    return normalized
