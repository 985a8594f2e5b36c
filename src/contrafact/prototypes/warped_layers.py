"""Layers whose distance is a function of the user's, or soft DTW with relevances of time steps."""

from __future__ import annotations

import torch
from torch import Tensor
from typing_extensions import override

from .layers import Custom, DistanceFunction, Euclidean, Relevance
from .soft_dtw import SoftDTW, WarpedDistance


class WarpedRelevance(Relevance):
    """Compute soft DTW with a relevance λ_t of each time step, in the user's units.

    Parameters
    ----------
    prototypes : Tensor of shape (K, D)
        Where the prototypes are, in training units.
    relevances : Tensor of shape (length,)
        λ.
    function : WarpedDistance
        The distance.
    origin : Tensor of shape (D,), optional
        Data are origin + scale · (what is trained on); default: 0.
    scale : float, default=1.0
        See `origin`.
    """

    is_linear = False

    def __init__(
        self,
        prototypes: Tensor,
        relevances: Tensor,
        function: WarpedDistance,
        origin: Tensor | None = None,
        scale: float = 1.0,
    ) -> None:
        super().__init__(prototypes, relevances, origin)
        self.function = function
        self.scale = scale

    @override
    def forward(self, x: Tensor) -> Tensor:
        origin = self.center.to(x)
        rows = x * self.scale + origin
        prototypes = self.prototypes.to(x) * self.scale + origin
        return self.function(rows, prototypes, self.relevances)

    @override
    def placed(self, center: Tensor, scale: float) -> WarpedRelevance:
        prototypes = self.prototypes.detach().to(center) * scale + center
        return WarpedRelevance(prototypes, self.relevances.detach().to(center), self.function)


def distance_layer(
    distance: DistanceFunction | SoftDTW,
    prototypes: Tensor,
    origin: Tensor,
    scale: float,
    shape: tuple[int, ...],
    metric: str,
) -> Euclidean:
    """Build the layer of a model that has a `distance_fn`.

    Parameters
    ----------
    distance : function of two Tensors, or SoftDTW
        The distance.
    prototypes : Tensor of shape (K, D)
        Where the prototypes start, in training units.
    origin : Tensor of shape (D,)
        Data are origin + scale · (what is trained on).
    scale : float
        The root of the mean variance of the data.
    shape : tuple of int
        Shape of one instance.
    metric : {"euclidean", "relevance"}
        Whether relevances of time steps are learned.

    Returns
    -------
    Euclidean
        A layer.
    """
    if not isinstance(distance, SoftDTW):
        return Custom(prototypes, distance, origin, scale)
    function = distance.between(shape, scale**2)
    if metric == "euclidean":
        return Custom(prototypes, function, origin, scale)
    relevances = torch.full_like(prototypes[0, : shape[-1]], 1 / shape[-1])
    return WarpedRelevance(prototypes, relevances, function, origin, scale)
