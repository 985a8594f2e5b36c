"""Segments of an instance: windows of series, patches of images, groups of features."""

from __future__ import annotations

import torch
from torch import Tensor

from ..engine import Tasks
from ..numerics import ceil_div
from ..validation import Boolean, Integer, Rule, Satisfies, check_parameters

_WHOLE = Integer(at_least=1, at_most=10**9)
_RULES: dict[str, Rule] = {
    "shape": Satisfies(
        lambda shape: (
            isinstance(shape, (tuple, list))
            and 1 <= len(shape) <= 3
            and all(map(_WHOLE.accepts, shape))
        ),
        "one, two or three whole numbers at least 1",
    ),
    "width": _WHOLE,
    "shared": Boolean(),
}


def segment_ids(
    shape: tuple[int, ...],
    width: int,
    *,
    shared: bool = False,
) -> Tensor:
    """Assign every value of an instance to a segment.

    Parameters
    ----------
    shape : tuple of int
        Shape of one instance: (features,), (channels, length) or (channels, height, width).
    width : int
        Time steps per window, side of a square patch, or features per group.
    shared : bool, default=False
        Series only: let windows span all channels instead of one each.

    Returns
    -------
    Tensor of int, shape `shape`
        Segment numbers from 0. Patches of images span all channels.

    Examples
    --------
    >>> segment_ids((2, 4), 2).tolist()
    [[0, 0, 1, 1], [2, 2, 3, 3]]
    """
    check_parameters("segment_ids", _RULES, {"shape": shape, "width": width, "shared": shared})
    if len(shape) == 1:
        return torch.arange(shape[0]) // width
    if len(shape) == 2:
        channels, length = shape
        window = torch.arange(length) // width
        if shared:
            return window.expand(shape).clone()
        windows_per_channel = int(window[-1]) + 1
        return window + torch.arange(channels)[:, None] * windows_per_channel
    _, height, image_width = shape
    patch_row = torch.arange(height) // width
    patch_column = torch.arange(image_width) // width
    patches_across = ceil_div(image_width, width)
    return (patch_row[:, None] * patches_across + patch_column).expand(shape).clone()


def task_segments(tasks: Tasks, width: int = 1) -> Tensor:
    """Assign every value of the tasks' instances to a segment; of tables, every coordinate.

    Parameters
    ----------
    tasks : Tasks
        The tasks.
    width : int, default=1
        As in `segment_ids`; of tables, how many neighboring columns or one-hot groups.

    Returns
    -------
    Tensor of int, shape of one instance
        Segment numbers from 0. Coordinates of one column or one-hot group are never separated.
    """
    if tasks.space is None:
        return segment_ids(tasks.shape, width).to(tasks.row.device)
    return tasks.space.part // width


def as_rows(tasks: Tasks, x_cf: Tensor) -> Tensor:
    """Bring candidates made of pieces of rows to rows of the table; arrays stay as they are.

    What is copied or undone piece by piece keeps the schema, but a linked column has to follow,
    and a relation may ask for more.

    Parameters
    ----------
    tasks : Tasks
        What the candidates are for.
    x_cf : Tensor of shape (n, *shape)
        The candidates.

    Returns
    -------
    Tensor of shape (n, *shape)
        Rows within the constraints, or the arrays that were given.
    """
    return x_cf if tasks.space is None else tasks.project(x_cf)


def count_segments(segment: Tensor) -> int:
    """Return the number of segments."""
    return int(segment.max()) + 1


def sum_by_segment(values: Tensor, segment: Tensor) -> Tensor:
    """Add up the values of each segment.

    Parameters
    ----------
    values : Tensor of shape (n, *shape)
        One number per value of each instance.
    segment : Tensor of int, shape `shape`
        The segment of each value.

    Returns
    -------
    Tensor of shape (n, segments)
        The sums.
    """
    sums = values.new_zeros(len(values), count_segments(segment))
    return sums.index_add_(1, segment.flatten(), values.flatten(1))
