"""Cache: what the model said of candidates, so that no row is asked about twice."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..models.classifier import Verdict


class Cache:
    """Answers of the model by the content of the candidate.

    Memory is bounded: of a candidate only a hash of its bytes is kept, beside the answer, and a full cache
    starts afresh. At 2^19 candidates two different ones share a hash of 64 bits about once in 10^8 requests;
    that would mislead one step of a search, never a result, since the last word is asked anew.
    """

    #: answers kept at most
    limit = 2**19

    def __init__(self) -> None:
        self._place: dict[int, int] = {}
        self._answers: Tensor | None = None

    @staticmethod
    def keys(x: Tensor) -> list[int]:
        """One number per candidate; the same bytes give the same number."""
        rows = x.detach().cpu().contiguous().flatten(1).view(torch.uint8).numpy()
        return [hash(row.tobytes()) for row in rows]

    def unknown(self, keys: Sequence[int]) -> list[int]:
        """Positions of the candidates to ask about: not known yet, the first of several alike."""
        if len(self._place) + len(keys) > self.limit:
            self._place = {}
        first = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
        return sorted(j for key, j in first.items() if key not in self._place)

    def add(self, keys: Sequence[int], verdict: Verdict) -> None:
        """Remember what the model said of new candidates."""
        known, total = len(self._place), len(self._place) + len(keys)
        table = torch.cat(
            [verdict.proba, verdict.score, verdict.label[:, None].to(verdict.proba)], 1
        )
        if self._answers is None:
            self._answers = table
        elif total > len(self._answers):  # room for as many again, so that growing stays cheap
            self._answers = torch.cat(
                [self._answers[:known], table.new_empty(total, table.shape[1])]
            )
        self._answers[known:total] = table
        self._place.update(zip(keys, range(known, total), strict=True))

    def verdict(self, keys: Sequence[int]) -> Verdict:
        """What is known of candidates."""
        assert self._answers is not None
        place = torch.tensor([self._place[key] for key in keys], dtype=torch.long)
        answers = self._answers[place.to(self._answers.device)]
        n_classes = answers.shape[1] // 2
        proba, score, label = answers.split([n_classes, n_classes, 1], 1)
        return Verdict(proba, label[:, 0].long(), score)
