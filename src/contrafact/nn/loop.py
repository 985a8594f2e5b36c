"""The training loop that classifiers, robust classifiers, autoencoders and prototype models share."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

History = dict[str, list[float]]
#: some training rows and the epoch → their mean loss
Loss = Callable[[Tensor, int], Tensor]
#: what the module is worth on instances it was not trained on; "val_loss" decides
Watch = Callable[[], dict[str, float]]
#: hears the curves so far after every epoch; a true answer ends the training
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
    """Descend over n training rows, and leave the module in eval mode with its best weights.

    Parameters
    ----------
    schedule : called after every epoch with the validation loss, or the training loss if none is watched.
    watch : measures the module, in eval mode and without gradients; None: all epochs run and the last weights
        stay.
    patience : epochs without a lower val_loss before stopping.
    clip : largest norm of a step's gradient; None for no limit.
    accumulate : batches whose gradients make one step.
    average : a running average of the weights, kept by whoever made it: its weights count, not the module's.
    restore_best : False keeps the last weights, also where something is watched.
    """
    if max_epochs < 1 or batch_size < 1:
        raise ValueError(
            f"max_epochs and batch_size must be at least 1, got {max_epochs} and {batch_size}."
        )
    history: History = {"train_loss": []}
    best_epoch, best_weights = 0, None
    kept = module if average is None else average.module
    columns = (
        TextColumn("epoch"),
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, disable=not progress) as bar:
        task = bar.add_task("", total=max_epochs)
        for epoch in range(max_epochs):
            module.train()
            total = 0.0
            # Batches of equal size: in a last batch of one instance a batch norm would find no spread.
            batches = torch.randperm(n).tensor_split(math.ceil(n / batch_size))
            for first in range(0, len(batches), accumulate):
                group = batches[first : first + accumulate]
                optimizer.zero_grad()
                for rows in group:
                    mean = loss(rows, epoch)
                    (mean / len(group)).backward()
                    total += mean.item() * len(rows)
                if clip is not None:
                    nn.utils.clip_grad_norm_(module.parameters(), clip)
                optimizer.step()
            history["train_loss"].append(total / n)
            if not math.isfinite(total):
                raise ValueError(f"training diverged in epoch {epoch + 1}; try a smaller lr.")
            if watch is not None:
                kept.eval()
                with torch.no_grad():
                    for name, value in watch().items():
                        history.setdefault(name, []).append(value)
                if history["val_loss"][-1] < min(history["val_loss"][:-1], default=math.inf):
                    best_epoch, best_weights = epoch, copy.deepcopy(kept.state_dict())
            schedule(history["train_loss" if watch is None else "val_loss"][-1])
            said = "  ".join(f"{name} {curve[-1]:.4f}" for name, curve in history.items())
            bar.update(task, advance=1, description=said)
            if best_weights is not None and epoch - best_epoch >= patience:
                break
            if listener is not None and listener(history):
                break
    if restore_best and best_weights is not None:
        module.load_state_dict(best_weights)
    elif average is not None:
        module.load_state_dict(kept.state_dict())
    module.eval()
    return history
