"""Parts of a gradient descent that users choose: optimizers, schedules, averages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from ..validation import brief

OPTIMIZERS = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "nadam": torch.optim.NAdam,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
}
DEFAULT_LEARNING_RATE = 0.05
Scheduler = Callable[[torch.optim.Optimizer], Any]


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


def make_schedule(
    choice: str | Scheduler | None,
    optimizer: torch.optim.Optimizer,
    n_epochs: int,
) -> Callable[[float], None]:
    """Build the function that adapts the step after an epoch.

    Parameters
    ----------
    choice : {"cosine", "plateau"}, function of the optimizer, or None
        Cosine annealing to zero, halving where the loss stops falling, a function that returns a
        torch scheduler, or constant steps.
    optimizer : torch optimizer
        Whose steps are adapted.
    n_epochs : int
        Number of epochs, for "cosine".

    Returns
    -------
    function of float
        To be called after every epoch with its mean loss.
    """
    schedulers = torch.optim.lr_scheduler
    if choice is None:
        return lambda mean: None
    if choice == "cosine":
        scheduler: Any = schedulers.CosineAnnealingLR(optimizer, max(n_epochs, 1))
    elif choice == "plateau":
        scheduler = schedulers.ReduceLROnPlateau(optimizer, factor=0.5, patience=5)
    else:
        assert callable(choice)
        try:
            scheduler = choice(optimizer)
        except TypeError as error:  # such as a torch class that needs more than the optimizer
            raise TypeError(
                "scheduler must be a function of the optimizer alone, got "
                f"{brief(choice)}: {error}."
            ) from error
        if not hasattr(scheduler, "step"):
            raise TypeError(
                "scheduler must be a function that returns a torch scheduler, it returned "
                f"{brief(scheduler)}."
            )
    if isinstance(scheduler, schedulers.ReduceLROnPlateau):
        return lambda mean: scheduler.step(mean)
    return lambda mean: scheduler.step()


class Lookahead:
    """Move the weights back half of the way they came, every k steps.

    Parameters
    ----------
    groups : iterable of list of Tensor
        The parameters.
    k : int
        Steps between two moves, at least 1.

    References
    ----------
    Zhang, Lucas, Hinton, Ba: Lookahead optimizer: k steps forward, 1 step back. NeurIPS 2019.
    """

    def __init__(
        self,
        groups: Iterable[list[Tensor]],
        k: int,
    ) -> None:
        self.k = k
        self.count = 0
        self.fast = [parameter for group in groups for parameter in group]
        self.slow = [parameter.detach().clone() for parameter in self.fast]

    @torch.no_grad()
    def __call__(self) -> None:
        """Count a step, and move the weights back if it is the k-th."""
        self.count += 1
        if self.count % self.k == 0:
            for slow, fast in zip(self.slow, self.fast, strict=True):
                slow.lerp_(fast, 0.5)
                fast.copy_(slow)


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
