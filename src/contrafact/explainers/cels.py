"""CELS: a learned saliency map selects which stretches of a neighbor to copy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from ..deprecation import renamed_parameters
from ..engine import Candidates, Tags, Tasks
from ..engine.request import RULES as REQUEST_RULES
from ..guides import Guide
from ..numerics import ceil_div, fold_in, row_seeds, row_uniform
from ..search import Adam, Optimum, Point, Stop, accepted_from, grow_mask, minimize, segment_ids
from ..search.segments import count_segments
from ..validation import Boolean, Nothing, OneOf, Real
from .support.guided import (
    GUIDE_RULE,
    METRIC_RULE,
    OLD_GUIDE_NAMES,
    GuidedExplainer,
    GuideKind,
    Metric,
    make_guide,
)
from .support.option_rules import COUNT, RATE, STEPS, WEIGHT

#: model rows that growing a mask leaves for the cut
SPARE = 16
#: steps in which a soft map is raised toward 1 where it does not change the class
SOFT_LEVELS = 64


class CELS(GuidedExplainer):
    """Copy the stretches of a neighbor that a learned saliency map selects.

    With n the nearest unlike neighbor of x, learn a map θ in [0, 1]^(channels × length) by Adam:

        x' = x · (1 − θ) + n · θ
        minimize  max_coeff · (1 − P(c | x')) + budget_coeff · mean|θ|
                  + tv_coeff · mean|θ_{t+1} − θ_t|^tv_beta

    Then θ, scaled to [0, 1], is cut at `threshold`, and the stretches above it are copied from n.
    Where cutting undoes the change of class, the cut moves down through θ's own values to the
    smallest mask that restores it. The full mask is n itself, which the model puts in c, so there
    is always a valid answer.

    Where P(c) is saturated its slope vanishes; there the search climbs on softmax(score / T)
    instead, see `temperature`. `info["loss"]` is the loss above, with the model's own P(c).

    In models without gradients the mask is grown segment by segment, by the largest gain in P(c):
    this takes a hundredth of the model rows of finite differences, and copies less.

    Parameters
    ----------
    max_coeff : float, default=0.7
        Weight of reaching the target class.
    budget_coeff : float, default=0.6
        Weight of changing little.
    tv_coeff : float, default=0.5
        Weight of a smooth map.
    tv_beta : float, default=3.0
        Exponent of the smoothness term.
    learning_rate : float, default=0.1
        Adam's step in θ.
    max_iter : int, default=500
        Largest number of steps.
    tau : float, default=0.5
        P(c) at which the search may stop.
    patience : int, default=30
        Steps at P(c) >= tau after which it stops.
    tolerance : float, default=1e-4
        At P(c) >= tau it also stops when the loss changes by less than this.
    threshold : float, default=0.5
        Where the scaled map is cut, between 0 and 1.
    init : {"small", "uniform"}, default="small"
        Start θ at U(0, 0.01) or at U(0, 1).
    binarize : bool, default=True
        False keeps the soft blend (Info-CELS, 2025).
    shared_mask : bool, default=False
        True learns one map for all channels; the default is one per channel (M-CELS, 2024).
    guide : {"neighbor", "cluster", "prototype", "median"} or Guide, default="neighbor"
        What n is: a reference row, the mean of the class, a prototype of a GLVQ, or a row chosen by
        Median LVQ; or a guide of your own, such as `NearestUnlikeNeighbor(weights=...)`.
    metric : {"euclidean", "dtw"}, default="euclidean"
        Distance of the neighbor and of the median.
    n_segments : int, default=16
        Segments of the map in models without gradients, shared out among the channels; each has at
        least two.
    gradient_subsample : float, optional
        Share of the segments, drawn anew, that is tried in each round in models without gradients;
        default: all.
    temperature : float, optional
        T of the softmax that is climbed on where it exceeds P(c); 1 leaves P(c) as it is. Default:
        per row, so that the instance itself is at odds of exp(-3). For models with gradients.
    random_state : int, optional
        Seed of every `explain` that is given none; default: 0.

    References
    ----------
    Li, Bahri, Boubrahimi, Hamdi: CELS: counterfactual explanations for time series data via learned
    saliency maps. IEEE BigData 2023. https://doi.org/10.1109/BigData59044.2023.10386229

    Examples
    --------
    >>> result = CELS().fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(modalities=("series",), gradient=True)
    rules = {
        "max_coeff": WEIGHT,
        "budget_coeff": WEIGHT,
        "tv_coeff": WEIGHT,
        "tv_beta": Real(at_least=1, at_most=100),
        "learning_rate": RATE,
        "max_iter": STEPS,
        "tau": Real(above=0, at_most=1),
        "patience": STEPS,
        "tolerance": Real(at_least=0),
        "threshold": Real(above=0, below=1),
        "init": OneOf("small", "uniform"),
        "binarize": Boolean(),
        "shared_mask": Boolean(),
        "guide": GUIDE_RULE,
        "metric": METRIC_RULE,
        "n_segments": COUNT,
        "gradient_subsample": Real(above=0, at_most=1) | Nothing(),
        "temperature": Real(at_least=1e-6, at_most=1e6) | Nothing(),
        "random_state": REQUEST_RULES["random_state"],
    }
    old_values = {"guide": OLD_GUIDE_NAMES}
    info_keys = {
        "saliency": "learned map θ",
        "mask": "what was copied: the map after the cut",
        "guide_index": "reference row of the neighbor",
        "k_index": "number of the counterfactual among the k of its instance",
        "iterations": "steps taken",
        "converged": "whether the search stopped before the last step",
        "target_prob": "P(c) before the cut",
        "loss": "loss of the map, before the cut",
        "mask_density": "share of the values that were copied",
    }

    @renamed_parameters(
        g="max_coeff",
        a="budget_coeff",
        b="tv_coeff",
        beta="tv_beta",
        lr="learning_rate",
    )
    def __init__(
        self,
        max_coeff: float = 0.7,
        budget_coeff: float = 0.6,
        tv_coeff: float = 0.5,
        tv_beta: float = 3.0,
        learning_rate: float = 0.1,
        max_iter: int = 500,
        tau: float = 0.5,
        patience: int = 30,
        tolerance: float = 1e-4,
        threshold: float = 0.5,
        init: Literal["small", "uniform"] = "small",
        binarize: bool = True,
        shared_mask: bool = False,
        guide: GuideKind | Guide = "neighbor",
        metric: Metric = "euclidean",
        n_segments: int = 16,
        gradient_subsample: float | None = None,
        temperature: float | None = None,
        random_state: int | None = None,
    ) -> None:
        self.max_coeff = max_coeff
        self.budget_coeff = budget_coeff
        self.tv_coeff = tv_coeff
        self.tv_beta = tv_beta
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.tau = tau
        self.patience = patience
        self.tolerance = tolerance
        self.threshold = threshold
        self.init = init
        self.binarize = binarize
        self.shared_mask = shared_mask
        self.guide = guide
        self.metric = metric
        self.n_segments = n_segments
        self.gradient_subsample = gradient_subsample
        self.temperature = temperature
        self.random_state = random_state

    @override
    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [
            {"max_iter": 40, "patience": 5},
            {"max_iter": 40, "patience": 5, "binarize": False, "shared_mask": True},
        ]

    @override
    def _make_guide(self) -> Guide:
        return make_guide(self.guide, self.metric)

    @override
    def _default_seed(self) -> int:
        return 0 if self.random_state is None else self.random_state

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        found = self._learn_saliency(tasks)
        tasks = tasks.attach(saliency=found.code)
        mask, x_cf = self._cut(tasks) if self.binarize else self._raise(tasks)
        mask = mask.expand(-1, *tasks.shape)
        if tasks.feasible_set is not None:
            _, _, movable = tasks.feasible_set.box(tasks.x)
            mask = mask * movable  # what is held at x was not copied
        return tasks.candidates(
            x_cf,
            saliency=found.code.expand(-1, *tasks.shape),
            mask=mask,
            guide_index=tasks.guide_index,
            k_index=tasks.rank,
            iterations=found.iterations,
            converged=found.converged,
            target_prob=found.p_target,
            loss=self._loss(found.code.double(), found.p_target),
            mask_density=(mask > 0).double().flatten(1).mean(1),
        )

    # --- learning the map

    def _learn_saliency(self, tasks: Tasks) -> Optimum:
        """Learn θ; the code of the optimum is the map, (tasks, channels, length)."""
        if tasks.oracle.classifier.differentiable:
            every_value = segment_ids(tasks.shape, 1, shared=self.shared_mask)
            return self._descend(
                tasks,
                every_value,
                self._start(tasks, every_value),
            )
        return self._grow(tasks)

    def _descend(
        self,
        tasks: Tasks,
        segment: Tensor,
        start: Tensor,
    ) -> Optimum:
        """Descend on the loss from `start`, with one value of θ per segment."""

        def blend(tasks: Tasks, theta: Tensor) -> Tensor:
            """Compute x' = x · (1 − θ) + n · θ, within the constraints."""
            return tasks.project(torch.lerp(tasks.x, tasks.guide, theta[:, segment]))

        def loss(point: Point) -> Tensor:
            return self._loss(point.theta[:, segment], point.p_target)

        stop = Stop(
            self.tau,
            self.patience,
            self.tolerance,
            self.max_iter,
        )
        step = Adam(self.learning_rate)
        found = minimize(
            tasks,
            start,
            blend,
            loss,
            step,
            stop,
            clamp=(0.0, 1.0),
            temperature=self.temperature,
        )
        never_asked = found.iterations == 0
        p_target = found.p_target.masked_fill(never_asked, torch.nan)
        return replace(found, code=found.code[:, segment], p_target=p_target)

    def _loss(self, theta: Tensor, p_target: Tensor) -> Tensor:
        """Compute the loss (n,) of maps (n, channels, length) whose blends have some P(c)."""
        budget = theta.abs().flatten(1).mean(1)
        steps = theta.diff(dim=-1).abs().pow(self.tv_beta).flatten(1)
        # Series of one point have no steps, whose mean would be NaN.
        variation = steps.sum(1) / max(1, steps.shape[1])
        return (
            self.max_coeff * (1 - p_target) + self.budget_coeff * budget + self.tv_coeff * variation
        )

    def _start(self, tasks: Tasks, segment: Tensor) -> Tensor:
        """Draw θ from seeds that do not depend on the units of the data."""
        order = tasks.x.flatten(1).argsort(dim=1, stable=True).cpu().numpy()
        seeds = row_seeds(order, tasks.oracle.request.seed)
        seeds = fold_in(seeds, tasks.rank.cpu().numpy().astype(np.int64))
        theta = tasks.as_tensor(row_uniform(seeds, count_segments(segment)))
        return 0.01 * theta if self.init == "small" else theta

    # --- models without gradients

    def _segments(self, tasks: Tasks) -> Tensor:
        channels, length = tasks.shape
        per_channel = self.n_segments if self.shared_mask else max(2, self.n_segments // channels)
        width = max(1, ceil_div(length, per_channel))
        return segment_ids(tasks.shape, width, shared=self.shared_mask).to(tasks.row.device)

    def _grow(self, tasks: Tasks) -> Optimum:
        """Rank segments: copied ones above 1/2, the earlier the higher; others by their gain."""
        segment = self._segments(tasks)
        share = 1.0 if self.gradient_subsample is None else self.gradient_subsample
        grown = grow_mask(tasks, segment, spare=SPARE, share=share)
        gain = grown.gain_alone
        low = gain.amin(1, keepdim=True)
        high = gain.amax(1, keepdim=True)
        by_gain = 0.5 * (gain - low) / (high - low).clamp_min(1e-12)
        copied = grown.copied_in >= 0
        by_turn = 1 - 0.5 * grown.copied_in / copied.shape[1]
        theta = torch.where(copied, by_turn, by_gain).to(tasks.x)
        found = Optimum.start(theta[:, segment])
        found.iterations = copied.sum(1)
        found.converged[:] = True
        found.p_target = self._probability(tasks, found.code)
        return found

    def _probability(self, tasks: Tasks, theta: Tensor) -> Tensor:
        """Ask for P(c | x') of soft blends; NaN where the budget does not allow it."""
        p_target = torch.full_like(tasks.goal, torch.nan, dtype=torch.float64)
        able = tasks.affords(SPARE)
        asking = tasks.take(able)
        x_cf = asking.project(torch.lerp(asking.x, asking.guide, theta[able]))
        p_target[able] = asking.p_target(asking.ask(x_cf, remember=False))
        return p_target

    # --- from the map to the edit

    def _cut(self, tasks: Tasks) -> tuple[Tensor, Tensor]:
        """Copy where the scaled map is above the threshold, or more where that is not enough."""
        theta = tasks["saliency"]
        if self.shared_mask:
            theta = theta[:, :1]
        flat = theta.flatten(1)
        low = flat.amin(1, keepdim=True)
        high = flat.amax(1, keepdim=True)
        scaled = (flat - low) / (high - low).clamp_min(1e-12)
        most_salient = scaled.argsort(dim=1, descending=True, stable=True)
        rank = most_salient.argsort(dim=1).reshape(theta.shape)
        above = (scaled > self.threshold).sum(1).clamp_min(1)

        def copy_most_salient(tasks: Tasks, level: Tensor) -> Tensor:
            mask = tasks["rank"] < level[:, None, None]
            return tasks.project(torch.where(mask, tasks.guide, tasks.x))

        tasks = tasks.attach(rank=rank)
        level, x_cf = accepted_from(tasks, copy_most_salient, above, flat.shape[1])
        return rank < level[:, None, None], x_cf

    def _raise(self, tasks: Tasks) -> tuple[Tensor, Tensor]:
        """Keep the soft blend; where it is not enough, raise θ toward 1 until it is."""

        def raised(tasks: Tasks, level: Tensor) -> Tensor:
            theta = tasks["saliency"]
            share = (level.to(theta) / SOFT_LEVELS)[:, None, None]
            return theta + share * (1 - theta)

        def blend(tasks: Tasks, level: Tensor) -> Tensor:
            return tasks.project(torch.lerp(tasks.x, tasks.guide, raised(tasks, level)))

        start = torch.zeros_like(tasks.rank)
        level, x_cf = accepted_from(tasks, blend, start, SOFT_LEVELS)
        return raised(tasks, level), x_cf
