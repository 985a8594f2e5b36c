"""Tell probabilities from scores in the columns that a model returns."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

#: Multiples of a few rows at which a model with one output is asked whether it stays in [0, 1].
_PROBE_SCALES = (-100, -10, -1, 1, 10, 100)


def are_probabilities(columns: Tensor) -> bool:
    """Judge by one answer whether columns, one for each class, are probabilities.

    Parameters
    ----------
    columns : Tensor of shape (rows, classes)
        Finite numbers, of at least one row and two classes.

    Returns
    -------
    bool
        Whether every row lies within [0, 1] and sums to 1.
    """
    in_range = (columns >= 0) & (columns <= 1)
    deviation = (columns.sum(1) - 1).abs()
    return bool(in_range.all() and deviation.max() < 1e-4)


def stays_within_unit_interval(
    column: Tensor,
    x: Tensor,
    ask: Callable[[Tensor], Tensor],
) -> bool:
    """Ask a model with one output about large inputs too.

    A few logits may lie within [0, 1] by chance; a probability stays there for any input.

    Parameters
    ----------
    column : Tensor of shape (rows, 1)
        What the model answered.
    x : Tensor of shape (rows, ...)
        The rows.
    ask : function of Tensor
        Asks the model again.

    Returns
    -------
    bool
        Whether all answers lie within [0, 1]; those that are no numbers do not count.
    """
    few = x[:8] + 1
    probes = torch.cat([scale * few for scale in _PROBE_SCALES])
    with torch.no_grad():
        far = ask(probes)
    far = far.to(column).reshape(-1, 1)
    values = torch.cat([column, far])
    in_range = (values >= 0) & (values <= 1)
    return bool((in_range | values.isnan()).all())
