"""The training loop of classifiers, robust classifiers, autoencoders and prototype models."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from ..numerics import ceil_div
from ..progress import progress_bar

#: One value per epoch of every curve.
History = dict[str, list[float]]
#: Maps some training rows and the epoch to their mean loss.
Loss = Callable[[Tensor, int], Tensor]
#: Measures the module on instances it was not trained on; "val_loss" decides.
Watch = Callable[[], dict[str, float]]
#: Gets the curves so far after every epoch; a true answer ends the training.
Listener = Callable[[History], bool | None]


def train(
    module: nn.Module,
    n: int,
    loss: Loss,
    optimizer: torch.optim.Optimizer,
    schedule: Callable[[float], None],
    *,
    watch: Watch | None,
    max_epochs: int,
    batch_size: int,
    patience: int,
    clip: float | None = None,
    accumulate: int = 1,
    average: AveragedModel | None = None,
    restore_best: bool = True,
    listener: Listener | None = None,
    progress: bool = False,
) -> History:
    """Train a module by gradient descent, and leave it in eval mode with its best weights.

    Parameters
    ----------
    module : torch.nn.Module
        Trained in place.
    n : int
        Number of training rows.
    loss : function of (Tensor of int, int)
        Maps the indices of some rows and the epoch, from 0, to their mean loss.
    optimizer : torch.optim.Optimizer
        Takes the steps.
    schedule : function of float
        Called after every epoch with the validation loss, or the training loss without `watch`.
    watch : function or None
        Measures the module, in eval mode and without gradients; its "val_loss" decides. None: all
        epochs run and the last weights stay.
    max_epochs : int
        Largest number of epochs.
    batch_size : int
        Largest number of rows in a batch.
    patience : int
        Epochs without a lower val_loss before stopping.
    clip : float, optional
        Largest norm of a step's gradient; default: no limit.
    accumulate : int, default=1
        Batches whose gradients make one step.
    average : AveragedModel, optional
        A running average of the weights, updated by the caller; its weights are measured and kept
        in place of the module's own.
    restore_best : bool, default=True
        False keeps the last weights, also with `watch`.
    listener : function of History, optional
        Gets the curves so far after every epoch; a true answer ends the training.
    progress : bool, default=False
        Show the epoch and the curves.

    Returns
    -------
    dict of str to list of float
        One value per epoch: train_loss and what `watch` measures.

    Raises
    ------
    ValueError
        If `max_epochs` or `batch_size` is below 1, or the loss becomes infinite or NaN.
    """
    if max_epochs < 1 or batch_size < 1:
        raise ValueError(
            f"max_epochs and batch_size must be at least 1, got {max_epochs} and {batch_size}."
        )
    history: History = {"train_loss": []}
    kept = module if average is None else average.module
    best = BestWeights(patience)
    with _progress_bar(max_epochs, progress) as show:
        for epoch in range(max_epochs):
            module.train()
            steps = _batches(n, batch_size, accumulate)
            total = _descend(module, steps, loss, optimizer, epoch, clip)
            history["train_loss"].append(total / n)
            if watch is not None:
                _measure(kept, watch, history)
                best.update(epoch, history["val_loss"], kept)
            decisive = history["train_loss" if watch is None else "val_loss"]
            schedule(decisive[-1])
            show(history)
            if best.patience_exceeded(epoch):
                break
            if listener is not None and listener(history):
                break
    if restore_best and best.weights is not None:
        module.load_state_dict(best.weights)
    elif average is not None:
        module.load_state_dict(kept.state_dict())
    module.eval()
    return history


class BestWeights:
    """Remember the weights of the lowest validation loss, and when it was reached.

    Parameters
    ----------
    patience : int
        Epochs without a lower loss before training should stop.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.epoch = 0
        self.weights: dict[str, Any] | None = None

    def update(
        self,
        epoch: int,
        losses: Sequence[float],
        module: nn.Module,
    ) -> None:
        """Copy the weights of a module if the last loss is below all earlier ones.

        Parameters
        ----------
        epoch : int
            The epoch that has just ended.
        losses : sequence of float
            Validation losses of all epochs so far.
        module : torch.nn.Module
            The module at the end of this epoch.
        """
        *earlier, last = losses
        if last < min(earlier, default=math.inf):
            self.epoch = epoch
            self.weights = copy.deepcopy(module.state_dict())

    def patience_exceeded(self, epoch: int) -> bool:
        """Return whether the lowest loss is `patience` epochs old."""
        return self.weights is not None and epoch - self.epoch >= self.patience


def _batches(n: int, batch_size: int, accumulate: int) -> list[Sequence[Tensor]]:
    """Shuffle n rows into batches, and group them by `accumulate` for each step."""
    # Batches of equal size: in a last batch of one instance a batch norm would find no variance.
    batches = torch.randperm(n).tensor_split(ceil_div(n, batch_size))
    firsts = range(0, len(batches), accumulate)
    return [batches[first : first + accumulate] for first in firsts]


def _descend(
    module: nn.Module,
    steps: Sequence[Sequence[Tensor]],
    loss: Loss,
    optimizer: torch.optim.Optimizer,
    epoch: int,
    clip: float | None,
) -> float:
    """Take the steps of one epoch; return the sum of the losses of all rows."""
    total = 0.0
    for batches in steps:
        optimizer.zero_grad()
        for rows in batches:
            mean = loss(rows, epoch)
            (mean / len(batches)).backward()
            total += mean.item() * len(rows)
        if clip is not None:
            nn.utils.clip_grad_norm_(module.parameters(), clip)
        optimizer.step()
    if not math.isfinite(total):
        raise ValueError(
            f"training diverged in epoch {epoch + 1}; try a smaller learning_rate, a smaller "
            "weight_decay, or X on a smaller scale."
        )
    return total


def _measure(module: nn.Module, watch: Watch, history: History) -> None:
    """Add what `watch` measures of a module to the curves."""
    module.eval()
    with torch.no_grad():
        measured = watch()
    for name, value in measured.items():
        history.setdefault(name, []).append(value)


@contextmanager
def _progress_bar(
    max_epochs: int,
    visible: bool,
) -> Iterator[Callable[[History], None]]:
    """Show the epoch and the last value of every curve; yield what is called after an epoch."""
    columns = (
        TextColumn("epoch"),
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("{task.description}"),
    )
    with progress_bar(*columns, visible=visible) as bar:
        task = bar.add_task("", total=max_epochs)

        def show(history: History) -> None:
            values = [f"{name} {curve[-1]:.4f}" for name, curve in history.items()]
            bar.update(task, advance=1, description="  ".join(values))

        yield show
