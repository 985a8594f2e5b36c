"""The smallest change that brings an instance nearest to a prototype: exact, for one metric."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...engine import Tasks
from ...geometry import nearest_point
from ...geometry.dual_problem import Norm
from .displacements import displacement_bounds

#: By how much of the distances another prototype must be farther, so that rounding cannot undo the
#: decision; the later ones where the model, in lower precision, does not agree to the first.
MARGINS = (1e-11, 1e-9, 1e-7, 1e-5)


@dataclass(frozen=True)
class Prototypes:
    """Prototypes with their classes and metric, in the units of the instances.

    Parameters
    ----------
    w : Tensor of float64, shape (K, D)
        The prototypes.
    owner : Tensor of int, shape (K,)
        Class of each (column of the probabilities).
    omega : Tensor of float64, shape (rank, D) or (K, rank, D), or None
        Ω of the distances ‖Ω (x − w)‖², one for all or one per prototype; None: Euclidean.
    """

    w: Tensor
    owner: Tensor
    omega: Tensor | None

    @property
    def is_local(self) -> bool:
        """Whether every prototype has a metric of its own."""
        return self.omega is not None and self.omega.ndim == 3

    def others(self, j: Tensor) -> Tensor:
        """Return which prototypes are of another class than each of the prototypes j, (n, K)."""
        return self.owner != self.owner[j, None]


@dataclass(frozen=True)
class Problems:
    """Find the shortest δ in a box for which x + δ is nearer to prototype j than to other classes'.

    Parameters
    ----------
    x : Tensor of float64, shape (n, D)
        Instances, flat.
    j : Tensor of int, shape (n,)
        The prototype to be nearest to.
    lower, upper : Tensor of float64, shape (n, D)
        The box; infinite where there is no bound, 0 where the value is frozen.
    """

    x: Tensor
    j: Tensor
    lower: Tensor
    upper: Tensor

    @classmethod
    def of(cls, tasks: Tasks) -> Problems:
        """Make the problems of tasks that have a prototype attached."""
        x = tasks.x.double().flatten(1)
        lower, upper = displacement_bounds(tasks, x)
        return cls(x, tasks["prototype"], lower, upper)

    def __len__(self) -> int:
        return len(self.x)

    def take(self, which: Tensor) -> Problems:
        """Return some of the problems."""
        return Problems(
            self.x[which],
            self.j[which],
            self.lower[which],
            self.upper[which],
        )


@dataclass(frozen=True)
class Solutions:
    """Solutions of problems.

    Parameters
    ----------
    delta : Tensor of float64, shape (n, D)
        The displacements; NaN where none was found.
    lower_bound : Tensor of float64, shape (n,)
        No displacement that solves the problem is shorter; inf where there is none.
    infeasible : Tensor of bool, shape (n,)
        Where it is proved that there is none.
    """

    delta: Tensor
    lower_bound: Tensor
    infeasible: Tensor


def solve_exactly(
    prototypes: Prototypes,
    problems: Problems,
    norm: Norm,
    lead: float = 0.0,
    margin: float = MARGINS[0],
) -> Solutions:
    """Solve problems for one metric of all prototypes.

    With d_k = ‖Ω (x − w_k)‖², the condition d_k(x + δ) − d_j(x + δ) ≥ lead is linear in δ:

        2 (w_k − w_j)ᵀ ΩᵀΩ δ  ≤  d_k(x) − d_j(x) − lead     for all w_k of another class.

    Parameters
    ----------
    prototypes : Prototypes
        With one metric.
    problems : Problems
        What to solve.
    norm : {"l1", "l2"}
        What is shortest.
    lead : float, default=0
        By how much nearer prototype j has to be, in squared distances.
    margin : float, default=1e-11
        Share of the distances by which the lead is exceeded, for rounding.

    Returns
    -------
    Solutions
        The shortest displacements; the lower bounds hold without the margin.
    """
    omega = prototypes.omega
    x = problems.x
    w = prototypes.w
    if omega is not None:
        x = x @ omega.T
        w = w @ omega.T
    # Problems with the same prototype share the left side.
    distinct, which = problems.j.unique(return_inverse=True)
    is_other = prototypes.others(distinct)  # (distinct, K)
    difference = w - w[distinct, None]  # (distinct, K, rank)
    difference = difference * is_other[..., None]
    A = 2 * difference
    if omega is not None:
        A = A @ omega

    distance = _squared_distances(x, w)  # (n, K)
    own = distance.gather(1, problems.j[:, None])
    apart = difference.square().sum(2).amax(1)
    slack = margin * (own + apart[which, None])
    is_other = is_other[which]  # (n, K)
    room = distance - own - lead - slack
    c = torch.where(is_other, room, 1)
    found = nearest_point(
        torch.zeros_like(problems.x),
        A,
        c,
        norm,
        bounds=(problems.lower, problems.upper),
        which=which,
    )
    loss = (found.y * is_other * slack).sum(1)
    bound = _bound_without_slack(found.lower_bound, loss, norm)
    bound = bound.masked_fill(found.infeasible, torch.inf)
    return Solutions(found.delta, bound, found.infeasible)


def _squared_distances(x: Tensor, w: Tensor) -> Tensor:
    # Matrix products would cancel digits that the margin relies on.
    distance = torch.cdist(x, w, compute_mode="donot_use_mm_for_euclid_dist")
    return distance**2


def _bound_without_slack(bound: Tensor, loss: Tensor, norm: Norm) -> Tensor:
    """Take the margin out of a lower bound; the dual is linear in the right side c."""
    if norm == "l1":
        return (bound - loss).relu()
    square = bound**2 - 2 * loss  # the dual of l2 bounds ½‖δ‖²
    return square.relu().sqrt()
