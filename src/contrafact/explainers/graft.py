"""Graft: a stretch of a real series of the target class, joined so that the seam does not show."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor
from typing_extensions import override

from ..data import disagreeing_rows
from ..engine import Candidates, Tags, Tasks
from ..guides.guide import to_numpy
from ..models.classifier import Array
from ..models.verdict import lead
from ..numerics.differences import RealDifferences
from ..validation import Integer, OneOf
from .support.graft_search import GraftSearch
from .support.graft_tests import LEAST_PROBABILITY, LooksReal, SurvivesNoise, log_lead
from .support.guided import FallbackExplainer
from .support.slopes_toward import discriminant_slopes, log_odds_gradient, scaled_slopes
from .support.window_grafts import WindowGrafts, WindowGrid
from .support.window_pairs import move_ends, try_pairs

Level = Literal["smallest", "steady", "lasting"]


class Graft(FallbackExplainer):
    """Graft."""

    tags = Tags(modalities=("series",))
    rules = {
        "level": OneOf("smallest", "steady", "lasting"),
        "n_donors": Integer(at_least=1),
        "n_cells": Integer(at_least=4),
        "per_round": Integer(at_least=1),
        "max_rows": Integer(at_least=20),
    }
    info_keys = {"donor": "reference row", "rows": "x", "why":"c","noise":"d"}

    def __init__(
        self,
        level: Level = "steady",
        n_donors: int = 32,
        n_cells: int = 32,
        per_round: int = 8,
        max_rows: int = 250,
        rounds: int = 24,
        pair_rounds: int = 2,
        draws: int = 6,
        least: int = 5,
        quantile: float = 0.25,
    ) -> None:
        self.level = level
        self.n_donors = n_donors
        self.n_cells = n_cells
        self.per_round = per_round
        self.max_rows = max_rows
        self.rounds = rounds
        self.pair_rounds = pair_rounds
        self.draws = draws
        self.least = least
        self.quantile = quantile

    @override
    def _fit(self, X: Tensor, y: Array | None) -> None:
        super()._fit(X, y)
        self.limits_ = RealDifferences.of(X)
        self.scale_ = X.std(dim=(0, 2), correction=0)[:, None]
        guide = self.guide_
        label = guide.candidate_class_
        if self.classifier_.differentiable:
            self.donor_slopes_ = log_odds_gradient(self.classifier_, X, label)
        else:
            self.class_slopes_ = discriminant_slopes(X, label, len(self.classifier_.classes))
        proba = guide.candidate_proba_
        self.own_p_ = proba.gather(1, label[:, None])[:, 0]
        self.goals_ = torch.zeros(len(self.classifier_.classes), dtype=torch.float64)
        for c in label.unique().tolist():
            self.goals_[c] = self.own_p_[label == c].double().quantile(self.quantile)

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        if self.level == "lasting":
            tasks = tasks.with_goal(torch.minimum(self.goals_[tasks.target], torch.tensor(0.99)))
        n_donors = min(self.n_donors, int(torch.bincount(self.guide_.candidate_class_).max()))
        donors = self._find_guides(tasks, n_donors)
        channels, length = tasks.shape
        subsets = torch.ones(1, channels, dtype=torch.bool)
        if channels > 1:
            subsets = torch.cat([subsets, torch.eye(channels, dtype=torch.bool)])
        grid = WindowGrid.of(length, self.n_cells)
        x = tasks.x.double()
        donor = donors.x.double()
        grafts = WindowGrafts.of(x, donor, grid, subsets, self.limits_)
        grafts.hidden[:] &= donors.found.repeat_interleave(2 * len(subsets), 1)[:, :, None]
        index = donors.index.clamp(min=0)
        if self.classifier_.differentiable:
            here = log_odds_gradient(self.classifier_, tasks.x, tasks.target)
            tasks.oracle.charge(tasks.row)
            slope = 0.5 * (here[:, None] + self.donor_slopes_[index])
        else:
            slope = self.class_slopes_[tasks.target, tasks.label][:, None]
            # a value never counts against the move
            slope = torch.where(slope * (donor - x[:, None]) > 0, slope, 0.0)
        proba = self.guide_.candidate_proba_[index].flatten(0, 1)
        of = tasks.target.repeat_interleave(n_donors)
        donor_lead = lead((proba + LEAST_PROBABILITY).log(), of).view(-1, n_donors)
        before = log_lead(tasks.before, tasks.target)
        slope = scaled_slopes(tasks, donors.x, slope, donor_lead, before)
        noise = None
        if self.level != "smallest":
            noise = SurvivesNoise(self.scale_.to(tasks.x), 0.05, self.draws, self.least)
        search = GraftSearch(
            tasks,
            grafts,
            grafts.gains(x, slope).float(),
            self.per_round,
            self.max_rows,
            LooksReal(self.limits_),
            noise,
        )
        search.run(self.rounds)
        try_pairs(search, grafts, self.pair_rounds)
        move_ends(search, grafts, 5)
        x_cf = torch.where(search.found[:, None, None], search.best.x_cf, donors.x[:, 0])
        d, _, _ = grafts.split_variant(search.best.variant)
        return tasks.candidates(x_cf, donor=d, rows=search.spent, why=search.refused_by_rule,noise=search.refused_by_noise)
