"""PrototypeCounterfactual: for prototype models, the smallest counterfactual there is, with a proof."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor

from ..engine import Batch, Candidates, Tags
from ..explainers.support.explainer import Explainer
from ..geometry import nearest_point
from ..models.classifier import Array
from ..search import smallest_level
from .support.prototype_model import unfold

#: By how much of the distances another prototype must be farther, so that rounding can't undo the decision;
#: the later ones where the model, in lower precision, does not agree to the first.
MARGINS = (1e-11, 1e-9, 1e-7, 1e-5)
#: Steps from what a confidence needs to what is enough for it.
STEPS = 64
#: Numbers in the constraints of the rows that are worked on at once.
CHUNK = 2**21


class PrototypeCounterfactual(Explainer):
    """The smallest counterfactual of a prototype model (Artelt, Hammer 2019, arXiv 1908.00735).

        minimize ‖x' − x‖   over w_j of the target class and {x' : d(x', w_j) ≤ d(x', w_k), w_k of another}

    With one metric d(x, w) = (x − w)ᵀ Λ (x − w) for all, the set is a polyhedron,

        2 (w_k − w_j)ᵀ Λ x'  ≤  w_kᵀ Λ w_k − w_jᵀ Λ w_j,

    and each problem is solved exactly, bounds and frozen values included; a dual solution proves it. Where
    every prototype has its own metric, the set is curved: linearized again and again, the search ends at a
    point that no small change improves, and nothing is proved.

    Takes the models of `contrafact.prototypes` that have a metric, and pipelines of scalers and one of them.
    A `confidence` asks for d(x', w_k) − d(x', w_j) large enough: exact with two classes; with more the result
    lies between the solutions for what is needed and for what is enough.

    Parameters
    ----------
    norm : "l2", or "l1", which changes few values.

    `info`: prototype (j), distance (‖x' − x‖), lower_bound (no counterfactual is nearer; for the second and
    later of k, none nearer to that prototype than to the other classes'), gap (their difference), certified
    (gap at most 1e-6, or 1e-6 of the distance where that is above 1).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from contrafact.prototypes import GLVQ
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GLVQ(n_prototypes=2, random_state=0).fit(X, y)
    >>> result = PrototypeCounterfactual(norm="l1").fit(model, X, y).explain(X[:8], target=1)
    >>> bool(result.valid.all()), bool(result.info["certified"].all())
    (True, True)
    """

    tags = Tags(
        reference=False,
        constraints=frozenset({"bounds", "frozen"}),
        prototype_model=True,
    )

    def __init__(self, norm: Literal["l1", "l2"] = "l2") -> None:
        self.norm = norm

    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [{}, {"norm": "l1"}]

    def _fit(self, X: Tensor, y: Array | None) -> None:
        if self.norm not in ("l1", "l2"):
            raise ValueError(f"norm must be 'l1' or 'l2', got {self.norm!r}.")
        model, gain, shift = unfold(self.classifier_, X.flatten(1))
        w = torch.from_numpy(model.prototypes_).double().flatten(1)
        if w.shape[1] != X[0].numel():
            raise TypeError(
                f"{type(model).__name__} holds prototypes of {w.shape[1]} numbers, but instances have "
                f"{X[0].numel()}: its distances are not taken in the space of X."
            )
        metric, plain = model.metric_(), bool((gain == 1).all())
        omega = gain.diag() if metric is None else torch.from_numpy(metric).double() * gain
        self.prototypes_, self.omega_ = (
            (w - shift) / gain,
            None if metric is None and plain else omega,
        )
        classes = self.classifier_.classes.tolist()
        self.owner_ = torch.tensor(
            [classes.index(label) for label in model.prototype_labels_.tolist()]
        )
        # A lead in squared distances tells the probability where these are what it is a softmax of.
        self.temperature_: float | None = None
        if getattr(model, "squared", True):
            self.temperature_ = getattr(model, "temperature_", None)

    def _explain(self, batch: Batch) -> Candidates:
        parts = []
        for rows in batch.rows.split(max(1, CHUNK // self.prototypes_.numel())):
            rows = rows[batch.affords(rows, 0)]  # is there time left?
            parts.append(self._nearest(batch, rows, batch.confidence))
            if batch.confidence is not None:
                rest = rows[~torch.isin(rows, parts[-1].rows)]
                parts.append(self._nearest(batch, rest, None))
                parts[-1].info["certified"][:] = False  # that was not the question
            batch.progress(len(rows))
        return Candidates.concat(parts, [batch.rows] * len(parts))

    def _nearest(
        self,
        batch: Batch,
        rows: Tensor,
        confidence: float | None,
    ) -> Candidates:
        """Up to k counterfactuals for each of `rows`, the nearest first, each with its own prototype."""
        x = batch.x[rows].double().flatten(1)
        lo, hi = displacements(batch, x)
        row, j = (self.owner_ == batch.target[rows, None]).nonzero(as_tuple=True)
        problems = (x[row], j, lo[row], hi[row])
        enough, needed = self._leads(confidence)
        start, bound, none = self._solve(*problems, needed)
        delta = start
        if enough > needed:
            delta, _, none = self._solve(*problems, enough)
            start = torch.where(start.isfinite(), start, delta)

        size = delta.new_full((len(rows), len(self.owner_)), torch.inf)
        pair = torch.zeros_like(size, dtype=torch.long)
        size[row, j], pair[row, j] = self._length(delta).nan_to_num(torch.inf), torch.arange(len(j))
        order = size.argsort(dim=1, stable=True)[:, : batch.k]
        at, slot = size.gather(1, order).isfinite().nonzero(as_tuple=True)
        chosen, owner = pair[at, order[at, slot]], rows[at]
        # The first has to be compared with what all prototypes of its class allow.
        least = bound.new_full((len(rows),), torch.inf).scatter_reduce(
            0,
            row,
            bound,
            "amin",
        )
        bound = torch.where(slot == 0, least[at], bound[chosen])

        def place(delta: Tensor, which: Tensor) -> Tensor:
            moved = (x[at[which]] + delta).reshape(-1, *self.shape_)
            return batch.project(moved.to(batch.x), owner[which])

        def between(level: Tensor, which: Tensor) -> Tensor:
            share = level[:, None].double() / STEPS
            return place(torch.lerp(start[chosen[which]], delta[chosen[which]], share), which)

        doubt = torch.arange(len(chosen))
        x_cf = place(delta[chosen], doubt)
        if enough > needed:
            x_cf = smallest_level(batch, owner, between, STEPS)[1]
        for margin in MARGINS[1:]:
            doubt = doubt[batch.affords(owner[doubt])]
            said = batch.ask(x_cf[doubt], owner[doubt]).label if len(doubt) else doubt
            doubt = doubt[said != batch.target[owner[doubt]]]
            if len(doubt) == 0:
                break
            again, where = chosen[doubt], at[doubt]
            more = self._solve(x[where], j[again], lo[where], hi[where], enough, margin)[0]
            x_cf[doubt] = place(torch.where(more.isfinite(), more, delta[again]), doubt)

        self._tell_short(batch, rows, at, row[~none], confidence)
        distance = self._length((x_cf - batch.x[owner]).double().flatten(1))
        gap = distance - bound
        asked = confidence is None or self.temperature_ is not None
        certified = (gap <= 1e-6 * distance.clamp_min(1)) & asked
        info = {"distance": distance, "lower_bound": bound, "gap": gap, "certified": certified}
        return Candidates(x_cf, owner, {"prototype": j[chosen], **info})

    def _length(self, delta: Tensor) -> Tensor:
        length: Tensor = torch.linalg.vector_norm(
            delta,
            1 if self.norm == "l1" else 2,
            dim=1,
        )
        return length

    def _leads(self, confidence: float | None) -> tuple[float, float]:
        """How much farther than w_j every w_k must be for P(target) ≥ confidence: enough, and needed.

        P = 1 / (1 + Σ exp(−(d_c − d_j) / T)) over the other classes c: between one of them and all.
        """
        if confidence is None or self.temperature_ is None:
            return 0.0, 0.0
        odds, others = confidence / (1 - confidence), len(self.classifier_.classes) - 1
        enough, needed = (self.temperature_ * math.log(odds * n) for n in (others, 1))
        return max(enough, 0.0), max(needed, 0.0)

    def _solve(
        self,
        x: Tensor,
        j: Tensor,
        lo: Tensor,
        hi: Tensor,
        lead: float,
        margin: float = MARGINS[0],
    ) -> tuple[Tensor, Tensor, Tensor]:
        """δ that brings x nearer to prototype j, by `lead`, than to those of other classes.

        Returns δ, a lower bound on its length without the margin, and where there is none for sure.
        """
        w = self.prototypes_
        if self.omega_ is not None and self.omega_.ndim == 3:
            return self._linearized(x, j, lo, hi, lead, margin)
        if self.omega_ is not None:
            x, w = x @ self.omega_.T, w @ self.omega_.T
        prototypes, which = j.unique(return_inverse=True)
        other = self.owner_ != self.owner_[prototypes, None]
        between = (w - w[prototypes, None]) * other[..., None]
        d = torch.cdist(x, w, compute_mode="donot_use_mm_for_euclid_dist") ** 2
        d_j = d.gather(1, j[:, None])
        slack = margin * (d_j + between.square().sum(2).amax(1)[which, None])
        c = torch.where(other[which], d - d_j - lead - slack, 1)
        A = 2 * (between if self.omega_ is None else between @ self.omega_)
        found = nearest_point(
            torch.zeros_like(lo),
            A,
            c,
            self.norm,
            (lo, hi),
            which=which,
        )
        loss = (found.y * other[which] * slack).sum(1)  # the dual is linear in c
        bound = found.lower_bound
        bound = (bound - loss if self.norm == "l1" else (bound**2 - 2 * loss).relu().sqrt()).relu()
        return found.delta, bound.masked_fill(found.infeasible, torch.inf), found.infeasible

    def _linearized(
        self,
        x: Tensor,
        j: Tensor,
        lo: Tensor,
        hi: Tensor,
        lead: float,
        margin: float,
        turns: int = 40,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `_solve`, for metrics that differ: from the way to w_j on, each turn with d_j − d_k linear at z.

        The linear solution is brought back inside, toward w_j; where it is not shorter then, it was too far.
        """
        other = self.owner_ != self.owner_[j, None]

        def look(delta: Tensor, at: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            """Whether x + δ is inside, d_k − d_j less lead and margin, and Ω_k (x + δ − w_k)."""
            seen = torch.einsum(
                "krd,nkd->nkr", self.omega_, (x[at] + delta)[:, None] - self.prototypes_
            )
            d = seen.square().sum(2)
            room = margin * d.amax(1, keepdim=True)
            more = torch.where(
                other[at],
                d - d.gather(1, j[at, None]) - lead - room,
                1,
            )
            return (more >= -room / 2).all(1), more, seen

        def bring_back(delta: Tensor, at: Tensor) -> Tensor:
            """The first point inside on the way to the anchor, by bisection."""
            low, high = torch.zeros_like(delta[:, :1]), torch.ones_like(delta[:, :1])
            high[look(delta, at)[0]] = 0
            for _ in range(20):
                middle = (low + high) / 2
                good = look(torch.lerp(delta, anchor[at], middle), at)[0][:, None]
                low, high = (
                    torch.where(good, low, middle),
                    torch.where(
                        good,
                        middle,
                        high,
                    ),
                )
            return torch.lerp(delta, anchor[at], high)

        anchor, open_ = (self.prototypes_[j] - x).clamp(lo, hi), torch.arange(len(x))
        delta, share = (
            bring_back(torch.zeros_like(x).clamp(lo, hi), open_),
            torch.ones_like(x[:, :1]),
        )
        for _ in range(turns):
            z = delta[open_]
            inside, more, seen = look(z, open_)
            slope = 2 * torch.einsum("krd,nkr->nkd", self.omega_, seen)
            own = slope.gather(1, j[open_, None, None].expand(-1, 1, slope.shape[2]))
            A = (own - slope) * other[open_, :, None]
            c = more + (A @ z[..., None])[..., 0]
            goal = nearest_point(torch.zeros_like(z), A, c, self.norm, (lo[open_], hi[open_])).delta
            goal = torch.where(goal.isfinite(), goal, z)
            trial = torch.where(
                inside[:, None],
                torch.lerp(z, goal, share[open_]),
                goal,
            )
            trial[inside] = bring_back(trial[inside], open_[inside])
            shorter = ~inside | (self._length(trial) < (1 - 1e-7) * self._length(z))
            share[open_] = torch.where(
                shorter[:, None], (2 * share[open_]).clamp_max(1), share[open_] / 4
            )
            delta[open_] = torch.where(shorter[:, None], trial, z)
            anchor[open_] = torch.where(
                inside[:, None],
                anchor[open_],
                delta[open_],
            )
            open_ = open_[share[open_, 0] > 1e-3]
        inside = look(delta, torch.arange(len(x)))[0]
        return (
            delta.masked_fill(~inside[:, None], torch.nan),
            0 * self._length(delta),
            torch.zeros_like(inside),
        )

    def _tell_short(
        self,
        batch: Batch,
        rows: Tensor,
        found: Tensor,
        open_: Tensor,
        confidence: float | None,
    ) -> None:
        """Say so where fewer than k prototypes can be nearest; not of rows that are undecided (`open_`)."""
        classes = self.classifier_.classes.tolist()
        reached = torch.bincount(found, minlength=len(rows))
        under = "" if batch.feasible is None else f" with {batch.feasible.describe()}"
        under += "" if confidence is None else f" at P ≥ {confidence:g}"
        for i in (reached < batch.k).nonzero().flatten().tolist():
            if reached[i] == 0 and bool((open_ == i).any()):
                continue
            target = int(batch.target[rows[i]])
            total = int((self.owner_ == target).sum())
            batch.refuse(
                rows[i : i + 1],
                f"{int(reached[i])} of {total} prototypes of class {classes[target]!r} can be nearest{under}",
            )


def displacements(batch: Batch, x: Tensor) -> tuple[Tensor, Tensor]:
    """The box of the constraints, seen from x; frozen values do not move."""
    if batch.feasible is None:
        return torch.full_like(x, -torch.inf), torch.full_like(x, torch.inf)
    limits, frozen = batch.feasible, batch.feasible.frozen.flatten()
    lo, hi = (limit.double().flatten() - x for limit in (limits.lower, limits.upper))
    return lo.masked_fill(frozen, 0), hi.masked_fill(frozen, 0)
