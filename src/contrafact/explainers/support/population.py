"""Populations of an evolutionary search, one per instance, all at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...engine import Tasks
from ...numerics import occurrence, row_uniform
from ...prototypes import select_diverse
from ...search import front_ranks, survivors


@dataclass(frozen=True)
class Population:
    """The individuals that are alive, of every instance.

    The objectives, all to be minimized, are

        shortfall(x'),    mean |x' − x|,    #{x' ≠ x}

    where shortfall(x') is 0 if the model accepts x', else 1 − σ(lead of the target in the scores).
    Individuals that are infinite in every objective are absent; they fill up populations with fewer
    members than others.

    Parameters
    ----------
    tasks : Tasks
        One task per instance. They carry `population`, its number, and nothing else.
    size : int
        Individuals of a population.
    x : Tensor of shape (n, m, *shape)
        The individuals, best first.
    objectives : Tensor of float64, shape (n, m, 3)
        Their objectives.
    """

    tasks: Tasks
    size: int
    x: Tensor
    objectives: Tensor

    @classmethod
    def empty(cls, instances: Tasks, size: int) -> Population:
        """Make populations without members.

        Parameters
        ----------
        instances : Tasks
            One task per instance.
        size : int
            Individuals of a population.

        Returns
        -------
        Population
            To be filled by `evolve`.
        """
        n = len(instances)
        number = torch.arange(n, device=instances.row.device)
        x = instances.x.new_zeros(n, 0, *instances.shape)
        objectives = x.new_zeros(n, 0, 3, dtype=torch.float64)
        return cls(
            tasks=replace(instances, attached={"population": number}),
            size=size,
            x=x,
            objectives=objectives,
        )

    @property
    def reached(self) -> Tensor:
        """Mask of the individuals the model accepts, (n, m)."""
        return self.objectives[:, :, 0] == 0

    @property
    def merit(self) -> Tensor:
        """Values changed, then distance, (n, m); infinite where the model does not accept."""
        _, distance, changed = self.objectives.unbind(2)
        size_of_change = changed + distance / (1 + distance)
        return torch.where(self.reached, size_of_change, torch.inf)

    @property
    def front_size(self) -> Tensor:
        """Number of individuals that no other of their population dominates, (n,)."""
        rank = front_ranks(self.objectives)
        return (rank == 0).sum(1)

    def draw(self, count: int, stream: int) -> Tensor:
        """Draw numbers in [0, 1) for all individuals, from the seeds of their instances.

        Parameters
        ----------
        count : int
            Numbers per individual.
        stream : int
            Independent sequence.

        Returns
        -------
        Tensor of float64, shape (n, size, count)
            In double precision whatever that of the model is: the numbers become positions.
        """
        n = len(self.tasks)
        draws = row_uniform(
            self.tasks.seed,
            count * self.size,
            stream,
        )
        numbers = torch.from_numpy(draws).to(self.x.device)
        numbers = numbers.reshape(n, count, self.size)
        return numbers.transpose(1, 2)

    def evolve(self, offspring: Tasks, x: Tensor) -> Population:
        """Add offspring and keep the best of all.

        Individuals are sorted by front and crowding distance. The one with the smallest merit is
        never crowded out.

        Parameters
        ----------
        offspring : Tasks
            One task per new individual, taken from `tasks`. Those that cannot matter, or cannot
            be afforded, are dropped without asking the model.
        x : Tensor of shape (offspring, *shape)
            The new individuals.

        Returns
        -------
        Population
            The next generation.
        """
        offspring = self._ask(offspring, offspring.project(x))
        everyone = self._join(offspring)
        n = len(self.tasks)
        number = offspring["population"]
        everyone_before = torch.arange(self.size, device=number.device)
        kept = everyone_before.repeat(n, 1)
        # Only where something was added: the order of the others must not depend on neighbors.
        has_grown = torch.bincount(number, minlength=n) > 0
        best = everyone.merit[has_grown].argmin(1)
        objectives = everyone.objectives[has_grown]
        kept[has_grown] = survivors(objectives, self.size, best)
        return everyone._keep(kept)

    def choose(self, k: int) -> Tensor:
        """Choose the best individual of each population, and k − 1 more that differ from it.

        Parameters
        ----------
        k : int
            How many to choose.

        Returns
        -------
        Tensor of int, shape (n, min(k, size))
            Their positions. Some may not be accepted, where fewer than k are.
        """
        merit = self.merit
        if k == 1:
            return merit.argmin(1, keepdim=True)
        best = merit.amin(1, keepdim=True)
        quality = torch.where(merit.isfinite(), best / merit, 0.0)
        quality = quality.clamp_min(1e-9)
        chosen: Tensor = select_diverse(self.x, min(k, self.size), quality)
        return chosen

    def individuals(self, which: Tensor) -> Tensor:
        """Return some individuals of each population.

        Parameters
        ----------
        which : Tensor of int, shape (n, count)
            Their positions.

        Returns
        -------
        Tensor of shape (n, count, *shape)
            The individuals.
        """
        population = self.tasks["population"][:, None]
        return self.x[population, which]

    def _keep(self, which: Tensor) -> Population:
        """Keep some individuals of each population, by their positions, (n, size)."""
        population = self.tasks["population"][:, None]
        return replace(
            self,
            x=self.individuals(which),
            objectives=self.objectives[population, which],
        )

    def _ask(self, offspring: Tasks, x: Tensor) -> Tasks:
        """Attach `individual` and `objectives`, and drop those whose verdict cannot matter."""
        delta = (x - offspring.x).flatten(1)
        offspring = offspring.attach(
            individual=x,
            distance=delta.abs().mean(1).double(),
            changed=delta.count_nonzero(1).double(),
        )
        offspring = offspring.take(~self._dominates(offspring))
        offspring = offspring.take(offspring.affords())
        verdict = offspring.ask(offspring["individual"], cached=True)
        accepted = offspring.accepts(offspring["individual"], verdict)
        lead = offspring.lead(verdict).double()
        shortfall = 1 - lead.sigmoid()
        # What is not accepted never counts as reached.
        shortfall = shortfall.clamp_min(1e-12)
        shortfall = torch.where(accepted, 0.0, shortfall)
        objectives = [
            shortfall,
            offspring["distance"],
            offspring["changed"],
        ]
        return offspring.attach(objectives=torch.stack(objectives, 1))

    def _dominates(self, offspring: Tasks) -> Tensor:
        """Find offspring that an accepted individual dominates, whatever the model says of them."""
        number = offspring["population"]
        _, distance, changed = self.objectives.unbind(2)
        distance = torch.where(self.reached, distance, torch.inf)
        is_nearer = distance[number] <= offspring["distance"][:, None]
        is_sparser = changed[number] <= offspring["changed"][:, None]
        return (is_nearer & is_sparser).any(1)

    def _join(self, offspring: Tasks) -> Population:
        """Put the offspring behind the individuals of their populations."""
        number = offspring["population"]
        place = occurrence(number)
        n, m = self.x.shape[:2]
        room = self.size - m
        if len(place) > 0:
            most_offspring = int(place.max()) + 1
            room = max(room, most_offspring)
        x = self.x.new_zeros(n, room, *self.tasks.shape)
        objectives = self.objectives.new_full((n, room, 3), torch.inf)
        x[number, place] = offspring["individual"]
        objectives[number, place] = offspring["objectives"]
        return replace(
            self,
            x=torch.cat([self.x, x], 1),
            objectives=torch.cat([self.objectives, objectives], 1),
        )
