"""Find the windows of donors to graft into series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from ...engine import Tasks
from .graft_search import GraftSearch
from .graft_tests import LooksReal, SurvivesNoise
from .guided import FoundGuides
from .window_grafts import N_JOINS, WindowGrafts, WindowGrid
from .window_pairs import move_ends, try_pairs

#: cells of the grid that windows lie on
N_CELLS = 32
#: questions per round, rounds for one window and for two, questions for the ends
PER_ROUND, ROUNDS, PAIR_ROUNDS, END_QUESTIONS = 8, 24, 2, 5
#: whole donors tried where no part of one is accepted
WHOLE_DONORS = 6
#: shared steps over all steps of two windows that count as the same answer
SAME_WINDOW = 0.5
#: sets of channels tried at most: all, and each alone
MAX_SUBSETS = 16


@dataclass(frozen=True)
class Grafted:
    """One graft per task.

    Parameters
    ----------
    x_cf : Tensor of shape (n, *shape)
        The instances with the grafts.
    found : Tensor of bool, shape (n,)
        Whether there is an accepted one.
    passed : Tensor of bool, shape (n,)
        Whether it passed the tests on looks and noise, too.
    donor, second_donor : Tensor of int, shape (n,)
        Which of the task's donors it comes from; -1: none.
    noise_survival : Tensor of float64, shape (n,)
        Share of noisy copies that stay in the class; NaN without the test.
    refused_by_rule, refused_by_noise : Tensor of int, shape (n,)
        Candidates of the class that were refused.
    """

    x_cf: Tensor
    found: Tensor
    passed: Tensor
    donor: Tensor
    second_donor: Tensor
    noise_survival: Tensor
    refused_by_rule: Tensor
    refused_by_noise: Tensor

    @classmethod
    def of(cls, search: GraftSearch, passed: Tensor, variants_per_donor: int) -> Grafted:
        """Read the best grafts of a search; variants are numbered donor by donor."""
        best = search.best
        has_second = search.found & (best.second_cut >= 0)
        return cls(
            best.x_cf.clone(),
            search.found,
            passed,
            torch.where(search.found, best.variant // variants_per_donor, -1),
            torch.where(has_second, best.second_variant // variants_per_donor, -1),
            search.noise_survival.clone(),
            search.refused_by_rule.clone(),
            search.refused_by_noise.clone(),
        )

    def take(self, which: Tensor) -> Grafted:
        """Return the grafts of some tasks."""
        return Grafted(**{field.name: getattr(self, field.name)[which] for field in fields(self)})

    @staticmethod
    def concat(parts: Sequence[Grafted]) -> Grafted:
        """Join the grafts of consecutive tasks."""
        names = [field.name for field in fields(Grafted)]
        columns = {name: torch.cat([getattr(part, name) for part in parts]) for name in names}
        return Grafted(**columns)


def channel_subsets(n_channels: int) -> Tensor:
    """Return the sets of channels that are changed together: all, and each alone where few.

    Parameters
    ----------
    n_channels : int
        Number of channels.

    Returns
    -------
    Tensor of bool, shape (subsets, channels)
        The sets.
    """
    everything = torch.ones(1, n_channels, dtype=torch.bool)
    if not 1 < n_channels < MAX_SUBSETS:
        return everything
    return torch.cat([everything, torch.eye(n_channels, dtype=torch.bool)])


def graft_windows(
    tasks: Tasks,
    donors: FoundGuides,
    slope: Tensor,
    looks_real: LooksReal,
    survives_noise: SurvivesNoise | None,
    max_rows: int,
    n_turns: int = 1,
) -> list[Grafted]:
    """Graft windows of donors into series.

    Parameters
    ----------
    tasks : Tasks
        One task per instance.
    donors : FoundGuides
        The donors of each.
    slope : Tensor of float64, shape (n, donors, channels, length)
        Derivative of the target's lead on the way to each donor.
    looks_real : LooksReal
        Test of the joins.
    survives_noise : SurvivesNoise or None
        Test of the class under noise.
    max_rows : int
        Model rows per task and turn.
    n_turns : int, default=1
        Grafts wanted per task, in different windows.

    Returns
    -------
    list of Grafted
        One entry per turn.
    """
    grid = WindowGrid.of(tasks.shape[-1], N_CELLS)
    subsets = channel_subsets(tasks.shape[0])
    x = tasks.x.double()
    grafts = WindowGrafts.of(x, donors.x.double(), grid, subsets, looks_real.limits)
    variants_per_donor = N_JOINS * len(subsets)
    is_donor = donors.found.repeat_interleave(variants_per_donor, dim=1)
    grafts.hidden.logical_and_(is_donor[:, :, None])
    search = GraftSearch(
        tasks,
        grafts,
        grafts.gains(x, slope).float(),
        PER_ROUND,
        max_rows,
        looks_real,
        survives_noise,
    )
    grafted = []
    for turn in range(n_turns):
        if turn:
            search.start_over(SAME_WINDOW)
        search.run(ROUNDS)
        try_pairs(search, grafts, PAIR_ROUNDS)
        move_ends(search, grafts, END_QUESTIONS)
        if turn == 0:
            search.try_cut(grid.whole, WHOLE_DONORS * variants_per_donor, variants_per_donor)
        passed = search.found
        if turn == 0:
            _search_without_tests(search, is_donor)
        grafted.append(Grafted.of(search, passed, variants_per_donor))
    return grafted


def _search_without_tests(search: GraftSearch, is_donor: Tensor) -> None:
    """Give up looks and noise where nothing passes them, as constraints may have it."""
    looks_real = search.looks_real
    survives_noise = search.survives_noise
    search.looks_real = None
    search.survives_noise = None
    missing = ~search.found
    search.open = (is_donor & missing[:, None])[:, :, None].expand_as(search.open).clone()
    search.need = torch.where(missing, 0.0, search.need)
    search.spent = torch.where(missing, 0, search.spent)
    search.run(ROUNDS)
    search.looks_real = looks_real
    search.survives_noise = survives_noise
