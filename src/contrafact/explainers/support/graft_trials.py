"""Candidates of a search for grafts: where they come from, what is said of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from ...engine import Tasks
from ...models.classifier import Array
from ...numerics import fold_in, row_uniform


class Grafts(Protocol):
    """The grafts that come into question for n tasks: v variants (donor, join, ...) of w cuts."""

    @property
    def hidden(self) -> Tensor:
        """Whether a graft can be joined without showing, (n, v, w)."""
        ...

    def sizes(self) -> Tensor:
        """Return the share of values that each graft changes, (v, w)."""
        ...

    def similarity(self, cut: Tensor) -> Tensor:
        """Return shared values over all values of two cuts, for each of `cut` and all w."""
        ...

    def kinship(self) -> Tensor:
        """Return how much an answer about one variant says about another, (v, v)."""
        ...

    def make(self, x: Tensor, task: Tensor, variant: Tensor, cut: Tensor) -> Tensor:
        """Make grafts in x (n, *shape), given by task, variant and cut, (m,) each."""
        ...


@dataclass(frozen=True)
class Effort:
    """How much a search asks.

    Parameters
    ----------
    per_round : int
        Questions per task and round.
    worthwhile : float
        A task is done when one more question is expected to shrink its edit by less than this
        share of the instance.
    max_rows : int
        Model rows per task at most, about.
    """

    per_round: int
    worthwhile: float
    max_rows: int

    @classmethod
    def of(cls, tasks: Tasks, max_rows: int) -> Effort:
        """Ask less where predictions are good: where they come from the model's own gradients."""
        if tasks.classifier.differentiable:
            return cls(6, 0.003, max_rows)
        return cls(8, 0.001, max_rows)


@dataclass(frozen=True)
class Trial:
    """Candidates that the model was asked about.

    Parameters
    ----------
    task : Tensor of int, shape (m,)
        Task of each.
    x_cf : Tensor of shape (m, *shape)
        The candidates.
    size : Tensor of shape (m,)
        Share of values that each changes.
    variant, cut, second_variant, second_cut : Tensor of int, shape (m,)
        Where each comes from; the last two are -1 where there is one cut only.
    """

    task: Tensor
    x_cf: Tensor
    size: Tensor
    variant: Tensor
    cut: Tensor
    second_variant: Tensor
    second_cut: Tensor

    @classmethod
    def unchanged(cls, x: Tensor) -> Trial:
        """Return instances (n, *shape) as they are, in place of candidates, of infinite size."""
        task = torch.arange(len(x), device=x.device)
        size = torch.full((len(x),), torch.inf, dtype=torch.float64, device=x.device)
        nothing = [torch.full_like(task, -1) for _ in range(4)]
        return cls(task, x.clone(), size, *nothing)

    def take(self, which: Tensor) -> Trial:
        """Return some of the candidates."""
        return Trial(*(values[which] for values in vars(self).values()))


@dataclass(frozen=True)
class Answers:
    """What was said of candidates.

    Parameters
    ----------
    trial : Trial
        Those that the model was asked about, within the constraints.
    asked : Tensor of bool
        Which of the candidates given these are.
    lead : Tensor of float64, shape (m,)
        Lead of the target in each.
    accepted : Tensor of bool, shape (m,)
        Whether the acceptance rule holds, with the lead that noise asks for.
    """

    trial: Trial
    asked: Tensor
    lead: Tensor
    accepted: Tensor


def store(best: Trial, trial: Trial) -> None:
    """Put candidates, at most one per task, in the places of their tasks.

    Parameters
    ----------
    best : Trial
        One entry per task; changed in place.
    trial : Trial
        The candidates.
    """
    for name, values in vars(best).items():
        values[trial.task] = getattr(trial, name).to(values)


def smallest(trial: Trial, lead: Tensor, improves: Tensor, n_tasks: int) -> Tensor:
    """Find the best candidate of each task: the smallest, of equal ones that with most lead.

    Parameters
    ----------
    trial : Trial
        Candidates.
    lead : Tensor of shape (m,)
        Lead of the target in each.
    improves : Tensor of bool, shape (m,)
        Those that count.
    n_tasks : int
        Number of tasks.

    Returns
    -------
    Tensor of int
        Positions, at most one per task.
    """
    position = improves.nonzero().flatten()
    by_lead = position[lead[position].argsort(descending=True, stable=True)]
    by_size = by_lead[trial.size[by_lead].argsort(stable=True)]
    order = torch.full((n_tasks,), len(by_size), device=position.device)
    place = torch.arange(len(by_size), device=position.device)
    order = order.scatter_reduce(0, trial.task[by_size], place, "amin")
    return by_size[order[order < len(by_size)]]


def softmax_scores(weight: Tensor, seeds: Array, name: Tensor, stream: int) -> Tensor:
    """Return scores whose largest are draws without replacement, by weight.

    A score is log w plus a Gumbel number. Every candidate has its own number, wherever it is
    listed: near ties may be ordered otherwise in another batch.

    Parameters
    ----------
    weight : Tensor of shape (n, m)
        Weights w >= 0 of the candidates of each task.
    seeds : array of uint64, shape (n,)
        Seed of each task.
    name : Tensor of int, shape (n, m)
        Numbers that name the candidates.
    stream : int
        Stream of random numbers.

    Returns
    -------
    Tensor of float64, shape (n, m)
        The scores.
    """
    own = fold_in(np.repeat(seeds, name.shape[1]), name.flatten().cpu().numpy())
    uniform = torch.from_numpy(row_uniform(own, 1, stream)).to(name.device).view(name.shape)
    return _log(weight.double()) - _log(-_log(uniform))


def _log(values: Tensor) -> Tensor:
    """Return logarithms of numbers >= 0, finite for 0 too."""
    return values.clamp_min(torch.finfo(values.dtype).tiny).log()
