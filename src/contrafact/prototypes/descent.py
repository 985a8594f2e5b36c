"""Parts of a descent that users choose by name or bring along: optimizers, schedules, averages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

OPTIMIZERS = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "nadam": torch.optim.NAdam,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
}
DEFAULT_LR = 0.05
Scheduler = Callable[[torch.optim.Optimizer], Any]


def make_optimizer(
    choice: Any, lr: float | None, groups: Mapping[str, list[Tensor]], shares: Mapping[str, float]
) -> Any:
    """An optimizer of groups of parameters: by name, by class, or like an instance that is given.

    `shares` are the steps of groups that take other ones, as a share of lr.
    """
    if isinstance(choice, torch.optim.Optimizer):
        if lr is not None:
            raise ValueError(
                f"lr must be None where optimizer is an instance, which has its own; got {lr}."
            )
        known = inspect.signature(type(choice)).parameters
        kind, settings = (
            type(choice),
            {name: v for name, v in choice.defaults.items() if name in known},
        )
    elif isinstance(choice, str) and choice not in OPTIMIZERS:
        raise ValueError(
            f"optimizer must be one of {', '.join(OPTIMIZERS)}, a torch optimizer class or an instance, got "
            f"{choice!r}."
        )
    else:
        kind = OPTIMIZERS[choice] if isinstance(choice, str) else choice
        settings = {"lr": DEFAULT_LR if lr is None else lr}
    if inspect.signature(kind.step).parameters["closure"].default is inspect.Parameter.empty:
        raise ValueError(
            f"optimizer {kind.__name__} asks for the loss several times a step: not possible here."
        )
    steps = [
        {"params": group, "lr": settings["lr"] * shares.get(name, 1.0)}
        for name, group in groups.items()
    ]
    return kind(steps, **settings)


def make_schedule(
    choice: str | Scheduler | None, optimizer: torch.optim.Optimizer, n_epochs: int
) -> Callable[[float], None]:
    """What to do after an epoch of this mean loss."""
    schedulers = torch.optim.lr_scheduler
    if choice is None:
        return lambda mean: None
    if choice == "cosine":
        scheduler: Any = schedulers.CosineAnnealingLR(optimizer, max(n_epochs, 1))
    elif choice == "plateau":
        scheduler = schedulers.ReduceLROnPlateau(optimizer, factor=0.5, patience=5)
    elif callable(choice):
        scheduler = choice(optimizer)
    else:
        raise ValueError(
            f"scheduler must be 'cosine', 'plateau', None or a function of the optimizer, got {choice!r}."
        )
    if isinstance(scheduler, schedulers.ReduceLROnPlateau):
        return lambda mean: scheduler.step(mean)
    return lambda mean: scheduler.step()


class Lookahead:
    """Every k steps the weights go back half of the way they came (Zhang, Lucas, Hinton, Ba 2019)."""

    def __init__(self, groups: Iterable[list[Tensor]], k: int) -> None:
        if k < 1:
            raise ValueError(f"lookahead must be at least 1 step, got {k}.")
        self.fast, self.k, self.count = [p for group in groups for p in group], k, 0
        self.slow = [p.detach().clone() for p in self.fast]

    @torch.no_grad()
    def __call__(self) -> None:
        self.count += 1
        if self.count % self.k == 0:
            for slow, fast in zip(self.slow, self.fast, strict=True):
                slow.lerp_(fast, 0.5)
                fast.copy_(slow)


def running_average(module: nn.Module, decay: float) -> AveragedModel:
    """An exponential moving average of the module's weights; call `update_parameters` after every step."""
    if not 0 < decay < 1:
        raise ValueError(f"ema must lie between 0 and 1, got {decay}.")
    return AveragedModel(module, multi_avg_fn=get_ema_multi_avg_fn(decay), use_buffers=True)
