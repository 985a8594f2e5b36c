"""Oracle: the only way to the model during a request.

It asks, differentiates, counts, enforces the budget, and remembers answers and best attempts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..models.classifier import Array, Classifier
from ..models.committee import Committee
from ..models.verdict import Verdict, all_finite
from ..numerics import broadcast_rows
from ..tables import TableSpace
from .acceptance import accepts
from .budget import Meter
from .cache import Cache
from .deadline import evaluate_in_time
from .instances import Modality
from .limits import Limits
from .request import Request
from .row_states import RowStates, State


@dataclass(frozen=True)
class Question:
    """The instances of a request and what is wanted for them; never changed once made.

    Parameters
    ----------
    x : Tensor of shape (n, *shape)
        Instances, in the precision of the model.
    target : Tensor of shape (n,)
        Class wanted for each (column of the probabilities).
    before : Verdict
        What the model says of the instances.
    seeds : array of uint64, shape (n,)
        One seed per instance, from its content: random numbers follow it wherever it stands.
    modality : {"series", "image", "row"}
        Kind of data.
    space : TableSpace or None
        Coordinates of the table that the instances are rows of; None for arrays.
    """

    x: Tensor
    target: Tensor
    before: Verdict
    seeds: Array
    modality: Modality
    space: TableSpace | None = None


class Oracle:
    """Answer questions about candidates.

    Candidates come with `row`, the number of the instance each belongs to. Methods do not use the
    oracle directly but through `Tasks`, which keeps these numbers to itself.

    Parameters
    ----------
    classifier : Classifier
        The model.
    question : Question
        The instances and what is wanted for them.
    request : Request
        The options of the call.
    feasible_set : Limits or None
        The constraints; None where there are none.
    meter : Meter
        The budget.
    progress : function of int, optional
        Called with the number of instances just finished.

    Attributes
    ----------
    states : RowStates
        What has become of each instance.
    committee : Committee or None
        The models that have to agree, with the columns of `classifier`.
    committee_rows : Tensor of int, shape (n,)
        Rows that the members were asked about for each instance.
    """

    def __init__(
        self,
        classifier: Classifier,
        question: Question,
        request: Request,
        feasible_set: Limits | None,
        meter: Meter,
        progress: Callable[[int], None] = lambda finished: None,
    ) -> None:
        self.classifier = classifier
        self.question = question
        self.request = request
        self.feasible_set = feasible_set
        self.meter = meter
        self.progress = progress
        self.states = RowStates(question.x)
        self.committee: Committee | None = None
        if request.committee is not None:
            self.committee = request.committee.matched_to(classifier, question.x)
        self.committee_rows = torch.zeros(len(question.x), dtype=torch.long)
        # The row numbers last seen and their copy on the host, where states and budget are kept.
        self._row_copy = (self.committee_rows, self.committee_rows)
        self._cache: Cache | None = None
        self._asked: set[tuple[int, int]] = set()

    def affords(self, row: Tensor, cost: int = 1) -> Tensor:
        """Find the candidates that may be asked about.

        Parameters
        ----------
        row : Tensor of shape (m,)
            Instance of each candidate.
        cost : int, default=1
            Questions per candidate.

        Returns
        -------
        Tensor of bool, shape (m,)
            False where the instance has failed or its budget is spent.
        """
        return torch.from_numpy(self._able(row, cost)).to(row.device)

    def affords_all(self, row: Tensor, cost: int = 1) -> bool:
        """Tell whether all candidates may be asked about, without waiting for the model's device.

        Parameters
        ----------
        row : Tensor of shape (m,)
            Instance of each candidate.
        cost : int, default=1
            Questions per candidate.

        Returns
        -------
        bool
            Whether `affords` is True for all.
        """
        return bool(self._able(row, cost).all())

    def _able(self, row: Tensor, cost: int) -> Array:
        """Find the candidates that may be asked about, on the host."""
        row = self._on_host(row)
        able: Array = np.ones(len(row), dtype=bool)
        if self.meter.limited:
            cost *= self.classifier.rows_per_evaluation
            able = self.meter.can_pay(row, cost).numpy()
            if not able.all():
                self.states.exhaust(row[~torch.from_numpy(able)], self.meter.shortage)
        if self.states.any_failed:
            able = able & ~self.states.is_in(State.FAILED)[row.numpy()]
        return able

    def _on_host(self, row: Tensor) -> Tensor:
        """Copy row numbers to the host, once for all questions about the same tasks."""
        if row is not self._row_copy[0]:
            self._row_copy = (row, row.cpu())
        return self._row_copy[1]

    def ask(
        self,
        x_cf: Tensor,
        row: Tensor,
        *,
        cached: bool = False,
        remember: bool = True,
    ) -> Verdict:
        """Ask the model about candidates.

        Model rows are counted, NaN and inf are caught, and the best candidate of each instance is
        remembered. The deadline is looked at before every batch of the model.

        Parameters
        ----------
        x_cf : Tensor of shape (m, *shape)
            Candidates.
        row : Tensor of shape (m,)
            Instance of each candidate.
        cached : bool, default=False
            Ask about equal candidates once and never again; the instance that asked first pays.
            For searches that return to the same candidates; others would only lose time.
        remember : bool, default=True
            Whether a candidate may become the best attempt of its instance; False for rows that
            only probe the model.

        Returns
        -------
        Verdict
            What the model says. For a candidate without a usable answer the instance's own
            verdict is given, and the instance has failed; where there was no time to ask, it has
            exhausted its budget.
        """
        x = x_cf
        #: masks of the candidates without a shortcoming, for each shortcoming that there is
        fine = []
        if not all_finite(x_cf):
            sound = x_cf.flatten(1).isfinite().all(1)
            fine.append(sound)
            x = torch.where(broadcast_rows(sound, x_cf), x_cf, self.question.x[row])
            self.states.fail(row[~sound], "the search produced NaN or inf")
        verdict, told = self._recall(x, row) if cached else self._evaluate(x, row)
        if told is not None:
            fine.append(told)
            self.states.exhaust(row[~told], self.meter.shortage)
        if not verdict.all_finite():
            answered = verdict.is_finite()
            fine.append(answered)
            self.states.fail(row[~answered], "the model returned NaN or inf for a candidate")
            verdict = verdict.where(answered, self.question.before[row])
        if remember:
            usable = torch.stack(fine).all(0) if fine else None
            self._remember(x_cf, row, verdict, usable)
        return verdict

    def _remember(
        self,
        x_cf: Tensor,
        row: Tensor,
        verdict: Verdict,
        usable: Tensor | None,
    ) -> None:
        """Let candidates become best attempts; `usable`: the mask of those that may, None: all."""
        if usable is not None:
            x_cf, row, verdict = x_cf[usable], row[usable], verdict[usable]
        question = self.question
        self.states.remember(
            x_cf, self._on_host(row), question.x[row], verdict, question.target[row]
        )

    def agrees(self, x_cf: Tensor, row: Tensor) -> Tensor:
        """Find the candidates that every member of the committee clearly puts in the target class.

        A member sees only those that all members before it put there. Those that the deadline left
        no time to ask about do not count as convincing.

        Parameters
        ----------
        x_cf : Tensor of shape (m, *shape)
            Candidates.
        row : Tensor of shape (m,)
            Instance of each candidate.

        Returns
        -------
        Tensor of bool, shape (m,)
            True for all that are finite where the request has no committee.
        """
        agreed = x_cf.flatten(1).isfinite().all(1)
        if self.committee is None:
            return agreed
        for member in self.committee.members:
            left = agreed.nonzero().flatten()
            if len(left) == 0:
                break
            agreed[left] = self._votes_of(member, x_cf[left], row[left]).to(agreed.device)
        return agreed

    def _votes_of(self, member: Classifier, x_cf: Tensor, row: Tensor) -> Tensor:
        """Find the candidates that a member clearly puts in the target class, in time."""

        def charge(batch: slice) -> None:
            self._charge_member(member, row[batch])

        verdict = evaluate_in_time(member, x_cf, self.meter.deadline, charge)
        asked = len(verdict.label)
        votes = torch.zeros(len(row), dtype=torch.bool, device=verdict.label.device)
        target = self.question.target[row[:asked]].to(votes.device)
        votes[:asked] = accepts(verdict, target) & verdict.is_finite()
        self.states.exhaust(row[asked:], self.meter.shortage)
        return votes

    def votes(self, x_cf: Tensor, row: Tensor) -> Tensor:
        """Count the members of the committee that put each candidate in its target class.

        Parameters
        ----------
        x_cf : Tensor of shape (m, *shape)
            Candidates.
        row : Tensor of shape (m,)
            Instance of each candidate.

        Returns
        -------
        Tensor of int, shape (m,)
            Members that decide for the target; 0 where the request has no committee.
        """
        count = torch.zeros_like(row)
        if self.committee is not None:
            for member in self.committee.members:
                self._charge_member(member, row)
            votes = self.committee.votes(x_cf, self.question.target[row])
            count += votes.sum(0).to(row.device)
        return count

    def _charge_member(self, member: Classifier, row: Tensor) -> None:
        """Count the rows that a member of the committee is asked about."""
        count = torch.bincount(row.cpu(), minlength=len(self.committee_rows))
        self.committee_rows += member.rows_per_evaluation * count

    def scores(self, x_cf: Tensor, row: Tensor) -> Tensor:
        """Compute the model's scores so that gradients flow back to the candidates.

        Parameters
        ----------
        x_cf : Tensor of shape (m, *shape)
            Candidates.
        row : Tensor of shape (m,)
            Instance of each candidate.

        Returns
        -------
        Tensor of shape (m, classes)
            Logits; their softmax is the model's probability.
        """
        self.meter.charge(self._on_host(row), self.classifier.rows_per_gradient)
        return self.classifier.logits(x_cf)

    def charge(self, row: Tensor) -> None:
        """Charge for model rows that a method asks about by other means, one per entry of `row`."""
        self.meter.charge(row, self.classifier.rows_per_evaluation)

    def _evaluate(self, x: Tensor, row: Tensor) -> tuple[Verdict, Tensor | None]:
        """Ask about candidates in time: the verdict, and the mask of those it is about, if not all.

        The others get the verdict of their instance.
        """
        on_host = self._on_host(row)
        verdict = evaluate_in_time(
            self.classifier,
            x,
            self.meter.deadline,
            lambda batch: self.charge(on_host[batch]),
        )
        asked = len(verdict.label)
        if asked == len(x):
            return verdict, None
        verdict = Verdict.concat([verdict, self.question.before[row[asked:]]])
        return verdict, torch.arange(len(x), device=x.device) < asked

    def _recall(self, x: Tensor, row: Tensor) -> tuple[Verdict, Tensor | None]:
        """Do the same, but ask only about what no instance has asked about before."""
        if self._cache is None:
            self._cache = Cache()
        keys = self._cache.keys(x)
        unknown = self._cache.unknown(keys)
        if self.meter.allowance is not None:
            self._charge_borrowed(row.tolist(), keys, unknown)
        new = torch.tensor(unknown, dtype=torch.long, device=x.device)
        verdict, told = self._evaluate(x[new], row[new])
        if told is not None:
            unknown = unknown[: int(told.sum())]
            verdict = verdict[told]
        self._cache.add([keys[position] for position in unknown], verdict)
        return self._known(keys, row)

    def _known(self, keys: list[int], row: Tensor) -> tuple[Verdict, Tensor | None]:
        """Return remembered answers, the instance's own where there is none, and which are."""
        assert self._cache is not None
        known = [key in self._cache for key in keys]
        verdict = self._cache.verdict([key for key in keys if key in self._cache])
        if all(known):
            return verdict, None
        told = torch.tensor(known, dtype=torch.bool, device=row.device)
        own = self.question.before[row[~told]]
        order = torch.cat([told.nonzero(), (~told).nonzero()]).flatten()
        return Verdict.concat([verdict, own])[order.argsort()], told

    def _charge_borrowed(
        self,
        row: list[int],
        keys: list[int],
        unknown: list[int],
    ) -> None:
        """Count answers that another instance paid for toward the instance's own allowance."""
        asked = dict.fromkeys(zip(row, keys, strict=True))
        paid = {(row[position], keys[position]) for position in unknown}
        borrowed = [pair[0] for pair in asked if pair not in self._asked and pair not in paid]
        cost = self.classifier.rows_per_evaluation
        self.meter.charge_share(torch.tensor(borrowed, dtype=torch.long), cost)
        self._asked.update(asked)
