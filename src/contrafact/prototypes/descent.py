"""Parts of a gradient descent that users choose: optimizers, lookahead, averages."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from ..validation import Integer, Real
from .option_rules import read_options

OPTIMIZERS = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "nadam": torch.optim.NAdam,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
}
DEFAULT_LEARNING_RATE = 0.05


def make_optimizer(
    choice: Any,
    learning_rate: float | None,
    groups: Mapping[str, list[Tensor]],
    shares: Mapping[str, float],
) -> Any:
    """Build an optimizer of groups of parameters.

    Parameters
    ----------
    choice : str, torch optimizer class or torch optimizer
        A name of `OPTIMIZERS`, a class, or an instance whose class and settings are used.
    learning_rate : float or None
        Step; None: 0.05, or that of the instance.
    groups : mapping of str to list of Tensor
        The parameters to train, by group.
    shares : mapping of str to float
        The steps of some groups, as shares of the learning rate; 1 for the others.

    Returns
    -------
    torch optimizer
        With one parameter group for each group, in the same order.

    Raises
    ------
    ValueError
        If an instance is given together with a learning rate, or if the optimizer evaluates the
        loss several times a step.
    """
    if isinstance(choice, torch.optim.Optimizer):
        if learning_rate is not None:
            raise ValueError(
                "learning_rate must be None where optimizer is an instance, which has its own; "
                f"got {learning_rate}."
            )
        kind: Any = type(choice)
        settings = _settings_of(choice)
    else:
        kind = OPTIMIZERS[choice] if isinstance(choice, str) else choice
        settings = {"lr": DEFAULT_LEARNING_RATE if learning_rate is None else learning_rate}
    _require_one_evaluation(kind)
    steps = []
    for name, group in groups.items():
        step = settings["lr"] * shares.get(name, 1.0)
        steps.append({"params": group, "lr": step})
    return kind(steps, **settings)


def _settings_of(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return the settings that the class of an optimizer takes."""
    known = inspect.signature(type(optimizer)).parameters
    return {name: value for name, value in optimizer.defaults.items() if name in known}


def _require_one_evaluation(kind: Any) -> None:
    """Refuse optimizers such as LBFGS, whose step needs a closure."""
    closure = inspect.signature(kind.step).parameters["closure"]
    if closure.default is inspect.Parameter.empty:
        raise ValueError(
            f"optimizer {kind.__name__} evaluates the loss several times a step, which is not "
            "supported here; use another one, e.g. 'adam'."
        )


class Lookahead:
    """Move the weights back part of the way they came, every k steps.

    Parameters
    ----------
    groups : iterable of list of Tensor
        The parameters.
    k : int
        Steps between two moves, at least 1.
    share : float, default=0.5
        Share of the way that is kept, from 0 to 1.

    References
    ----------
    Zhang, Lucas, Hinton, Ba: Lookahead optimizer: k steps forward, 1 step back. NeurIPS 2019.
    """

    def __init__(
        self,
        groups: Iterable[list[Tensor]],
        k: int,
        share: float = 0.5,
    ) -> None:
        self.k = k
        self.share = share
        self.count = 0
        self.fast = [parameter for group in groups for parameter in group]
        self.slow = [parameter.detach().clone() for parameter in self.fast]

    @classmethod
    def of(
        cls,
        groups: Iterable[list[Tensor]],
        choice: int | Mapping[str, Any] | None,
    ) -> Lookahead | None:
        """Read the option `lookahead`: the steps, or a dictionary with `sync_period` and more."""
        if choice is None:
            return None
        if not isinstance(choice, Mapping):
            return cls(groups, choice)
        return cls(groups, choice.get("sync_period", 6), choice.get("slow_step_size", 0.5))

    @torch.no_grad()
    def __call__(self) -> None:
        """Count a step, and move the weights back if it is the k-th."""
        self.count += 1
        if self.count % self.k == 0:
            for slow, fast in zip(self.slow, self.fast, strict=True):
                slow.lerp_(fast, self.share)
                fast.copy_(slow)


def check_lookahead(choice: Any) -> None:
    """Refuse a dictionary for `lookahead` with other entries than `Lookahead.of` takes."""
    if not isinstance(choice, Mapping):
        return
    accepted = {
        "sync_period": Integer(at_least=1),
        "slow_step_size": Real(above=0, at_most=1),
    }
    read_options("lookahead", choice, accepted, "a dictionary for it")


def running_average(module: nn.Module, decay: float) -> AveragedModel:
    """Start an exponential moving average of a module's weights.

    Parameters
    ----------
    module : nn.Module
        The module.
    decay : float
        Share of the old average after an update, between 0 and 1.

    Returns
    -------
    AveragedModel
        Call its `update_parameters(module)` after every step.
    """
    average = get_ema_multi_avg_fn(decay)
    return AveragedModel(module, multi_avg_fn=average, use_buffers=True)
