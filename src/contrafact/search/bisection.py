"""Bisection for all tasks at once: the smallest level whose candidate the model accepts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ..engine import Tasks
from ..validation import Boolean, Function, Integer, Rule, check_parameters
from .arguments import TASKS, read_candidates, read_levels

_RULES: dict[str, Rule] = {
    "tasks": TASKS,
    "candidate": Function("tasks", "levels"),
    "top": Integer(at_least=1, at_most=2**31),
    "top_accepted": Boolean(),
    "steps": Integer(at_least=0, at_most=50),
}
#: makes one candidate per task at the given levels
MakeCandidate = Callable[[Tasks, Tensor], Tensor]


def smallest_level(
    tasks: Tasks,
    candidate: MakeCandidate,
    top: int | Tensor,
    *,
    above: Tensor | None = None,
    top_accepted: bool = False,
) -> tuple[Tensor, Tensor]:
    """Find, for every task, the smallest level in 1, ..., top whose candidate the model accepts.

    Where acceptance is not monotone in the level, the answer is still a level that is accepted
    while one just below it is not. Tasks whose top level is not accepted stay there.

    Parameters
    ----------
    tasks : Tasks
        What to find counterfactuals for.
    candidate : function of (tasks, level)
        Makes one candidate per task, at the levels given (Tensor of int, one per task).
    top : int or Tensor of shape (n,)
        The highest level of each task.
    above : Tensor of shape (n,), optional
        Levels known not to be accepted; default: 0.
    top_accepted : bool, default=False
        Whether the top level is known to be accepted, which saves asking about it.

    Returns
    -------
    level : Tensor of int, shape (n,)
        The levels found.
    x_cf : Tensor of shape (n, *shape)
        Their candidates.
    """
    given = {"tasks": tasks, "candidate": candidate, "top_accepted": top_accepted}
    check_parameters("smallest_level", _RULES, given)
    low = read_levels(0 if above is None else above, "above", tasks, least=0)
    high = read_levels(top, "top", tasks, least=1)
    best = _candidates(tasks, candidate, high)
    if not top_accepted:
        low = torch.where(tasks.accepted(best), low, high)
    # Levels are kept on the host, which has to know when to stop.
    least, most = low.cpu().numpy(), high.cpu().numpy()
    device = high.device
    while True:
        position = np.flatnonzero(most - least > 1)
        searching = tasks
        if len(position) < len(tasks):
            searching = tasks.take(torch.from_numpy(position).to(device))
        if not searching.affords_all():
            able = searching.affords()
            position = position[able.cpu().numpy()]
            searching = searching.take(able)
        if len(position) == 0:
            return torch.from_numpy(most).to(device), best
        middle = (least[position] + most[position]) // 2
        trial = candidate(searching, torch.from_numpy(middle).to(device))
        good = searching.accepts(trial, searching.ask(trial)).cpu().numpy()
        reached = position[good]
        most[reached] = middle[good]
        least[position[~good]] = middle[~good]
        if len(reached):
            chosen = torch.from_numpy(np.flatnonzero(good)).to(device)
            best[torch.from_numpy(reached).to(device)] = trial[chosen]


def first_on_line(
    tasks: Tasks,
    end: Tensor,
    steps: int = 10,
) -> tuple[Tensor, Tensor]:
    """Find the first point the model accepts on the straight line from each instance to `end`.

    Parameters
    ----------
    tasks : Tasks
        What to find counterfactuals for.
    end : Tensor of shape (n, *shape)
        Where each line ends.
    steps : int, default=10
        Bisections; the point is found to within 2^-steps of the line.

    Returns
    -------
    share : Tensor of float64, shape (n,)
        How far along the line the point is; 1 where the model does not accept the end.
    x_cf : Tensor of shape (n, *shape)
        The points.
    """
    check_parameters("first_on_line", _RULES, {"tasks": tasks, "steps": steps})
    end = read_candidates(end, "end", tasks)
    # Odd, so that no point is half way: a nearest-neighbor model has a tie there, if the line leads
    # from one of its rows to another, and rounding, which depends on the batch, would decide.
    top = 2**steps + 1
    ones = [1] * (end.ndim - 1)

    def point(tasks: Tasks, level: Tensor) -> Tensor:
        share = (level.to(end) / top).reshape(-1, *ones)
        return tasks.project(torch.lerp(tasks.x, tasks["line_end"], share))

    level, x_cf = smallest_level(tasks.attach(line_end=end), point, top)
    return level.double() / top, x_cf


def accepted_from(
    tasks: Tasks,
    candidate: MakeCandidate,
    level: Tensor,
    top: int,
) -> tuple[Tensor, Tensor]:
    """Stay at a level where the model accepts it, else rise to the smallest one above that it does.

    Parameters
    ----------
    tasks : Tasks
        What to find counterfactuals for.
    candidate : function of (tasks, level)
        Makes one candidate per task.
    level : Tensor of int, shape (n,)
        Where to start.
    top : int
        The highest level.

    Returns
    -------
    level : Tensor of int, shape (n,)
        The levels found.
    x_cf : Tensor of shape (n, *shape)
        Their candidates.
    """
    given = {"tasks": tasks, "candidate": candidate, "top": top}
    check_parameters("accepted_from", _RULES, given)
    level = read_levels(level, "level", tasks, least=0)
    best = _candidates(tasks, candidate, level)
    able = tasks.affords()
    asking = tasks.take(able)
    accepted = torch.ones_like(able)
    trial = best[able]
    accepted[able] = asking.accepts(trial, asking.ask(trial))
    short = ~accepted
    if bool(short.any()):
        found = smallest_level(
            tasks.take(short),
            candidate,
            top,
            above=level[short],
        )
        level[short], best[short] = found
    return level, best


def best_known(tasks: Tasks, x_cf: Tensor) -> Tensor:
    """Replace candidates that the model does not accept by the best that was tried.

    Parameters
    ----------
    tasks : Tasks
        What the candidates are for.
    x_cf : Tensor of shape (n, *shape)
        The candidates; those with NaN are replaced as well.

    Returns
    -------
    Tensor of shape (n, *shape)
        The candidates with replacements.
    """
    check_parameters("best_known", _RULES, {"tasks": tasks})
    x_cf = read_candidates(x_cf, "x_cf", tasks, finite=False).clone()
    able = tasks.affords()
    asking = tasks.take(able)
    rejected = torch.zeros_like(able)
    trial = x_cf[able]
    rejected[able] = ~asking.accepts(trial, asking.ask(trial, cached=True))
    x_cf[rejected] = tasks.take(rejected).best_attempts()
    return x_cf


def _candidates(tasks: Tasks, candidate: MakeCandidate, level: Tensor) -> Tensor:
    """Make candidates, and check that there is one per task."""
    x_cf = candidate(tasks, level)
    return read_candidates(x_cf, "what candidate returns", tasks, finite=False)
