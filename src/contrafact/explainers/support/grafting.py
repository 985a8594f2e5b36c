"""Find what to graft: windows of series, patches of images, features of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from ...engine import Tasks
from .donor_pool import WayToDonors
from .donor_shifts import donor_shifts
from .feasible_guides import FoundGuides
from .graft_search import GraftSearch
from .graft_tests import LooksReal, SurvivesNoise
from .graft_trials import Effort
from .patch_grafts import patch_grafts
from .value_grafts import ValueGrafts, graft_values
from .window_grafts import N_JOINS, WindowGrafts, WindowGrid
from .window_pairs import halve_windows, move_ends, try_pairs

#: cells of the grid that windows lie on
N_CELLS = 24
#: rounds for one window, its parts and two windows, questions for the ends
ROUNDS, HALVINGS, PAIR_ROUNDS, END_QUESTIONS = 24, 5, 2, 5
#: searches, where the best of the first does not survive noise
ATTEMPTS = 2
#: whole donors tried where no part of one is accepted
WHOLE_DONORS = 6
#: model rows for a search without a test, where nothing passed it
LAST_ROWS = 40
#: shared values over all values of two cuts that count as the same place
SAME_PLACE = 0.5
#: cells per side of the grid that patches lie on
PATCH_CELLS = 8
#: channels up to which each is tried alone, and every two together
MANY_CHANNELS, FEW_CHANNELS = 16, 6


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
    shift : Tensor of int, shape (n,)
        Steps by which the donor was moved to the right.
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
    shift: Tensor
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
            torch.zeros_like(best.variant),
            search.noise_survival.clone(),
            search.refused_by_rule.clone(),
            search.refused_by_noise.clone(),
        )

    @classmethod
    def of_values(cls, tasks: Tasks, values: ValueGrafts, donor: Tensor) -> Grafted:
        """Read grafts of rows, which have neither windows nor counts of what was refused."""
        unknown = torch.full_like(tasks.row, -1)
        return cls(
            values.x_cf,
            values.found,
            values.found & values.survived,
            donor,
            unknown,
            torch.zeros_like(tasks.row),
            torch.full_like(tasks.goal, torch.nan),
            unknown,
            unknown,
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
    """Return the sets of channels that are changed together.

    All; each alone where there are not too many; every two where there are few.

    Parameters
    ----------
    n_channels : int
        Number of channels.

    Returns
    -------
    Tensor of bool, shape (subsets, channels)
        The sets, no two alike.
    """
    everything = torch.ones(1, n_channels, dtype=torch.bool)
    alone = torch.eye(n_channels, dtype=torch.bool)
    sets = [everything]
    if 1 < n_channels <= MANY_CHANNELS:
        sets.append(alone)
    if 2 < n_channels <= FEW_CHANNELS:
        first, second = torch.triu_indices(n_channels, n_channels, offset=1)
        sets.append(alone[first] | alone[second])
    return torch.cat(sets)


def graft_windows(
    tasks: Tasks,
    donors: FoundGuides,
    way: WayToDonors,
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
    way : WayToDonors
        What is known of the way to each.
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
    shifts = donor_shifts(donors.index.shape[1], tasks.shape)
    donor = shifts.apply(donors.x.double())
    slope = shifts.apply(way.slope)
    donor_lead = way.lead[:, shifts.donor].repeat_interleave(N_JOINS * len(subsets), dim=1)
    grafts = WindowGrafts.of(x, donor, grid, subsets, looks_real.limits)
    variants_per_donor = N_JOINS * len(subsets)
    is_donor = donors.found[:, shifts.donor].repeat_interleave(variants_per_donor, dim=1)
    grafts.hidden.logical_and_(is_donor[:, :, None])
    search = GraftSearch(
        tasks,
        grafts,
        grafts.gains(x, slope).float(),
        donor_lead,
        Effort.of(tasks, max_rows),
        looks_real,
        survives_noise,
    )

    def refine_windows() -> None:
        halve_windows(search, grafts, HALVINGS)
        try_pairs(search, grafts, PAIR_ROUNDS)
        move_ends(search, grafts, END_QUESTIONS)

    grafted = _search_in_turns(search, n_turns, variants_per_donor, is_donor, refine_windows)
    return [shifts.name_donors(entry) for entry in grafted]


def graft_patches(
    tasks: Tasks,
    donors: FoundGuides,
    way: WayToDonors,
    value_range: tuple[Tensor, Tensor],
    survives_noise: SurvivesNoise | None,
    max_rows: int,
    n_turns: int = 1,
) -> list[Grafted]:
    """Graft rectangles of donors into images.

    Parameters
    ----------
    tasks : Tasks
        One task per instance.
    donors : FoundGuides
        The donors of each.
    way : WayToDonors
        What is known of the way to each.
    value_range : pair of Tensor
        Lowest and highest values, which broadcast against one image.
    survives_noise : SurvivesNoise or None
        Test of the class under noise.
    max_rows : int
        Model rows per task and turn.
    n_turns : int, default=1
        Grafts wanted per task, in different places.

    Returns
    -------
    list of Grafted
        One entry per turn.
    """
    x = tasks.x.double()
    grafts = patch_grafts(x, donors.x.double(), PATCH_CELLS, value_range=value_range)
    grafts.hidden.logical_and_(donors.found[:, :, None])
    search = GraftSearch(
        tasks,
        grafts,
        grafts.gains(x, way.slope).float(),
        way.lead,
        Effort.of(tasks, max_rows),
        None,
        survives_noise,
    )
    return _search_in_turns(search, n_turns, 1, donors.found, lambda: None)


def graft_features(
    tasks: Tasks,
    donors: FoundGuides,
    way: WayToDonors,
    scale: Tensor,
    survives_noise: SurvivesNoise | None,
    n_turns: int = 1,
) -> list[Grafted]:
    """Copy values of donors into rows.

    Parameters
    ----------
    tasks : Tasks
        One task per instance.
    donors : FoundGuides
        The donors of each; those of one turn are not used in another.
    way : WayToDonors
        What is known of the way to each.
    scale : Tensor of shape (features,)
        Unit of each feature.
    survives_noise : SurvivesNoise or None
        Test of the class under noise.
    n_turns : int, default=1
        Answers wanted per task.

    Returns
    -------
    list of Grafted
        One entry per turn.
    """
    n_donors = donors.index.shape[1]
    grafted = []
    for turn in range(min(n_turns, n_donors)):
        own = slice(turn, None, n_turns)
        values = graft_values(tasks, donors.x[:, own], way.slope[:, own], scale, survives_noise)
        donor = torch.where(values.found, turn + n_turns * values.donor, -1)
        grafted.append(Grafted.of_values(tasks, values, donor))
    return grafted + grafted[-1:] * (n_turns - len(grafted))


def _search_in_turns(
    search: GraftSearch,
    n_turns: int,
    variants_per_donor: int,
    is_donor: Tensor,
    improve: Callable[[], None],
) -> list[Grafted]:
    """Search for one graft after another, each in another place than those before.

    The first turn always has an answer where the model accepts one: a whole donor, or else a graft
    that shows.
    """
    whole = int(search.size[0].argmax())
    grafted = []
    for turn in range(n_turns):
        if turn:
            search.start_over(SAME_PLACE)
        for _ in range(ATTEMPTS):
            search.run(ROUNDS)
            improve()
            search.resting = ~search.settle()
        search.resting = torch.zeros_like(search.resting)
        if turn == 0:
            search.try_cut(whole, WHOLE_DONORS * variants_per_donor, variants_per_donor)
        passed = search.found
        if turn == 0:
            _give_up_tests(search, is_donor)
        grafted.append(Grafted.of(search, passed, variants_per_donor))
    return grafted


def _give_up_tests(search: GraftSearch, is_donor: Tensor) -> None:
    """Search without noise, then without looks, where nothing passes."""
    looks_real = search.looks_real
    survives_noise = search.survives_noise
    still_open = search.open
    search.survives_noise = None
    for allowed in (search.grafts.hidden, is_donor[:, :, None]):
        missing = ~search.found
        # what the rule refused it would refuse again; what noise refused may do now
        refused = search.answered & (search.refused_by_noise == 0)[:, None, None]
        search.open = allowed & missing[:, None, None] & ~refused
        search.need = torch.where(missing, 0.0, search.need)
        search.spent = search.spent.clamp(max=search.effort.max_rows - LAST_ROWS)
        search.run(ROUNDS)
        search.looks_real = None
    search.open = still_open
    search.looks_real = looks_real
    search.survives_noise = survives_noise
