"""Train autoencoders, and measure what reconstruction does to the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import mse_loss

from ..data.arrays import for_torch
from ..data.cleaning import as_float, describe_nonfinite
from ..data.dataset import as_labels
from ..deprecation import renamed_parameters
from ..models.adapters import as_classifier
from ..models.eval_mode import in_eval_mode
from ..validation import Instance, OneOf, Real, Rule, brief, check_parameters
from .autoencoders import Autoencoder, build_autoencoder
from .loop import train
from .networks import seeded
from .option_rules import TRAINING_RULES
from .scaling import Scaling, per_channel

if TYPE_CHECKING:
    import pandas as pd

_RULES: dict[str, Rule] = {
    **TRAINING_RULES,
    "validation": Real(at_least=0, below=1),
    "scaling": OneOf("minmax", "standard"),
}


@renamed_parameters(lr="learning_rate")
def fit_autoencoder(
    module: Autoencoder | str | None,
    X: ArrayLike | Tensor,
    *,
    validation: float = 0.2,
    max_epochs: int = 500,
    batch_size: int = 32,
    learning_rate: float = 1e-3,
    patience: int = 100,
    scaling: str = "minmax",
    random_state: int = 0,
    progress: bool = False,
    device: Any = None,
) -> Autoencoder:
    """Train by squared error in scaled units, stop early and keep the best weights.

        minimize  mean ((x̂ - x) / scale)²,    x̂ = D(E(x))

    The optimizer is Adam; the learning rate falls tenfold after 25 epochs without a lower
    validation loss, and gradients are clipped to norm 1.

    Parameters
    ----------
    module : Autoencoder, "lstm", "cnn" or None
        An autoencoder is trained in place; "lstm" is for series, "cnn" for series and images; None:
        "cnn".
    X : array-like of shape (n, channels, length), (n, length) or (n, channels, height, width)
        Instances; (n, length) for one channel.
    validation : float, default=0.2
        Share of the instances held out; at 0 all epochs run and the last weights are kept.
    max_epochs : int, default=500
        Largest number of epochs.
    batch_size : int, default=32
        Largest number of instances in a batch.
    learning_rate : float, default=1e-3
        Learning rate of the first epoch.
    patience : int, default=100
        Epochs without a lower validation loss before stopping.
    scaling : {"minmax", "standard"}, default="minmax"
        Scale each channel to [0, 1], or to mean 0 and deviation 1, by the training instances.
    random_state : int, default=0
        Seed of weights and batches; the global random state is neither read nor changed.
    progress : bool, default=False
        Show the epoch and the losses.
    device : str or torch.device, optional
        Where the module is trained, and stays; default: where it is.

    Returns
    -------
    Autoencoder
        In eval mode, its weights fixed; `history` has train_loss and val_loss per epoch.

    Raises
    ------
    TypeError
        If `module` is no autoencoder.
    ValueError
        If data or an option cannot be used, or the training diverges.

    Examples
    --------
    >>> X = np.sin(np.linspace(0, 6, 30) + np.arange(40)[:, None])
    >>> autoencoder = fit_autoencoder("cnn", X, max_epochs=30)
    >>> autoencoder.history["val_loss"][-1] < autoencoder.history["val_loss"][0]
    True
    """
    options = {
        "validation": validation,
        "max_epochs": max_epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "patience": patience,
        "scaling": scaling,
        "random_state": random_state,
        "progress": progress,
        "device": device,
    }
    check_parameters("fit_autoencoder", _RULES, options)
    instances = _read(X)
    module = _resolve_module(module, instances, random_state)
    module.to(device).requires_grad_(True)
    instances = instances.to(next(module.parameters()))
    x, x_val = _split(instances, validation, random_state)
    _fit_scaling(module.scaling, x, scaling)
    error = _ScaledError(module, x)

    def watch() -> dict[str, float]:
        return {"val_loss": error.mean(x_val)}

    optimizer = torch.optim.Adam(module.parameters(), lr=learning_rate)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=25)
    with seeded(random_state):
        module.history = train(
            module,
            len(x),
            lambda rows, epoch: error(x[rows]),
            optimizer,
            plateau.step,
            watch=watch if len(x_val) else None,
            max_epochs=max_epochs,
            batch_size=batch_size,
            patience=patience,
            clip=1.0,
            progress=progress,
        )
    return module.requires_grad_(False)


def _resolve_module(
    module: Autoencoder | str | None,
    x: Tensor,
    random_state: int,
) -> Autoencoder:
    """Build the autoencoder that is asked for by name, and check that it takes the instances."""
    shape = tuple(x.shape[1:])
    if module is None:
        module = "cnn"
    if isinstance(module, str):
        return build_autoencoder(module, shape, random_state)
    if not isinstance(module, Autoencoder):
        raise TypeError(
            f"module must be an Autoencoder, 'lstm', 'cnn' or None, got {brief(module)}."
        )
    if module.shape != shape:
        raise ValueError(f"module takes instances of shape {module.shape}; X holds {shape}.")
    return module


def _split(x: Tensor, share: float, random_state: int) -> tuple[Tensor, Tensor]:
    """Split instances at random into those for training, at least one, and those held out."""
    n = len(x)
    order = np.random.default_rng(random_state).permutation(n)
    n_held_out = min(round(share * n), n - 1)
    held_out = order[:n_held_out]
    kept = order[n_held_out:]
    return x[kept], x[held_out]


def _fit_scaling(layer: Scaling, x: Tensor, scaling: str) -> None:
    """Fit the scaling of an autoencoder to the training instances."""
    if scaling == "minmax":
        layer.fit_range(x)
    else:
        layer.fit(x)


class _ScaledError:
    """Compute the mean squared error of reconstruction in units of the scaling."""

    def __init__(self, module: Autoencoder, x: Tensor) -> None:
        self.module = module
        self.unit = per_channel(module.scaling.std, x)

    def __call__(self, x: Tensor) -> Tensor:
        return mse_loss(self.module(x) / self.unit, x / self.unit)

    def mean(self, x: Tensor) -> float:
        """Compute the error of many instances, in batches of 256."""
        total = 0.0
        for part in x.split(256):
            total += self(part).item() * len(part)
        return total / len(x)


def reconstruction_report(
    autoencoder: Autoencoder,
    model: Any,
    X: ArrayLike | Tensor,
    y: ArrayLike | None = None,
) -> pd.DataFrame:
    """Measure what plain reconstruction does to the data, per class and over all of them.

    A latent method that changes the class of an instance without any movement in the code only
    shows the flip rate of its autoencoder.

    Parameters
    ----------
    autoencoder : Autoencoder
        A trained autoencoder.
    model : model
        Anything that `as_classifier` takes.
    X : array-like of shape (n, channels, length), (n, length) or (n, channels, height, width)
        Instances, in the shape the model takes.
    y : array-like of shape (n,), optional
        Class of each instance; default: the class the model predicts.

    Returns
    -------
    pandas.DataFrame
        One row per class and one named "all". Columns: `n`, the number of instances; `rmse` and
        `mae`, the mean errors of x̂ - x in the units of the data; `flip_rate`, how often the model
        predicts another class for x̂ than for x.

    Examples
    --------
    >>> X = np.sin(np.linspace(0, 6, 30) + np.arange(40)[:, None])
    >>> autoencoder = fit_autoencoder("cnn", X, max_epochs=30)
    >>> rises = lambda X: np.where(X[:, 1] > X[:, 0], "up", "down")
    >>> model = as_classifier(rises, classes=["down", "up"])
    >>> reconstruction_report(autoencoder, model, X)["n"].to_dict()
    {'down': 19, 'up': 21, 'all': 40}
    """
    import pandas as pd

    rules = {"autoencoder": Instance(Autoencoder)}
    check_parameters("reconstruction_report", rules, {"autoencoder": autoencoder})
    autoencoder = in_eval_mode(autoencoder, "autoencoder")
    x = _read(X).to(next(autoencoder.parameters()))
    if tuple(x.shape[1:]) != autoencoder.shape:
        raise ValueError(
            f"X holds instances of shape {tuple(x.shape[1:])}; the autoencoder takes "
            f"{autoencoder.shape}."
        )
    with torch.no_grad():
        x_hat = torch.cat([autoencoder(part) for part in x.split(256)])
    gap = (x_hat - x).double().flatten(1)  # (n, values)
    if np.ndim(X) == 2:  # the model takes the shape the user has
        x = x[:, 0]
        x_hat = x_hat[:, 0]
    classifier = as_classifier(model)
    before = classifier.predict(x.numpy(force=True))
    after = classifier.predict(x_hat.numpy(force=True))
    squared = gap.square().mean(1)
    absolute = gap.abs().mean(1)
    errors = pd.DataFrame(
        {
            "n": 1,
            "rmse": squared.sqrt().numpy(force=True),
            "mae": absolute.numpy(force=True),
            "flip_rate": (before != after).astype(float),
        }
    )
    how = {"n": "sum", "rmse": "mean", "mae": "mean", "flip_rate": "mean"}
    label = before if y is None else as_labels(y, "y", len(x))
    per_class = errors.groupby(label).agg(how)
    overall = errors.agg(how).to_frame("all").T
    report = pd.concat([per_class, overall])
    return report.astype({"n": int}).rename_axis("class")


def _read(X: Any) -> Tensor:
    """Convert series and images to a tensor with a channel axis."""
    values = as_float(X, "X")
    if values.ndim == 2:
        values = values[:, None]
    if values.ndim not in (3, 4) or values.size == 0:
        raise ValueError(
            f"X has shape {np.shape(X)}. Accepted: series or images, at least one instance."
        )
    problem = describe_nonfinite(values, "X")
    if problem:
        raise ValueError(problem)
    return torch.from_numpy(for_torch(values))
