"""Crossover of an evolutionary search: pairs of series swap a window."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...engine import Tasks
from .population import Population
from .windows import make_windows

#: random numbers per individual: two for the tournament, four for the window
N_NUMBERS = 6


@dataclass(frozen=True)
class Crossover:
    """Let pairs of individuals swap a window, in one channel or in all of them.

    Parameters
    ----------
    rate : float
        How often pairs swap something; otherwise the offspring are copies.
    thrifty : bool
        Whether pairs without an accepted individual have no offspring once their population has
        one.
    """

    rate: float
    thrifty: bool

    def __call__(
        self,
        population: Population,
        generation: int,
    ) -> tuple[Tasks, Tensor]:
        """Make offspring.

        Parameters
        ----------
        population : Population
            The parents, best first.
        generation : int
            Number of the generation, from 1.

        Returns
        -------
        offspring : Tasks
            One task per offspring; they carry `slot`, its number in its population.
        x : Tensor of shape (offspring, channels, length)
            The offspring.
        """
        numbers = population.draw(N_NUMBERS, stream=2 * generation)
        parents = _hold_tournaments(population, numbers[:, :, :2])
        may_mate = torch.ones_like(parents[:, :, 0], dtype=torch.bool)
        if self.thrifty:
            may_mate = _are_promising(population, parents)
        number, pair = may_mate.nonzero(as_tuple=True)  # one entry per pair from here on
        numbers = numbers[number, pair, 2:]
        parents = parents[number, pair]

        owner = number[:, None]
        x = population.x[owner, parents]  # (pairs, 2, channels, length)
        swapped = self._draw_windows(numbers, population.tasks.shape)
        x = torch.where(swapped[:, None], x.flip(1), x)
        first = 2 * pair
        slot = torch.stack([first, first + 1], 1)
        number = number.repeat_interleave(2)
        offspring = population.tasks.take(number)
        offspring = offspring.attach(slot=slot.flatten())
        return offspring, x.flatten(0, 1)

    def _draw_windows(
        self,
        numbers: Tensor,
        shape: tuple[int, ...],
    ) -> Tensor:
        """Draw what each pair swaps, a mask (pairs, channels, length)."""
        chance, where, start, width = numbers.unbind(1)
        n_channels, length = shape
        every_channel = torch.arange(n_channels, device=where.device)
        channel = (2 * n_channels * where).long()
        channel = channel[:, None]
        swaps_all = channel >= n_channels  # half of the pairs
        in_channel = swaps_all | (channel == every_channel)
        window = make_windows(start, width, length, length)
        window &= (chance < self.rate)[:, None]
        return in_channel[:, :, None] & window[:, None]


def _hold_tournaments(population: Population, numbers: Tensor) -> Tensor:
    """Let two random individuals compete for each parent of a pair, (n, pairs, 2)."""
    winner = numbers.amin(2)  # individuals come best first
    parent = (winner * population.size).long()
    n, size = parent.shape
    return parent.reshape(n, size // 2, 2)


def _are_promising(population: Population, parents: Tensor) -> Tensor:
    """Find pairs with an accepted individual, and all pairs where there is none, (n, pairs)."""
    reached = population.reached
    by_parent = reached.gather(1, parents.flatten(1))
    by_pair = by_parent.reshape(parents.shape).any(2)
    none_reached = ~reached.any(1, keepdim=True)
    return by_pair | none_reached
