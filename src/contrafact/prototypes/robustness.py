"""How far an instance may move, in any direction, before a prototype model decides otherwise."""

from __future__ import annotations

from typing import Any

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ..geometry import nearest_point
from ..geometry.dual_problem import Norm
from ..validation import OneOf, brief, check_parameters
from .estimator import Array, PrototypeClassifier
from .pair_bounds import PairBounds

#: numbers that are held at once for the bounds of all pairs of prototypes
MAX_NUMBERS = 2**24


def robustness_radius(model: PrototypeClassifier, X: Any, norm: int = 2) -> Array:
    """Compute the radius of the largest ball around each instance in which the decision stands.

    A point is decided otherwise where some w_j of another class is nearer than all w_k of the class
    c of x, so the radius is

        min over w_j of other classes   of the distance from x to
                                        { x' : d(x', w_j) ≤ d(x', w_k) for all w_k of c }.

    With one metric for all prototypes these sets are polyhedra: a bound by their single half-spaces
    leaves few of them, whose distance is then solved exactly. With a metric for each prototype
    every pair (j, k) is one quadratic condition, whose distance is found by its dual, exactly; the
    radius is exact with one prototype in the class of x, else a bound from below.

    Parameters
    ----------
    model : PrototypeClassifier
        A fitted model with a linear metric, such as GLVQ, GMLVQ, LGMLVQ, NearestMean or Euclidean
        MedianLVQ. Of a pipeline pass the last step, and X as it gets it.
    X : array of shape (n, *shape)
        Instances.
    norm : {1, 2}, default=2
        Norm of the ball, l1 or l2; metrics that differ between prototypes take 2 alone.

    Returns
    -------
    array of shape (n,)
        The radii, proved up to rounding: no change that is shorter changes the decision. 0 on a
        boundary.

    Raises
    ------
    TypeError
        If the model is no prototype model, or has no linear metric.

    Examples
    --------
    >>> import numpy as np
    >>> from contrafact.prototypes import NearestMean
    >>> model = NearestMean().fit(np.array([[0.0, 0.0], [4.0, 0.0]]), [0, 1])
    >>> robustness_radius(model, np.array([[0.5, 7.0], [4.0, 0.0]])).round(9).tolist()
    [1.5, 2.0]
    """
    if not isinstance(model, PrototypeClassifier):
        raise TypeError(
            "model must be a model of contrafact.prototypes; of a pipeline pass the last step, and "
            f"X as it gets it. Got {brief(model)}."
        )
    check_parameters("robustness_radius", {"norm": OneOf(1, 2)}, {"norm": norm})
    check_is_fitted(model)
    metric = getattr(model, "metric_", None)
    if metric is None:
        raise TypeError(f"model {type(model).__name__} has no linear metric.")
    omega = metric()
    x = torch.from_numpy(model._check_instances(X))
    w = torch.from_numpy(model.prototypes_).double().flatten(1)
    return decision_radius(
        x,
        w,
        model._owner(),
        None if omega is None else torch.from_numpy(omega).double(),
        norm,
    ).numpy()


def decision_radius(
    x: Tensor,
    w: Tensor,
    owner: Tensor,
    omega: Tensor | None,
    norm: int = 2,
) -> Tensor:
    """Compute `robustness_radius` from prototypes and their metric.

    Parameters
    ----------
    x : Tensor of float64, shape (n, D)
        Instances.
    w : Tensor of float64, shape (K, D)
        Prototypes.
    owner : Tensor of int, shape (K,)
        Class of each.
    omega : Tensor of float64, shape (rank, D) or (K, rank, D), or None
        Ω of d = ‖Ω(x − w)‖², one for all or one per prototype; None: Euclidean.
    norm : {1, 2}, default=2
        Norm of the ball.

    Returns
    -------
    Tensor of float64, shape (n,)
        The radii.
    """
    bounds = PairBounds.of(w, omega, norm)
    size = max(1, MAX_NUMBERS // bounds.numbers_per_row)
    parts = [_radius(part, owner, bounds) for part in x.split(size)]
    return torch.cat(parts)


def _radius(x: Tensor, owner: Tensor, bounds: PairBounds) -> Tensor:
    """Compute the radii of some instances."""
    distance = bounds.distances(x)  # (n, K)
    decided = owner[distance.argmin(1)]
    own = owner == decided[:, None]  # (n, K)
    pair = bounds.each(x, own)  # (n, K, K): how far until w_j is as near as w_k
    pair = pair.masked_fill(~own[:, None, :], -torch.inf)
    least = pair.amax(2).masked_fill(own, torch.inf)  # (n, K)
    if bounds.is_local:
        return least.amin(1)
    several = own.sum(1) > 1
    radius = least.amin(1)
    rows = several.nonzero().flatten()
    if len(rows):
        solver = _Solver(x[rows], distance[rows], own[rows], bounds)
        radius[rows] = solver.run(least[rows])
    return radius


class _Solver:
    """Solve the distances to polyhedra in the order of their bounds, until no other can be less.

    Parameters
    ----------
    x : Tensor of shape (n, D)
        Instances.
    distance : Tensor of shape (n, K)
        Their distances to the prototypes.
    own : Tensor of bool, shape (n, K)
        Which prototypes are of the class decided for.
    bounds : PairBounds
        Prototypes and metric.
    """

    def __init__(self, x: Tensor, distance: Tensor, own: Tensor, bounds: PairBounds) -> None:
        self.x = x
        self.distance = distance
        self.own = own
        self.bounds = bounds

    def run(self, least: Tensor) -> Tensor:
        """Return the radii, from bounds (n, K) by single half-spaces."""
        order = least.argsort(1)
        radius = torch.full_like(least[:, 0], torch.inf)
        open_ = torch.arange(len(least))
        for turn in range(least.shape[1]):
            j = order[open_, turn]
            bound = least[open_, j]
            promising = bound < radius[open_]  # an infinite bound promises nothing
            open_ = open_[promising]
            if len(open_) == 0:
                break
            found = self._solve(open_, j[promising])
            radius[open_] = torch.minimum(radius[open_], found.clamp_min(bound[promising]))
        return radius

    def _solve(self, rows: Tensor, j: Tensor) -> Tensor:
        """Return how far some rows are from where w_j is nearer than all of the own class."""
        own = self.own[rows]
        normal = self.bounds.normal[j] * own[..., None]  # (m, K, D)
        room = self.distance[rows] - self.distance[rows, j][:, None]
        c = torch.where(own, room, 1.0)
        # Prototypes of other classes have no part in it.
        most = int(own.sum(1).max())
        columns = own.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :most]
        normal = normal.gather(1, columns[..., None].expand(-1, -1, normal.shape[2]))
        c = c.gather(1, columns)
        norm: Norm = "l1" if self.bounds.norm == 1 else "l2"
        found = nearest_point(torch.zeros_like(self.x[rows]), normal, c, norm)
        bound: Tensor = found.lower_bound
        return bound
