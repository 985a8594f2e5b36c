"""Cache: answers of the model by the content of the candidate."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..models.verdict import Verdict


class Cache:
    """Remember what the model answered, so that no candidate is asked about twice.

    Memory is bounded: of a candidate only a hash of its bytes is kept, beside the answer, and a
    full cache starts afresh. At 2^19 candidates two different ones share a hash of 64 bits about
    once in 10^8 requests. That would mislead one step of a search, never a result, since the final
    arrays are always evaluated again.
    """

    #: largest number of answers kept
    limit = 2**19

    def __init__(self) -> None:
        self._place: dict[int, int] = {}
        self._answers: Tensor | None = None  # (capacity, 2 * classes + 1)

    @staticmethod
    def keys(x: Tensor) -> list[int]:
        """Hash candidates; equal bytes give equal numbers."""
        rows = x.detach().cpu().contiguous().flatten(1).view(torch.uint8).numpy()
        return [hash(row.tobytes()) for row in rows]

    def __contains__(self, key: int) -> bool:
        return key in self._place

    def unknown(self, keys: Sequence[int]) -> list[int]:
        """Return the positions to ask about: not known yet, and the first of several equal ones."""
        if len(self._place) + len(keys) > self.limit:
            self._place = {}
        first: dict[int, int] = {}
        for position, key in enumerate(keys):
            if key not in self._place:
                first.setdefault(key, position)
        return list(first.values())

    def add(self, keys: Sequence[int], verdict: Verdict) -> None:
        """Store the answers for new candidates."""
        known = len(self._place)
        total = known + len(keys)
        label = verdict.label[:, None].to(verdict.proba)
        table = torch.cat([verdict.proba, verdict.score, label], dim=1)
        if self._answers is None:
            self._answers = table
        elif total > len(self._answers):
            # Room for as many again, so that growing stays cheap.
            more = table.new_empty(total, table.shape[1])
            self._answers = torch.cat([self._answers[:known], more])
        self._answers[known:total] = table
        self._place.update(zip(keys, range(known, total), strict=True))

    def verdict(self, keys: Sequence[int]) -> Verdict:
        """Return the stored answers for known candidates."""
        assert self._answers is not None
        place = torch.tensor([self._place[key] for key in keys], dtype=torch.long)
        answers = self._answers[place.to(self._answers.device)]
        n_classes = answers.shape[1] // 2
        proba, score, label = answers.split([n_classes, n_classes, 1], dim=1)
        return Verdict(proba, label[:, 0].long(), score)
