"""Work on many rows block by block, so that what is worked on stays in the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

#: Numbers in a block of rows: they stay in the cache, and are too few for torch to start threads.
_BLOCK = 2**15


def compute_in_blocks(
    compute: Callable[..., None],
    first: Tensor,
    *others: Tensor,
    n_buffers: int,
    dtype: torch.dtype,
) -> Tensor:
    """Compute a row for every row, reusing the same memory for each block of rows.

    Parameters
    ----------
    compute : function of (out, memory, first, *others)
        Writes the rows of one block to `out`; `memory` holds its buffers, (n_buffers, rows, d).
    first : Tensor of shape (n, d)
        The rows.
    *others : Tensor
        With n rows, or one row for all.
    n_buffers : int
        How many arrays of the size of a block `compute` works in.
    dtype : torch.dtype
        Of the buffers.

    Returns
    -------
    Tensor of shape (n, d)
        What was computed, in the dtype of `first`.
    """
    computed = torch.empty_like(first, memory_format=torch.contiguous_format)
    # inference_mode means less work per operation; the result itself is an ordinary tensor.
    with torch.inference_mode():
        size = min(len(first), _block_rows(first))
        memory = first.new_empty(n_buffers, size, first.shape[1], dtype=dtype)
        for out, *block in blocks(computed, first, *others):
            compute(out, memory[:, : len(out)], *block)
    return computed


def blocks(first: Tensor, *others: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Iterate over blocks of rows of several tensors.

    Parameters
    ----------
    first : Tensor of shape (n, d)
        Its size decides how many rows make a block.
    *others : Tensor
        With n rows, or one row for all: the latter are passed on as they are.

    Yields
    ------
    tuple of Tensor
        The block of `first`, then those of the others.
    """
    n = len(first)
    size = _block_rows(first)

    def has_rows(other: Tensor) -> bool:
        return other.ndim > 0 and len(other) == n

    if first.numel() == 0:
        return
    if n <= size:
        # Slicing costs as much as computing with a short row.
        yield first, *others
        return
    for start in range(0, n, size):
        rows = slice(start, start + size)
        parts = [other[rows] if has_rows(other) else other for other in others]
        yield first[rows], *parts


def _block_rows(rows: Tensor) -> int:
    """Return how many rows to work on at a time."""
    return max(1, _BLOCK // max(1, rows.shape[1]))
