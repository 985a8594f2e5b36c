"""Graft: a stretch of a real series of the target class, joined so that the seam does not show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor
from typing_extensions import override

from ..engine import Candidates, Tags, Tasks
from ..models.classifier import Array
from ..numerics import occurrence
from ..numerics.differences import RealDifferences
from ..search.stretches import stretch_ids
from ..validation import OneOf
from .support.column_grafts import graft_columns
from .support.donor_pool import DonorKnowledge, WayToDonors, evenly_by_class, good_donors
from .support.feasible_guides import FoundGuides
from .support.graft_tests import LooksReal, SurvivesNoise
from .support.grafting import (
    Grafted,
    channel_subsets,
    graft_features,
    graft_patches,
    graft_windows,
)
from .support.guided import FallbackExplainer, within_limits
from .support.option_rules import COUNT, STEPS

Level = Literal["smallest", "steady", "lasting"]
LEVELS: tuple[Level, ...] = ("smallest", "steady", "lasting")

#: noise in standard deviations of the reference; copies asked about, and those that have to agree
SIGMA, DRAWS, LEAST_DRAWS = 0.05, 6, 5
#: quantile of the class's own P(target) that a lasting graft has to reach
TYPICAL = 0.25
#: donors at least, where many sets of channels are tried
LEAST_DONORS = 16
#: reference rows that are compared with each other; of more, some of every class are taken
MOST_REFERENCE = 20_000
#: numbers of a search held at once, about; more tasks are searched in turn
MAX_ELEMENTS = 2**23
#: candidates per donor and set of channels, about
GRAFTS_PER_DONOR = 1400


class Graft(FallbackExplainer):
    """Graft a short stretch of a real series of the target class, so that the seam does not show.

    A window [s, e) of a donor d replaces that of x, in one of two ways:

        tilted:  x'_t = d_t + the straight line through x − d at s − 1 and at e
        faded:   x'_t = x_t + w_t (d_t − x_t),  w rising from 0 to 1 within a few steps

    The smallest change is searched for, over windows, donors, channels and pairs of windows, that

    - the model clearly puts in the target class,
    - has no jump or kink at its edges, nor a correlation between channels, that real series do not
      show at that place,
    - level "steady": stays in the class when noise of 5 % of the data's standard deviation is
      added, in 5 of 6 draws,
    - level "lasting": also reaches a P(target) that is typical of the class (the lower quartile of
      its own series, at most 0.6), and convinces every member of a committee of retrained models
      (`committee="auto"` unless another is given).

    Donors are the nearest reference series that the model puts in the target class and whose own
    neighbors agree, as they are and moved by a twelfth of their length. Which windows to ask about
    is decided by predictions that learn from every answer (`GraftSearch`). Where no stretch is
    accepted, x' is a whole donor. Of more than 20,000 reference series, so many are used, evenly
    over the classes.

    Parameters
    ----------
    level : {"smallest", "steady", "lasting"}, default="steady"
        How much an answer has to withstand.
    n_donors : int, default=32
        Donors per instance at most.
    max_rows : int, default=250
        Model rows per counterfactual of series and images, about; the search ends earlier where
        nothing better is expected. Rows of features take fewer than 300.
    spread : {"different", "front"}, default="different"
        With k > 1: windows that differ from each other, all of the same level; or a front from the
        smallest to the most lasting answer.

    Examples
    --------
    >>> result = Graft().fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags()
    rules = {
        "level": OneOf(*LEVELS),
        "n_donors": COUNT,
        "max_rows": STEPS,
        "spread": OneOf("different", "front"),
    }
    info_keys = {
        "donor": "reference row that the (first) window comes from; -1: the least or largest "
        "value of the class",
        "second_donor": "reference row that the second window comes from; -1: there is none",
        "shift": "steps by which the first donor was moved to the right",
        "start": "first time step of the first changed run",
        "length": "time steps of the first changed run",
        "second_start": "first time step of the second changed run; -1: there is none",
        "second_length": "time steps of the second changed run; 0: there is none",
        "level": "what it withstands: 0 smallest, 1 steady, 2 lasting; -1: not all tests passed",
        "seam": "largest step at an edge, over that of real series there",
        "kink": "largest bend at an edge, over that of real series there",
        "noise_survival": "share of noisy copies that stay in the class; NaN: not asked",
        "refused_by_rule": "candidates of the class that goal or committee refused",
        "refused_by_noise": "candidates of the class that noise took out of it",
        "fallback": "whether it is the first point on the line to a donor instead",
    }

    def __init__(
        self,
        level: Level = "steady",
        n_donors: int = 32,
        max_rows: int = 250,
        spread: Literal["different", "front"] = "different",
    ) -> None:
        self.level = level
        self.n_donors = n_donors
        self.max_rows = max_rows
        self.spread = spread

    @override
    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [
            {"max_rows": 60, "n_donors": 8},
            {"level": "lasting", "max_rows": 40, "n_donors": 4},
            {"spread": "front", "max_rows": 24, "n_donors": 4},
        ]

    @override
    def _default_committee(self) -> Literal["auto"] | None:
        return "auto" if self.level == "lasting" or self.spread == "front" else None

    @override
    def _option_search(self) -> Literal["one by one", "together", "own"]:
        return "one by one" if self.spread == "different" else "own"

    @override
    def _fit(self, X: Tensor, y: Array | None) -> None:
        if self._default_committee() == "auto":
            self._find_committee("auto")  # its models are trained here, not at the first question
        verdict = self.classifier_.reference_verdict(X)
        kept = evenly_by_class(verdict.label, MOST_REFERENCE)
        if len(kept) < len(X):
            X = X[kept]
            verdict = verdict[kept]
            y = None if y is None else y[kept.numpy()]
        self.donor_rows_ = good_donors(X, y, verdict, self.classifier_.classes)
        if self.space_ is not None:
            # Constraints may leave no good donor; then any other row of the class will do.
            self.is_good_donor_ = torch.zeros(len(X), dtype=torch.bool)
            self.is_good_donor_[self.donor_rows_] = True
            self.donor_rows_ = torch.arange(len(X))
        super()._fit(X[self.donor_rows_], None if y is None else y[self.donor_rows_.numpy()])
        donors = self.guide_.candidates_
        verdict = verdict[self.donor_rows_]
        self.donor_rows_ = kept[self.donor_rows_]
        self.knowledge_ = DonorKnowledge.of(self.classifier_, donors, verdict)
        if self.modality_ == "series":
            self.looks_real_ = LooksReal.of(X)
            self.differences_ = RealDifferences.of(X)
        places = (0, *range(2, X.ndim))  # all but the channels, or the features of rows
        self.scale_ = X.std(dim=places, correction=0, keepdim=True)[0]
        if self.space_ is not None:
            self.scale_ = self.scale_ * self.space_.is_line  # there is no noise on categories
        self.value_range_ = (X.amin(places, keepdim=True)[0], X.amax(places, keepdim=True)[0])
        self.survives_noise_ = SurvivesNoise(self.scale_, SIGMA, DRAWS, LEAST_DRAWS)

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        if self.spread == "different":
            return self._search(tasks, self.level)
        # the counterfactuals of an instance are spread evenly over the levels
        place = tasks.rank.double() / max(tasks.k - 1, 1) * (len(LEVELS) - 1)
        found = []
        for number, level in enumerate(LEVELS):
            wanted = place.round() == number
            if bool(wanted.any()):
                found.append(self._search(tasks.take(wanted), level))
        return Candidates.concat(found)

    def _search(self, tasks: Tasks, level: Level) -> Candidates:
        """Search for one graft per task, all of one level."""
        if level == "lasting":
            typical = self.knowledge_.typical_confidence(TYPICAL).to(tasks.goal)
            tasks = tasks.with_goal(typical[tasks.target])
        elif self.spread == "front":
            tasks = tasks.without_committee()
        turn = occurrence(tasks.row)
        instances = tasks.take(turn == 0)
        n_turns = int(turn.max()) + 1 if len(tasks) else 1
        n_subsets = len(channel_subsets(tasks.shape[0])) if self.modality_ == "series" else 1
        n_donors = self._donors_at_most(n_subsets)
        size = max(1, MAX_ELEMENTS // (n_donors * n_subsets * GRAFTS_PER_DONOR))
        parts = []
        for part in instances.split(size):
            donors = self._find_guides(part, n_donors)
            has_donor = donors.found[:, 0]
            part.refuse(
                ~has_donor,
                "the reference data hold no guide that the model puts in the class"
                + within_limits(part),
            )
            if part.space is None:
                way = self.knowledge_.way_to(part, donors)
                grafted = self._graft(part, donors, way, level, n_turns)
            else:
                grafted = [self._graft_columns(part, donors, level)] * n_turns
            parts.append([self._with_reference_rows(entry, donors.index) for entry in grafted])
        found = []
        for number in range(n_turns):
            wanted = tasks.take(turn == number)
            of_task = torch.searchsorted(instances.row, wanted.row)
            entries = Grafted.concat([part[number] for part in parts]).take(of_task)
            found.append(self._report(wanted, entries, level, first=number == 0))
        return Candidates.concat(found)

    def _graft(
        self,
        tasks: Tasks,
        donors: FoundGuides,
        way: WayToDonors,
        level: Level,
        n_turns: int,
    ) -> list[Grafted]:
        """Graft what suits the kind of data."""
        noise = None if level == "smallest" else self.survives_noise_
        if self.modality_ == "series":
            return graft_windows(
                tasks, donors, way, self.looks_real_, noise, self.max_rows, n_turns
            )
        if self.modality_ == "image":
            return graft_patches(
                tasks, donors, way, self.value_range_, noise, self.max_rows, n_turns
            )
        return graft_features(tasks, donors, way, self.scale_, noise, n_turns)

    def _graft_columns(self, tasks: Tasks, donors: FoundGuides, level: Level) -> Grafted:
        """Graft columns of donors into rows of a table."""
        noise = None if level == "smallest" else self.survives_noise_
        is_donor = donors.found[..., None]
        # The constraints apply to what is exchanged, not to donors as a whole.
        values = self.guide_.candidates_[donors.index.clamp(min=0)]
        values = torch.where(is_donor, values, tasks.x[:, None])
        values = torch.cat([values, self._farthest_values(tasks)], dim=1)
        grafts = graft_columns(tasks, donors, values, noise)
        is_donor = grafts.donor < donors.index.shape[1]
        return Grafted.of_values(tasks, grafts, torch.where(is_donor, grafts.donor, -1))

    def _farthest_values(self, tasks: Tasks) -> Tensor:
        """Return the least and the largest numbers of the class, (n, 2, coordinates).

        Where no donor nearby has a value that changes the class alone, one of them may.
        """
        assert tasks.space is not None
        far = tasks.x[:, None].repeat(1, 2, 1)
        for c in tasks.target.unique().tolist():
            members = self.guide_.candidates_[self.guide_.candidate_class_ == c]
            if len(members):
                far[tasks.target == c] = torch.stack([members.amin(0), members.amax(0)])
        return torch.where(tasks.space.is_line, far, tasks.x[:, None])

    @override
    def _convincing_guides(self, tasks: Tasks) -> Tensor | None:
        convincing = super()._convincing_guides(tasks)
        if tasks.space is None:
            return convincing
        return self.is_good_donor_ if convincing is None else convincing & self.is_good_donor_

    def _donors_at_most(self, n_subsets: int) -> int:
        """Return the donors per instance: fewer where each is tried in many sets of channels."""
        largest_class = int(torch.bincount(self.guide_.candidate_class_).max())
        wanted = max(min(LEAST_DONORS, self.n_donors), self.n_donors // n_subsets)
        return min(wanted, largest_class)

    def _with_reference_rows(self, grafted: Grafted, index: Tensor) -> Grafted:
        """Name donors by their row in the reference data instead of their place among donors."""
        rows = self.donor_rows_.to(index.device)

        def row_of(donor: Tensor) -> Tensor:
            known = index.gather(1, donor.clamp(min=0)[:, None])[:, 0]
            return torch.where(donor >= 0, rows[known.clamp(min=0)], -1)

        return replace(
            grafted,
            donor=row_of(grafted.donor),
            second_donor=row_of(grafted.second_donor),
        )

    def _report(
        self,
        tasks: Tasks,
        grafted: Grafted,
        level: Level,
        *,
        first: bool,
    ) -> Candidates:
        """Return the grafts with what there is to tell; the first of an instance always exists."""
        x_cf = grafted.x_cf
        fallback = torch.zeros_like(grafted.found)
        if first:
            missing = ~grafted.found
            left = tasks.take(missing)
            x_cf = x_cf.clone()
            x_cf[missing], fallback[missing] = self._fall_back(left, self._last_resort(left))
        else:
            # a further answer that was not found is left out
            tasks = tasks.take(grafted.found)
            x_cf = x_cf[grafted.found]
            fallback = fallback[grafted.found]
            grafted = grafted.take(grafted.found)
        return tasks.candidates(
            x_cf,
            donor=grafted.donor,
            second_donor=grafted.second_donor,
            shift=grafted.shift,
            level=torch.where(grafted.passed, LEVELS.index(level), -1),
            noise_survival=grafted.noise_survival,
            refused_by_rule=grafted.refused_by_rule,
            refused_by_noise=grafted.refused_by_noise,
            fallback=fallback,
            **self._describe_runs(tasks, x_cf),
        )

    def _last_resort(self, tasks: Tasks) -> Tensor:
        """Return the best that was tried; the nearest donor where the budget allowed no trial."""
        best = tasks.best_attempts()
        untried = (best == tasks.x).flatten(1).all(1)
        if bool(untried.any()):
            idle = tasks.take(untried)
            best[untried] = idle.project(self._find_guides(idle).x[:, 0])
        return best

    def _describe_runs(self, tasks: Tasks, x_cf: Tensor) -> dict[str, Tensor]:
        """Return where series were changed, and how the edges compare with real series."""
        if self.modality_ != "series":
            return {}
        limits = self.differences_
        seam = limits.seam(x_cf, tasks.x)
        kink = limits.kink(x_cf, tasks.x)
        return {"seam": seam, "kink": kink, **_first_two_runs(x_cf != tasks.x)}


def _first_two_runs(changed: Tensor) -> dict[str, Tensor]:
    """Return start and length of the first two runs of changed steps; -1 and 0: there is none."""
    number = stretch_ids(changed, "series")[:, 0]
    runs = {}
    for run, prefix in ((1, ""), (2, "second_")):
        inside = number == run
        runs[f"{prefix}start"] = torch.where(inside.any(1), inside.int().argmax(1), -1)
        runs[f"{prefix}length"] = inside.sum(1)
    return runs
