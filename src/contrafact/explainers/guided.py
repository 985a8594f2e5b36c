"""What guided methods share: every instance gets points of its target class to move toward."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import torch

from ..engine import Batch, Explainer
from ..guides import Guide
from ..models.classifier import Array, Verdict


@dataclass(frozen=True)
class Guides:
    """Up to k guides for each row of a batch, one entry each: the point, its row, its reference index."""

    x: torch.Tensor
    rows: torch.Tensor
    index: torch.Tensor


class GuidedExplainer(Explainer):
    """Moves instances toward guides. Fitted attribute: `guide_`."""

    @abstractmethod
    def _make_guide(self) -> Guide:
        """The kind of guide this method follows."""

    def _fit(self, X: torch.Tensor, y: Array | None) -> None:
        self.guide_ = self._make_guide().fit(self.classifier_, X, y)

    def _default_target(self, x: torch.Tensor, verdict: Verdict) -> torch.Tensor:
        """The runner-up among the classes that have a guide; of tied ones, the class whose guide is nearest."""
        n_classes = verdict.score.shape[1]
        guided = torch.isin(torch.arange(n_classes, device=x.device), self.guide_.candidate_class_)
        score = verdict.score.scatter(1, verdict.label[:, None], -torch.inf)
        if bool(guided.any()):
            score = score.masked_fill(~guided & (score.isfinite().any(1, keepdim=True)), -torch.inf)
        tied = score == score.amax(1, keepdim=True)
        unclear = (tied.sum(1) > 1).nonzero().flatten()
        runner_up = score.argmax(1)
        if len(unclear):
            distance = torch.full((len(unclear), n_classes), torch.inf, dtype=x.dtype, device=x.device)
            for c in guided.nonzero().flatten().tolist():
                nearest, _ = self.guide_.guide(x[unclear], self.classifier_.classes[c])
                distance[:, c] = (nearest[:, 0] - x[unclear]).flatten(1).norm(dim=1)
            runner_up[unclear] = distance.masked_fill(~tied[unclear], torch.inf).argmin(1)
        return runner_up

    def _guides(self, batch: Batch) -> Guides:
        """k guides per row; rows with fewer are told so."""
        classes = self.classifier_.classes
        target = classes[batch.target.cpu().numpy()]
        arrays, index = self.guide_.guide(batch.x, target, batch.k, confidence=batch.confidence)
        found = (index >= 0).sum(1)
        for count in np.unique(found.cpu().numpy()):
            short = (found == int(count)).nonzero().flatten()
            for c in batch.target[short].unique().tolist() if count < batch.k else ():
                rows = short[batch.target[short] == c]
                batch.refuse(
                    rows,
                    f"the reference data hold {count} guides that the model puts in class {classes[c]!r}",
                )
        rows, slot = (index >= 0).nonzero(as_tuple=True)
        return Guides(arrays[rows, slot], rows, index[rows, slot])
