"""Train a network into a classifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..data.cleaning import Array
from ..deprecation import renamed_parameters
from ..models.adapters import TorchClassifier
from ..validation import Instance, Nothing, OneOf, Rule, brief, check_parameters
from .base import Network
from .loop import Loss, Watch, train
from .networks import NETWORKS, build_network, seeded
from .option_rules import TRAINING_RULES
from .reading import read
from .recipe import TrainingRecipe

#: A share of every class, (X_val, y_val), or None for the default share.
Validation: TypeAlias = float | tuple[Any, Any] | None

#: what `fit_classifier` and `RobustTrainer.fit` take for a module
MODULE = Instance(nn.Module, "a torch module") | OneOf(*NETWORKS) | Nothing()
RULES: dict[str, Rule] = {"module": MODULE, **TRAINING_RULES}

_BY_DIMENSIONS = {2: "mlp", 3: "fcn", 4: "smallcnn"}


@renamed_parameters(lr="learning_rate")
def fit_classifier(
    module: nn.Module | str | None,
    X: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    *,
    validation: Validation = None,
    max_epochs: int = 150,
    batch_size: int = 16,
    learning_rate: float = 2e-3,
    weight_decay: float = 0.0,
    patience: int = 50,
    random_state: int = 0,
    progress: bool = False,
    device: Any = None,
) -> TorchClassifier:
    """Train by cross-entropy, stop early and keep the weights of the lowest validation loss.

    The optimizer is AdamW; its learning rate falls to 0 along half a cosine.

    Parameters
    ----------
    module : torch.nn.Module, str or None
        "fcn", "inceptiontime", "bilstm", "smallcnn", "mlp" or "resnet8". A module
        returns one logit per class and is trained in place. None: "fcn" for series, "smallcnn" for
        images, "mlp" for rows, by the dimensions of X.
    X : array-like of shape (n, features), (n, channels, length) or (n, channels, height, width)
        Instances.
    y : array-like of shape (n,)
        Labels of any type; the classes of the result are the sorted labels.
    validation : float, (X_val, y_val) or None, default=None
        The share of every class held out; a class keeps at least one training instance. None: 0.2,
        or 0 below 100 instances, where every one counts in training and a few tell little (FCN on
        ArrowHead, 36 instances, mean of 3 seeds: test accuracy 0.86 against 0.81). Where nothing is
        held out, all epochs run and the last weights are kept.
    max_epochs : int, default=150
        Largest number of epochs.
    batch_size : int, default=16
        Largest number of instances in a batch.
    learning_rate : float, default=2e-3
        Learning rate of the first epoch.
    weight_decay : float, default=0.0
        Weight decay of AdamW.
    patience : int, default=50
        Epochs without a lower validation loss before stopping.
    random_state : int, default=0
        Seed of weights and batches; the global random state is neither read nor changed.
    progress : bool, default=False
        Show the epoch and the losses.
    device : str or torch.device, optional
        Where the module is trained, and stays; default: where it is.

    Returns
    -------
    TorchClassifier
        With one value per epoch in `history`: train_loss and, where there is a validation set,
        val_loss and val_accuracy.

    Raises
    ------
    ValueError
        If data, labels or an option cannot be used, or the training diverges.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = fit_classifier("mlp", X, y, max_epochs=50, learning_rate=0.01)
    >>> bool((classifier.predict(X) == y).mean() > 0.9)
    True
    """
    options: dict[str, Any] = {
        "max_epochs": max_epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "weight_decay": weight_decay,
        "patience": patience,
    }
    others = {
        "module": module,
        "validation": validation,
        "random_state": random_state,
        "progress": progress,
        "device": device,
    }
    check_parameters("fit_classifier", RULES, options | others)
    task = prepare(module, X, y, validation, random_state, device)

    def loss(rows: Tensor, epoch: int) -> Tensor:
        return cross_entropy(task.module(task.x[rows]), task.t[rows])

    def watch() -> dict[str, float]:
        return measure(task.module, task.x_val, task.t_val)

    classifier = task.fit(
        loss,
        watch,
        random_state=random_state,
        progress=progress,
        **options,
    )
    network = _BY_DIMENSIONS[task.x.ndim] if module is None else module
    classifier.recipe = TrainingRecipe(
        network=network if isinstance(network, str) else None,
        holds_out=len(task.x_val) > 0,
        options={**options, "device": device},
    )
    return classifier


@dataclass(frozen=True)
class TrainingTask:
    """Hold a module and the data it is trained on; made by `prepare`.

    Parameters
    ----------
    module : torch.nn.Module
        The module to train.
    classes : array of shape (classes,)
        Labels of its outputs.
    x, t : Tensors of shape (n, ...) and (n,)
        Training instances and the indices of their classes.
    x_val, t_val : Tensors of shape (m, ...) and (m,)
        Instances held out and the indices of their classes; m may be 0.
    """

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
        learning_rate: float,
        patience: int,
        random_state: int,
        progress: bool,
        weight_decay: float = 0.0,
        after_epoch: Callable[[], None] | None = None,
    ) -> TorchClassifier:
        """Train as `fit_classifier` does, on any loss.

        Parameters
        ----------
        loss : function of (Tensor of int, int)
            Maps the indices of some rows and the epoch to their mean loss.
        watch : function
            Measures the module where something is held out.
        max_epochs, batch_size, learning_rate, patience, random_state, progress, weight_decay
            As in `fit_classifier`.
        after_epoch : function, optional
            Called after every epoch.

        Returns
        -------
        TorchClassifier
            The trained module with its curves in `history`.
        """
        optimizer = torch.optim.AdamW(
            self.module.parameters(),
            lr=learning_rate,
            weight_decay=weight_decay,
        )
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(max_epochs, 1))

        def schedule(loss: float) -> None:
            cosine.step()
            if after_epoch is not None:
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
        classifier = TorchClassifier(self.module, self.classes, batch_size=None, device=None)
        classifier.history = history
        return classifier


def prepare(
    module: nn.Module | str | None,
    X: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    validation: Validation,
    random_state: int,
    device: Any,
) -> TrainingTask:
    """Read the data, hold some out, build the network if named, and fit its standardization.

    Parameters
    ----------
    module, X, y, validation, random_state, device
        As in `fit_classifier`.

    Returns
    -------
    TrainingTask
        Data of the module's dtype on its device.
    """
    X, labels = read(X, y, "X", "y")
    classes, target = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must hold at least two classes, got {classes.tolist()}.")
    if isinstance(validation, tuple):
        X_val, target_val = _read_validation(validation, X, classes)
    else:
        held_out = _hold_out(target, _validation_share(validation, len(X)), random_state)
        X_val = X[held_out]
        target_val = target[held_out]
        X = X[~held_out]
        target = target[~held_out]
    module = _resolve_module(module, X, len(classes), random_state)
    module.to(device)
    like = next(module.parameters(), None)  # the data take its dtype and device
    if like is None:
        raise ValueError(f"module {type(module).__name__} has no parameters to train.")
    x = torch.as_tensor(X).to(like)
    with seeded(random_state):
        _check_width(module, x[:2], len(classes))
    if isinstance(module, Network):
        module.standardize.fit(module.arrange(x))
    return TrainingTask(
        module,
        classes,
        x,
        torch.as_tensor(target).to(like.device),
        torch.as_tensor(X_val).to(like),
        torch.as_tensor(target_val).to(like.device),
    )


def _read_validation(validation: tuple[Any, Any], X: Array, classes: Array) -> tuple[Array, Array]:
    """Read (X_val, y_val) and check that it is like the training data."""
    X_val, labels = read(*validation, "validation[0]", "validation[1]")
    if X_val.shape[1:] != X.shape[1:] or not np.isin(labels, classes).all():
        raise ValueError(
            f"validation must be like X and y: instances of shape {X.shape[1:]}, "
            f"got {X_val.shape[1:]}; labels among {classes.tolist()}, "
            f"got {np.unique(labels).tolist()}."
        )
    return X_val, np.searchsorted(classes, labels)


def _validation_share(validation: float | None, n: int) -> float:
    """Return the share to hold out of n instances."""
    if validation is not None:
        return validation
    return 0.2 if n >= 100 else 0.0


def _hold_out(target: Array, share: float, random_state: int) -> NDArray[np.bool_]:
    """Mark `share` of every class, chosen at random; a class keeps at least one instance."""
    if not 0 <= share < 1:
        raise ValueError(
            f"validation must be a share from 0 to below 1 or (X_val, y_val), got {share}."
        )
    rng = np.random.default_rng(random_state)
    held_out = np.zeros(len(target), dtype=bool)
    for label in np.unique(target):
        members = np.flatnonzero(target == label)
        n_held_out = min(round(share * len(members)), len(members) - 1)
        chosen = rng.permutation(members)[:n_held_out]
        held_out[chosen] = True
    return held_out


def _resolve_module(
    module: nn.Module | str | None,
    X: Array,
    n_classes: int,
    random_state: int,
) -> nn.Module:
    """Build the network that is asked for by name, or by the dimensions of X."""
    if module is None:
        module = _BY_DIMENSIONS[X.ndim]
    if isinstance(module, str):
        return build_network(module, X.shape[1:], n_classes, random_state)
    return module


def _check_width(module: nn.Module, x: Tensor, n_classes: int) -> None:
    """Check that a module returns one logit per class."""
    module.eval()
    try:
        with torch.no_grad():
            out = module(x)
    except (RuntimeError, IndexError) as error:
        raise ValueError(
            f"module {type(module).__name__} does not take X, of shape (n, "
            f"{', '.join(map(str, x.shape[1:]))}): {error}"
        ) from error
    given = tuple(out.shape) if isinstance(out, Tensor) else brief(out)
    if given != (len(x), n_classes):
        raise ValueError(
            f"module must give one logit per class, ({len(x)}, {n_classes}) for {len(x)} instances "
            f"of y's {n_classes} classes; got {given}."
        )


def measure(module: nn.Module, x: Tensor, t: Tensor) -> dict[str, float]:
    """Measure loss and accuracy on the validation set, in batches of 256.

    Parameters
    ----------
    module : torch.nn.Module
        In eval mode.
    x : Tensor of shape (n, ...)
        Instances.
    t : Tensor of shape (n,)
        Indices of their classes.

    Returns
    -------
    dict of str to float
        val_loss, the mean cross-entropy, and val_accuracy.
    """
    logits = torch.cat([module(rows) for rows in x.split(256)])
    right = logits.argmax(1) == t
    return {
        "val_loss": cross_entropy(logits, t).item(),
        "val_accuracy": right.float().mean().item(),
    }
