"""DiCE: evolve a set of rows that reach the target class, stay near and differ from each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from ..engine import Candidates, Tasks
from ..validation import Integer
from .support.option_rules import STEPS, WEIGHT
from .support.row_diversity import choose_diverse, diversity_kernel
from .support.row_explainer import RowExplainer

#: numbers of one generation worked on at once; more instances take turns, which changes no result
MAX_ELEMENTS = 2**22
#: added to the loss of rows that are not accepted, so that any that is accepted is better
OUTSIDE = 1e6
#: and to that of copies of another row, so that they die first
COPY = 1e9
#: model rows left for making the answers smaller
SPARE = 200
#: how offspring come to a part: from either parent, or by one of three mutations
FIRST, SECOND, OWN, OTHER = 0.4, 0.8, 0.87, 0.94
#: an instance is done when its best loss falls by less than this for some generations
TOLERANCE = 1e-3


@dataclass
class _Population:
    """Rows of every instance, best first: x (n, m, coordinates), loss and accepted (n, m)."""

    x: Tensor
    loss: Tensor
    accepted: Tensor

    def join(self, other: _Population) -> _Population:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Population(*(torch.cat(pair, 1) for pair in pairs))

    def take(self, which: Tensor) -> _Population:
        return _Population(*(values[which] for values in vars(self).values()))

    def put(self, which: Tensor, part: _Population) -> None:
        for values, new in zip(vars(self).values(), vars(part).values(), strict=True):
            values[which] = new

    def sort(self, order: Tensor) -> _Population:
        entry = torch.arange(len(order), device=order.device)[:, None]
        return _Population(*(values[entry, order] for values in vars(self).values()))


class DiCE(RowExplainer):
    """Evolve k rows of the target class that are near, change few columns and differ.

        minimize over C = {c_1, …, c_k}    1/k Σ_i L(c_i) − diversity · det K

        L(c) = validity · hinge(c) + proximity · 1/p Σ_j d_j(c, x) + sparsity · #{j : c_j ≠ x_j} / p

        K_ij = 1 / (1 + Σ_l d_l(c_i, c_j))

    over the p columns (a one-hot group is one), with d_j the change of a number in units of its
    scale and 1 for another category. hinge(c) is 0 where the model accepts c as the target class,
    else 1 plus the score by which the target trails.

    The population of an instance starts from the nearest reference rows of the target class, within
    the constraints. Offspring take each column from one of two parents of the better half; a fifth
    of the columns mutate: to the instance's own value, to that of another reference row, or half of
    the way back to the instance. The best set of k by the whole equation always lives on, then the
    best by L. An instance is done when its best loss rests. All evolve in one batch, each by its
    own random numbers.

    Last, what is not needed is given back: columns one by one, then parts of the change of numbers.
    With k > 1 an option gives back first what the ones before it change, so that options differ in
    the set of changed columns where there are such options; `info["differs"]` tells.

    Parameters
    ----------
    population : int, default=30
        Rows per instance.
    generations : int, default=40
        Most generations.
    patience : int, default=6
        Generations without a better row after which an instance is done.
    validity : float, default=1
        Weight of the hinge; rows that reach the target are better than all that do not, anyway.
    proximity : float, default=0.5
        Weight of the distance.
    sparsity : float, default=1
        Weight of the share of changed columns.
    diversity : float, default=1
        Weight of the determinant; no effect with k = 1.

    References
    ----------
    Mothilal, Sharma, Tan: Explaining machine learning classifiers through diverse counterfactual
    explanations. FAT* 2020. https://doi.org/10.1145/3351095.3372850

    Examples
    --------
    >>> explainer = DiCE(generations=10).fit(model, X_train[:, 0], y_train)
    >>> result = explainer.explain(X_test[:8, 0], k=3)
    >>> result.valid.mean()
    1.0
    """

    rules = {
        "population": Integer(at_least=4, at_most=100_000),
        "generations": Integer(at_least=0, at_most=1_000_000),
        "patience": STEPS,
        "validity": WEIGHT,
        "proximity": WEIGHT,
        "sparsity": WEIGHT,
        "diversity": WEIGHT,
    }
    info_keys = {
        "generations": "generations lived through",
        "reached": "rows of the last generation that are in the target class",
        "differs": "whether it changes another set of columns than the options before it",
        "fallback": "whether it lies on the line to the nearest unlike neighbor",
    }

    def __init__(
        self,
        population: int = 30,
        generations: int = 40,
        patience: int = 6,
        validity: float = 1.0,
        proximity: float = 0.5,
        sparsity: float = 1.0,
        diversity: float = 1.0,
    ) -> None:
        self.population = population
        self.generations = generations
        self.patience = patience
        self.validity = validity
        self.proximity = proximity
        self.sparsity = sparsity
        self.diversity = diversity

    @override
    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [
            {"population": 6, "generations": 4},
            {"population": 4, "generations": 2, "diversity": 0.0},
        ]

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        instances = tasks.per_instance()
        size = max(self.population, 2 * tasks.k)
        at_once = max(1, MAX_ELEMENTS // (2 * size * (tasks.shape[0] + 2 * size)))
        return Candidates.concat([self._search(part, size) for part in instances.split(at_once)])

    def _search(self, tasks: Tasks, size: int) -> Candidates:
        """Evolve populations of some instances and make options of their best rows."""
        guides = self._find_guides(tasks, size)
        rows = self._project_all(tasks, guides.x)
        tasks = tasks.attach(rows=rows)
        population = _Population(
            x=rows.clone(),
            loss=tasks.x.new_full(rows.shape[:2], 2 * OUTSIDE, dtype=torch.float64),
            accepted=torch.zeros(rows.shape[:2], dtype=torch.bool, device=rows.device),
        )
        able = tasks.affords(size)
        population.put(able, self._ask(tasks.take(able), rows[able]))
        population = self._rank(population, tasks.k)
        generations = self._evolve(tasks, population, guides.found[:, 0])
        tasks.finished(len(tasks))
        best = slice(2 * tasks.k)
        return self._finish(
            tasks,
            population.x[:, best],
            population.accepted[:, best],
            generations=generations,
            reached=population.accepted.sum(1),
        )

    def _evolve(self, tasks: Tasks, population: _Population, guided: Tensor) -> Tensor:
        """Let populations reproduce until each rests; returns the generations of each, (n,)."""
        size = population.loss.shape[1]
        lived = torch.zeros(len(tasks), dtype=torch.long, device=tasks.x.device)
        rests = torch.zeros_like(lived)
        # Without reference rows there is nothing to inherit.
        position = guided.nonzero().flatten()
        for generation in range(1, self.generations + 1):
            position = position[rests[position] < self.patience]
            position = position[tasks.take(position).affords(size + SPARE)]
            if len(position) == 0:
                break
            working = tasks.take(position)
            parents = population.take(position)
            offspring = self._ask(working, self._reproduce(working, parents, generation))
            survivors = self._rank(parents.join(offspring), tasks.k, size)
            gain = parents.loss[:, 0] - survivors.loss[:, 0]
            population.put(position, survivors)
            rests[position] = torch.where(gain > TOLERANCE, 0, rests[position] + 1)
            lived[position] += 1
        return lived

    def _reproduce(self, tasks: Tasks, parents: _Population, generation: int) -> Tensor:
        """Make as many offspring as there are parents, (n, m, coordinates)."""
        n, m, _ = parents.x.shape
        p = self.parts_.count
        draws = tasks.uniform(m * (p + 3), generation).reshape(n, m, p + 3)
        entry = torch.arange(n, device=draws.device)[:, None]
        half = (m + 1) // 2
        first, second = (parents.x[entry, (draws[:, :, i] * half).long()] for i in (0, 1))
        other = tasks["rows"][entry, (draws[:, :, 2] * m).long()]
        own = tasks.x[:, None].expand_as(first)
        way = self.parts_.spread(draws[:, :, 3:])
        x = torch.lerp(first, own, 0.5)
        for limit, source in ((OTHER, other), (OWN, own), (SECOND, second), (FIRST, first)):
            x = torch.where(way < limit, source, x)
        return self._project_all(tasks, x)

    def _ask(self, tasks: Tasks, x: Tensor) -> _Population:
        """Ask the model about rows (n, m, coordinates) and compute L."""
        n, m, _ = x.shape
        asking = tasks.repeat(m)
        flat = x.flatten(0, 1)
        verdict = asking.ask(flat)
        accepted = asking.accepts(flat, verdict)
        behind = (-asking.lead(verdict).double()).clamp_min(0)
        hinge = torch.where(accepted, 0.0, 1 + behind)
        proximity = self.parts_.distances(flat, asking.x).double().mean(1)
        sparsity = self.parts_.changed(flat, asking.x).double().mean(1)
        loss = (
            self.validity * hinge
            + self.proximity * proximity
            + self.sparsity * sparsity
            + OUTSIDE * ~accepted
        )
        return _Population(x, loss.reshape(n, m), accepted.reshape(n, m))

    def _rank(self, population: _Population, k: int, size: int | None = None) -> _Population:
        """Put the best set of k first, then the others by L, and keep the first `size`."""
        weighted = population.x * self.parts_.weight
        kernel = diversity_kernel(weighted)
        is_copy = (kernel == 1).tril(-1).any(2)
        loss = population.loss + COPY * is_copy
        value = loss.clone()
        if k > 1:
            best = choose_diverse(loss, kernel, k, self.diversity)
            place = torch.arange(k, device=best.device, dtype=value.dtype)
            value.scatter_(1, best, (place - OUTSIDE * OUTSIDE).expand(best.shape))
        order = value.argsort(dim=1, stable=True)[:, :size]
        return population.sort(order)
