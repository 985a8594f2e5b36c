"""refine: give back every edit that is not needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..engine.batch import Batch, lead
from ..models.classifier import Classifier, as_classifier
from .bisection import segment_ids, smallest_level

if TYPE_CHECKING:
    from ..engine.budget import Budget
    from ..engine.constraints import Constraints
    from ..engine.result import Counterfactuals

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
    given back, wide ones first and those that matter least first, as long as the model stays with the target;
    then single values until no single one can be given back (1-minimal); the amplitude of the rest shrinks.
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
    from ..engine.request import judge

    rows = (result.status == "valid").nonzero()[0]
    old = result[rows]
    new = judge(
        # A module or function has no class names of its own; those of the result are meant.
        model if isinstance(model, Classifier) else as_classifier(model, classes=result.classes),
        old.X,
        old.X_cf,
        old.target,
        modality=result.modality,
        improve=give_back,
        constraints=constraints,
        confidence=confidence,
        budget=budget,
    )
    return result.updated(rows, new)


def give_back(batch: Batch, x_cf: Tensor, rows: Tensor) -> Tensor:
    """Delta debugging on the edits `x_cf` of `rows`, pieces of all of them in one model batch."""
    current = batch.project(x_cf, rows).clone()
    todo = batch.affords(rows).nonzero().flatten()
    if len(todo) == 0:
        return current
    sound = batch.accepts(batch.ask(current[todo], rows[todo]), rows[todo])
    work = GiveBack(batch, current, rows, todo[sound])
    for width in CHUNK_WIDTHS:
        work.sweep(work.edits, width)
    work.sweep_points()
    work.shrink()
    work.sweep_points()
    return work.current


class GiveBack:
    """The state of a refinement: what each edit looks like now, and which are worked on."""

    #: numbers built at once; more pieces are tried in turn
    max_elements = 2**24

    def __init__(self, batch: Batch, current: Tensor, rows: Tensor, edits: Tensor) -> None:
        self.batch, self.current, self.rows, self.edits = batch, current, rows, edits
        self.original = batch.x[rows]
        self.shape = tuple(current.shape[1:])

    def sweep_points(self) -> None:
        """Give back single values until no single one can be: each edit is then 1-minimal."""
        open_ = self.edits
        while len(open_):
            open_ = self.sweep(open_, 1)

    def sweep(self, edits: Tensor, width: int) -> Tensor:
        """Try every chunk of this width alone, then give back together as many as the model lets go.

        Chunks go in the order of what they matter: the one the target's lead suffers least from is first.
        Returns the edits that gave something back.
        """
        chunk_of = segment_ids(self.shape, width).flatten().to(self.current.device)
        n_chunks = int(chunk_of.max()) + 1
        if n_chunks < 2:
            return edits[:0]
        holds = torch.zeros(len(edits), n_chunks, device=chunk_of.device)
        holds.index_add_(1, chunk_of, self._changed(edits).float())
        which, chunk = (holds > 0).nonzero(as_tuple=True)
        good, left = self._try_alone(edits[which], chunk, chunk_of)

        # order[e, j]: the j-th most expendable chunk of edit e, among those that can go alone.
        expendable = torch.full(holds.shape, -torch.inf, dtype=left.dtype, device=left.device)
        expendable[which[good], chunk[good]] = left[good]
        count = (expendable > -torch.inf).sum(1)
        place = expendable.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
        place = torch.where(expendable > -torch.inf, place, n_chunks)
        some = count > 0
        edits, count, place = edits[some], count[some], place[some]

        def without(level: Tensor, who: Tensor) -> Tensor:
            """Level 1 gives back all of them, `count` only the first."""
            gone = place[who] <= (count[who] - level)[:, None]
            return self.batch.project(
                self._without(edits[who], gone[:, chunk_of]), self.rows[edits[who]]
            )

        before = self._changed(edits).sum(1)
        _, self.current[edits] = smallest_level(
            self.batch, self.rows[edits], without, count, top_accepted=True
        )
        # Limiting the slope can change values anew: only fewer changes count, so that sweeps come to an end.
        return edits[self._changed(edits).sum(1) < before]

    def shrink(self) -> None:
        """Scale each edit down by bisection."""
        edited = self.current[self.edits]

        def scaled(level: Tensor, which: Tensor) -> Tensor:
            weight = (level.to(edited.dtype) / AMPLITUDE_LEVELS).reshape(-1, *[1] * len(self.shape))
            part = torch.lerp(self.original[self.edits[which]], edited[which], weight)
            return self.batch.project(part, self.rows[self.edits[which]])

        _, self.current[self.edits] = smallest_level(
            self.batch, self.rows[self.edits], scaled, AMPLITUDE_LEVELS, top_accepted=True
        )

    def _changed(self, edits: Tensor) -> Tensor:
        return (self.current[edits] != self.original[edits]).flatten(1)

    def _without(self, edits: Tensor, gone: Tensor) -> Tensor:
        return torch.where(gone.reshape(-1, *self.shape), self.original[edits], self.current[edits])

    def _try_alone(self, edits: Tensor, chunk: Tensor, chunk_of: Tensor) -> tuple[Tensor, Tensor]:
        """For each (edit, chunk): may it go, and the target's lead without it."""
        good = torch.zeros(len(edits), dtype=torch.bool, device=edits.device)
        left = torch.zeros(len(edits), dtype=torch.float64, device=edits.device)
        affordable = self.batch.affords(self.rows[edits]).nonzero().flatten()
        for part in affordable.split(max(1, self.max_elements // len(chunk_of))):
            trial = self._without(edits[part], chunk_of == chunk[part][:, None])
            if self.batch.feasible is not None:
                allowed = self.batch.feasible.allows(trial, self.original[edits[part]])
                part, trial = part[allowed], trial[allowed]
            rows = self.rows[edits[part]]
            verdict = self.batch.ask(trial, rows)
            good[part] = self.batch.accepts(verdict, rows)
            left[part] = lead(verdict.score, self.batch.target[rows])
        return good, left
