"""Say what a model would take that does not take the rows it was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

#: What helps with a model that takes (n, length, channels).
_TRANSPOSE = (
    " It answers for {shape}: series as (n, length, channels). Here they are (n, channels, "
    "length). Transpose X if it is in that other layout; else wrap the model, so that it "
    "transposes what it is given."
)
_CHANNEL = " It answers for {shape}: pass series with their channel axis, X[:, None]."
_NO_CHANNEL = " It answers for {shape}: pass series without a channel axis, X[:, 0]."
_FLAT = " It answers for flat rows, {shape}: pass X.reshape(len(X), -1) as rows."
_WHOLE_NUMBERS = (
    " It answers for whole numbers only, as an embedding takes them. Counterfactuals change real "
    "values: explain the part of the model behind its embedding."
)


def layout_hint(ask: Callable[[Tensor], Any], x: Tensor) -> str:
    """Find another form of rows for which a model answers, and say so.

    Parameters
    ----------
    ask : function of Tensor
        Asks the model.
    x : Tensor of shape (n, ...)
        Rows that the model refused; the first few are used.

    Returns
    -------
    str
        A sentence that starts with a space; empty where the model answers for no other form.
    """
    few = x[:2].detach()
    for text, other in _alternatives(few):
        if _answers(ask, other):
            shape = ", ".join(map(str, other.shape[1:]))
            return text.format(shape=f"(n, {shape})")
    return ""


def _alternatives(x: Tensor) -> list[tuple[str, Tensor]]:
    """List other forms of rows, each with what to say where the model takes it."""
    others: list[tuple[str, Tensor]] = []
    if x.ndim == 3:
        others.append((_TRANSPOSE, x.transpose(1, 2).contiguous()))
        if x.shape[1] == 1:
            others.append((_NO_CHANNEL, x[:, 0]))
    if x.ndim == 2:
        others.append((_CHANNEL, x[:, None]))
        others.append((_TRANSPOSE, x[:, :, None]))
    if x.ndim > 2:
        others.append((_FLAT, x.flatten(1)))
    others.append((_WHOLE_NUMBERS, x.abs().clamp_max(1).long()))
    return others


def _answers(ask: Callable[[Tensor], Any], x: Tensor) -> bool:
    """Tell whether a model gives one answer for each row."""
    try:
        shape = np.shape(ask(x))
    # A model that was given the wrong form may raise anything, and answer in parts.
    except Exception:
        return False
    return len(shape) in (1, 2) and shape[0] == len(x)
