"""SETS: remove shapelets of the old class, insert shapelets of the target class."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from ..engine import Candidates, Tags, Tasks
from ..guides import Guide, NearestUnlikeNeighbor
from ..models.classifier import Array
from ..prototypes.option_rules import SEED
from ..search import smallest_level
from ..validation import Real
from .support.edits import NEVER, apply_edits, make_edits, rank_channels, stack_edits
from .support.guided import METRIC_RULE, FallbackExplainer, Metric
from .support.option_rules import COUNT
from .support.pool import POOL_FACTOR, Pool, measure_merit, smallest_in_groups
from .support.shapelets import mine_shapelets

#: numbers worked on at once; more instances take turns, which changes no result
MAX_ELEMENTS = 2**22


class SETS(FallbackExplainer):
    """Remove shapelets of the instance's class and insert shapelets of the target class.

    At fit, aeon's random shapelet transform mines stretches that distinguish the model's classes.
    The first fit of a process compiles it, some five seconds of processor time for any data.
    A shapelet s of length L occurs in a window w of a series where

        1/L ‖ z(s) − z(w) ‖² ≤ threshold_s,       z(w) = (w − mean w) / std w

    with the threshold that best separates the series of its class from the others.

    Two kinds of edits are tried. Shapelets of the instance's class that occur are removed: the same
    stretch of the nearest unlike neighbor takes their place. Shapelets of the target class that do
    not occur are inserted where their class has them, at the local level. First each edit alone;
    then, channel by channel, as many as are needed, the most helpful first; then all edits of
    several channels, the most helpful channel first. The answer is what changes the fewest values,
    then the least.

    Where none of this is accepted, x' is the first accepted point on the straight line to the
    neighbor, and `info["fallback"]` is True.

    Parameters
    ----------
    n_candidates : int, default=1000
        Stretches that mining looks at; it bounds the time of `fit`.
    max_shapelets : int, default=40
        How many shapelets are kept, shared among the classes.
    max_length : float, default=0.5
        Longest shapelet, as a share of the series.
    metric : {"euclidean", "dtw"}, default="euclidean"
        Distance of the neighbor.
    random_state : int, default=0
        Seed of the mining.

    Attributes
    ----------
    shapelets_ : list of Shapelet
        What was mined.

    References
    ----------
    Bahri, Boubrahimi, Hamdi: Shapelet-based counterfactual explanations for multivariate time
    series. 2022. https://arxiv.org/abs/2208.10462

    Examples
    --------
    >>> result = SETS(n_candidates=200).fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(modalities=("series",))
    rules = {
        "n_candidates": COUNT,
        "max_shapelets": COUNT,
        "max_length": Real(above=0, at_most=1),
        "metric": METRIC_RULE,
        "random_state": SEED,
    }
    info_keys = {
        "guide_index": "reference row of the neighbor",
        "shapelet": "number of the shapelet in shapelets_; -1 where several were used, or none",
        "fallback": "whether it lies on the line to the neighbor, because no edit was accepted",
    }

    def __init__(
        self,
        n_candidates: int = 1000,
        max_shapelets: int = 40,
        max_length: float = 0.5,
        metric: Metric = "euclidean",
        random_state: int = 0,
    ) -> None:
        self.n_candidates = n_candidates
        self.max_shapelets = max_shapelets
        self.max_length = max_length
        self.metric = metric
        self.random_state = random_state

    @override
    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [{"n_candidates": 40, "max_shapelets": 9}]

    @override
    def _make_guide(self) -> Guide:
        return NearestUnlikeNeighbor(self.metric)

    @override
    def _fit(self, X: Tensor, y: Array | None) -> None:
        super()._fit(X, y)
        longest = int(self.max_length * X.shape[-1])
        self.shapelets_ = mine_shapelets(
            X,
            self.guide_.candidate_class_,
            n_candidates=self.n_candidates,
            max_shapelets=self.max_shapelets,
            max_length=max(3, longest),
            random_state=self.random_state,
        )

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        instances = self._with_nearest_guide(tasks.per_instance())
        n_edits = max(1, len(self.shapelets_))
        size_of_one = n_edits * math.prod(tasks.shape)
        size = max(1, MAX_ELEMENTS // size_of_one)
        found = [self._search_edits(part) for part in instances.split(size)]
        return Candidates.concat(found)

    def _search_edits(self, instances: Tasks) -> Candidates:
        """Try single edits, then several at once, then the line to the neighbor."""
        edits = make_edits(instances, self.shapelets_)
        edits = self._try_alone(edits)
        pool = self._start_pool(edits)
        pool = self._try_several(pool, instances, edits)
        none = pool.count(instances) == 0
        line = self._line_to_guide(instances.take(none))
        found = pool.choose(instances.k)
        return Candidates.concat([found, line])

    # --- one edit

    def _try_alone(self, edits: Tasks) -> Tasks:
        """Attach to every edit its gain in the target's lead, and its merit as a counterfactual."""
        able = edits.affords()
        asking = edits.take(able)
        x_cf = apply_edits(asking)
        verdict = asking.ask(x_cf, cached=True)
        lead_before = asking.lead(asking.before)
        lead = asking.lead(verdict)
        gain = torch.full_like(edits.goal, -torch.inf)
        gain[able] = (lead - lead_before).double()
        merit = torch.full_like(edits.goal, torch.inf)
        merit[able] = measure_merit(asking, x_cf, verdict)
        return edits.attach(gain=gain, merit=merit)

    def _start_pool(self, edits: Tasks) -> Pool:
        """Collect the best of the edits that are accepted alone."""
        merit = edits["merit"]
        count = POOL_FACTOR * edits.k
        best = edits.take(smallest_in_groups(edits.row, merit, count))
        x_cf = apply_edits(best)
        return Pool(
            found=_report(best, x_cf, best["shapelet"]),
            merit=best["merit"],
        )

    # --- several edits

    def _try_several(
        self,
        pool: Pool,
        instances: Tasks,
        edits: Tasks,
    ) -> Pool:
        """Add to the pool edits of one channel, then, where that is not enough, of several."""
        stack = stack_edits(instances, edits)
        rank = stack["rank"]
        n_channels = stack.shape[0]
        channel = torch.arange(n_channels, device=rank.device)[:, None]
        too_few = pool.count(instances) < instances.k
        for number in range(n_channels):
            in_channel = rank.masked_fill(channel != number, NEVER)
            one_channel = stack.attach(rank=in_channel)
            pool = self._try_levels(pool, one_channel.take(too_few))

        by_channel = rank_channels(instances, edits)[:, :, None]
        by_channel = torch.where(rank < NEVER, by_channel, NEVER)
        all_channels = stack.attach(rank=by_channel)
        none = pool.count(instances) == 0
        return self._try_levels(pool, all_channels.take(none))

    def _try_levels(self, pool: Pool, stack: Tasks) -> Pool:
        """Add to the pool the fewest edits, in the order of their rank, that are accepted."""

        def edit_up_to(tasks: Tasks, level: Tensor) -> Tensor:
            taken = tasks["rank"] < level[:, None, None]
            x_cf = torch.where(taken, tasks["edited"], tasks.x)
            return tasks.project(x_cf)

        rank = stack["rank"]
        level = torch.where(rank < NEVER, rank + 1, 0)
        n_levels = level.flatten(1).amax(1)
        several = n_levels > 1  # one level is one edit, which was tried alone
        stack = stack.take(several)
        _, x_cf = smallest_level(
            stack,
            edit_up_to,
            n_levels[several],
        )
        able = stack.affords()
        stack = stack.take(able)
        x_cf = x_cf[able]
        verdict = stack.ask(x_cf, cached=True)
        merit = measure_merit(stack, x_cf, verdict)
        return pool.join(_report(stack, x_cf), merit)

    # --- no edit

    def _line_to_guide(self, instances: Tasks) -> Candidates:
        """Take the line to the neighbor where no edit is accepted."""
        best = instances.best_attempts()
        x_cf, fallback = self._fall_back(instances, best)
        return _report(instances, x_cf, fallback=fallback)


def _report(
    tasks: Tasks,
    x_cf: Tensor,
    shapelet: Tensor | None = None,
    fallback: Tensor | None = None,
) -> Candidates:
    """Return candidates with their info; by default, made by several shapelets."""
    if shapelet is None:
        shapelet = torch.full_like(tasks.row, -1)
    if fallback is None:
        fallback = torch.zeros_like(tasks.row, dtype=torch.bool)
    return tasks.candidates(
        x_cf,
        guide_index=tasks.guide_index,
        shapelet=shapelet,
        fallback=fallback,
    )
