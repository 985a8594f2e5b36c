"""Tasks: what a method works on, one entry per counterfactual wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from ..models.verdict import Verdict, lead, target_value
from .acceptance import AcceptanceTest, accepts, endorse
from .candidates import Candidates
from .carried_values import CarriedValues
from .oracle import Oracle
from .row_reports import RowReports
from .seeded_draws import SeededDraws


@dataclass(frozen=True, eq=False)
class Tasks(CarriedValues, SeededDraws, RowReports):
    """Counterfactuals to be found, all at once.

    Each entry carries its own instance, target, seed and goal, and whatever a method attaches to
    it. `take` makes the tasks of some entries; nothing is ever changed in place. A method asks the
    model with `ask` or `accepted`, keeps candidates within the constraints with `project`, and
    returns `candidates(x_cf, ...)`.

    Parameters
    ----------
    oracle : Oracle
        The way to the model; shared by all tasks of a request.
    row : Tensor of shape (n,)
        Instance each task belongs to. For the engine; methods have no use for it.
    rank : Tensor of shape (n,)
        Which of the counterfactuals of its instance a task is for: 0, 1, ..., k - 1.
    goal : Tensor of shape (n,)
        Least P(target) to reach; 0 asks for the decision alone.
    x : Tensor of shape (n, *shape)
        The instances.
    target : Tensor of shape (n,)
        Class wanted (column of the probabilities).
    k : int
        Counterfactuals wanted per instance.
    attached : mapping of str to Tensor
        More values per task, see `attach`.
    tests : tuple of AcceptanceTest
        What candidates have to pass besides convincing the model, see `requiring`.
    asks_committee : bool
        Whether the members of the committee have to agree, too.

    Attributes
    ----------
    label : Tensor of shape (n,)
        The model's class of the instance.
    before : Verdict
        What the model says of the instances.
    seed : array of uint64, shape (n,)
        Seed of each instance; see `uniform` and `normal`.
    guide, guide_index : Tensor
        Point of the target class to move toward, and its number, where the method has guides.
    """

    oracle: Oracle
    row: Tensor
    rank: Tensor
    goal: Tensor
    x: Tensor
    target: Tensor
    k: int
    attached: Mapping[str, Tensor] = field(default_factory=dict)
    tests: tuple[AcceptanceTest, ...] = ()
    asks_committee: bool = True

    @classmethod
    def start(cls, oracle: Oracle, rows: Tensor) -> Tasks:
        """Make k tasks for each of some instances.

        Parameters
        ----------
        oracle : Oracle
            The request.
        rows : Tensor of int
            Numbers of the instances.

        Returns
        -------
        Tasks
            In the order of the instances, k in a row for each.
        """
        k = oracle.request.k
        row = rows.repeat_interleave(k)
        rank = torch.arange(k, device=rows.device).repeat(len(rows))
        goal = torch.full_like(row, oracle.request.goal, dtype=torch.float64)
        question = oracle.question
        return cls(
            oracle,
            row,
            rank,
            goal,
            question.x[row],
            question.target[row],
            k,
        )

    @staticmethod
    def concat(parts: Sequence[Tasks]) -> Tasks:
        """Join tasks of one request."""
        if len(parts) == 1:
            return parts[0]
        names = parts[0].attached
        return Tasks(
            parts[0].oracle,
            torch.cat([part.row for part in parts]),
            torch.cat([part.rank for part in parts]),
            torch.cat([part.goal for part in parts]),
            torch.cat([part.x for part in parts]),
            torch.cat([part.target for part in parts]),
            parts[0].k,
            {name: torch.cat([part[name] for part in parts]) for name in names},
            parts[0].tests,
            parts[0].asks_committee,
        )

    def __len__(self) -> int:
        return len(self.row)

    # --- other tasks

    def take(self, which: Tensor) -> Tasks:
        """Return some of the tasks.

        Parameters
        ----------
        which : Tensor of bool, shape (n,), or of positions
            The entries to keep; positions may repeat, for several candidates per task.

        Returns
        -------
        Tasks
            The chosen entries with all they carry.
        """
        if which.dtype == torch.bool and bool(which.all()):
            return self
        attached = {name: values[which] for name, values in self.attached.items()}
        return replace(
            self,
            row=self.row[which],
            rank=self.rank[which],
            goal=self.goal[which],
            x=self.x[which],
            target=self.target[which],
            attached=attached,
        )

    def repeat(self, times: int) -> Tasks:
        """Return every task `times` times in a row, for several candidates each."""
        positions = torch.arange(len(self), device=self.row.device)
        return self.take(positions.repeat_interleave(times))

    def per_instance(self) -> Tasks:
        """Return one task per instance, for methods that find all k from one search."""
        return self.take(self.rank == 0)

    def from_instances(self, values: Tensor) -> Tensor:
        """Repeat values of `per_instance()`, one each, for every task of the instance.

        Parameters
        ----------
        values : Tensor of shape (instances, ...)
            One entry per instance.

        Returns
        -------
        Tensor of shape (n, ...)
            One entry per task.
        """
        instances = self.per_instance()
        if len(instances) == len(self):
            return values
        return values[torch.searchsorted(instances.row, self.row)]

    def split(self, size: int) -> list[Tasks]:
        """Return the tasks in order, in parts of at most `size`; at least one part."""
        if len(self) <= size:
            return [self]
        positions = torch.arange(len(self), device=self.row.device)
        return [self.take(part) for part in positions.split(size)]

    def attach(self, **values: Tensor) -> Tasks:
        """Let every task carry more values, which `take` will select along with it.

        Parameters
        ----------
        **values : Tensor of shape (n, ...)
            One entry per task; read them back as `tasks["name"]`.

        Returns
        -------
        Tasks
            The same tasks with the values attached.
        """
        for name, tensor in values.items():
            if len(tensor) != len(self):
                raise ValueError(f"{name} has {len(tensor)} entries for {len(self)} tasks.")
        return replace(self, attached={**self.attached, **values})

    def keeping(self, parts: Tensor) -> Tasks:
        """Let a search leave some columns or one-hot groups of each row as they are.

        Parameters
        ----------
        parts : Tensor of bool, shape (n, parts)
            What stays, in the numbering of `TableSpace.part`.

        Returns
        -------
        Tasks
            Tasks whose limits say so.
        """
        return self.attach(kept_parts=parts)

    def within(self, lower: Tensor, upper: Tensor) -> Tasks:
        """Let a search change columns of each row within a narrower range.

        Parameters
        ----------
        lower, upper : Tensor of float64, shape (n, columns)
            The range in values of the table; infinite where it is not narrower.

        Returns
        -------
        Tasks
            Tasks whose limits say so.
        """
        return self.attach(lowest=lower, highest=upper)

    def with_goal(self, goal: float | Tensor) -> Tasks:
        """Aim at P(target) >= goal where the request asks for less."""
        return replace(self, goal=self.goal.clamp_min(goal))

    def without_committee(self) -> Tasks:
        """Accept candidates that the committee was not asked about."""
        return replace(self, asks_committee=False)

    def requiring(self, *tests: AcceptanceTest) -> Tasks:
        """Accept only candidates that pass further tests."""
        return replace(self, tests=(*self.tests, *tests))

    # --- the model

    def affords(self, cost: int = 1) -> Tensor:
        """Return the mask of the tasks that may ask `cost` more questions each."""
        return self.oracle.affords(self.row, cost)

    def affords_all(self, cost: int = 1) -> bool:
        """Return whether all tasks may ask `cost` more questions each."""
        return self.oracle.affords_all(self.row, cost)

    def ask(self, x_cf: Tensor, *, cached: bool = False, remember: bool = True) -> Verdict:
        """Ask the model about one candidate per task; check `affords` before.

        Parameters
        ----------
        x_cf : Tensor of shape (n, *shape)
            The candidates.
        cached : bool, default=False
            Never ask about equal candidates twice; see `Oracle.ask`.
        remember : bool, default=True
            Whether a candidate may become the best attempt of its instance.

        Returns
        -------
        Verdict
            Probabilities, labels and scores.
        """
        return self.oracle.ask(x_cf, self.row, cached=cached, remember=remember)

    def accepts(self, x_cf: Tensor, verdict: Verdict) -> Tensor:
        """Apply the acceptance rule to one candidate per task.

        The model clearly decides for the target at the goal; the candidate passes every test; every
        member of the committee agrees. Each is asked only about what passed before it.

        Parameters
        ----------
        x_cf : Tensor of shape (n, *shape)
            The candidates.
        verdict : Verdict
            What the model says of them.

        Returns
        -------
        Tensor of bool, shape (n,)
            Which candidates are accepted.
        """
        return endorse(self, x_cf, accepts(verdict, self.target, self.goal))

    def accepted(self, x_cf: Tensor, *, cached: bool = False) -> Tensor:
        """Ask the model which candidates it accepts.

        Parameters
        ----------
        x_cf : Tensor of shape (n, *shape)
            One candidate per task.
        cached : bool, default=False
            Never ask about equal candidates twice.

        Returns
        -------
        Tensor of bool, shape (n,)
            True where the acceptance rule holds, see `accepts`; False also where the budget does
            not allow the question.
        """
        if self.affords_all():
            return self.accepts(x_cf, self.ask(x_cf, cached=cached))
        able = self.affords()
        asking = self.take(able)
        accepted = torch.zeros_like(able)
        trial = x_cf[able]
        accepted[able] = asking.accepts(trial, asking.ask(trial, cached=cached))
        return accepted

    def lead(self, verdict: Verdict) -> Tensor:
        """Return by how much the target's score leads in a verdict, (n,)."""
        return lead(verdict.score, self.target)

    def p_target(self, verdict: Verdict) -> Tensor:
        """Return P(target) in a verdict, (n,)."""
        return target_value(verdict.proba, self.target)

    # --- candidates

    def project(self, x_cf: Tensor) -> Tensor:
        """Bring one candidate per task within the constraints; gradients pass."""
        limits = self.feasible_set
        return x_cf if limits is None else limits.project(x_cf, self.x)

    def best_attempts(self) -> Tensor:
        """Return the best candidate the model was asked about for each task's instance."""
        return self.oracle.states.best_x_cf[self.row]

    def candidates(self, x_cf: Tensor, **info: Tensor) -> Candidates:
        """Return one counterfactual per task, with what the method has to tell about it.

        Parameters
        ----------
        x_cf : Tensor of shape (n, *shape)
            The counterfactuals.
        **info : Tensor of shape (n, ...)
            Values for `Counterfactuals.info`; the method declares the names in `info_keys`.

        Returns
        -------
        Candidates
            What `_explain` returns.
        """
        return Candidates(self, x_cf, dict(info))
