"""Loss and gradient of a search that asks the model: exact, or by finite differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ..engine import Tasks
from ..engine.acceptance import accepts, endorse
from ..models.verdict import Verdict, lead, target_value
from ..numerics import zeroth_order_gradient
from ..validation import brief
from .arguments import read_candidates

#: (tasks, code) → candidates
Decode = Callable[[Tasks, Tensor], Tensor]
#: (tasks, θ, step number) → code; called once a step for every task
Encode = Callable[[Tasks, Tensor, int], Tensor]
GradientKind = Literal["auto", "finite_difference", "none"]


@dataclass(frozen=True)
class Point:
    """Describe where some tasks are at step t.

    Parameters
    ----------
    tasks : Tasks
        The tasks still at work.
    theta, code, x_cf : Tensor of shape (m, ...)
        θ, its code, and the candidates.
    score : Tensor of shape (m, classes)
        The model's scores of the candidates.
    t : int
        Number of the step.
    """

    tasks: Tasks
    theta: Tensor
    code: Tensor
    x_cf: Tensor
    score: Tensor
    t: int

    @property
    def target(self) -> Tensor:
        """Class wanted, (m,)."""
        return self.tasks.target

    @property
    def goal(self) -> Tensor:
        """Least P(target) to reach, (m,), in the precision of the scores."""
        return self.tasks.goal.to(self.score)

    @property
    def log_p_target(self) -> Tensor:
        """The model's log P(target), (m,)."""
        return target_value(self.score.log_softmax(1), self.tasks.target)

    @property
    def p_target(self) -> Tensor:
        """The probability to climb on, (m,).

        The larger of softmax(score) and softmax(score / T), where T, unless it is given, puts the
        instance itself at odds of exp(-3) for its target. Far from the target a saturated model so
        keeps a slope to follow; near it the model's own probability takes over and saturates.
        """
        own = self.score.log_softmax(1)
        tempered = (self.score / self.tasks["temperature"][:, None]).log_softmax(1)
        return target_value(torch.maximum(own, tempered), self.tasks.target).exp()


#: the loss of every task at a point, (m,)
Loss = Callable[[Point], Tensor]


@dataclass(frozen=True)
class Evaluation:
    """What is known of some tasks after asking the model.

    Parameters
    ----------
    code : Tensor of shape (m, ...)
        The codes evaluated.
    loss : Tensor of shape (m,)
        Their loss.
    gradient : Tensor of shape (m, ...)
        Gradient of the loss with respect to θ.
    p_target : Tensor of float64, shape (m,)
        The model's own P(target).
    reached : Tensor of bool, shape (m,)
        Whether the candidate is accepted at any P(target): the model clearly decides for the
        target, every test is passed and the committee agrees.
    """

    code: Tensor
    loss: Tensor
    gradient: Tensor
    p_target: Tensor
    reached: Tensor

    def is_usable(self) -> Tensor:
        """Return where loss and gradient are finite, (m,)."""
        # A finite sum implies finite numbers; in float64 that of finite ones does not overflow.
        total = self.gradient.flatten(1).sum(1, dtype=torch.float64)
        return self.loss.isfinite() & total.isfinite()

    @staticmethod
    def concat(parts: list[Evaluation]) -> Evaluation:
        """Join the evaluations of consecutive tasks."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return Evaluation(*(torch.cat(column) for column in columns))


class ModelGradient:
    """Evaluate loss and gradient in memory-bounded parts; parameters as for `minimize`.

    Attributes
    ----------
    exact : bool
        Whether gradients come from the model itself.
    by_differences : bool
        Whether they come from finite differences.
    """

    def __init__(
        self,
        tasks: Tasks,
        decode: Decode,
        loss: Loss,
        encode: Encode | None = None,
        gradients: GradientKind = "auto",
        difference: float = 0.05,
        n_directions: int = 32,
    ) -> None:
        self.decode = decode
        self.loss = loss
        self.encode = encode
        self.exact = gradients == "auto" and tasks.oracle.classifier.differentiable
        self.by_differences = gradients != "none" and not self.exact
        self.difference = difference
        self.n_directions = n_directions

    def cost(self, code: Tensor) -> int:
        """Return the number of questions that one evaluation of a task takes."""
        if not self.by_differences or len(code) == 0:
            return 1
        return 1 + 2 * min(self.n_directions, code[0].numel())

    def evaluate(self, tasks: Tasks, theta: Tensor, t: int) -> Evaluation:
        """Evaluate θ of the tasks at step t.

        Parameters
        ----------
        tasks : Tasks
            The tasks still at work.
        theta : Tensor of shape (m, ...)
            Their θ.
        t : int
            Number of the step.

        Returns
        -------
        Evaluation
            Code, loss, gradient, P(target) and decision of the first tasks: of all, unless the
            deadline comes before.
        """
        deadline = tasks.oracle.meter.deadline
        classifier = tasks.classifier
        evaluate = self._exact if self.exact else self._by_answers
        limit = classifier.internal_batch(tasks.x)
        size = deadline.batch_size(classifier, limit)
        if len(tasks) <= size:
            return evaluate(tasks, theta, t)
        parts: list[Evaluation] = []
        left = torch.arange(len(tasks), device=tasks.row.device)
        while len(left) and not (parts and deadline.expired):
            some = left[:size]
            parts.append(evaluate(tasks.take(some), theta[some], t))
            left = left[size:]
            size = deadline.batch_size(classifier, limit)
        return Evaluation.concat(parts)

    def _exact(self, tasks: Tasks, theta: Tensor, t: int) -> Evaluation:
        """Differentiate through the model."""
        theta = theta.detach().requires_grad_()
        code = theta if self.encode is None else self.encode(tasks, theta, t)
        x_cf = self._candidates(tasks, code)
        with tasks.oracle.meter.deadline.timing(tasks.classifier, len(tasks)):
            score = tasks.oracle.scores(x_cf, tasks.row)
            loss = self._losses(Point(tasks, theta, code, x_cf, score, t))
            (gradient,) = torch.autograd.grad(loss.sum(), theta)
        plain = score.detach()
        verdict = Verdict(plain.double().softmax(1), plain.argmax(1), plain)
        return _evaluation(tasks, code, x_cf, loss, gradient, verdict)

    def _candidates(self, tasks: Tasks, code: Tensor) -> Tensor:
        """Decode, and check that there is one candidate per task."""
        x_cf = self.decode(tasks, code)
        return read_candidates(x_cf, "what decode returns", tasks, finite=False)

    def _losses(self, point: Point) -> Tensor:
        """Compute the loss, and check that there is one per task."""
        loss = self.loss(point)
        if not isinstance(loss, Tensor) or loss.shape != (len(point.tasks),):
            raise TypeError(
                f"loss must return a Tensor of shape ({len(point.tasks)},), got {brief(loss)}."
            )
        return loss

    def _by_answers(self, tasks: Tasks, theta: Tensor, t: int) -> Evaluation:
        """Differentiate the loss; what the model contributes comes from finite differences."""
        theta = theta.detach().requires_grad_()
        code = theta if self.encode is None else self.encode(tasks, theta, t)
        x_cf = self._candidates(tasks, code)
        verdict = tasks.ask(x_cf.detach())
        score = verdict.score.to(theta.dtype)
        if not self.by_differences:
            loss = self._losses(Point(tasks, theta, code, x_cf, score, t))
            (gradient,) = torch.autograd.grad(loss.sum(), theta)
            return _evaluation(tasks, code, x_cf, loss, gradient, verdict)
        score.requires_grad_()
        loss = self._losses(Point(tasks, theta, code, x_cf, score, t))
        gradient, by_score = torch.autograd.grad(
            loss.sum(),
            (theta, score),
            retain_graph=self.encode is not None,
            materialize_grads=True,
        )
        by_code = self._finite_differences(tasks, code.detach(), by_score, t)
        if self.encode is not None:
            (by_code,) = torch.autograd.grad(code, theta, by_code)
        return _evaluation(tasks, code, x_cf, loss, gradient + by_code, verdict)

    def _finite_differences(
        self,
        tasks: Tasks,
        code: Tensor,
        by_score: Tensor,
        t: int,
    ) -> Tensor:
        """Return ∂L/∂score · ∂score/∂code, the second factor by central differences.

        Directions are new in each step.
        """
        copies = min(self.n_directions, code[0].numel())
        task = torch.arange(len(code), device=code.device)
        asked = task.repeat_interleave(copies).repeat(2)  # both ends of every direction
        asking = tasks.take(asked)
        weight = by_score[asked]

        def value(perturbed: Tensor) -> Tensor:
            verdict = asking.ask(self.decode(asking, perturbed))
            return (weight * verdict.score.to(code.dtype)).sum(1)

        return zeroth_order_gradient(
            value,
            code,
            tasks.seeds(t),
            n_directions=self.n_directions,
            scale=self.difference,
            directions="rademacher",
        )


def with_temperature(tasks: Tasks, given: float | None = None) -> Tasks:
    """Attach T of `Point.p_target`: as given, or a third of what the target trails by."""
    behind = -lead(tasks.before.score, tasks.target)
    temperature = behind.clamp_min(1e-3).to(tasks.x.dtype) / 3
    if given is not None:
        temperature = torch.full_like(temperature, given)
    return tasks.attach(temperature=temperature)


def _evaluation(
    tasks: Tasks,
    code: Tensor,
    x_cf: Tensor,
    loss: Tensor,
    gradient: Tensor,
    verdict: Verdict,
) -> Evaluation:
    code = code.detach()
    return Evaluation(
        code=code,
        loss=loss.detach().to(code.dtype),
        gradient=gradient,
        p_target=target_value(verdict.proba, tasks.target),
        reached=endorse(tasks, x_cf, accepts(verdict, tasks.target)),
    )
