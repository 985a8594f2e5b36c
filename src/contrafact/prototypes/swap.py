"""Swap search for prototypes that are data points: the true cost of every candidate, in one pass.

This module imports numba, so it is imported only when something is fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numerics.shapes import ceil_div
from .swap_columns import Columns, blocks_of, in_blocks
from .swap_costs import Cost
from .swap_kernels import Floats, Ints

SAME = 1e-12  # costs are equal if they differ by less, relative to their size: that is rounding


@dataclass(frozen=True)
class Turn:
    """What the search for a better place of one prototype needs.

    Parameters
    ----------
    k : int
        The prototype.
    mine : bool array of shape (n,)
        Which samples are of its class.
    a, b : int
        These samples are a, ..., b − 1.
    own, other : arrays of shape (n,)
        Pools of all other prototypes, of the sample's class and of the others.
    """

    k: int
    mine: NDArray[np.bool_]
    a: int
    b: int
    own: Floats
    other: Floats


class SwapSearch:
    """Find prototypes by exact swaps: each in turn goes where the cost is least.

    The cost is the true one, with all other prototypes in place. A pass scores every candidate of
    the prototype's class in single precision; all that may be the best but for rounding are
    computed again in double. So what is accepted is the best strict improvement, and what remains
    is a swap-local optimum. No prototype goes where another of its class is (dissimilarity 0).

    Parameters
    ----------
    columns : Columns
        Dissimilarities of the samples, which are sorted by class.
    labels : int array of shape (n,)
        Class of each sample, 0, 1, ..., ascending.
    cost : GLVQCost, SigmoidCost or RSLVQCost
        What to minimize.
    start : int array of shape (K,)
        The samples where the prototypes begin.

    Attributes
    ----------
    indices : int array of shape (K,)
        The samples that are the prototypes now.
    d : array of shape (K, n)
        Dissimilarities of all samples to the prototypes.
    """

    def __init__(
        self,
        columns: Columns,
        labels: Ints,
        cost: Cost,
        start: Ints,
    ) -> None:
        self.columns = columns
        self.labels = labels
        self.cost = cost
        self.indices = np.array(start)
        self.d = columns.exact(self.indices)

    def run(
        self,
        max_sweeps: int,
        tol: float = 0.0,
        listener: Callable[[list[float]], bool] | None = None,
    ) -> tuple[list[float], int, bool]:
        """Swap until a whole round over the prototypes changes nothing.

        Parameters
        ----------
        max_sweeps : int
            Largest number of rounds.
        tol : float, default=0.0
            A swap has to lower the cost by more than this.
        listener : function of list, optional
            Gets the costs so far after every round; a true answer ends the search.

        Returns
        -------
        history : list of float
            The cost at the start and after each swap.
        n_sweeps : int
            Rounds begun.
        converged : bool
            Whether the last round changed nothing, or the listener ended the search.
        """
        n_prototypes = len(self.indices)
        history = [self.total()]
        total_weight = float(self.cost.weights.sum())
        size = abs(history[0]) + total_weight
        margin = max(SAME * size, tol)
        unchanged = 0
        step = 0
        while unchanged < n_prototypes and step < max_sweeps * n_prototypes:
            k = step % n_prototypes
            better = self.best(k, below=history[-1] - margin)
            step += 1
            unchanged += 1
            if better is not None:
                unchanged = 0
                place, cost = better
                self.indices[k] = place
                column = self.columns.exact(np.array([place]))
                self.d[k] = column[0]
                history.append(cost)
            round_ends = k == n_prototypes - 1
            if listener is not None and round_ends and listener(history):
                return history, step // n_prototypes, True
        return history, ceil_div(step, n_prototypes), unchanged == n_prototypes

    def total(self) -> float:
        """Compute the cost of the prototypes."""
        own, other = self.pools()
        return float(self.cost.cost(own, other))

    def pools(self, without: int | None = None) -> tuple[Floats, Floats]:
        """Compute what each sample sees of the prototypes of its own class and of the others.

        Parameters
        ----------
        without : int, optional
            A prototype that does not count.

        Returns
        -------
        own, other : arrays of shape (n,)
            The pools.
        """
        prototype_labels = self.labels[self.indices]
        own = prototype_labels[:, None] == self.labels  # (K, n)
        kept = np.arange(len(self.indices)) != without
        kept = kept[:, None]  # (K, 1)
        own_pool = self.cost.pool(self.d, own & kept)
        other_pool = self.cost.pool(self.d, ~own & kept)
        return own_pool, other_pool

    def best(
        self,
        k: int,
        below: float,
    ) -> tuple[int, float] | None:
        """Find the place where a prototype costs least.

        Parameters
        ----------
        k : int
            The prototype.
        below : float
            Costs from here on are no improvement.

        Returns
        -------
        tuple of int and float, or None
            The sample and the cost; None if no place is below the bound.
        """
        turn = self._turn(k)
        scores = self._scores(turn)
        lowest = scores.min()
        if lowest == np.inf:
            return None
        # The best by exact cost has a score within twice the rounding error of the best score.
        tolerance = 2 * self.cost.error(self.columns.unit)
        rows = turn.a + np.flatnonzero(scores <= lowest + tolerance)
        parts = [self._exact(part, turn) for part in blocks_of(rows)]
        costs = np.concatenate(parts)
        winner = int(np.argmin(costs))
        if not costs[winner] < below:
            return None
        return int(rows[winner]), float(costs[winner])

    def _turn(self, k: int) -> Turn:
        """Collect what the search for a better place of prototype k needs."""
        sample = self.indices[k]
        mine = self.labels == self.labels[sample]
        members = np.flatnonzero(mine)
        own, other = self.pools(without=k)
        a = int(members[0])
        b = int(members[-1]) + 1
        return Turn(k, mine, a, b, own, other)

    def _scores(self, turn: Turn) -> Floats:
        """Score the candidates a, ..., b − 1 in single precision; inf where one is taken."""
        to_unit, scale = self.cost.scales(self.columns.unit)
        near: NDArray[Any] = (turn.own * to_unit).astype(self.cost.pool_type)
        far: NDArray[Any] = (turn.other * to_unit).astype(self.cost.pool_type)
        weights = self.cost.weights.astype(np.float32)

        def score(rows: Ints) -> Floats:
            out = np.empty(len(rows))
            block = self.columns.block(rows)
            self.cost.kernel(
                block,
                near,
                far,
                weights,
                turn.a,
                turn.b,
                out,
                scale,
            )
            return out

        parts = in_blocks(turn.b, score, start=turn.a)
        scores: Floats = np.concatenate(parts)
        others = np.arange(len(self.indices)) != turn.k
        rivals = turn.mine[self.indices] & others
        rival_d = self.d[rivals, turn.a : turn.b]
        occupied = (rival_d == 0).any(0)
        scores[occupied] = np.inf
        # By index too: a given matrix may hold D[j, j] > 0.
        rival_places = self.indices[rivals] - turn.a
        scores[rival_places] = np.inf
        return scores

    def _exact(self, rows: Ints, turn: Turn) -> Floats:
        """Compute the costs (r,) of candidates in double precision."""
        d = self.columns.exact(rows)
        joined_own = self.cost.join(turn.own, d)
        joined_other = self.cost.join(turn.other, d)
        own = np.where(turn.mine, joined_own, turn.own)
        other = np.where(turn.mine, turn.other, joined_other)
        return self.cost.cost(own, other)


def search_from(
    columns: Columns,
    labels: Ints,
    cost: Cost,
    start: Ints,
    max_sweeps: int,
    tol: float,
    listener: Callable[[list[float]], bool] | None,
) -> tuple[SwapSearch, list[float], int, bool]:
    """Run a `SwapSearch` from one start; returns it and what `SwapSearch.run` returns."""
    search = SwapSearch(columns, labels, cost, start)
    history, n_sweeps, converged = search.run(max_sweeps, tol, listener)
    return search, history, n_sweeps, converged
