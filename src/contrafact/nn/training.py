"""Train a network into a classifier, so that there is something to explain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..data.cleaning import Array, as_float, describe_nonfinite
from ..data.dataset import as_labels
from ..models.adapters import TorchClassifier
from ..models.classifier import as_classifier
from .loop import Loss, Watch, train
from .networks import Network, build_network, seeded

_BY_DIMENSIONS = {2: "mlp", 3: "fcn", 4: "smallcnn"}


def fit_classifier(
    module: nn.Module | str | None,
    X: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    *,
    validation: float | tuple[Any, Any] | None = None,
    max_epochs: int = 150,
    batch_size: int = 16,
    lr: float = 2e-3,
    weight_decay: float = 0.0,
    patience: int = 50,
    random_state: int = 0,
    progress: bool = False,
    device: Any = None,
) -> TorchClassifier:
    """Train by cross-entropy, stop early and keep the weights of the lowest validation loss.

    Parameters
    ----------
    module : nn.Module, "fcn", "bilstm", "smallcnn", "mlp", "resnet8" or None
        A module gives one logit per class and is trained in place. None: "fcn" for series, "smallcnn" for
        images, "mlp" for rows, by the dimensions of X.
    X, y : instances and their labels, of any type; the classes of the result are the sorted labels.
    validation : float, (X_val, y_val) or None
        The share of every class held out; no class gives away its last training instance. None: 0.2, or 0
        below 100 instances, where every one is missed in training and a handful says little (FCN on
        ArrowHead, 36 instances, mean of 3 seeds: test accuracy 0.86 against 0.81). Where nothing is held
        out, all epochs run and the last weights are kept.
    max_epochs, batch_size, lr, weight_decay : of AdamW; the step falls from lr to 0 along half a cosine.
    patience : epochs without a lower validation loss before stopping.
    random_state : same seed, same weights; the global random state is neither read nor changed.
    progress : show the epoch and the losses.
    device : where the module is trained, and stays; None: where it is.

    Returns
    -------
    Classifier, with one number per epoch in `history`: train_loss and, where there is a validation set,
    val_loss and val_accuracy.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = fit_classifier("mlp", X, y, max_epochs=50, lr=0.01)
    >>> bool((classifier.predict(X) == y).mean() > 0.9)
    True
    """
    task = prepare(module, X, y, validation, random_state, device)
    return task.fit(
        lambda rows, epoch: cross_entropy(task.module(task.x[rows]), task.t[rows]),
        lambda: measure(task.module, task.x_val, task.t_val),
        max_epochs=max_epochs,
        batch_size=batch_size,
        lr=lr,
        weight_decay=weight_decay,
        patience=patience,
        random_state=random_state,
        progress=progress,
    )


@dataclass(frozen=True)
class Task:
    """A module and what it is to learn: rows x of class t, and those held out; made by `prepare`."""

    module: nn.Module
    classes: Array
    x: Tensor
    t: Tensor
    x_val: Tensor
    t_val: Tensor

    def fit(
        self,
        loss: Loss,
        watch: Watch,
        *,
        max_epochs: int,
        batch_size: int,
        lr: float,
        patience: int,
        random_state: int,
        progress: bool,
        weight_decay: float = 0.0,
        after_epoch: Callable[[], None] = lambda: None,
    ) -> TorchClassifier:
        """Train as `fit_classifier` does, on any loss; `watch` is asked where something is held out."""
        optimizer = torch.optim.AdamW(self.module.parameters(), lr=lr, weight_decay=weight_decay)
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(max_epochs, 1))

        def schedule(mean: float) -> None:
            cosine.step()
            after_epoch()

        with seeded(random_state):
            history = train(
                self.module,
                len(self.x),
                loss,
                optimizer,
                schedule,
                watch=watch if len(self.x_val) else None,
                max_epochs=max_epochs,
                batch_size=batch_size,
                patience=patience,
                progress=progress,
            )
        classifier = as_classifier(self.module, classes=self.classes)
        assert isinstance(classifier, TorchClassifier)
        classifier.history = history
        return classifier


def prepare(
    module: nn.Module | str | None,
    X: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    validation: float | tuple[Any, Any] | None,
    random_state: int,
    device: Any,
) -> Task:
    """Read the data, hold some out, build the network if it is asked for by name, and fit its scaling."""
    X, labels = read(X, y, "X", "y")
    classes, target = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must hold at least two classes, got {classes.tolist()}.")
    if isinstance(validation, tuple):
        X_val, labels_val = read(*validation, "X_val", "y_val")
        if X_val.shape[1:] != X.shape[1:] or not np.isin(labels_val, classes).all():
            raise ValueError(
                f"validation must be like X and y: instances of shape {X.shape[1:]}, got {X_val.shape[1:]}; "
                f"labels among {classes.tolist()}, got {np.unique(labels_val).tolist()}."
            )
        target_val = np.searchsorted(classes, labels_val)
    else:
        share = (0.2 if len(X) >= 100 else 0.0) if validation is None else validation
        held_out = _hold_out(target, share, random_state)
        X_val, target_val, X, target = (
            X[held_out],
            target[held_out],
            X[~held_out],
            target[~held_out],
        )

    if module is None:
        module = _BY_DIMENSIONS[X.ndim]
    if isinstance(module, str):
        module = build_network(module, X.shape[1:], len(classes), random_state)
    module.to(device)
    like = next(module.parameters(), None)  # the data take its dtype and device
    if like is None:
        raise ValueError(f"module {type(module).__name__} has no parameters to train.")
    x, x_val = (torch.as_tensor(part).to(like) for part in (X, X_val))
    t, t_val = (torch.as_tensor(part).to(like.device) for part in (target, target_val))
    with seeded(random_state):
        _check_width(module, x[:2], len(classes))
    if isinstance(module, Network):
        module.standardize.fit(module.arrange(x))
    return Task(module, classes, x, t, x_val, t_val)


def read(X: Any, y: Any, X_name: str, y_name: str) -> tuple[Array, Array]:
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
        raise ValueError(
            f"validation must be a share from 0 to below 1 or (X_val, y_val), got {share}."
        )
    rng = np.random.default_rng(random_state)
    held_out = np.zeros(len(target), dtype=bool)
    for members in (np.flatnonzero(target == c) for c in np.unique(target)):
        held_out[rng.permutation(members)[: min(round(share * len(members)), len(members) - 1)]] = (
            True
        )
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


def measure(module: nn.Module, x: Tensor, y: Tensor) -> dict[str, float]:
    """Loss and accuracy on the validation set, in batches, for it may be large."""
    logits = torch.cat([module(rows) for rows in x.split(256)])
    return {
        "val_loss": cross_entropy(logits, y).item(),
        "val_accuracy": (logits.argmax(1) == y).float().mean().item(),
    }
