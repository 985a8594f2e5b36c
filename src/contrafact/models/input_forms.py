"""The forms in which rows may be handed to a model that does not say which it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..data.cleaning import Array

Layout = Literal["given", "flat", "channel"]


@dataclass(frozen=True)
class InputForm:
    """The shape and the precision in which rows are handed to a model.

    Parameters
    ----------
    layout : {"given", "flat", "channel"}
        Rows as they are; flattened to (n, features); with an axis for one channel.
    dtype : torch.dtype
        Precision of the numbers.
    """

    layout: Layout
    dtype: torch.dtype

    def shape(self, row: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape that a row of a given shape takes in this form."""
        if self.layout == "flat":
            return (prod(row),)
        if self.layout == "channel":
            return (1, *row)
        return row

    def apply(self, x: Tensor) -> Array:
        """Convert rows to an array of this form, a copy: the model may work in place."""
        shape = self.shape(tuple(x.shape[1:]))
        values = x.detach().to("cpu", self.dtype, copy=True).reshape(len(x), *shape)
        return np.asarray(values.numpy())

    def describe(self, row: tuple[int, ...]) -> str:
        """Say the shape and the precision, such as "(n, 150) float32"."""
        sizes = ", ".join(map(str, self.shape(row)))
        return f"(n, {sizes}) {str(self.dtype).removeprefix('torch.')}"


def possible_forms(
    row: tuple[int, ...],
    n_features: int | None,
    dtype: torch.dtype,
) -> list[InputForm]:
    """List the forms that make sense for a model, the most likely first.

    Parameters
    ----------
    row : tuple of int
        Shape of one row.
    n_features : int or None
        The model's `n_features_in_`. Not to be relied on: some libraries set it to 0, to the number
        of channels, or to the width of an inner step.
    dtype : torch.dtype
        The precision to try first; float32 comes second.

    Returns
    -------
    list of InputForm
        At least one.
    """
    layouts: list[Layout] = ["given"]
    if len(row) > 1:
        layouts = ["flat", "given"] if n_features == prod(row) else ["given", "flat"]
    elif n_features is None:
        layouts = ["given", "channel"]
    dtypes = list(dict.fromkeys([dtype, torch.float32]))
    return [InputForm(layout, each) for layout in layouts for each in dtypes]


def first_answer(
    ask: Callable[[InputForm], Any],
    forms: Sequence[InputForm],
) -> tuple[InputForm | None, Any, list[Exception]]:
    """Ask in one form after the other, until the model answers.

    Parameters
    ----------
    ask : function of InputForm
        Asks the model in this form and returns what it answers.
    forms : sequence of InputForm
        What to try, in order.

    Returns
    -------
    form : InputForm or None
        The first in which the model answered; None where it did in none.
    answer : object
        What it answered.
    failures : list of Exception
        Why each form before it failed.
    """
    failures: list[Exception] = []
    for form in forms:
        try:
            return form, ask(form), failures
        # Libraries raise errors of their own, derived from nothing narrower.
        except Exception as error:
            failures.append(error)
    return None, None, failures
