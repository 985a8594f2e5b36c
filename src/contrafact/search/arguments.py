"""Arguments of searches, checked before the model is asked."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ..engine import Tasks
from ..numerics.tensors import read_integers, read_tensor
from ..validation import Instance

#: what a search works on
TASKS = Instance(Tasks)


def read_candidates(values: Any, name: str, tasks: Tasks, *, finite: bool = True) -> Tensor:
    """Convert one candidate per task to the dtype and device of the instances.

    Parameters
    ----------
    values : Tensor of shape (n, *shape)
        The candidates.
    name : str
        What the caller calls them, for error messages.
    tasks : Tasks
        What they are for.
    finite : bool, default=True
        Refuse NaN and infinite numbers.

    Returns
    -------
    Tensor of shape (n, *shape)
        The candidates.
    """
    return read_tensor(values, name, tuple(tasks.x.shape), finite=finite).to(tasks.x)


def read_levels(values: Any, name: str, tasks: Tasks, least: int) -> Tensor:
    """Convert one level for each task, or one for all.

    Parameters
    ----------
    values : int or Tensor of int, shape (n,)
        The levels.
    name : str
        What the caller calls them, for error messages.
    tasks : Tasks
        What they are for.
    least : int
        The lowest level that is accepted.

    Returns
    -------
    Tensor of int, shape (n,)
        A new tensor.
    """
    n = len(tasks)
    levels = read_integers(values, name, (), (n,)).long().to(tasks.row.device)
    if bool((levels < least).any()):
        raise ValueError(f"{name} must be at least {least}, got {int(levels.min())}.")
    return levels.expand(n).clone()


def read_segments(values: Any, tasks: Tasks) -> Tensor:
    """Convert the segment of each value of an instance, numbered from 0.

    Parameters
    ----------
    values : Tensor of int, shape of one instance
        The segments.
    tasks : Tasks
        What they are for.

    Returns
    -------
    Tensor of int, shape of one instance
        The segments.
    """
    segment = read_integers(values, "segment", tasks.shape).long().to(tasks.row.device)
    if int(segment.min()) < 0 or int(segment.max()) >= segment.numel():
        raise ValueError(
            f"segment must hold numbers from 0 to below {segment.numel()}, the values of an "
            f"instance; got {int(segment.min())} to {int(segment.max())}."
        )
    return segment
