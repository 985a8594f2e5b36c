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
        pairs = self._pair_up(population, generation)
        number = pairs["population"][:, None]
        parents = pairs["parents"]
        x = population.x[number, parents]  # (pairs, 2, channels, length)
        swapped = self._draw_windows(pairs)[:, None]
        x = torch.where(swapped, x.flip(1), x)

        offspring = pairs.repeat(2)
        place_in_pair = torch.arange(2, device=x.device)
        place_in_pair = place_in_pair.repeat(len(pairs))
        slot = 2 * offspring["pair"] + place_in_pair
        offspring = offspring.attach(slot=slot)
        return offspring, x.flatten(0, 1)

    def _pair_up(self, population: Population, generation: int) -> Tasks:
        """Make one task per pair, which carries the pair, its parents and random numbers."""
        numbers = population.draw(N_NUMBERS, stream=2 * generation)
        parents = _hold_tournaments(population, numbers[:, :, :2])
        n, n_pairs, _ = parents.shape
        pair = torch.arange(n_pairs, device=parents.device)
        numbers_of_window = numbers[:, :n_pairs, 2:]
        pairs = population.tasks.repeat(n_pairs).attach(
            pair=pair.repeat(n),
            parents=parents.flatten(0, 1),
            numbers=numbers_of_window.flatten(0, 1),
        )
        if not self.thrifty:
            return pairs
        promising = _are_promising(population, parents)
        return pairs.take(promising.flatten())

    def _draw_windows(self, pairs: Tasks) -> Tensor:
        """Draw what each pair swaps, a mask (pairs, channels, length)."""
        chance, where, start, width = pairs["numbers"].unbind(1)
        n_channels, length = pairs.shape
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
