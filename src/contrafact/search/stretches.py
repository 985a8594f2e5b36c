"""Stretches of an edit: runs of time steps, patches of an image, features of a row."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..engine.instances import Modality
from ..engine.result import CHANGE_TOLERANCE


def changed_values(x_cf: Tensor, x: Tensor, modality: Modality) -> Tensor:
    """Find the values that an edit changes, by the rule of `Counterfactuals.changed`.

    Parameters
    ----------
    x_cf, x : Tensor of shape (n, *shape)
        The edits and the instances before.
    modality : {"series", "image", "row"}
        Kind of data; in rows, whose features share no unit, any difference counts.

    Returns
    -------
    Tensor of bool, shape (n, *shape)
        True where a value changed.
    """
    if modality == "row":
        return x_cf != x
    size = (x_cf.double() - x.double()).abs()
    largest = size.flatten(1).amax(1).reshape(-1, *[1] * (x.ndim - 1))
    return size > CHANGE_TOLERANCE * largest


def stretch_ids(changed: Tensor, modality: Modality, part: Tensor | None = None) -> Tensor:
    """Give numbers to the stretches of every edit.

    A stretch is a maximal run of time steps of which some channel changed, a patch of changed
    pixels that touch (diagonally too), or one feature; of tables, one column or one-hot group.

    Parameters
    ----------
    changed : Tensor of bool, shape (n, *shape)
        The values that changed.
    modality : {"series", "image", "row"}
        Kind of data.
    part : Tensor of int, shape (coordinates,), optional
        For rows of a table, the column or one-hot group of each coordinate.

    Returns
    -------
    Tensor of int
        1, 2, ... within the stretches of each edit, 0 elsewhere; of shape (n, 1, length),
        (n, 1, height, width) or (n, features), so that it broadcasts against the instances.

    Examples
    --------
    >>> changed = torch.tensor([[[True, False, False, True], [True, True, False, True]]])
    >>> stretch_ids(changed, "series").tolist()
    [[[1, 1, 0, 2]]]
    """
    if part is not None:
        count = torch.zeros(len(changed), int(part.max()) + 1, dtype=torch.long)
        whole = count.index_add_(1, part, changed.long()) > 0
        return (whole.cumsum(1) * whole)[:, part]
    if modality == "row":
        return changed.cumsum(1) * changed
    places = changed.any(dim=1, keepdim=True)
    if modality == "image":
        return _patch_ids(places)
    before = torch.nn.functional.pad(places, (1, 0))[..., :-1]
    starts = places & ~before
    return starts.cumsum(-1) * places


def _patch_ids(places: Tensor) -> Tensor:
    """Give numbers to connected patches (n, 1, height, width), all images in one call."""
    from scipy.ndimage import label

    # Pixels touch within an image only: the outer planes of the neighborhood are empty.
    touching = np.zeros((3, 3, 3), dtype=int)
    touching[1] = 1
    numbers, _ = label(places[:, 0].cpu().numpy(), touching)
    ids = torch.from_numpy(numbers.astype(np.int64)).to(places.device)
    # Numbers run on from image to image; subtract those of the images before.
    last = ids.flatten(1).amax(1).cummax(0).values
    before = torch.nn.functional.pad(last, (1, 0))[:-1]
    ids = torch.where(ids > 0, ids - before[:, None, None], 0)
    return ids[:, None]


def count_stretches(ids: Tensor) -> Tensor:
    """Return the number of stretches of each edit, (n,)."""
    return ids.flatten(1).amax(1)


def stretch_lengths(ids: Tensor) -> Tensor:
    """Return, for every place of a series, the length of the stretch that it is in.

    Parameters
    ----------
    ids : Tensor of int, shape (n, 1, length)
        Numbers of the stretches.

    Returns
    -------
    Tensor of int, shape (n, 1, length)
        In time steps; 0 outside of stretches.
    """
    flat = ids.flatten(1)
    sizes = torch.zeros(len(flat), flat.shape[1] + 1, dtype=torch.long, device=ids.device)
    sizes.scatter_add_(1, flat, torch.ones_like(flat))
    sizes[:, 0] = 0
    return sizes.gather(1, flat).reshape(ids.shape)
