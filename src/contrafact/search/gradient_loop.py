"""The gradient loop: a parametrization × an objective × a step, for all rows at once.

    θ ← step(θ, ∇_θ L),    L = objective(θ, x', score of x'),    x' = decode(code(θ))

A method says how θ becomes a candidate, what to minimize and how to step. The loop does the rest: exact
gradients where the model has them and batched finite differences where not, rows that are done leave at once,
the best iterate of every row is kept, budgets, and NaN guards that name the row.

Where θ is large (the weights of a network) and a small code lies between it and the candidate, `code` says
so: finite differences are then taken in the code, and the best code is what is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from ..engine.batch import CLEAR_MARGIN, Batch, lead, target_value
from ..numerics.finite_differences import zeroth_order_gradient
from ..numerics.randomness import fold_in

#: the code of some entries, and which entries they are → candidates
Decode = Callable[[Tensor, Tensor], Tensor]
#: θ of some entries, which entries they are, and the step → code; called once a step for every entry
Code = Callable[[Tensor, Tensor, int], Tensor]
Slopes = Literal["best", "felt", "none"]


@dataclass(frozen=True)
class Point:
    """Where some entries are at step t: θ, its code, the candidates x', and the model's scores of them.

    `p_target` is the probability to climb on: the larger of softmax(score) and softmax(score / T), where T
    puts the instance itself at odds of e⁻³ for its target. Far from the target a saturated model so keeps a
    slope to follow; once there the model's own probability takes over and soon has had enough.
    """

    theta: Tensor
    code: Tensor
    x_cf: Tensor
    score: Tensor
    temperature: Tensor
    target: Tensor
    entries: Tensor
    t: int

    @property
    def p_target(self) -> Tensor:
        own = self.score.log_softmax(1)
        tempered = (self.score / self.temperature[:, None]).log_softmax(1)
        return target_value(torch.maximum(own, tempered), self.target).exp()


Objective = Callable[[Point], Tensor]


class Step(Protocol):
    """How to move: from θ, its gradient and its loss to the next θ. `keep` drops rows that have left."""

    def __call__(self, theta: Tensor, gradient: Tensor, loss: Tensor) -> Tensor: ...

    def keep(self, rows: Tensor) -> None: ...


class Adam:
    """Adam (Kingma, Ba 2015), every entry on its own: element-wise, so a batch is as many separate runs."""

    def __init__(
        self, lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ) -> None:
        self.lr, self.betas, self.eps = lr, betas, eps
        self.t = 0
        self.m = self.v = torch.empty(0)

    def __call__(self, theta: Tensor, gradient: Tensor, loss: Tensor) -> Tensor:
        if self.t == 0:
            self.m, self.v = torch.zeros_like(theta), torch.zeros_like(theta)
        self.t += 1
        b1, b2 = self.betas
        self.m = self.m.mul(b1).add_(gradient, alpha=1 - b1)
        self.v = self.v.mul(b2).addcmul_(gradient, gradient, value=1 - b2)
        scale = self.v.div(1 - b2**self.t).sqrt_().add_(self.eps)
        return theta - self.lr / (1 - b1**self.t) * self.m / scale

    def keep(self, rows: Tensor) -> None:
        if self.t:
            self.m, self.v = self.m[rows], self.v[rows]


class SteepestDescent:
    """Steps of a fixed length down the gradient, in a metric where element i costs w_i: d ∝ ∇_i / w_i.

    The length is the root mean square of the step, so it does not depend on the size of the instance.
    """

    def __init__(self, lr: float, weights: Tensor) -> None:
        self.lr, self.weights = lr, weights

    def __call__(self, theta: Tensor, gradient: Tensor, loss: Tensor) -> Tensor:
        direction = gradient / self.weights
        length = (
            direction.flatten(1).square().mean(1).sqrt().clamp_min(torch.finfo(theta.dtype).tiny)
        )
        return theta - self.lr * direction / length.reshape(-1, *[1] * (theta.ndim - 1))

    def keep(self, rows: Tensor) -> None:
        self.weights = self.weights[rows]


@dataclass(frozen=True)
class Stop:
    """When an entry is done: P(target) ≥ tau for `patience` steps, or the loss rests there.

    The steps must come in a row if `consecutive`; otherwise all steps after the first such one count.
    """

    tau: float
    patience: int
    tolerance: float
    max_iter: int
    consecutive: bool = True


@dataclass
class Optimum:
    """Where each entry ended: the code of its best iterate, its loss and P(target), and how it got there.

    Best is the lowest loss among iterates that the model puts in the target class at P ≥ tau, or else at any
    P, or else among all.
    """

    code: Tensor
    loss: Tensor
    p_target: Tensor
    iterations: Tensor
    converged: Tensor
    reached: Tensor

    @classmethod
    def start(cls, code: Tensor) -> Optimum:
        """Nothing found yet: the code as given, an infinite loss."""
        n = len(code)
        return cls(
            code=code.clone(),
            loss=code.new_full((n,), torch.inf),
            p_target=code.new_zeros(n, dtype=torch.float64),
            iterations=code.new_zeros(n, dtype=torch.long),
            converged=code.new_zeros(n, dtype=torch.bool),
            reached=code.new_zeros(n, dtype=torch.bool),
        )

    def put(self, entries: Tensor, part: Optimum) -> None:
        """Take over where some entries ended."""
        for name, values in vars(part).items():
            getattr(self, name)[entries] = values


def temperature(batch: Batch) -> Tensor:
    """Per row of the batch: a third of the score by which the target trails at the instance itself."""
    behind = -lead(batch.verdict.score, batch.target)
    return behind.clamp_min(1e-3).to(batch.x.dtype) / 3


def minimize(
    batch: Batch,
    rows: Tensor,
    theta: Tensor,
    decode: Decode,
    objective: Objective,
    step: Step,
    stop: Stop,
    clamp: tuple[float, float] | None = None,
    code: Code | None = None,
    start: Tensor | None = None,
    slopes: Slopes = "best",
    difference: float = 0.05,
    n_directions: int = 32,
) -> Optimum:
    """Minimize `objective` over θ for every entry; entry j works for row `rows[j]` of the batch.

    Parameters
    ----------
    theta : (entries, …) where to start.
    decode : code → candidates; constraints are applied here and gradients pass through them.
    clamp : θ is clipped to this interval after every step.
    code : θ → code, with the codes of `theta` in `start`; default: θ is the code.
    slopes : of the model: "best" (exact where it has gradients, else felt out), "felt" (by finite
        differences), "none" (the objective does not look at the score; the model only says who is there).
    difference, n_directions : width and number of finite differences in the code, for models without
        gradients.
    """
    model = ModelTerm(
        batch, rows, decode, temperature(batch)[rows], difference, n_directions, code, slopes
    )
    best = Optimum.start(theta if start is None else start)
    active = torch.arange(len(rows), device=theta.device)
    previous, streak, standing = best.loss.clone(), best.iterations.clone(), best.iterations.clone()
    for t in range(stop.max_iter):
        paying = batch.affords(rows[active], model.cost(best.code))
        active, theta, previous, streak = (
            active[paying],
            theta[paying],
            previous[paying],
            streak[paying],
        )
        if not bool(paying.all()):
            step.keep(paying)
        if len(active) == 0:
            break
        codes, loss, gradient, p, reached = model.evaluate(theta, active, t, objective)
        sound = loss.isfinite() & gradient.flatten(1).isfinite().all(1)
        batch.fail(rows[active[~sound]], "the gradient search met NaN or inf")

        above = reached & (p >= stop.tau)
        rank = reached.long() + above
        higher, level = rank > standing[active], rank == standing[active]
        better = sound & (higher | (level & (loss < best.loss[active])))
        won = active[better]
        standing[won] = rank[better]
        best.code[won], best.loss[won], best.p_target[won] = codes[better], loss[better], p[better]
        best.reached[won] = reached[better]
        best.iterations[active] += 1

        counts = above if stop.consecutive else above | (streak > 0)
        streak = torch.where(counts, streak + 1, 0)
        done = (streak >= stop.patience) | (above & ((loss - previous).abs() < stop.tolerance))
        best.converged[active[done]] = True
        left = ~done & sound
        previous = loss
        theta = step(theta, gradient, loss)
        if clamp is not None:
            theta = theta.clamp(*clamp)
        if not bool(left.all()):
            batch.progress(int((~left).sum()))
            active, theta, previous, streak = (
                active[left],
                theta[left],
                previous[left],
                streak[left],
            )
            step.keep(left)
    return best


class ModelTerm:
    """Loss and gradient of an objective that asks the model, in memory-bounded parts."""

    def __init__(
        self,
        batch: Batch,
        rows: Tensor,
        decode: Decode,
        temperature: Tensor,
        difference: float,
        n_directions: int,
        code: Code | None = None,
        slopes: Slopes = "best",
    ) -> None:
        self.batch, self.rows, self.decode, self.code = batch, rows, decode, code
        self.temperature, self.difference, self.n_directions = temperature, difference, n_directions
        self.exact = slopes == "best" and batch.classifier.differentiable
        self.felt = slopes != "none" and not self.exact

    def cost(self, code: Tensor) -> int:
        """Model rows one evaluation of an entry takes."""
        if not self.felt or len(code) == 0:
            return 1
        return 1 + 2 * min(self.n_directions, code[0].numel())

    def evaluate(
        self, theta: Tensor, entries: Tensor, t: int, objective: Objective
    ) -> tuple[Tensor, ...]:
        """Per entry: code, loss, gradient, the model's own P(target), and whether it clearly decides so."""
        size = self.batch.classifier.internal_batch(self.batch.x)
        parts = [
            self._part(some, e, t, objective)
            for some, e in zip(theta.split(size), entries.split(size), strict=True)
        ]
        if len(parts) == 1:
            return parts[0]
        return tuple(torch.cat(column) for column in zip(*parts, strict=True))

    def _part(
        self, theta: Tensor, entries: Tensor, t: int, objective: Objective
    ) -> tuple[Tensor, ...]:
        rows = self.rows[entries]
        target = self.batch.target[rows]
        theta = theta.detach().requires_grad_()
        code = theta if self.code is None else self.code(theta, entries, t)
        x_cf = self.decode(code, entries)
        if self.exact:
            self.batch.meter.charge(rows)
            score = self.batch.classifier.logits(x_cf)
            proba, label = score.detach().double().softmax(1), score.argmax(1)
        else:
            verdict = self.batch.ask(x_cf.detach(), rows)
            proba, label, score = verdict.proba, verdict.label, verdict.score.to(theta.dtype)
            score.requires_grad_(self.felt)
        loss = objective(
            Point(theta, code, x_cf, score, self.temperature[entries], target, entries, t)
        )
        if not self.felt:
            (gradient,) = torch.autograd.grad(loss.sum(), theta)
        else:
            gradient, toward = torch.autograd.grad(
                loss.sum(),
                (theta, score),
                retain_graph=self.code is not None,
                materialize_grads=True,
            )
            felt = self._feel(code.detach(), entries, rows, toward, t)
            gradient = gradient + (
                felt if self.code is None else torch.autograd.grad(code, theta, felt)[0]
            )
        reached = (label == target) & (lead(proba, target) >= CLEAR_MARGIN)
        return (
            code.detach(),
            loss.detach().to(code.dtype),
            gradient,
            target_value(proba, target),
            reached,
        )

    def _feel(
        self,
        code: Tensor,
        entries: Tensor,
        rows: Tensor,
        toward: Tensor,
        t: int,
    ) -> Tensor:
        """∂L/∂score · ∂score/∂code, the second factor by central differences, in new directions each step."""
        copies = min(self.n_directions, code[0].numel())
        which = torch.arange(len(code), device=code.device).repeat_interleave(copies).repeat(2)

        def along(perturbed: Tensor) -> Tensor:
            verdict = self.batch.ask(self.decode(perturbed, entries[which]), rows[which])
            return (toward[which] * verdict.score.to(code.dtype)).sum(1)

        seeds = fold_in(self.batch.seeds[rows.cpu().numpy()], t)
        return zeroth_order_gradient(
            along,
            code,
            seeds,
            n_directions=self.n_directions,
            scale=self.difference,
            directions="rademacher",
        )
