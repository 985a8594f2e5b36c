"""Grafts of feature rows: the fewest values of a donor that change the class."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...engine import Tasks
from ...search import smallest_level
from .graft_tests import SurvivesNoise

#: model rows that the search for prefixes may take
PREFIX_ROWS = 100
#: donors of each task that the costly tests are made for
N_FINALISTS = 3
#: values of a finalist that are tried to be given back
MAX_DROPS = 12


@dataclass(frozen=True)
class ValueGrafts:
    """What was found for some tasks.

    Parameters
    ----------
    x_cf : Tensor of shape (n, features)
        The counterfactuals; a donor as it is where none is accepted.
    donor : Tensor of int, shape (n,)
        Position of the donor that each comes from.
    found : Tensor of bool, shape (n,)
        Whether the acceptance rule holds.
    survived : Tensor of bool, shape (n,)
        Whether the class also survives noise; `found` where that was not asked for.
    """

    x_cf: Tensor
    donor: Tensor
    found: Tensor
    survived: Tensor


@dataclass(frozen=True)
class WithinBudget:
    """Noise as an acceptance test; a candidate whose draws cannot be paid for does not pass."""

    noise: SurvivesNoise

    def passes(self, tasks: Tasks, x_cf: Tensor) -> Tensor:
        """Find the candidates that survive."""
        able = tasks.affords(self.noise.draws)
        passed = torch.zeros_like(able)
        if bool(able.any()):
            passed[able] = self.noise.passes(tasks.take(able), x_cf[able])
        return passed


def graft_values(
    tasks: Tasks,
    donor: Tensor,
    slope: Tensor,
    scale: Tensor,
    survives_noise: SurvivesNoise | None = None,
) -> ValueGrafts:
    """Copy the fewest values of a donor that are accepted.

        x'_f = d_f for f ∈ F,   x_f else

    For every donor d the features are ordered by what they add to the lead of the target to first
    order, slope_f · (d_f − x_f). F is the smallest accepted prefix, found by bisection. The donors
    with the fewest values, then the smallest Σ_f |d_f − x_f| / scale_f, are the finalists: values
    that are not needed are given back, least gain first; then F grows until the class survives
    noise. A value is the donor's or the instance's own, never in between: half of a
    category means nothing.

    Parameters
    ----------
    tasks : Tasks
        What to find counterfactuals for; feature rows.
    donor : Tensor of shape (n, donors, features)
        Rows of the target class, nearest first. Only as many are used as about 100 model rows
        allow: 25 with 4 features, 16 with 30.
    slope : Tensor that broadcasts to the shape of `donor`
        Derivative of the lead with respect to each value.
    scale : Tensor of shape (features,)
        Unit of each feature, e.g. its standard deviation; 0 stands for 1.
    survives_noise : SurvivesNoise, optional
        Test of the finalists.

    Returns
    -------
    ValueGrafts
        One for every task.
    """
    n_features = donor.shape[2]
    rows_per_donor = 1 + n_features.bit_length()
    n_donors = min(donor.shape[1], max(1, PREFIX_ROWS // rows_per_donor))
    pairs = _pair_up(tasks, donor[:, :n_donors], slope.expand_as(donor)[:, :n_donors])
    level, found = _smallest_prefix(pairs, torch.zeros_like(pairs.row))
    pairs = pairs.attach(level=level, found=found)

    cost = _cost(pairs, _prefix(pairs, level) != pairs.x, scale).masked_fill(~found, torch.inf)
    finalists = pairs.take(_cheapest(cost.view(len(tasks), n_donors), N_FINALISTS).flatten())
    finalists = _give_back(finalists)
    level, survived = finalists["level"], finalists["found"]
    if survives_noise is not None:
        level, survived = _grow(finalists.requiring(WithinBudget(survives_noise)))
    copied = finalists["rank"] < level[:, None]

    cost = _cost(finalists, copied, scale)
    # being accepted goes before surviving noise, and that before being small
    missed = (~survived).double() + (~finalists["found"]).double()
    cost = cost + (n_features + 1) * missed
    winner = _cheapest(cost.view(len(tasks), -1), 1)[:, 0]
    won = finalists.take(winner)
    copied = copied[winner] | ~won["found"][:, None]
    return ValueGrafts(
        torch.where(copied, won["donor"], won.x),
        won["number"],
        won["found"],
        survived[winner],
    )


def _cheapest(cost: Tensor, count: int) -> Tensor:
    """Return the positions, in the flattened costs (n, m), of the cheapest of each row."""
    n, m = cost.shape
    first = torch.arange(n, device=cost.device)[:, None] * m
    return first + cost.argsort(dim=1, stable=True)[:, :count]


def _pair_up(tasks: Tasks, donor: Tensor, slope: Tensor) -> Tasks:
    """Repeat tasks for each of their donors, with the order in which its values are copied."""
    n_donors = donor.shape[1]
    pairs = tasks.repeat(n_donors)
    donor = pairs.project(donor.flatten(0, 1).to(pairs.x))
    way = (donor - pairs.x).double()
    gain = slope.flatten(0, 1).double() * way
    # equal values come last, so that a prefix of k values changes k
    gain = torch.where(way != 0, gain, -torch.inf)
    order = gain.argsort(dim=1, descending=True, stable=True)
    return pairs.attach(
        donor=donor,
        rank=order.argsort(dim=1),
        n_differ=(way != 0).sum(1),
        number=torch.arange(n_donors, device=donor.device).repeat(len(tasks)),
    )


def _prefix(pairs: Tasks, level: Tensor) -> Tensor:
    """Copy the first `level` values of the donor's order."""
    return torch.where(pairs["rank"] < level[:, None], pairs["donor"], pairs.x)


def _smallest_prefix(pairs: Tasks, above: Tensor) -> tuple[Tensor, Tensor]:
    """Find the smallest accepted prefix longer than `above`, and whether there is one."""
    level = pairs["n_differ"].clone()
    found = torch.zeros_like(pairs.row, dtype=torch.bool)
    longer = (level > above).nonzero().flatten()
    asking = pairs.take(longer)
    reached = longer[asking.accepted(asking["donor"])]
    found[reached] = True
    searching = pairs.take(reached)
    level[reached], _ = smallest_level(
        searching,
        _prefix,
        level[reached],
        above=above[reached],
        top_accepted=True,
    )
    return level, found


def _give_back(pairs: Tasks) -> Tasks:
    """Give back copied values that are not needed, least gain first; one pass.

    The order of the values becomes: those that are needed, those given back, the others.
    """
    level, rank = pairs["level"], pairs["rank"]
    copied = rank < level[:, None]
    needed = copied.clone()
    for turn in range(1, MAX_DROPS + 1):
        droppable = pairs["found"] & (level >= turn) & (needed.sum(1) > 1)
        which = droppable.nonzero().flatten()
        if len(which) == 0:
            break
        trying = pairs.take(which)
        fewer = needed[which] & (trying["rank"] != (level[which] - turn)[:, None])
        passed = trying.accepted(torch.where(fewer, trying["donor"], trying.x))
        needed[which[passed]] = fewer[passed]
    kept_back = copied & ~needed
    group = torch.where(needed, 0, torch.where(kept_back, 1, 2))
    rank = (group * rank.shape[1] + rank).argsort(dim=1).argsort(dim=1)
    return pairs.attach(level=needed.sum(1), rank=rank)


def _grow(pairs: Tasks) -> tuple[Tensor, Tensor]:
    """Stay at accepted prefixes, let others grow; return levels and whether they are accepted."""
    level = pairs["level"].clone()
    accepted = torch.zeros_like(pairs["found"])
    known = pairs["found"].nonzero().flatten()
    trying = pairs.take(known)
    passed = trying.accepted(_prefix(trying, level[known]))
    accepted[known[passed]] = True
    short = known[~passed]
    longer, found = _smallest_prefix(pairs.take(short), level[short])
    level[short[found]] = longer[found]
    accepted[short[found]] = True
    return level, accepted


def _cost(pairs: Tasks, changed: Tensor, scale: Tensor) -> Tensor:
    """Return the number of changed values, plus less than 1 for how much they change."""
    unit = torch.where(scale > 0, scale, 1.0).double()
    step = (pairs["donor"] - pairs.x).abs().double() / unit
    size = (step * changed).sum(1)
    return changed.sum(1) + size / (1 + size)
