"""CoMTE: the fewest channels to take over from a series of the target class."""

from __future__ import annotations

import warnings
from typing import Any, Literal

from torch import Tensor
from typing_extensions import override

from ..engine import Candidates, Tags, Tasks
from ..guides import Guide, NearestUnlikeNeighbor
from ..models.classifier import Array
from ..numerics import occurrence
from ..search import best_known
from ..search.segments import count_segments, sum_by_segment
from ..validation import OneOf
from .support.channel_sets import ChannelSets, channels_of
from .support.guided import METRIC_RULE, FallbackExplainer, Metric
from .support.importance import MAX_ELEMENTS
from .support.option_rules import COUNT, STEPS


class CoMTE(FallbackExplainer):
    """Take over the fewest channels of a distractor that change the class.

        x'[a] = n[a] for a ∈ A,   x[a] for a ∉ A,   A the fewest channels that make the model say c

    for several distractors n of the target class; of what is found for them, the fewest channels
    win, then the smallest change. All channels are n itself, so there is always a valid answer once
    there is a distractor: being valid goes before being small. With feature rows every feature is a
    channel; with tables, every column and one-hot group.

    On a series of one channel there is nothing to choose: the answer is another series of the
    target class, as with `NearestUnlike`. `fit` warns of it.

    Parameters
    ----------
    method : {"greedy", "hill_climbing"}, default="greedy"
        "greedy" adds the channel with the largest gain until the model says c, then takes back
        those not needed; "hill_climbing" starts from all channels and from random sets, and adds or
        takes back one channel at a time as long as that is better.
    n_distractors : int, default=5
        Distractors tried for each instance.
    n_restarts : int, default=3
        Starts of the hill climbing, the first from all channels.
    metric : {"euclidean", "dtw"}, default="euclidean"
        Distance of the distractors; "dtw" for series only.

    References
    ----------
    Ates, Aksar, Leung, Coskun: Counterfactual explanations for multivariate time series. ICAPAI
    2021. https://doi.org/10.1109/ICAPAI49758.2021.9462056

    Examples
    --------
    >>> result = CoMTE().fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(modalities=("series", "row"))
    rules = {
        "method": OneOf("greedy", "hill_climbing"),
        "n_distractors": COUNT,
        "n_restarts": STEPS,
        "metric": METRIC_RULE,
    }
    info_keys = {
        "guide_index": "reference row of the distractor",
        "channels": "which channels were changed",
        "n_channels": "how many channels were changed",
    }

    def __init__(
        self,
        method: Literal["greedy", "hill_climbing"] = "greedy",
        n_distractors: int = 5,
        n_restarts: int = 3,
        metric: Metric = "euclidean",
    ) -> None:
        self.method = method
        self.n_distractors = n_distractors
        self.n_restarts = n_restarts
        self.metric = metric

    @override
    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [{}, {"method": "hill_climbing"}]

    @override
    def _make_guide(self) -> Guide:
        return NearestUnlikeNeighbor(self.metric, diverse=True)

    @override
    def _fit(self, X: Tensor, y: Array | None) -> None:
        super()._fit(X, y)
        if self.shape_[0] == 1:
            warnings.warn(
                "CoMTE swaps whole channels. X has one, so it can only return another instance of "
                "the class.",
                stacklevel=4,
            )

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        instances = tasks.per_instance()
        n_distractors = max(self.n_distractors, tasks.k)
        guides = self._find_guides(instances, n_distractors)
        self._tell_shortage(instances, guides.found.sum(1))
        pairs = instances.repeat(n_distractors).attach(
            guide=guides.x.flatten(0, 1),
            guide_index=guides.index.flatten(),
            starts=self._random_sets(instances, n_distractors).flatten(0, 1),
        )
        # Whole instances at a time, so that what one may spend does not depend on the others.
        n_channels = count_segments(channels_of(tasks))
        size = n_distractors * n_channels * tasks.oracle.question.x[0].numel()
        instances_at_once = max(1, MAX_ELEMENTS // size)
        parts = pairs.split(n_distractors * instances_at_once)
        return Candidates.concat([self._search_channels(part) for part in parts])

    def _random_sets(self, tasks: Tasks, n_distractors: int) -> Tensor:
        """Draw starts of the hill climbing, (n, distractors, restarts, channels)."""
        n_channels = count_segments(channels_of(tasks))
        shape = (n_distractors, self.n_restarts, n_channels)
        draws = tasks.uniform(n_distractors * self.n_restarts * n_channels)
        chosen = draws.reshape(len(tasks), *shape) < 0.5
        chosen[:, :, 0] = True  # the distractor itself is a start that is accepted
        return chosen

    def _search_channels(self, pairs: Tasks) -> Candidates:
        """Find sets of channels for pairs of instance and distractor, and choose the best."""
        pairs = pairs.take(pairs.guide_index >= 0)
        pairs = pairs.attach(guide=pairs.project(pairs.guide))
        sets = ChannelSets(pairs)
        if self.method == "greedy":
            sets.grow()
        else:
            for start in pairs["starts"].unbind(1):
                sets.climb(start)
        return self._best(sets)

    def _best(self, sets: ChannelSets) -> Candidates:
        """Choose the k best of every instance: accepted first, then fewest channels, then size."""
        tasks = sets.tasks
        x_cf = sets.result()
        if tasks.feasible_set is not None:
            # Within the constraints a distractor may leave its class.
            x_cf = best_known(tasks, x_cf)
        edit = (x_cf - tasks.x).abs()
        channels = sum_by_segment((edit > 0).float(), sets.channel) > 0
        size = edit.flatten(1).mean(1)
        cost = channels.sum(1) + size / (1 + size) + sets.n_channels * ~sets.accepted
        by_cost = cost.argsort(stable=True)
        row_by_cost = tasks.row[by_cost]
        order = by_cost[row_by_cost.argsort(stable=True)]
        rank = occurrence(tasks.row[order])
        kept = order[rank < tasks.k]
        return tasks.take(kept).candidates(
            x_cf[kept],
            guide_index=tasks.guide_index[kept],
            channels=channels[kept],
            n_channels=channels[kept].sum(1),
        )
