"""Train a network into a classifier, so that there is something to explain."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..data.cleaning import Array, as_float, describe_nonfinite
from ..data.dataset import as_labels
from .classifier import Classifier, as_classifier
from .networks import Network, build_network, seeded

Data = tuple[Tensor, Tensor]
History = dict[str, list[float]]

_BY_DIMENSIONS = {2: "mlp", 3: "fcn", 4: "smallcnn"}


def fit_classifier(
    module: nn.Module | str | None,
    X: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    *,
    validation: float | tuple[Any, Any] = 0.2,
    max_epochs: int = 200,
    batch_size: int = 32,
    lr: float = 1e-3,
    weight_decay: float = 0.0,
    patience: int = 30,
    random_state: int = 0,
    progress: bool = False,
    device: Any = None,
) -> Classifier:
    """Train by cross-entropy and keep the weights of the lowest validation loss.

    Parameters
    ----------
    module : nn.Module, "fcn", "bilstm", "smallcnn", "mlp" or None
        A module gives one logit per class and is trained in place. None: "fcn" for series, "smallcnn" for
        images, "mlp" for rows, by the dimensions of X.
    X, y : instances and their labels, of any type; the classes of the result are the sorted labels.
    validation : float or (X_val, y_val)
        The share of every class held out; no class gives away its last training instance. Where that holds
        out nothing, the training instances are watched instead.
    max_epochs, batch_size, lr, weight_decay : of AdamW.
    patience : epochs without a lower validation loss before stopping.
    random_state : same seed, same weights; the global random state is neither read nor changed.
    progress : show the epoch and the losses.
    device : where the module is trained, and stays; None: where it is.

    Returns
    -------
    Classifier, with one number per epoch in `history`: train_loss, val_loss, val_accuracy.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = fit_classifier("mlp", X, y, max_epochs=50, lr=0.01)
    >>> bool((classifier.predict(X) == y).mean() > 0.9)
    True
    """
    X, labels = _read(X, y, "X", "y")
    classes, target = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must hold at least two classes, got {classes.tolist()}.")
    if isinstance(validation, tuple):
        X_val, labels_val = _read(*validation, "X_val", "y_val")
        if X_val.shape[1:] != X.shape[1:] or not np.isin(labels_val, classes).all():
            raise ValueError(
                f"validation must be like X and y: instances of shape {X.shape[1:]}, got {X_val.shape[1:]}; "
                f"labels among {classes.tolist()}, got {np.unique(labels_val).tolist()}."
            )
        target_val = np.searchsorted(classes, labels_val)
    else:
        held_out = _hold_out(target, validation, random_state)
        X_val, target_val = (X[held_out], target[held_out]) if held_out.any() else (X, target)
        X, target = X[~held_out], target[~held_out]

    if module is None:
        module = _BY_DIMENSIONS[X.ndim]
    if isinstance(module, str):
        module = build_network(module, X.shape[1:], len(classes), random_state)
    module.to(device)
    like = next(module.parameters(), None)  # the data take its dtype and device
    if like is None:
        raise ValueError(f"module {type(module).__name__} has no parameters to train.")
    train = torch.as_tensor(X).to(like), torch.as_tensor(target).to(like.device)
    watch = torch.as_tensor(X_val).to(like), torch.as_tensor(target_val).to(like.device)
    with seeded(random_state):
        _check_width(module, train[0][:2], len(classes))
        if isinstance(module, Network):
            module.standardise.fit(module.arrange(train[0]))
        optimiser = torch.optim.AdamW(module.parameters(), lr=lr, weight_decay=weight_decay)
        history = _train(module, optimiser, train, watch, max_epochs, batch_size, patience, progress)

    classifier = as_classifier(module, classes=classes)
    classifier.history = history
    return classifier


def _read(X: Any, y: Any, X_name: str, y_name: str) -> tuple[Array, Array]:
    """Instances and labels as NumPy arrays that can be trained on."""
    X, y = (a.detach().cpu().numpy() if isinstance(a, Tensor) else a for a in (X, y))
    X = as_float(X, X_name)
    if X.ndim not in _BY_DIMENSIONS or len(X) == 0:
        raise ValueError(
            f"{X_name} has shape {X.shape}. Accepted: 2 to 4 dimensions, the first of instances."
        )
    problem = describe_nonfinite(X, X_name)
    if problem:
        raise ValueError(problem)
    return X, as_labels(y, y_name, len(X))


def _hold_out(target: Array, share: float, random_state: int) -> NDArray[np.bool_]:
    """Mark `share` of every class, chosen at random; a class keeps at least one instance."""
    if not 0 <= share < 1:
        raise ValueError(f"validation must be a share from 0 to below 1 or (X_val, y_val), got {share}.")
    rng = np.random.default_rng(random_state)
    held_out = np.zeros(len(target), dtype=bool)
    for members in (np.flatnonzero(target == c) for c in np.unique(target)):
        held_out[rng.permutation(members)[: min(round(share * len(members)), len(members) - 1)]] = True
    return held_out


def _check_width(module: nn.Module, x: Tensor, n_classes: int) -> None:
    module.eval()
    with torch.no_grad():
        out = module(x)
    if out.shape != (len(x), n_classes):
        raise ValueError(
            f"module must give one logit per class, ({len(x)}, {n_classes}) for {len(x)} instances of y's "
            f"{n_classes} classes; got {tuple(out.shape)}."
        )


def _train(
    module: nn.Module,
    optimiser: torch.optim.Optimizer,
    train: Data,
    watch: Data,
    max_epochs: int,
    batch_size: int,
    patience: int,
    progress: bool,
) -> History:
    x, y = train
    history: History = {"train_loss": [], "val_loss": [], "val_accuracy": []}
    best_loss, best_epoch, best_weights = math.inf, 0, None
    columns = TextColumn("epoch"), MofNCompleteColumn(), BarColumn(), TextColumn("{task.description}")
    with Progress(*columns, disable=not progress) as bar:
        task = bar.add_task("", total=max_epochs)
        for epoch in range(max_epochs):
            module.train()
            total = 0.0
            # Batches of equal size: in a last batch of one instance a batch norm would find no spread.
            for rows in torch.randperm(len(x)).tensor_split(math.ceil(len(x) / batch_size)):
                optimiser.zero_grad()
                loss = cross_entropy(module(x[rows]), y[rows])
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                total += loss.item() * len(rows)
            val_loss, val_accuracy = _evaluate(module, *watch)
            for name, value in zip(history, (total / len(x), val_loss, val_accuracy), strict=True):
                history[name].append(value)
            bar.update(
                task,
                advance=1,
                description=f"train loss {total / len(x):.4f}  validation loss {val_loss:.4f}",
            )
            if val_loss < best_loss:
                best_loss, best_epoch = val_loss, epoch
                best_weights = copy.deepcopy(module.state_dict())
            elif epoch - best_epoch >= patience:
                break
    if best_weights is None:
        raise ValueError(
            f"training diverged: no finite validation loss in {epoch + 1} epochs. Try a smaller lr."
        )
    module.load_state_dict(best_weights)
    module.eval()
    return history


def _evaluate(module: nn.Module, x: Tensor, y: Tensor) -> tuple[float, float]:
    """Loss and accuracy, in eval mode; in batches, for the validation set may be large."""
    module.eval()
    with torch.no_grad():
        logits = torch.cat([module(rows) for rows in x.split(256)])
    return cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()
