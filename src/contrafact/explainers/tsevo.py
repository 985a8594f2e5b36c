"""TSEvo: evolve edits that reach the target class, stay near and change few values."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor
from typing_extensions import override

from ..engine import Candidates, Tags, Tasks
from ..guides import Guide, NearestUnlikeNeighbor
from ..models.classifier import Array
from ..validation import Boolean, Integer, OneOf, Real, Satisfies
from .support.class_series import ClassSeries
from .support.crossover import Crossover
from .support.guided import METRIC_RULE, FallbackExplainer, Metric
from .support.mutation import MUTATIONS, Mutation
from .support.population import Population

#: numbers of one generation worked on at once; more instances take turns, which changes no result
MAX_ELEMENTS = 2**22


class TSEvo(FallbackExplainer):
    """Evolve series that reach the target class, stay near and change few values, by NSGA-II.

        minimize over x'    shortfall(x'),    mean |x' − x|,    #{x' ≠ x}

    where shortfall(x') is 0 if the model accepts x' as class c, else 1 − σ(lead of c in the
    scores).

    Every individual is a series. The first generation consists of x, its nearest unlike neighbor,
    and mutated copies of x. In every further one, parents win a binary tournament and swap a
    window, their offspring mutate, and the best by front and crowding distance live on. The answer
    is the individual of class c that changes the fewest values, of those the nearest; it is never
    crowded out. All instances evolve at once, each by its own random numbers, and for all
    generations.

    The model is asked only where its answer can matter. Offspring farther from x and no sparser
    than an individual that has reached c are dominated whatever the model says. And once c is
    reached, `thrifty` drops offspring of two parents that have not reached it: these are most of
    them, and few get there.

    Where no individual reaches c, x' is the first accepted point on the straight line to the
    neighbor, and `info["fallback"]` is True.

    Parameters
    ----------
    population : int, default=52
        Individuals per instance, an even number.
    generations : int, default=100
        How often they reproduce.
    mutation : {"authentic_opposing", "frequency", "mean", "all"}, default="authentic_opposing"
        "authentic_opposing" copies a window from a series of class c, "frequency" a band of its
        spectrum, "mean" draws a window around the mean of the class; "all" takes one of them at
        random. Two in five take the values of x instead, which gives back edits that were not
        needed.
    crossover_rate : float, default=0.9
        How often pairs swap a window.
    mutation_rate : float, default=0.6
        How often offspring mutate.
    max_window : float, default=0.25
        Longest window of a mutation, as a share of the length; lengths are drawn log-uniformly.
    thrifty : bool, default=True
        False asks about more offspring, for somewhat sparser answers at several times the model
        rows.
    metric : {"euclidean", "dtw"}, default="euclidean"
        Distance of the neighbor.

    References
    ----------
    Höllig, Kulbach, Thoma: TSEvo: Evolutionary counterfactual explanations for time series
    classification. ICMLA 2022. https://doi.org/10.1109/ICMLA55696.2022.00013

    Deb, Pratap, Agarwal, Meyarivan: A fast and elitist multiobjective genetic algorithm: NSGA-II.
    IEEE Transactions on Evolutionary Computation 6(2), 2002. https://doi.org/10.1109/4235.996017

    Examples
    --------
    >>> explainer = TSEvo(population=20, generations=20).fit(model, X_train, y_train)
    >>> result = explainer.explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(modalities=("series",))
    rules = {
        "population": Satisfies(
            lambda value: Integer(at_least=4, at_most=100_000).accepts(value) and value % 2 == 0,
            "an even number at least 4 and at most 100000",
        ),
        "generations": Integer(at_least=0, at_most=1_000_000),
        "mutation": OneOf(*MUTATIONS, "all"),
        "crossover_rate": Real(at_least=0, at_most=1),
        "mutation_rate": Real(at_least=0, at_most=1),
        "max_window": Real(at_least=0, at_most=1),
        "thrifty": Boolean(),
        "metric": METRIC_RULE,
    }
    info_keys = {
        "guide_index": "reference row of the neighbor",
        "front_size": "individuals in the first front",
        "reached": "individuals in the target class",
        "fallback": "whether it lies on the line to the neighbor, because no individual reached c",
    }

    def __init__(
        self,
        population: int = 52,
        generations: int = 100,
        mutation: Literal["authentic_opposing", "frequency", "mean", "all"] = "authentic_opposing",
        crossover_rate: float = 0.9,
        mutation_rate: float = 0.6,
        max_window: float = 0.25,
        thrifty: bool = True,
        metric: Metric = "euclidean",
    ) -> None:
        self.population = population
        self.generations = generations
        self.mutation = mutation
        self.crossover_rate = crossover_rate
        self.mutation_rate = mutation_rate
        self.max_window = max_window
        self.thrifty = thrifty
        self.metric = metric

    @override
    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [
            {"population": 8, "generations": 4},
            {"population": 6, "generations": 3, "mutation": "all"},
        ]

    @override
    def _make_guide(self) -> Guide:
        return NearestUnlikeNeighbor(self.metric)

    @override
    def _fit(self, X: Tensor, y: Array | None) -> None:
        super()._fit(X, y)
        n_classes = len(self.classifier_.classes)
        self._series = ClassSeries(
            X,
            self.guide_.candidate_class_,
            n_classes,
        )

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        instances = self._with_nearest_guide(tasks.per_instance())
        if len(instances) == 0:
            return instances.candidates(instances.x)
        size_of_one = 2 * self.population * math.prod(tasks.shape)
        size = max(1, MAX_ELEMENTS // size_of_one)
        found = []
        for part in instances.split(size):
            population = self._evolve(part)
            part.finished(len(part))
            found.append(self._choose(part, population))
        return Candidates.concat(found)

    def _evolve(self, instances: Tasks) -> Population:
        """Let a population of every instance evolve through all generations."""
        mate = Crossover(self.crossover_rate, self.thrifty)
        mutate = Mutation(
            self._series,
            MUTATIONS if self.mutation == "all" else (self.mutation,),
            self.mutation_rate,
            self.max_window,
        )
        population = Population.empty(instances, self.population)
        first = population.tasks.repeat(self.population)
        slot = torch.arange(self.population, device=first.row.device)
        slot = slot.repeat(len(instances))
        first = first.attach(slot=slot)
        x = mutate(population, first, first.x, 0)
        x[slot == 0] = instances.guide
        x[slot == 1] = instances.x
        population = population.evolve(first, x)
        for generation in range(1, self.generations + 1):
            if not bool(instances.affords().any()):
                break
            offspring, x = mate(population, generation)
            x = mutate(population, offspring, x, generation)
            population = population.evolve(offspring, x)
        return population

    def _choose(self, instances: Tasks, population: Population) -> Candidates:
        """Choose the best individuals that reached the target and differ from each other."""
        reached = population.reached
        chosen = population.choose(instances.k)  # (n, k)
        kept = reached.gather(1, chosen)
        lost = ~kept.any(1)
        kept[:, 0] |= lost  # the line will replace it

        n_chosen = chosen.shape[1]
        answers = instances.attach(
            lost=lost,
            front_size=population.front_size,
            reached=reached.sum(1),
        )
        answers = answers.repeat(n_chosen).attach(
            individual=population.individuals(chosen).flatten(0, 1),
        )
        answers = answers.take(kept.flatten())
        x_cf, fallback = self._replace_lost(answers)
        return answers.candidates(
            x_cf,
            guide_index=answers.guide_index,
            front_size=answers["front_size"],
            reached=answers["reached"],
            fallback=fallback,
        )

    def _replace_lost(self, answers: Tasks) -> tuple[Tensor, Tensor]:
        """Take the line to the neighbor where no individual reached the target."""
        x_cf = answers["individual"].clone()
        lost = answers["lost"]
        fallback = torch.zeros_like(lost)
        failed = answers.take(lost)
        guide = failed.project(failed.guide)
        line, on_line = self._fall_back(failed, guide)
        x_cf[lost] = line
        fallback[lost] = on_line
        return x_cf, fallback
