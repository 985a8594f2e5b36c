"""What guided methods share: every instance gets points of its target class to move toward."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ...engine import Batch
from ...explainers.support.explainer import Explainer
from ...guides import Guide, NearestUnlikeCluster, NearestUnlikeNeighbor, NearestUnlikePrototype
from ...models.classifier import Array, Verdict
from ...search import first_on_line

Metric = Literal["euclidean", "dtw"]
Kind = Literal["neighbor", "cluster", "prototype", "median"]


def guide_of(kind: Kind, metric: Metric) -> Guide:
    """A guide by name: "neighbor" (a reference row), "cluster" (the mean of the class), "prototype" (of a
    GLVQ) or "median" (a row chosen by Median LVQ). With k > 1, guides that differ from each other.

    `metric` is that of the neighbor and of the median.
    """
    if kind == "neighbor":
        return NearestUnlikeNeighbor(metric, diverse=True)
    if kind == "median":
        return NearestUnlikePrototype("median", metric=metric, diverse=True)
    if kind not in ("cluster", "prototype"):
        raise ValueError(
            f"guide must be 'neighbor', 'cluster', 'prototype' or 'median', got {kind!r}."
        )
    if metric != "euclidean":
        raise ValueError(
            f"metric={metric!r} needs guide='neighbor' or 'median', got guide={kind!r}."
        )
    return NearestUnlikeCluster() if kind == "cluster" else NearestUnlikePrototype(diverse=True)


@dataclass(frozen=True)
class Guides:
    """Up to k guides for each row of a batch, one entry each: the point, its row, its reference index."""

    x: Tensor
    rows: Tensor
    index: Tensor

    def take(self, entries: Tensor) -> Guides:
        return Guides(self.x[entries], self.rows[entries], self.index[entries])


class GuidedExplainer(Explainer):
    """Moves instances toward guides. Fitted attribute: `guide_`."""

    @abstractmethod
    def _make_guide(self) -> Guide:
        """The kind of guide this method follows."""

    def _fit(self, X: Tensor, y: Array | None) -> None:
        self.guide_ = self._make_guide().fit(self.classifier_, X, y)

    def _default_target(self, x: Tensor, verdict: Verdict) -> Tensor:
        """The runner-up among the classes that have a guide; of tied ones, the class whose guide is nearest.

        Where no other class has one, the plain runner-up.
        """
        n_classes = verdict.score.shape[1]
        guided = torch.isin(torch.arange(n_classes, device=x.device), self.guide_.candidate_class_)
        score = verdict.score.scatter(1, verdict.label[:, None], -torch.inf)
        reachable = score.masked_fill(~guided, -torch.inf)
        choice = reachable.isfinite().any(1)
        score = torch.where(choice[:, None], reachable, score)
        tied = score == score.amax(1, keepdim=True)
        unclear = (choice & (tied.sum(1) > 1)).nonzero().flatten()
        runner_up = score.argmax(1)
        if len(unclear):
            distance = torch.full(
                (len(unclear), n_classes), torch.inf, dtype=x.dtype, device=x.device
            )
            for c in guided.nonzero().flatten().tolist():
                nearest, _ = self.guide_.guide(x[unclear], self.classifier_.classes[c])
                distance[:, c] = (nearest[:, 0] - x[unclear]).flatten(1).norm(dim=1)
            runner_up[unclear] = distance.masked_fill(~tied[unclear], torch.inf).argmin(1)
        return runner_up

    def _guides(self, batch: Batch) -> Guides:
        """k guides per row; rows with fewer are told so."""
        target = self.classifier_.classes[batch.target.cpu().numpy()]
        arrays, index = self.guide_.guide(batch.x, target, batch.k, confidence=batch.confidence)
        self._tell_short(batch, (index >= 0).sum(1))
        rows, slot = (index >= 0).nonzero(as_tuple=True)
        return Guides(arrays[rows, slot], rows, index[rows, slot])

    def _rescue(self, batch: Batch, rows: Tensor, x_cf: Tensor) -> tuple[Tensor, Tensor]:
        """Where the model does not accept a candidate, the first point on the line to the row's guide.

        Returns the candidates and which of them came from the line: every method that does this tells so.
        """
        fallback = torch.zeros(len(rows), dtype=torch.bool, device=rows.device)
        asked = batch.affords(rows).nonzero().flatten()
        astray = asked[~batch.accepts(batch.ask(x_cf[asked], rows[asked]), rows[asked])]
        if len(astray):
            target = self.classifier_.classes[batch.target[rows[astray]].cpu().numpy()]
            guides, index = self.guide_.guide(
                batch.x[rows[astray]], target, confidence=batch.confidence
            )
            batch.refuse(
                rows[astray[index[:, 0] < 0]],
                "the reference data hold no guide that the model puts in the class",
            )
            astray, guides = astray[index[:, 0] >= 0], guides[index[:, 0] >= 0, 0]
            x_cf = x_cf.clone()
            x_cf[astray] = first_on_line(batch, rows[astray], guides)[1]
            fallback[astray] = True
        return x_cf, fallback

    def _tell_short(self, batch: Batch, found: Tensor) -> None:
        """Say so where a row found fewer guides than the k wanted."""
        classes = self.classifier_.classes.tolist()
        for row in (found < batch.k).nonzero().flatten():
            batch.refuse(
                row[None],
                f"the reference data hold {int(found[row])} guides that the model puts in class "
                f"{classes[int(batch.target[row])]!r}",
            )
