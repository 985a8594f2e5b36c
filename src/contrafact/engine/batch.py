"""Batch: what a method gets to work on, and its only way to the model. Candidates: what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..models.classifier import Array, Classifier, Verdict
from ..numerics.randomness import row_uniform
from .budget import Meter
from .cache import Cache
from .constraints import FeasibleSet
from .instances import Modality

#: A search accepts a candidate only when the target leads by this much probability, so that the same row in
#: another batch, rounded otherwise, gets the same class.
CLEAR_MARGIN = 1e-4


@dataclass(frozen=True)
class Candidates:
    """Counterfactuals found: `x[j]` belongs to row `rows[j]` of the batch; up to k for each row.

    `info` holds one value per candidate, whatever the method has to tell.
    """

    x: Tensor
    rows: Tensor
    info: dict[str, Tensor] = field(default_factory=dict)

    @staticmethod
    def concat(parts: list[Candidates], offsets: list[Tensor]) -> Candidates:
        """Join candidates of sub-batches; `offsets[i]` maps the rows of part i to those of the whole."""
        info = {key: torch.cat([p.info[key] for p in parts]) for key in parts[0].info}
        rows = torch.cat([offset[p.rows] for p, offset in zip(parts, offsets, strict=True)])
        return Candidates(torch.cat([p.x for p in parts]), rows, info)


@dataclass
class Batch:
    """Instances to explain, all of them at once.

    x, label, target : (n, *shape) instances, the model's class for each, and the class wanted (columns).
    verdict : what the model says of `x`.
    classifier, feasible, meter : the model, the constraints and the budget; use `ask`, `project` and
        `affords` rather than these.
    k : counterfactuals wanted for each row.
    confidence : least target probability asked for, or None.
    seeds : one per row, made of the row's own content and the request's `seed`: a row's random numbers follow
        it wherever it goes.
    """

    x: Tensor
    target: Tensor
    verdict: Verdict
    classifier: Classifier
    feasible: FeasibleSet | None
    meter: Meter
    k: int
    confidence: float | None
    seeds: Array
    modality: Modality
    seed: int = 0
    progress: Callable[[int], None] = lambda finished: None

    def __post_init__(self) -> None:
        n = len(self.x)
        self.failures = [""] * n
        self.refusals = [""] * n
        self._best_x = self.x.clone()
        self._best_merit = torch.full((n,), -torch.inf, dtype=torch.float64)
        self._cache = Cache()
        self._asked: set[tuple[int, int]] = set()

    def __len__(self) -> int:
        return len(self.x)

    @property
    def label(self) -> Tensor:
        return self.verdict.label

    @property
    def rows(self) -> Tensor:
        """0…n−1."""
        return torch.arange(len(self.x), device=self.x.device)

    def take(self, rows: Tensor) -> Batch:
        """The same request for some of its rows, with what is left of their budget."""
        keep = rows.cpu()
        return Batch(
            x=self.x[rows],
            target=self.target[rows],
            verdict=self.verdict[rows],
            classifier=self.classifier,
            feasible=self.feasible,
            meter=self.meter.take(keep),
            k=self.k,
            confidence=self.confidence,
            seeds=self.seeds[keep.numpy()],
            modality=self.modality,
            seed=self.seed,
            progress=self.progress,
        )

    def absorb(self, part: Batch, rows: Tensor) -> None:
        """Take over what the sub-batch of `rows` spent and learned."""
        keep = rows.cpu()
        self.meter.spent[keep] += part.meter.spent
        if self.meter.allowance is not None and part.meter.allowance is not None:
            left = part.meter.allowance - part.meter.spent
            self.meter.allowance[keep] = self.meter.spent[keep] + left
        self.meter.exhausted[keep] |= part.meter.exhausted
        better = part._best_merit > self._best_merit[keep]
        self._best_x[rows[better.to(rows.device)]] = part._best_x[better.to(part.x.device)]
        self._best_merit[keep[better]] = part._best_merit[better]
        for i, row in enumerate(keep.tolist()):
            self.failures[row] = self.failures[row] or part.failures[i]
            self.refusals[row] = self.refusals[row] or part.refusals[i]

    def uniform(self, size: int, stream: int = 0) -> Tensor:
        """Random numbers in [0, 1), (n, size), drawn from each row's own seed."""
        draws = row_uniform(self.seeds, size, stream)
        return torch.from_numpy(draws).to(self.x.device, self.x.dtype)

    def project(self, x_cf: Tensor, rows: Tensor) -> Tensor:
        """`x_cf` within the constraints; candidate j belongs to row `rows[j]`."""
        return x_cf if self.feasible is None else self.feasible.project(x_cf, self.x[rows])

    def affords(self, rows: Tensor, cost: int = 1) -> Tensor:
        """Mask over `rows`: which have not failed and may ask the model about `cost` more candidates each."""
        able = self.meter.can_pay(rows, cost * self.classifier.rows_per_evaluation).to(rows.device)
        if any(self.failures):
            able &= torch.tensor([not reason for reason in self.failures], device=rows.device)[rows]
        return able

    def ask(self, x_cf: Tensor, rows: Tensor, *, cached: bool = False) -> Verdict:
        """What the model says of candidates; counted, guarded against NaN, the best of each row remembered.

        With `cached`, candidates alike are one question, and what was answered before is not asked again: the
        row that asked first pays. For searches that come back to the same candidates; others would only lose
        time on comparing.
        """
        sound = x_cf.flatten(1).isfinite().all(1)
        x = torch.where(sound.reshape(-1, *[1] * (x_cf.ndim - 1)), x_cf, self.x[rows])
        verdict = self._recall(x, rows) if cached else self._evaluate(x, rows)
        self.fail(rows[~sound], "the search produced NaN or inf")
        answered = verdict.score.isfinite().all(1) & verdict.proba.isfinite().all(1)
        self.fail(rows[~answered], "the model returned NaN or inf for a candidate")
        if not bool(answered.all()):
            # A row without an answer counts as not moved: its original verdict stands in.
            verdict = Verdict(
                torch.where(answered[:, None], verdict.proba, self.verdict.proba[rows]),
                torch.where(answered, verdict.label, self.label[rows]),
                torch.where(answered[:, None], verdict.score, self.verdict.score[rows]),
            )
        told = sound & answered
        self._remember(x_cf[told], rows[told], verdict[told])
        return verdict

    def _evaluate(self, x: Tensor, rows: Tensor) -> Verdict:
        self.meter.charge(rows, self.classifier.rows_per_evaluation)
        return self.classifier.evaluate(x)

    def _recall(self, x: Tensor, rows: Tensor) -> Verdict:
        """As `_evaluate`, for what no row has asked before."""
        keys = self._cache.keys(x)
        unknown = self._cache.unknown(keys)
        if self.meter.allowance is not None:
            self._borrow(rows, keys, unknown)
        new = torch.tensor(unknown, dtype=torch.long, device=x.device)
        self._cache.add([keys[j] for j in unknown], self._evaluate(x[new], rows[new]))
        return self._cache.verdict(keys)

    def _borrow(self, rows: Tensor, keys: list[int], unknown: list[int]) -> None:
        """An answer that another row paid for is no model row, but counts toward the row's share of a budget:
        else how far a row gets would depend on its neighbors."""
        assert self.meter.allowance is not None
        asked = dict.fromkeys(zip(rows.tolist(), keys, strict=True))
        paid = {(int(rows[j]), keys[j]) for j in unknown}
        borrowed = [
            row for row, key in asked if (row, key) not in self._asked and (row, key) not in paid
        ]
        count = torch.bincount(torch.tensor(borrowed, dtype=torch.long), minlength=len(self))
        self.meter.allowance = self.meter.allowance - self.classifier.rows_per_evaluation * count
        self._asked.update(asked)

    def accepts(self, verdict: Verdict, rows: Tensor) -> Tensor:
        """Which candidates clearly are in their target class, at the confidence asked for."""
        target = self.target[rows]
        reached = (verdict.label == target) & (lead(verdict.proba, target) >= CLEAR_MARGIN)
        if self.confidence is not None:
            reached &= target_value(verdict.proba, target) >= self.confidence
        return reached

    def fail(self, rows: Tensor, reason: str) -> None:
        """Mark rows whose work broke down; they end with status `error`, the others go on."""
        for row in rows.tolist():
            self.failures[row] = self.failures[row] or reason

    def refuse(self, rows: Tensor, reason: str) -> None:
        """Mark rows for which the method can't do (all of) what was asked, with the reason."""
        for row in rows.tolist():
            self.refusals[row] = self.refusals[row] or reason

    def best_attempts(self, rows: Tensor) -> Tensor:
        """Per row the best candidate the model was asked about: the smallest valid, else the nearest."""
        return self._best_x[rows]

    def _remember(self, x_cf: Tensor, rows: Tensor, verdict: Verdict) -> None:
        target = self.target[rows]
        distance = (x_cf - self.x[rows]).double().flatten(1).abs().mean(1)
        toward = lead(verdict.score, target).sigmoid()
        merit = torch.where(verdict.label == target, 1 + 1 / (1 + distance), toward).cpu()
        best = torch.full((len(self),), -torch.inf, dtype=torch.float64).scatter_reduce(
            0, rows.cpu(), merit, "amax"
        )
        winners = (
            ((merit == best[rows.cpu()]) & (merit > self._best_merit[rows.cpu()]))
            .nonzero()
            .flatten()
        )
        self._best_merit = torch.maximum(self._best_merit, best)
        self._best_x[rows[winners.to(rows.device)]] = x_cf[winners.to(x_cf.device)]


def target_value(values: Tensor, target: Tensor) -> Tensor:
    """values[j, target[j]]."""
    return values.gather(1, target[:, None])[:, 0]


def lead(values: Tensor, target: Tensor) -> Tensor:
    """How far the target's value is above the best of the other classes."""
    others = values.scatter(1, target[:, None], -torch.inf)
    return target_value(values, target) - others.amax(1)


def place_in_row(rows: Tensor) -> Tensor:
    """For sorted rows, how many entries of the same row come before each: 0, 1, … within every row."""
    return torch.arange(len(rows), device=rows.device) - torch.searchsorted(rows, rows)
