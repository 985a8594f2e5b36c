"""What comes in: arrays, labels and targets, checked before any work starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..data.cleaning import as_float, describe_nonfinite
from ..models.classifier import Array

Modality = Literal["series", "image", "row"]
DIMENSIONS: dict[str, int] = {"series": 3, "image": 4, "row": 2}
PLURALS: dict[str, str] = {"series": "series", "image": "images", "row": "rows"}


@dataclass(frozen=True)
class Instances:
    """The user's array as the engine sees it, and how to give results back in kind.

    values : float array (n, *shape), series and images with their channel axis.
    lifted : a 2-D array of series came in, and 2-D goes out.
    torch_device : set when a torch tensor came in.
    names : the columns, when a data frame of rows came in.
    """

    values: Array
    modality: Modality
    lifted: bool
    torch_device: torch.device | None
    names: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape[1:])

    def restore(self, values: Array) -> Any:
        """Engine array → the user's kind and number of dimensions."""
        if self.lifted:
            values = values[:, 0]
        return (
            values if self.torch_device is None else torch.from_numpy(values).to(self.torch_device)
        )


def read_instances(
    X: Any, name: str, modality: Modality | None, modalities: tuple[str, ...]
) -> Instances:
    """Validate an array of instances: numeric, finite, of a shape the method takes.

    `modality` None reads it off the dimensions: 3-D series, 4-D images, 2-D rows where the method takes rows
    and univariate series otherwise.
    """
    device = X.device if isinstance(X, Tensor) else None
    columns = getattr(X, "columns", None)
    if isinstance(X, Tensor):
        X = X.detach().cpu()
        X = X.float() if X.dtype == torch.bfloat16 else X  # NumPy has no such numbers
    values = as_float(X, name)
    # What torch takes: float32 or float64 in native byte order, and no reversed axes.
    values = np.ascontiguousarray(values, np.float32 if values.dtype.itemsize <= 4 else np.float64)
    if values.ndim not in (2, 3, 4):
        raise ValueError(
            f"{name} has shape {values.shape}; accepted are rows (n, features), series (n, length) or "
            "(n, channels, length), images (n, channels, height, width). One instance x: pass x[None]."
        )
    if modality is None:
        by_dimensions: dict[int, Modality] = {
            3: "series",
            4: "image",
            2: "row" if "row" in modalities else "series",
        }
        modality = by_dimensions[values.ndim]
    if modality not in DIMENSIONS:
        raise ValueError(f"modality {modality!r} is unknown; accepted: 'series', 'image', 'row'.")
    if modality not in modalities:
        raise ValueError(
            f"{name} holds {modality} data (shape {values.shape}); accepted here: {', '.join(modalities)}."
        )
    lifted = modality == "series" and values.ndim == 2
    if lifted:
        values = values[:, None]
    if values.ndim != DIMENSIONS[modality]:
        raise ValueError(f"{name} has shape {values.shape}, which is not {modality} data.")
    if 0 in values.shape[1:]:
        raise ValueError(f"{name} has shape {values.shape}: its instances are empty.")
    problem = describe_nonfinite(values, name)
    if problem:
        raise ValueError(problem)
    # The columns of a frame of series are time steps, not channels.
    names = (
        None if columns is None or modality != "row" else np.array([str(name) for name in columns])
    )
    return Instances(values, modality, lifted, device, names)


def read_targets(target: Any, classes: Array, n: int) -> Array | None:
    """Target classes as column numbers, one per row; None stays None (the method chooses)."""
    if target is None:
        return None
    if isinstance(target, Tensor):
        target = target.detach().cpu().numpy()
    if np.ndim(target) > 1:
        raise ValueError(
            f"target has shape {np.shape(target)}; give one label, or one for each instance."
        )
    one = np.ndim(target) == 0
    labels = [np.asarray(target).item()] if one else np.asarray(target).tolist()
    if not one and len(labels) != n:
        raise ValueError(
            f"target has {len(labels)} labels for {n} instances; give one label, or one for each."
        )
    column = {label: i for i, label in enumerate(classes.tolist())}
    known = ", ".join(map(repr, column))
    for label in labels:
        if label not in column or isinstance(label, str) != (classes.dtype.kind == "U"):
            raise ValueError(f"target {label!r} is not a class of this model. Classes: {known}.")
    columns = np.array([column[label] for label in labels], dtype=np.int64)
    return np.repeat(columns, n) if one else columns
