"""Schedules of the learning rate by name, made of torch's own; they count in epochs."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.optim import lr_scheduler

from ..validation import Integer, ListOf, Real, Rule, brief
from .option_rules import read_options

#: a function of the optimizer that returns a torch scheduler
Scheduler = Callable[[torch.optim.Optimizer], Any]
Optimizer = torch.optim.Optimizer

_EPOCHS = Integer(at_least=1, at_most=10**9)
_FACTOR = Real(above=0, at_most=1)
_VALUES: dict[str, Rule] = {
    "gamma": _FACTOR,
    "T_max": _EPOCHS,
    "eta_min": Real(at_least=0),
    "factor": Real(above=0, below=1),
    "patience": Integer(at_least=0),
    "power": Real(above=0),
    "total_iters": _EPOCHS,
    "end_factor": Real(at_least=0, at_most=1),
    "milestones": ListOf(_EPOCHS, "whole numbers at least 1"),
    "T_0": _EPOCHS,
    "T_mult": _EPOCHS,
    "warmup": _EPOCHS,
    "start_factor": _FACTOR,
}


def _cosine(optimizer: Optimizer, n: int, T_max: int | None = None, eta_min: float = 0.0) -> Any:
    length = T_max or n
    return lr_scheduler.LambdaLR(optimizer, lambda t: _cosine_share(optimizer, eta_min, t / length))


def _cosine_share(optimizer: Optimizer, eta_min: float, progress: float) -> float:
    """Return the share of a step that is left; `eta_min` of the learning rate at the end.

    torch's own cosine brings the steps of all groups to `eta_min` itself, also those that are a
    small share of the learning rate, which would grow.
    """
    floor = eta_min / optimizer.defaults["lr"] if eta_min else 0.0
    return floor + (1 - floor) * (1 + math.cos(math.pi * progress)) / 2


def _plateau(optimizer: Optimizer, n: int, factor: float = 0.5, patience: int = 5) -> Any:
    return lr_scheduler.ReduceLROnPlateau(optimizer, factor=factor, patience=patience)


def _exponential(optimizer: Optimizer, n: int, gamma: float | None = None) -> Any:
    # Without gamma, a hundredth of the step is left at the end.
    return lr_scheduler.ExponentialLR(optimizer, gamma or 0.01 ** (1 / n))


def _polynomial(
    optimizer: Optimizer, n: int, total_iters: int | None = None, power: float = 2.0
) -> Any:
    return lr_scheduler.PolynomialLR(optimizer, total_iters or n, power)


def _linear(
    optimizer: Optimizer, n: int, total_iters: int | None = None, end_factor: float = 0.0
) -> Any:
    return lr_scheduler.LinearLR(optimizer, 1.0, end_factor, total_iters or n)


def _piecewise(
    optimizer: Optimizer, n: int, milestones: list[int] | None = None, gamma: float = 0.1
) -> Any:
    where = [max(1, n // 2), max(1, 3 * n // 4)] if milestones is None else sorted(milestones)
    return lr_scheduler.MultiStepLR(optimizer, where, gamma)


def _restarts(
    optimizer: Optimizer,
    n: int,
    T_0: int | None = None,
    T_mult: int = 1,
    eta_min: float = 0.0,
) -> Any:
    first = T_0 or max(1, n // 4)

    def share(t: int) -> float:
        length = first
        while t >= length:
            t -= length
            length *= T_mult
        return _cosine_share(optimizer, eta_min, t / length)

    return lr_scheduler.LambdaLR(optimizer, share)


def _warmup_constant(
    optimizer: Optimizer, n: int, warmup: int | None = None, start_factor: float = 0.1
) -> Any:
    return lr_scheduler.LinearLR(optimizer, start_factor, total_iters=warmup or max(1, n // 10))


def _after_warmup(
    follow: Callable[..., Any],
    optimizer: Optimizer,
    n: int,
    warmup: int | None,
    start_factor: float,
    **options: Any,
) -> Any:
    """Let the steps grow from a share of the learning rate, then follow another schedule."""
    warmup = warmup or max(1, n // 10)
    rise = lr_scheduler.LinearLR(optimizer, start_factor, total_iters=warmup)
    rest = follow(optimizer, max(1, n - warmup), **options)
    return lr_scheduler.SequentialLR(optimizer, [rise, rest], [warmup])


def _warmup_cosine(
    optimizer: Optimizer,
    n: int,
    warmup: int | None = None,
    start_factor: float = 0.1,
    eta_min: float = 0.0,
) -> Any:
    return _after_warmup(_cosine, optimizer, n, warmup, start_factor, eta_min=eta_min)


def _warmup_exponential(
    optimizer: Optimizer,
    n: int,
    warmup: int | None = None,
    start_factor: float = 0.1,
    gamma: float | None = None,
) -> Any:
    return _after_warmup(_exponential, optimizer, n, warmup, start_factor, gamma=gamma)


#: by name: a function of the optimizer, the number of epochs and options
SCHEDULES: dict[str, Callable[..., Any]] = {
    "cosine": _cosine,
    "plateau": _plateau,
    "exponential": _exponential,
    "polynomial": _polynomial,
    "linear": _linear,
    "piecewise": _piecewise,
    "restarts": _restarts,
    "warmup_constant": _warmup_constant,
    "warmup_cosine": _warmup_cosine,
    "warmup_exponential": _warmup_exponential,
}


def check_schedule(choice: str | Scheduler | None, options: Mapping[str, Any] | None) -> None:
    """Refuse options that a schedule does not take, or values that it does not accept.

    Parameters
    ----------
    choice : str, function or None
        As for `make_schedule`.
    options : mapping of str to object, or None
        The options given.
    """
    if options is None:
        return
    if not isinstance(choice, str):
        raise ValueError(
            "scheduler_options needs a scheduler by name, one of "
            f"{', '.join(map(repr, SCHEDULES))}; got {brief(choice)}."
        )
    _, _, *names = inspect.signature(SCHEDULES[choice]).parameters
    accepted = {name: _VALUES[name] for name in names}
    read_options("scheduler_options", options, accepted, f"scheduler={choice!r}")


def make_schedule(
    choice: str | Scheduler | None,
    optimizer: Optimizer,
    n_epochs: int,
    options: Mapping[str, Any] | None = None,
) -> Callable[[float], None]:
    """Build the function that adapts the step after an epoch.

    Parameters
    ----------
    choice : str, function of the optimizer, or None
        A name of `SCHEDULES`, a function that returns a torch scheduler, or constant steps.
    optimizer : torch optimizer
        Whose steps are adapted.
    n_epochs : int
        Number of epochs.
    options : mapping of str to object, optional
        Arguments of a schedule by name.

    Returns
    -------
    function of float
        To be called after every epoch with its mean loss.
    """
    if choice is None:
        return lambda mean: None
    if isinstance(choice, str):
        scheduler = SCHEDULES[choice](optimizer, max(n_epochs, 1), **(options or {}))
    else:
        scheduler = _from_function(choice, optimizer)
    if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
        return lambda mean: scheduler.step(mean)
    return lambda mean: scheduler.step()


def _from_function(choice: Scheduler, optimizer: Optimizer) -> Any:
    """Call a user's function of the optimizer, and check what it returns."""
    try:
        scheduler = choice(optimizer)
    except TypeError as error:  # such as a torch class that needs more than the optimizer
        raise TypeError(
            f"scheduler must be a function of the optimizer alone, got {brief(choice)}: {error}."
        ) from error
    if not hasattr(scheduler, "step"):
        raise TypeError(
            "scheduler must be a function that returns a torch scheduler, it returned "
            f"{brief(scheduler)}."
        )
    return scheduler
