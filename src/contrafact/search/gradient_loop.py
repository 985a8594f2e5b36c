"""The gradient loop: a parametrization, a loss and a step, for all tasks at once.

    θ ← step(θ, ∇_θ L),    L = loss(θ, x', scores of x'),    x' = decode(code),    code = encode(θ)

A method says how θ becomes a candidate, what to minimize and how to step. The loop does the rest:
exact gradients where the model has them and finite differences where not; tasks that are done leave
at once; the best iterate of every task is kept; budgets; NaN and inf are caught by task.

Where θ is large (the weights of a network) and a small code lies between it and the candidate,
finite differences are taken in the code, and the best code is what is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..engine import Tasks
from ..numerics.tensors import read_tensor
from ..validation import (
    Boolean,
    Function,
    Instance,
    Integer,
    Nothing,
    OneOf,
    Real,
    Rule,
    Satisfies,
    check_parameters,
)
from .arguments import TASKS
from .gradients import (
    Decode,
    Encode,
    Evaluation,
    GradientKind,
    Loss,
    ModelGradient,
    with_temperature,
)
from .steps import Step

STOP_RULES = {
    "tau": Real(at_least=0, finite=False),
    "patience": Integer(at_least=1),
    "tolerance": Real(at_least=0),
    "max_iter": Integer(at_least=0),
    "consecutive": Boolean(),
}
#: model rows that finite differences leave for what follows: a line search, a fallback
SPARE = 24


@dataclass(frozen=True)
class Stop:
    """Define when a task is done: P(target) >= tau for `patience` steps, or the loss rests there.

    Parameters
    ----------
    tau : float
        Probability to reach.
    patience : int
        Steps at P(target) >= tau after which a task is done.
    tolerance : float
        A task at P(target) >= tau is done as soon as its loss changes by less than this.
    max_iter : int
        Largest number of steps.
    consecutive : bool, default=True
        Whether the steps must come in a row; otherwise all steps after the first such one count.
    """

    tau: float
    patience: int
    tolerance: float
    max_iter: int
    consecutive: bool = True

    def __post_init__(self) -> None:
        check_parameters("Stop", STOP_RULES, vars(self))


@dataclass
class Optimum:
    """Hold where the search ended for each task.

    The best iterate is the one of lowest loss among those that are accepted (by the whole rule) at
    P(target) >= tau, or else at any P, or else among all.

    Parameters
    ----------
    code : Tensor of shape (n, ...)
        Code of the best iterate.
    loss, p_target : Tensor of shape (n,)
        Its loss, and the model's P(target) there.
    standing : Tensor of int, shape (n,)
        0: not accepted, 1: accepted, 2: accepted at P(target) >= tau.
    iterations : Tensor of int, shape (n,)
        Steps taken.
    converged : Tensor of bool, shape (n,)
        Whether the task was done before the last step.
    """

    code: Tensor
    loss: Tensor
    p_target: Tensor
    standing: Tensor
    iterations: Tensor
    converged: Tensor

    @classmethod
    def start(cls, code: Tensor) -> Optimum:
        """Return the state before the first step: the code as given, an infinite loss."""
        n = len(code)
        return cls(
            code=code.clone(),
            loss=code.new_full((n,), torch.inf),
            p_target=code.new_zeros(n, dtype=torch.float64),
            standing=code.new_zeros(n, dtype=torch.long),
            iterations=code.new_zeros(n, dtype=torch.long),
            converged=code.new_zeros(n, dtype=torch.bool),
        )

    @property
    def reached(self) -> Tensor:
        """Whether the best iterate is accepted, (n,)."""
        return self.standing > 0

    def put(self, which: Tensor, part: Optimum) -> None:
        """Take over the results of some tasks.

        Parameters
        ----------
        which : Tensor of bool or of positions
            The tasks.
        part : Optimum
            Their results, in order.
        """
        for name, values in vars(part).items():
            getattr(self, name)[which] = values

    def update(
        self,
        position: Tensor,
        now: Evaluation,
        standing: Tensor,
        usable: Tensor,
    ) -> None:
        """Keep the iterates that are better than the best so far.

        Parameters
        ----------
        position : Tensor of int, shape (m,)
            Which tasks the iterates belong to.
        now : Evaluation
            The iterates.
        standing : Tensor of int, shape (m,)
            Their standing.
        usable : Tensor of bool, shape (m,)
            Where loss and gradient are finite.
        """
        known = self.standing[position]
        lower_loss = (standing == known) & (now.loss < self.loss[position])
        # Positions, not a mask: a mask would be counted, and waited for, at each use.
        better = (usable & ((standing > known) | lower_loss)).nonzero().flatten()
        won = position[better]
        # Whole rows are copied faster so than by indexing.
        self.code.index_copy_(0, won, now.code.index_select(0, better))
        self.loss[won] = now.loss[better]
        self.p_target[won] = now.p_target[better]
        self.standing[won] = standing[better]
        self.iterations[position] += 1


@dataclass
class _Run:
    """What the loop carries from step to step for the tasks still at work."""

    tasks: Tasks
    theta: Tensor
    step: Step
    loss: Tensor
    streak: Tensor

    def keep(self, which: Tensor) -> None:
        """Let all tasks leave but those of a mask."""
        self.tasks = self.tasks.take(which)
        self.theta = self.theta[which]
        self.loss = self.loss[which]
        self.streak = self.streak[which]
        self.step.keep(which)

    def leave_unanswered(self, now: Evaluation) -> None:
        """Let the tasks leave that the deadline left no time for."""
        asked = len(now.loss)
        if asked < len(self.tasks):
            self.tasks.affords()  # notes that their budget is spent
            self.keep(torch.arange(len(self.tasks), device=now.loss.device) < asked)

    def is_done(self, now: Evaluation, above: Tensor, stop: Stop) -> Tensor:
        """Return which tasks are done after this evaluation; `above`: at P(target) >= tau."""
        counted = above if stop.consecutive else above | (self.streak > 0)
        self.streak = torch.where(counted, self.streak + 1, 0)
        rests = above & ((now.loss - self.loss).abs() < stop.tolerance)
        self.loss = now.loss
        return (self.streak >= stop.patience) | rests


def _is_interval(value: Any) -> bool:
    """Return whether a value is a pair of numbers, the smaller one first."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        return False
    return all(map(Real(finite=False).accepts, value)) and value[0] <= value[1]


MINIMIZE_RULES: dict[str, Rule] = {
    "tasks": TASKS,
    "decode": Function("tasks", "a code"),
    "loss": Function("a point"),
    "step": Function("theta", "its gradient", "its loss"),
    "stop": Instance(Stop),
    "clamp": Satisfies(_is_interval, "a pair of numbers, the smaller one first,") | Nothing(),
    "encode": Function("tasks", "theta", "a step number") | Nothing(),
    "gradients": OneOf("auto", "finite_difference", "none"),
    "difference": Real(above=0),
    "n_directions": Integer(at_least=1, at_most=10**6),
    "temperature": Real(above=0) | Nothing(),
}


def minimize(
    tasks: Tasks,
    start: Tensor,
    decode: Decode,
    loss: Loss,
    step: Step,
    stop: Stop,
    *,
    clamp: tuple[float, float] | None = None,
    encode: Encode | None = None,
    start_code: Tensor | None = None,
    gradients: GradientKind = "auto",
    difference: float = 0.05,
    n_directions: int = 32,
    temperature: float | None = None,
) -> Optimum:
    """Minimize a loss over θ for every task.

    Callbacks get the tasks still at work; `tasks["position"]` is their place among all.

    Parameters
    ----------
    tasks : Tasks
        What to find counterfactuals for.
    start : Tensor of shape (n, ...)
        θ to start from.
    decode : function of (tasks, code)
        Makes candidates; constraints are applied here, and gradients pass through them.
    loss : function of a Point
        The loss of every task, (m,).
    step : Step
        How θ moves.
    stop : Stop
        When a task is done.
    clamp : tuple of float, optional
        Interval that θ is clipped to after every step.
    encode : function of (tasks, theta, t), optional
        Makes the code from θ at step t; default: θ is the code.
    start_code : Tensor of shape (n, ...), optional
        The code of `start`, where `encode` is given.
    gradients : {"auto", "finite_difference", "none"}, default="auto"
        Gradients of the model: exact where it has them and by finite differences where not; by
        finite differences always; or none, for a loss that does not look at the scores.
    difference : float, default=0.05
        Width of the finite differences in the code.
    n_directions : int, default=32
        Number of directions of the finite differences.
    temperature : float, optional
        T of `Point.p_target`; default: by how far the target trails, per task.

    Returns
    -------
    Optimum
        The best iterate of every task.
    """
    given = {name: value for name, value in locals().items() if name in MINIMIZE_RULES}
    check_parameters("minimize", MINIMIZE_RULES, given)
    start = read_tensor(start, "start", (len(tasks), "..."))
    if start_code is not None:
        start_code = read_tensor(start_code, "start_code", (len(tasks), "...")).to(start)
    model = ModelGradient(
        tasks,
        decode,
        loss,
        encode,
        gradients,
        difference,
        n_directions,
    )
    best = Optimum.start(start if start_code is None else start_code)
    cost = model.cost(best.code)
    if model.by_differences:
        cost += SPARE
    position = torch.arange(len(tasks), device=start.device)
    tasks = with_temperature(tasks.attach(position=position), temperature)
    run = _Run(tasks, start, step, best.loss.clone(), best.iterations.clone())
    for t in range(stop.max_iter):
        if not run.tasks.affords_all(cost):
            run.keep(run.tasks.affords(cost))
        if len(run.tasks) == 0:
            break
        now = model.evaluate(run.tasks, run.theta, t)
        run.leave_unanswered(now)
        usable = now.is_usable()
        position = run.tasks["position"]
        above = now.reached & (now.p_target >= stop.tau)
        best.update(position, now, now.reached.long() + above, usable)
        done = run.is_done(now, above, stop)
        best.converged[position] = done
        moved = step(run.theta, now.gradient, now.loss)
        run.theta = read_tensor(
            moved, "what step returns", tuple(run.theta.shape), finite=False
        ).to(start)
        if clamp is not None:
            run.theta = run.theta.clamp(*clamp)
        leaving = done | ~usable
        if bool(leaving.any()):
            run.tasks.fail(~usable, "the gradient search met NaN or inf")
            run.tasks.finished(int(leaving.sum()))
            run.keep(~leaving)
    return best
