"""The inputs of an ONNX model: their shapes, and values in the type that each takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..data.cleaning import Array

#: Types of inputs, as onnxruntime names them, and those of the arrays to hand over.
DTYPES: dict[str, Any] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(string)": np.object_,
}


@dataclass(frozen=True)
class OnnxInput:
    """One input of an ONNX model.

    Parameters
    ----------
    name : str
        Its name.
    kind : str
        A key of `DTYPES`.
    batch : int or None
        How many rows it takes at once; None: any number.
    row : tuple of (int or None), or None
        Shape of one row, with None for sizes that are open; None where nothing is said.
    """

    name: str
    kind: str
    batch: int | None
    row: tuple[int | None, ...] | None

    @property
    def torch_dtype(self) -> torch.dtype:
        """The precision in which rows are handed over, before they are converted."""
        return torch.float32 if self.kind in ("tensor(float)", "tensor(float16)") else torch.float64

    def zeros(self) -> Array | None:
        """Return as many rows of zeros as are taken at once; None where their shape is open."""
        sizes = [size for size in self.row or () if size is not None]
        if self.row is None or len(sizes) < len(self.row):
            return None
        shape = (self.batch or 1, *sizes)
        if self.kind == "tensor(string)":
            return np.full(shape, "", dtype=object)
        return np.zeros(shape, DTYPES[self.kind])

    def convert(self, values: Array) -> Array:
        """Convert values to the type of the input; refuse those that would be rounded."""
        if self.kind == "tensor(string)":
            return values.astype(str).astype(object)
        if self.kind in ("tensor(int64)", "tensor(int32)"):
            numbers = values.astype(np.float64)
            if not np.array_equal(numbers, numbers.round()):
                raise ValueError(
                    f"the input {self.name!r} takes whole numbers ({self.kind}), and X holds others"
                )
        return values.astype(DTYPES[self.kind])

    def __str__(self) -> str:
        sizes = "?" if self.row is None else ", ".join(str(size or "?") for size in self.row)
        return f"({self.batch or 'n'}, {sizes}) at {self.name!r}"


def read_onnx_inputs(session: Any) -> list[OnnxInput]:
    """Read what a session takes.

    Parameters
    ----------
    session : onnxruntime.InferenceSession
        The model.

    Returns
    -------
    list of OnnxInput
        One for all values of a row, or one for each column of a table.

    Raises
    ------
    ValueError
        If an input is of another type, or several are not columns.
    """
    inputs = []
    for each in session.get_inputs():
        if each.type not in DTYPES:
            raise ValueError(
                f"model takes {each.type} at its input {each.name!r}. Accepted: "
                f"{', '.join(DTYPES)}."
            )
        sizes = [size if isinstance(size, int) and size > 0 else None for size in each.shape]
        row = tuple(sizes[1:]) if sizes else None
        inputs.append(OnnxInput(each.name, each.type, sizes[0] if sizes else None, row))
    if not inputs or (len(inputs) > 1 and any(each.row != (1,) for each in inputs)):
        taken = ", ".join(map(str, inputs)) or "nothing"
        raise ValueError(
            f"model takes {taken}. Accepted: one input for the rows, or one of shape (n, 1) for "
            "each column; wrap others as a function of an array."
        )
    return inputs
