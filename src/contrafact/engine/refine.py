"""refine: give back every edit that is not needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .batch import Batch
from .search import segment_ids, smallest_level

if TYPE_CHECKING:
    from .budget import Budget
    from .constraints import Constraints
    from .result import Counterfactuals

CHUNK_WIDTHS = (32, 16, 8, 4, 2)
AMPLITUDE_LEVELS = 64


def refine(
    result: Counterfactuals,
    model: Any,
    *,
    constraints: Constraints | None = None,
    confidence: float | None = None,
    budget: Budget | None = None,
) -> Counterfactuals:
    """Make counterfactuals smaller without making a valid one invalid.

    Works on any method's output; wrap another library's with `Counterfactuals.judge`. Chunks of the edit are
    given back, wide ones first and the least changed first, as long as the model stays with the target; then
    single values until no single one can be given back (1-minimal); then the amplitude of the rest shrinks.
    The result lies right at the decision boundary: that is what smallest means. `confidence` asks for more.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> import contrafact as cf
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X, y)
    >>> result = cf.NearestUnlike().fit(model, X, y).explain(X[:5], target=1)
    >>> smaller = cf.refine(result, model)
    >>> bool(smaller.valid.all()), bool(smaller.changed.sum() < result.changed.sum())
    (True, True)
    """
    from .request import judge

    rows = (result.status == "valid").nonzero()[0]
    old = result[rows]
    new = judge(
        model,
        old.X,
        old.X_cf,
        old.target,
        modality=result.modality,
        improve=lambda batch, x_cf: give_back(batch, x_cf, batch.rows),
        constraints=constraints,
        confidence=confidence,
        budget=budget,
    )
    return result.updated(rows, new)


def give_back(batch: Batch, x_cf: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Delta debugging on the edits `x_cf` of `rows`, all of them in one model batch per step."""
    current = x_cf.clone()
    todo = batch.affords(rows).nonzero().flatten()
    if len(todo) == 0:
        return current
    sound = batch.accepts(batch.ask(current[todo], rows[todo]), rows[todo])
    work = GiveBack(batch, current, rows, todo[sound])
    for width in CHUNK_WIDTHS:
        work.sweep(width)
    work.sweep_points()
    work.shrink()
    work.sweep_points()
    return work.current


class GiveBack:
    """The state of a refinement: what each edit looks like now, and which of them are still worked on."""

    def __init__(self, batch: Batch, current: torch.Tensor, rows: torch.Tensor, active: torch.Tensor) -> None:
        self.batch, self.current, self.rows, self.active = batch, current, rows, active
        self.original = batch.x[rows]
        self.clock = 0
        size = current[0].numel() if len(current) else 0
        # A value refused at time a needs no second try unless something was given back after a.
        self.refused_at = torch.full((len(current), size), -1, dtype=torch.long, device=current.device)
        self.accepted_at = torch.zeros(len(current), dtype=torch.long, device=current.device)

    def sweep(self, width: int) -> None:
        """Try once to give back each chunk of this width that holds a change."""
        ids = segment_ids(tuple(self.current.shape[1:]), width).flatten().to(self.current.device)
        n_chunks = int(ids.max()) + 1
        if n_chunks < 2:
            return
        amount = torch.zeros(len(self.active), n_chunks, dtype=self.current.dtype, device=ids.device)
        amount.index_add_(1, ids, self._amount(self.active))
        self._try_in_order(self.active, amount, lambda chunk: ids == chunk[:, None])

    def sweep_points(self) -> None:
        """Give back single values until none can be."""
        points = torch.arange(self.refused_at.shape[1], device=self.current.device)
        while True:
            stale = self.refused_at[self.active] < self.accepted_at[self.active][:, None]
            amount = self._amount(self.active) * stale
            open_ = (amount > 0).any(1)
            before = self.clock
            if bool(open_.any()):
                self._try_in_order(
                    self.active[open_], amount[open_], lambda point: points == point[:, None], True
                )
            if self.clock == before:
                return

    def shrink(self) -> None:
        """Scale each edit down by bisection."""
        active = self.active[self.batch.affords(self.rows[self.active])]
        edited = self.current[active]

        def scaled(level: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
            weight = (level.to(edited.dtype) / AMPLITUDE_LEVELS).reshape(-1, *[1] * (edited.ndim - 1))
            part = torch.lerp(self.original[active[which]], edited[which], weight)
            return self.batch.project(part, self.rows[active[which]])

        level, smaller = smallest_level(
            self.batch, self.rows[active], scaled, AMPLITUDE_LEVELS, top_accepted=True
        )
        self.current[active] = smaller
        self.clock += 1
        self.accepted_at[active[level < AMPLITUDE_LEVELS]] = self.clock

    def _amount(self, which: torch.Tensor) -> torch.Tensor:
        return (self.current[which] - self.original[which]).flatten(1).abs()

    def _try_in_order(
        self, which: torch.Tensor, amount: torch.Tensor, members: Any, single: bool = False
    ) -> None:
        """Give back piece by piece, least changed first: one piece of every edit per model batch.

        `amount` (edits, pieces) is 0 where there is nothing to give back; `members(piece)` masks its values.
        """
        order = torch.where(amount > 0, amount, torch.inf).argsort(dim=1, stable=True)
        count = (amount > 0).sum(1)
        shape = self.current.shape[1:]
        for step in range(int(count.max()) if len(count) else 0):
            open_ = (count > step).nonzero().flatten()
            open_ = open_[self.batch.affords(self.rows[which[open_]])]
            if len(open_) == 0:
                return
            self.clock += 1
            edits, piece = which[open_], order[open_, step]
            mask = members(piece).reshape(-1, *shape)
            trial = torch.where(mask, self.original[edits], self.current[edits])
            good = self._stays_good(trial, edits)
            self.current[edits[good]] = trial[good]
            self.accepted_at[edits[good]] = self.clock
            if single:
                self.refused_at[edits, piece] = torch.where(good, -1, self.clock)

    def _stays_good(self, trial: torch.Tensor, edits: torch.Tensor) -> torch.Tensor:
        good = torch.zeros(len(edits), dtype=torch.bool, device=trial.device)
        allowed = torch.ones_like(good)
        if self.batch.feasible is not None:
            allowed = self.batch.feasible.allows(trial, self.original[edits])
        rows = self.rows[edits[allowed]]
        if len(rows):
            good[allowed] = self.batch.accepts(self.batch.ask(trial[allowed], rows), rows)
        return good
