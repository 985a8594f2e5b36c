"""CoMTE: the fewest channels to take over from a series of the target class."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import torch
from torch import Tensor

from ..engine import Batch, Candidates, Tags
from ..engine.batch import lead, place_in_row
from ..guides import Guide, NearestUnlikeNeighbor
from ..models.classifier import Array
from ..search import best_known
from .support.guided import GuidedExplainer
from .support.importance import MAX_ELEMENTS


class CoMTE(GuidedExplainer):
    """Counterfactuals for multivariate series: channels swapped (Ates, Aksar, Leung, Coskun, ICAPAI 2021).

        x'[a] = n[a] for a ∈ A,   x[a] for a ∉ A,     A the fewest channels for which the model says c

    for several distractors n of the target class; of what is found for them, the fewest channels win, then
    the smallest change. All channels are n itself, so a valid answer always exists once a guide does: being
    valid goes before being small. With feature rows every feature is a channel.

    On a series of one channel there is nothing to choose: the answer is another series of the target class,
    as with `NearestUnlike`. `fit` warns of it.

    Parameters
    ----------
    method : "greedy" adds the channel with the largest gain until the model says c, then takes back those not
        needed; "hill_climbing" starts from all channels and from random sets, and adds or takes back one
        channel at a time as long as that is better.
    n_distractors : how many distractors are tried for each instance.
    n_restarts : starts of the hill climbing, the first from all channels.
    metric : "euclidean" or "dtw" (series only), for the distractors.

    `info`: guide_index, channels (which were changed) and n_channels.

    Examples
    --------
    >>> result = CoMTE().fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(modalities=("series", "row"))

    def __init__(
        self,
        method: Literal["greedy", "hill_climbing"] = "greedy",
        n_distractors: int = 5,
        n_restarts: int = 3,
        metric: Literal["euclidean", "dtw"] = "euclidean",
    ) -> None:
        self.method, self.n_distractors, self.n_restarts = method, n_distractors, n_restarts
        self.metric = metric

    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [{}, {"method": "hill_climbing"}]

    def _make_guide(self) -> Guide:
        if self.method not in ("greedy", "hill_climbing"):
            raise ValueError(f"method must be 'greedy' or 'hill_climbing', got {self.method!r}.")
        for name, value in (("n_distractors", self.n_distractors), ("n_restarts", self.n_restarts)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}.")
        return NearestUnlikeNeighbor(self.metric, diverse=True)

    def _fit(self, X: Tensor, y: Array | None) -> None:
        super()._fit(X, y)
        if self.shape_[0] == 1:
            warnings.warn(
                "CoMTE swaps whole channels. X has one, so it can only return another instance of the class.",
                stacklevel=3,
            )

    def _explain(self, batch: Batch) -> Candidates:
        n_channels, wanted = self.shape_[0], max(self.n_distractors, batch.k)
        target = self.classifier_.classes[batch.target.cpu().numpy()]
        arrays, index = self.guide_.guide(batch.x, target, wanted, confidence=batch.confidence)
        self._tell_short(batch, (index >= 0).sum(1))
        draws = batch.uniform(wanted * self.n_restarts * n_channels)
        chosen = draws.reshape(len(batch), wanted, self.n_restarts, n_channels) < 0.5
        chosen[:, :, 0] = True  # the distractor itself is a start that is accepted
        found = []
        # Whole instances at a time, so that what one may spend does not depend on the others.
        for some in batch.rows.split(
            max(1, MAX_ELEMENTS // (wanted * n_channels * batch.x[0].numel()))
        ):
            which, slot = (index[some] >= 0).nonzero(as_tuple=True)
            rows = some[which]
            swaps = Swaps(batch, rows, batch.project(arrays[rows, slot], rows))
            if self.method == "greedy":
                swaps.grow()
            else:
                for start in range(self.n_restarts):
                    swaps.climb(chosen[rows, slot, start])
            found.append(self._best(batch, swaps, index[rows, slot]))
        return Candidates.concat(found, [batch.rows] * len(found))

    def _best(self, batch: Batch, swaps: Swaps, index: Tensor) -> Candidates:
        """The k best of every row: accepted ones first, then fewest channels, then the smallest change."""
        x_cf = swaps.result()
        if batch.feasible is not None:  # within the constraints a distractor may leave its class
            x_cf = best_known(batch, swaps.rows, x_cf)
        edit = (x_cf - batch.x[swaps.rows]).abs().unsqueeze(-1).flatten(2)
        channels, size = (edit > 0).any(2), edit.mean((1, 2))
        cost = channels.sum(1) + size / (1 + size) + swaps.n_channels * ~swaps.accepted
        order = cost.argsort(stable=True)
        order = order[swaps.rows[order].argsort(stable=True)]
        rows = swaps.rows[order]
        rank = place_in_row(rows)
        keep = order[rank < batch.k]
        info = {"guide_index": index, "channels": channels, "n_channels": channels.sum(1)}
        return Candidates(
            x_cf[keep], swaps.rows[keep], {key: value[keep] for key, value in info.items()}
        )


class Swaps:
    """Sets of channels to take over from `toward`, one set per entry: `chosen`, the best found so far.

    A set is better than another if the model accepts it and not the other, then if it has fewer channels,
    then if the target leads by more. `rows` are the instances the entries belong to.
    """

    def __init__(self, batch: Batch, rows: Tensor, toward: Tensor) -> None:
        self.batch, self.rows, self.toward = batch, rows, toward
        self.n_channels = toward.shape[1]
        self.chosen = torch.ones(len(rows), self.n_channels, dtype=torch.bool, device=rows.device)
        self.merit = torch.full((len(rows),), -torch.inf, dtype=torch.float64, device=rows.device)
        difference = (toward - batch.x[rows]).abs().unsqueeze(-1).flatten(2).sum(2).double()
        self.tie_break = 1e-9 * difference / difference.amax(1, keepdim=True).clamp_min(1e-300)

    @property
    def accepted(self) -> Tensor:
        return self.merit > 1

    def result(self) -> Tensor:
        """The best sets as series; all channels where no set was accepted: a valid guide is not given up."""
        everyone = torch.arange(len(self.rows), device=self.rows.device)
        return self._swapped(everyone, self.chosen | ~self.accepted[:, None])

    def grow(self) -> None:
        """Add the channel with the largest gain until accepted, then take back those not needed."""
        self._walk(
            torch.zeros_like(self.chosen), torch.full_like(self.merit, -torch.inf), grow=True
        )

    def climb(self, chosen: Tensor) -> None:
        """From the sets `chosen`, add or take back the best channel as long as that is better."""
        merit = torch.full_like(self.merit, -torch.inf)
        able = self.batch.affords(self.rows).nonzero().flatten()
        merit[able] = self._ask(able, chosen[able])
        self._walk(chosen, merit, grow=False)

    def _walk(self, chosen: Tensor, merit: Tensor, grow: bool) -> None:
        chosen, open_ = chosen.clone(), torch.arange(len(self.rows), device=self.rows.device)
        while len(open_):
            now, accepted = chosen[open_], merit[open_] > 1
            options = now == accepted[:, None] if grow else torch.ones_like(now)
            options &= ~(
                now & (now.sum(1, keepdim=True) == 1)
            )  # no channel at all is the instance itself
            which, channel = options.nonzero(as_tuple=True)
            able = self.batch.affords(self.rows[open_[which]])
            which, channel = which[able], channel[able]
            trial = now[which] ^ torch.nn.functional.one_hot(channel, self.n_channels).bool()
            value = torch.full(now.shape, -torch.inf, dtype=merit.dtype, device=merit.device)
            value[which, channel] = self._ask(open_[which], trial)
            best = (value + self.tie_break[open_]).argmax(1, keepdim=True)
            value = value.gather(1, best)[:, 0]
            moves = value > merit[open_]
            if grow:
                moves |= ~accepted & value.isfinite()
            open_, best = open_[moves], best[moves, 0]
            chosen[open_, best], merit[open_] = ~chosen[open_, best], value[moves]
        better = merit > self.merit
        self.chosen[better], self.merit[better] = chosen[better], merit[better]

    def _ask(self, entries: Tensor, chosen: Tensor) -> Tensor:
        """How good sets are: in (−1, 1) by the target's lead where not accepted, else above 1."""
        rows = self.rows[entries]
        verdict = self.batch.ask(self._swapped(entries, chosen), rows, cached=True)
        ahead = lead(verdict.score, self.batch.target[rows])
        fewer = self.n_channels + 1 - chosen.sum(1)
        return ahead / (1 + ahead.abs()) + 2 * fewer * self.batch.accepts(verdict, rows)

    def _swapped(self, entries: Tensor, chosen: Tensor) -> Tensor:
        rows = self.rows[entries]
        taken = chosen.reshape(*chosen.shape, *[1] * (self.toward.ndim - 2))
        return self.batch.project(
            torch.where(taken, self.toward[entries], self.batch.x[rows]), rows
        )
