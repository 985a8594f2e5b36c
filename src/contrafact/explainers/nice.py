"""NICE: copy values of the nearest unlike neighbor, one by one, until the class turns."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from ..engine import Candidates, Tasks
from ..guides import Guide, NearestUnlikeNeighbor
from ..models.classifier import Array
from ..validation import OneOf
from .support.option_rules import COUNT
from .support.row_copies import copy_parts
from .support.row_edits import undo_parts
from .support.row_explainer import RowExplainer

#: numbers compared at once when neighbors are searched
MAX_ELEMENTS = 2**24


class NICE(RowExplainer):
    """Copy columns of the nearest unlike neighbor, one by one, until the model decides for c.

        x'_0 = x,    x'_b = x'_{b−1} with column j of n,    j of the largest reward R

        sparsity:      R = f(x'_b) − f(x'_{b−1})
        proximity:     R = (f(x'_b) − f(x'_{b−1})) / (d(x'_b, x) − d(x'_{b−1}, x))
        plausibility:  R = (f(x'_b) − f(x'_{b−1})) · e(x'_{b−1}) / e(x'_b)

    with f the lead of class c in the scores of the model, d the sum over columns of the scaled
    change, and e(x) how far x is from the reference rows: the mean distance to its nearest ones.
    The neighbor n is the nearest row of class c that the model classifies right, by the labels
    given to `fit`. Where a copy turns the class, the one with the largest reward that does is
    taken. All columns are n itself, so there is always an answer once there is a neighbor.

    With k > 1 there are as many neighbors. Later options copy first what the ones before left
    alone, and give back what is not needed, so that the sets of changed columns differ where there
    are such options.

    Parameters
    ----------
    reward : {"sparsity", "proximity", "plausibility"}, default="sparsity"
        R: few columns, a small change, or a row like those of the reference.
    n_neighbors : int, default=5
        Reference rows of the target class that e looks at.

    References
    ----------
    Brughmans, Leyman, Martens: NICE: an algorithm for nearest instance counterfactual explanations.
    Data Mining and Knowledge Discovery 38, 2024. https://doi.org/10.1007/s10618-023-00930-y

    Examples
    --------
    >>> result = NICE().fit(model, X_train[:, 0], y_train).explain(X_test[:8, 0])
    >>> result.valid.mean()
    1.0
    """

    rules = {
        "reward": OneOf("sparsity", "proximity", "plausibility"),
        "n_neighbors": COUNT,
    }
    info_keys = {
        "guide_index": "reference row of the neighbor",
        "n_columns": "how many columns were changed; a one-hot group is one",
        "fallback": "whether it is not made of copies of this neighbor alone",
    }

    def __init__(
        self,
        reward: Literal["sparsity", "proximity", "plausibility"] = "sparsity",
        n_neighbors: int = 5,
    ) -> None:
        self.reward = reward
        self.n_neighbors = n_neighbors

    @override
    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [{}, {"reward": "proximity"}, {"reward": "plausibility"}]

    @override
    def _make_guide(self) -> Guide:
        return NearestUnlikeNeighbor(diverse=True, weights=self._guide_weights())

    @override
    def _fit(self, X: Tensor, y: Array | None) -> None:
        super()._fit(X, y)
        label = self.classifier_.classes[self.guide_.candidate_class_.cpu().numpy()]
        right = np.ones(len(X), dtype=bool) if y is None else label == y
        self._right = torch.from_numpy(right).to(X.device)

    @override
    def _convincing_guides(self, tasks: Tasks) -> Tensor | None:
        convincing = super()._convincing_guides(tasks)
        return self._right if convincing is None else convincing & self._right

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        instances = tasks.per_instance()
        guides = self._find_guides(instances, tasks.k)
        self._tell_shortage(instances, guides.found.sum(1))
        used = torch.zeros(
            len(instances),
            self.parts_.count,
            dtype=torch.bool,
            device=tasks.x.device,
        )
        found = []
        for rank in range(tasks.k):
            has_guide = guides.found[:, rank]
            option = instances.take(has_guide).attach(
                guide=guides.x[has_guide, rank],
                guide_index=guides.index[has_guide, rank],
            )
            candidates = self._copy(option, used[has_guide])
            used[has_guide] |= self.parts_.changed(candidates.x, option.x)
            found.append(candidates)
        instances.finished(len(instances))
        return Candidates.concat(found)

    def _copy(self, tasks: Tasks, used: Tensor) -> Candidates:
        """Make one option of every instance; `used` are the columns that earlier ones change."""
        rewards = {
            "sparsity": lambda tasks, trial, gain: gain,
            "proximity": self._by_proximity,
            "plausibility": self._by_plausibility,
        }
        guide = tasks.project(tasks.guide)
        x_cf, accepted = copy_parts(
            tasks,
            guide[:, None],
            self.parts_,
            rewards[self.reward],
            used,
        )
        again = accepted & used.any(1)
        x_cf[again] = undo_parts(tasks.take(again), x_cf[again], self.parts_, used[again])
        x_cf[~accepted], fallback = self._fall_back(tasks.take(~accepted), guide[~accepted])
        from_elsewhere = ~accepted
        from_elsewhere[~accepted] = fallback
        return tasks.candidates(
            x_cf,
            guide_index=tasks.guide_index,
            n_columns=self.parts_.changed(x_cf, tasks.x).sum(1),
            fallback=from_elsewhere,
        )

    def _by_proximity(self, tasks: Tasks, trial: Tensor, gain: Tensor) -> Tensor:
        """Reward the gain per distance."""
        step = self.parts_.distances(trial, tasks.x) - self.parts_.distances(tasks["now"], tasks.x)
        added = step.sum(1).double()
        return gain / added.clamp_min(1e-12)

    def _by_plausibility(self, tasks: Tasks, trial: Tensor, gain: Tensor) -> Tensor:
        """Reward the gain, more where the row comes nearer to the reference."""
        before = self._strangeness(tasks, tasks["now"])
        after = self._strangeness(tasks, trial)
        ratio = before.clamp_min(1e-12) / after.clamp_min(1e-12)
        return torch.where(gain > 0, gain * ratio, gain / ratio)

    def _strangeness(self, tasks: Tasks, x: Tensor) -> Tensor:
        """Return the mean distance to the nearest reference rows of the target class, (n,)."""
        rows = self.guide_.candidates_ * self.parts_.weight
        strangeness = x.new_zeros(len(x), dtype=torch.float64)
        for c in tasks.target.unique():
            members = rows[self.guide_.candidate_class_ == c]
            if len(members) == 0:
                continue
            which = (tasks.target == c).nonzero().flatten()
            count = min(self.n_neighbors, len(members))
            for part in which.split(max(1, MAX_ELEMENTS // members.numel())):
                distance = torch.cdist(x[part] * self.parts_.weight, members, p=1)
                strangeness[part] = distance.topk(count, largest=False).values.double().mean(1)
        return strangeness
