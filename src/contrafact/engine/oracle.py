"""Oracle: the only way to the model during a request.

It asks, differentiates, counts, enforces the budget, remembers answers and best attempts, and
holds the one rule by which a candidate is accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..models.classifier import Array, Classifier
from ..models.committee import Committee
from ..models.verdict import Verdict, lead, target_value
from ..numerics import broadcast_rows, row_seeds
from .budget import Meter
from .cache import Cache
from .feasible_set import FeasibleSet
from .instances import Instances, Modality
from .isolation import describe_exception, gather_verdicts, isolate
from .request import Request
from .row_states import RowStates, State

#: A candidate is accepted only when the target leads by this much probability, so that the same
#: row in another batch, where floating point may round differently, gets the same class.
CLEAR_MARGIN = 1e-4

#: chooses target classes (columns) from instances and the model's verdict on them
ChooseTarget = Callable[[Tensor, Verdict], Tensor]


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
    """

    x: Tensor
    target: Tensor
    before: Verdict
    seeds: Array
    modality: Modality


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
    feasible_set : FeasibleSet or None
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
        feasible_set: FeasibleSet | None,
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
        able = torch.ones(len(row), dtype=torch.bool)
        if self.meter.limited:
            able = self.meter.can_pay(row, cost * self.classifier.rows_per_evaluation)
            self.states.exhaust(row.cpu()[~able])
        if self.states.any_failed:
            failed = torch.from_numpy(self.states.is_in(State.FAILED))
            able &= ~failed[row.cpu()]
        return able.to(row.device)

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
        remembered.

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
            verdict is given, and the instance has failed.
        """
        sound = x_cf.flatten(1).isfinite().all(1)
        x = x_cf
        if not bool(sound.all()):
            x = torch.where(broadcast_rows(sound, x_cf), x_cf, self.question.x[row])
            self.states.fail(row[~sound], "the search produced NaN or inf")
        if cached:
            verdict = self._recall(x, row)
        else:
            self.charge(row)
            verdict = self.classifier.evaluate(x)
        answered = verdict.is_finite()
        if not bool(answered.all()):
            self.states.fail(row[~answered], "the model returned NaN or inf for a candidate")
            verdict = verdict.where(answered, self.question.before[row])
        if not remember:
            return verdict
        known = verdict
        usable = sound & answered
        if not bool(usable.all()):
            known = verdict[usable]
            x_cf = x_cf[usable]
            row = row[usable]
        target = self.question.target[row]
        self.states.remember(x_cf, row, self.question.x[row], known, target)
        return verdict

    def agrees(self, x_cf: Tensor, row: Tensor) -> Tensor:
        """Find the candidates that every member of the committee clearly puts in the target class.

        A member sees only those that all members before it put there.

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
        for number, member in enumerate(self.committee.members):
            left = agreed.nonzero().flatten()
            if len(left) == 0:
                break
            self._charge_member(member, row[left])
            target = self.question.target[row[left]]
            vote = self.committee.vote(number, x_cf[left], target, CLEAR_MARGIN)
            agreed[left] = vote.to(agreed.device)
        return agreed

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
        self.meter.charge(row)
        return self.classifier.logits(x_cf)

    def charge(self, row: Tensor) -> None:
        """Charge for model rows that a method asks about by other means, one per entry of `row`."""
        self.meter.charge(row, self.classifier.rows_per_evaluation)

    def _recall(self, x: Tensor, row: Tensor) -> Verdict:
        """Evaluate only what no instance has asked about before."""
        if self._cache is None:
            self._cache = Cache()
        keys = self._cache.keys(x)
        unknown = self._cache.unknown(keys)
        if self.meter.allowance is not None:
            self._charge_borrowed(row.tolist(), keys, unknown)
        new = torch.tensor(unknown, dtype=torch.long, device=x.device)
        new_keys = [keys[position] for position in unknown]
        self.charge(row[new])
        self._cache.add(new_keys, self.classifier.evaluate(x[new]))
        return self._cache.verdict(keys)

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


def accepts(
    verdict: Verdict,
    target: Tensor,
    goal: Tensor | float = 0.0,
    margin: float = CLEAR_MARGIN,
) -> Tensor:
    """Apply the acceptance rule: the model clearly decides for the target, with P(target) >= goal.

    Parameters
    ----------
    verdict : Verdict
        What the model says of n candidates.
    target : Tensor of shape (n,)
        Class wanted for each.
    goal : Tensor of shape (n,) or float, default=0
        Least P(target).
    margin : float
        Least lead of P(target) over the other classes.

    Returns
    -------
    Tensor of bool, shape (n,)
        Which candidates are accepted.
    """
    decided = verdict.label == target
    clear = lead(verdict.proba, target) >= margin
    firm = target_value(verdict.proba, target) >= goal
    return decided & clear & firm


def open_request(
    request: Request,
    classifier: Classifier,
    instances: Instances,
    targets: Array | ChooseTarget,
    feasible_set: FeasibleSet | None,
    meter: Meter,
    progress: Callable[[int], None] = lambda finished: None,
) -> Oracle:
    """Ask the model about the instances themselves and set the state of each.

    Parameters
    ----------
    request : Request
        The options of the call.
    classifier : Classifier
        The model.
    instances : Instances
        What is to be explained.
    targets : array of int or function
        Columns wanted, or a function that chooses them from instances and verdict.
    feasible_set : FeasibleSet or None
        The constraints.
    meter : Meter
        The budget of these instances.
    progress : function of int, optional
        Called with the number of instances just finished.

    Returns
    -------
    Oracle
        Ready for the search. Instances that the model could not answer for have failed, those in
        their target class at the confidence asked for (and for all members of the committee) are
        done, and those for which the constraints allow no change at all are refused.
    """
    x = classifier.as_input(instances.values)
    answers = isolate(
        lambda rows: classifier.verdict(x[rows]),
        len(x),
        request.on_error,
    )
    before = gather_verdicts(
        answers.results,
        len(x),
        len(classifier.classes),
        x.device,
    )
    target = targets(x, before) if callable(targets) else torch.from_numpy(targets).to(x.device)
    seeds = row_seeds(instances.values, request.seed, target.cpu().numpy())
    question = Question(x, target, before, seeds, instances.modality)
    oracle = Oracle(classifier, question, request, feasible_set, meter, progress)
    states = oracle.states
    for row, error in answers.exceptions.items():
        states.fail(torch.tensor([row]), describe_exception(error), error)
    unusable = ~before.is_finite()
    if bool(unusable.any()):
        reason = "the model returned NaN or inf for the instance itself"
        states.fail(unusable.nonzero().flatten(), reason)
    done = accepts(before, target, request.goal, margin=-torch.inf)
    states.finish(done.nonzero().flatten())
    if feasible_set is not None:
        for row, reason in enumerate(feasible_set.impossible(x)):
            if reason:
                states.refuse(torch.tensor([row]), reason)
    return oracle
