"""A pool of counterfactuals per instance, from which the smallest that differ are chosen."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...engine import Candidates, Tasks
from ...models.verdict import Verdict
from ...numerics import occurrence
from ...prototypes import select_diverse

#: counterfactuals are chosen for diversity among this many times k of the smallest
POOL_FACTOR = 5


@dataclass(frozen=True)
class Pool:
    """Counterfactuals to choose from, any number per instance.

    Parameters
    ----------
    found : Candidates
        The counterfactuals.
    merit : Tensor of float64, shape (n,)
        Their merits, finite, see `measure_merit`; the smallest is best.
    """

    found: Candidates
    merit: Tensor

    def count(self, instances: Tasks) -> Tensor:
        """Return how many counterfactuals the pool has for each of some instances."""
        rows = self.found.tasks.row.sort().values
        first = torch.searchsorted(rows, instances.row)
        end = torch.searchsorted(
            rows,
            instances.row,
            right=True,
        )
        return end - first

    def join(self, found: Candidates, merit: Tensor) -> Pool:
        """Add those candidates that have a finite merit.

        Parameters
        ----------
        found : Candidates
            Candidates of the same request, with the same info.
        merit : Tensor of shape (m,)
            Their merits.

        Returns
        -------
        Pool
            The counterfactuals of both.
        """
        accepted = merit.isfinite()
        more = _take(found, accepted)
        return Pool(
            found=Candidates.concat([self.found, more]),
            merit=torch.cat([self.merit, merit[accepted]]),
        )

    def choose(self, k: int) -> Candidates:
        """Return the best of each instance, and up to k − 1 more that differ from it."""
        row = self.found.tasks.row
        if k == 1 or len(row) == 0:
            best = smallest_in_groups(row, self.merit, k)
            return _take(self.found, best)
        entry = self._tabulate(k)
        merit = self.merit[entry]
        quality = merit[:, :1] / merit
        quality = torch.where(entry >= 0, quality, 1e-9)
        # An instance's own entries fill up: its choice must not depend on the other instances.
        count = (entry >= 0).sum(1, keepdim=True)
        column = torch.arange(entry.shape[1], device=entry.device) % count
        x = self.found.x[entry.gather(1, column)]  # (instances, count, *shape)
        column = select_diverse(x, k, quality)
        chosen = entry.gather(1, column)
        return _take(self.found, chosen[chosen >= 0])

    def _tabulate(self, k: int) -> Tensor:
        """Find the best of each instance, (instances, count); -1 where one has fewer."""
        row = self.found.tasks.row
        best = smallest_in_groups(
            row,
            self.merit,
            POOL_FACTOR * k,
        )
        row = row[best]
        place = occurrence(row)
        _, instance, count = row.unique(
            return_inverse=True,
            return_counts=True,
        )
        entry = torch.full(
            (len(count), POOL_FACTOR * k),
            -1,
            device=row.device,
        )
        entry[instance, place] = best
        return entry


def measure_merit(
    tasks: Tasks,
    x_cf: Tensor,
    verdict: Verdict,
) -> Tensor:
    """Measure candidates by the values they change, then by the mean change.

    Parameters
    ----------
    tasks : Tasks
        What the candidates are for.
    x_cf : Tensor of shape (n, *shape)
        The candidates.
    verdict : Verdict
        What the model says of them.

    Returns
    -------
    Tensor of float64, shape (n,)
        The number of values changed plus d / (1 + d), where d is the mean of |x' − x|; infinite
        where the model does not accept the candidate.
    """
    delta = (x_cf - tasks.x).flatten(1).double()
    distance = delta.abs().mean(1)
    changed = delta.count_nonzero(1)
    size = changed + distance / (1 + distance)
    accepted = tasks.accepts(x_cf, verdict)
    return torch.where(accepted, size, torch.inf)


def smallest_in_groups(
    group: Tensor,
    values: Tensor,
    k: int,
) -> Tensor:
    """Find the k smallest finite values of each group.

    Parameters
    ----------
    group : Tensor of int, shape (n,)
        Group of each value.
    values : Tensor of shape (n,)
        The values.
    k : int
        How many to find in each group, at most.

    Returns
    -------
    Tensor of int, shape (m,)
        Their positions, ordered by group, then by value.

    Examples
    --------
    >>> group = torch.tensor([7, 4, 7, 7, 4])
    >>> values = torch.tensor([0.3, 0.2, 0.1, 0.2, torch.inf])
    >>> smallest_in_groups(group, values, 2).tolist()
    [1, 2, 3]
    """
    finite = values.isfinite().nonzero().flatten()
    by_value = values[finite].argsort(stable=True)
    position = finite[by_value]
    by_group = group[position].argsort(stable=True)
    position = position[by_group]
    place = occurrence(group[position])
    return position[place < k]


def _take(found: Candidates, which: Tensor) -> Candidates:
    """Return some of the candidates."""
    tasks = found.tasks.take(which)
    info = {name: values[which] for name, values in found.info.items()}
    return tasks.candidates(found.x[which], **info)
