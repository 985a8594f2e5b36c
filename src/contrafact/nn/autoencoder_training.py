"""Train an autoencoder, and see what it keeps of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import mse_loss

from ..data.cleaning import as_float, describe_nonfinite
from ..data.dataset import as_labels
from ..models.classifier import as_classifier
from .autoencoders import Autoencoder, build_autoencoder
from .loop import train
from .networks import seeded

if TYPE_CHECKING:
    import pandas as pd

SCALINGS = ("minmax", "standard")


def fit_autoencoder(
    module: Autoencoder | str | None,
    X: ArrayLike | Tensor,
    *,
    validation: float = 0.2,
    max_epochs: int = 500,
    batch_size: int = 32,
    lr: float = 1e-3,
    patience: int = 100,
    scaling: str = "minmax",
    random_state: int = 0,
    progress: bool = False,
    device: Any = None,
) -> Autoencoder:
    """Train by the squared error of x̂ = D(E(x)) in scaled units, stop early and keep the best weights.

    Adam; the step falls tenfold after 25 epochs without a lower validation loss; gradients are clipped.

    Parameters
    ----------
    module : an Autoencoder (trained in place), "lstm" (series), "cnn" (series, images) or None ("cnn").
    X : instances (n, channels, length), (n, length) for one channel, or (n, channels, height, width).
    validation : share of the instances held out.
    scaling : "minmax" (each channel to [0, 1]) or "standard" (mean 0, spread 1), by the training instances.
    patience : epochs without a lower validation loss before stopping.
    random_state : same seed, same weights; the global random state is neither read nor changed.

    Returns
    -------
    The autoencoder in eval mode, its weights fixed; `history` has train_loss and val_loss per epoch.

    Examples
    --------
    >>> X = np.sin(np.linspace(0, 6, 30) + np.arange(40)[:, None])
    >>> autoencoder = fit_autoencoder("cnn", X, max_epochs=30)
    >>> autoencoder.history["val_loss"][-1] < autoencoder.history["val_loss"][0]
    True
    """
    if scaling not in SCALINGS:
        raise ValueError(f"scaling must be one of {', '.join(SCALINGS)}, got {scaling!r}.")
    if not 0 <= validation < 1:
        raise ValueError(f"validation must be a share from 0 to below 1, got {validation}.")
    x = _read(X)
    if module is None:
        module = "cnn"
    if isinstance(module, str):
        module = build_autoencoder(module, x.shape[1:], random_state)
    if not isinstance(module, Autoencoder):
        raise TypeError(f"module must be an Autoencoder or a name, got {type(module).__name__}.")
    if module.shape != tuple(x.shape[1:]):
        raise ValueError(
            f"module takes instances of shape {module.shape}; X holds {tuple(x.shape[1:])}."
        )
    module.to(device).requires_grad_(True)
    x = x.to(next(module.parameters()))
    order = np.random.default_rng(random_state).permutation(len(x))
    n_val = min(round(validation * len(x)), len(x) - 1)
    x_val, x = x[order[:n_val]], x[order[n_val:]]
    (module.scaling.fit_range if scaling == "minmax" else module.scaling.fit)(x)
    unit = module.scaling.std.view(-1, *[1] * (x.ndim - 2))

    def error(rows: Tensor) -> Tensor:
        return mse_loss(module(rows) / unit, rows / unit)

    def watch() -> dict[str, float]:
        parts = x_val.split(256)
        return {"val_loss": sum(error(part).item() * len(part) for part in parts) / len(x_val)}

    optimizer = torch.optim.Adam(module.parameters(), lr=lr)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=25)
    with seeded(random_state):
        module.history = train(
            module,
            len(x),
            lambda rows, epoch: error(x[rows]),
            optimizer,
            plateau.step,
            watch=watch if n_val else None,
            max_epochs=max_epochs,
            batch_size=batch_size,
            patience=patience,
            clip=1.0,
            progress=progress,
        )
    return module.requires_grad_(False)


def reconstruction_report(
    autoencoder: Autoencoder, model: Any, X: ArrayLike | Tensor, y: ArrayLike | None = None
) -> pd.DataFrame:
    """What plain reconstruction does to the data, per class and over all of them.

    Columns: `n`, `rmse` and `mae` of x̂ − x, and `flip_rate`: how often the model decides otherwise for x̂
    than for x. A latent method that flips an instance with no movement at all only shows this rate.

    Parameters
    ----------
    model : anything `as_classifier` takes.
    y : the class of each instance; None: what the model says of it.
    """
    import pandas as pd

    x = _read(X).to(next(autoencoder.parameters()))
    classifier = as_classifier(model)
    with torch.no_grad():
        again = torch.cat([autoencoder(part) for part in x.split(256)])
    # The model gets the shape the user has: a 2-D array of series stays one.
    lifted = np.ndim(X) == 2
    before, after = (
        classifier.predict((rows[:, 0] if lifted else rows).numpy(force=True))
        for rows in (x, again)
    )
    gap = (again - x).double().flatten(1)
    rows = pd.DataFrame(
        {
            "n": 1,
            "rmse": gap.square().mean(1).sqrt().numpy(force=True),
            "mae": gap.abs().mean(1).numpy(force=True),
            "flip_rate": (before != after).astype(float),
        }
    )
    label = before if y is None else as_labels(y, "y", len(x))
    how = {"n": "sum", "rmse": "mean", "mae": "mean", "flip_rate": "mean"}
    per_class = rows.groupby(label).agg(how)
    return (
        pd.concat([per_class, rows.agg(how).to_frame("all").T])
        .astype({"n": int})
        .rename_axis("class")
    )


def _read(X: Any) -> Tensor:
    """Series and images as a tensor, with a channel axis."""
    values = as_float(X.detach().cpu().numpy() if isinstance(X, Tensor) else X, "X")
    if values.ndim == 2:
        values = values[:, None]
    if values.ndim not in (3, 4) or values.size == 0:
        raise ValueError(
            f"X has shape {np.shape(X)}. Accepted: series or images, at least one instance."
        )
    problem = describe_nonfinite(values, "X")
    if problem:
        raise ValueError(problem)
    return torch.from_numpy(np.ascontiguousarray(values))
