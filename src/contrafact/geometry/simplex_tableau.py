"""State of the dual simplex method: costs, tableaux, and the vertices where it ended."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .dual_problem import Problems, times

#: Knots of δ differ by up to this: equal ones would lead to steps of length 0, and to cycling.
_KNOT_SPREAD = 1e-10
#: Multiples of it, modulo 1, are spread evenly over [0, 1).
_GOLDEN_RATIO = 0.6180339887498949


@dataclass(frozen=True)
class Costs:
    """Levels (n, 3, d + m) and knots (2, d + m) of the variables (δ, s)."""

    levels: Tensor
    knots: Tensor

    @classmethod
    def of(cls, problems: Problems) -> Costs:
        """Make the costs of the l1 norm."""
        n, m = problems.c.shape
        d = problems.lo.shape[1]
        zero = problems.c.new_zeros(n, m)
        infinite = problems.c.new_full((n, m), torch.inf)
        levels = [
            torch.cat([problems.lo, zero], 1),
            torch.cat([problems.start, infinite], 1),
            torch.cat([problems.hi, infinite], 1),
        ]
        order = torch.arange(d, dtype=zero.dtype, device=zero.device)
        knot = 1 + _KNOT_SPREAD * (order * _GOLDEN_RATIO).frac()
        knots = [
            torch.cat([-knot, zero[0]]),
            torch.cat([knot, infinite[0]]),
        ]
        return cls(torch.stack(levels, 1), torch.stack(knots))


@dataclass
class Tableau:
    """The tableaux x_B = const − T x_N of the problems still open, k of them.

    rows : (k,), positions in the batch.
    T : (k, m, d), the coefficients.
    B, x_B, knot_B : (k, m), the basic variables, their values and the knot each of them is on.
    N, level_N, r_N : (k, d), the other variables, the level each of them is at, and their r.
    gaps_N, knots_N : (k, 2, d), distances between the levels of N, and their knots.
    """

    rows: Tensor
    T: Tensor
    B: Tensor
    x_B: Tensor
    knot_B: Tensor
    N: Tensor
    level_N: Tensor
    r_N: Tensor
    gaps_N: Tensor
    knots_N: Tensor

    @classmethod
    def start(cls, problems: Problems, costs: Costs) -> Tableau:
        """Make the first tableaux: every slack is basic, every δ is as near to 0 as it may be.

        Parameters
        ----------
        problems : Problems
            The n problems.
        costs : Costs
            Their costs.

        Returns
        -------
        Tableau
            With all n problems open.
        """
        A = problems.A
        n, m, d = A.shape
        variables = torch.arange(d + m, device=A.device).repeat(n, 1)
        N, B = variables.split([d, m], 1)
        return cls(
            rows=torch.arange(n, device=A.device),
            T=A.clone(),
            B=B,
            x_B=problems.c - times(A, problems.start),
            knot_B=torch.zeros_like(B),
            N=N,
            level_N=torch.ones_like(N),
            r_N=torch.zeros_like(problems.lo),
            gaps_N=costs.levels[:, :, :d].diff(dim=1),
            knots_N=costs.knots[:, :d].repeat(n, 1, 1),
        )

    def without(self, over: Tensor) -> Tableau:
        """Leave out the problems that are over, a boolean tensor (k,)."""
        left = (~over).nonzero().flatten()
        kept = {name: tensor[left] for name, tensor in vars(self).items()}
        return Tableau(**kept)


@dataclass
class Vertices:
    """The vertices where the method ended, one per problem.

    basic, r_B : (n, m), the basic variables and their r.
    values : (n, d + m), the values of the others; 0 for the basic.
    infeasible : (n,), where a violation could not be removed: no solution exists, and r_B is the
        direction that proves it.
    """

    basic: Tensor
    r_B: Tensor
    values: Tensor
    infeasible: Tensor

    @classmethod
    def start(cls, tableau: Tableau, problems: Problems) -> Vertices:
        """Start from the vertices of the first tableaux.

        Parameters
        ----------
        tableau : Tableau
            The first tableaux.
        problems : Problems
            The n problems.

        Returns
        -------
        Vertices
            To be overwritten as problems are over.
        """
        zero = torch.zeros_like(problems.c)
        return cls(
            basic=tableau.B.clone(),
            r_B=zero.clone(),
            values=torch.cat([problems.start, zero], 1),
            infeasible=zero.new_zeros(len(zero), dtype=torch.bool),
        )

    def record_optimal(self, tableau: Tableau, costs: Costs, over: Tensor) -> None:
        """Keep the vertices of the problems that are over: no variable is outside its levels.

        Parameters
        ----------
        tableau : Tableau
            The tableaux of the k problems still open.
        costs : Costs
            The costs of all n problems.
        over : boolean Tensor of shape (k,)
            Which of the open problems are over.
        """
        basic = tableau.B[over]
        knot = tableau.knot_B[over]
        d = tableau.N.shape[1]
        # Basic δ are on knots −1 and 1, basic slacks on 0.
        r_B = torch.where(basic < d, 2 * knot - 1, 0)
        self._record(tableau, costs, over, r_B)

    def record_infeasible(
        self,
        tableau: Tableau,
        costs: Costs,
        over: Tensor,
        p: Tensor,
        side: Tensor,
    ) -> None:
        """Keep the problems that are over because the violation at position p cannot end.

        Parameters
        ----------
        tableau : Tableau
            The tableaux of the k problems still open.
        costs : Costs
            The costs of all n problems.
        over : boolean Tensor of shape (k,)
            Which of the open problems are over.
        p : Tensor of shape (k, 1)
            The position in B of the variable that is outside its levels.
        side : Tensor of shape (k, 1)
            1 where it is above its levels, −1 where it is below.
        """
        ray = torch.zeros_like(tableau.B[over]).scatter_(
            1,
            p[over],
            side[over],
        )
        self._record(tableau, costs, over, ray)
        self.infeasible[tableau.rows[over]] = True

    def _record(
        self,
        tableau: Tableau,
        costs: Costs,
        over: Tensor,
        r_B: Tensor,
    ) -> None:
        """Keep basis, r_B (one row for each problem that is over) and values."""
        rows = tableau.rows[over]
        N = tableau.N[over]
        level_N = tableau.level_N[over]
        x_N = costs.levels[rows[:, None], level_N, N]
        self.basic[rows] = tableau.B[over]
        self.r_B[rows] = r_B.to(self.r_B)
        values = torch.zeros_like(self.values[rows])
        self.values[rows] = values.scatter_(1, N, x_N)
