"""Parts of a row: what can be changed on its own, and how far rows are apart in each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self

from ...tables import TableSpace
from ...tables.space import CATEGORY

#: the median absolute deviation of a normal distribution is 1 / 1.4826 of its standard deviation
NORMAL = 1.4826


@dataclass(frozen=True)
class RowParts:
    """The parts of a row: features of an array, columns and one-hot groups of a table.

    Distances have no units: numbers count by their scale (in arrays the median absolute deviation
    of the reference rows, in tables what the schema says), an exchanged category counts 1.

    Parameters
    ----------
    part : Tensor of int, shape (coordinates,)
        The part of each coordinate.
    weight : Tensor of shape (coordinates,)
        What a difference of 1 in a coordinate counts.
    is_number : Tensor of bool, shape (parts,)
        Whether a part can be brought nearer to a value, not only be exchanged for it.
    """

    part: Tensor
    weight: Tensor
    is_number: Tensor

    @classmethod
    def of(cls, X: Tensor, space: TableSpace | None) -> Self:
        """Find the parts of some reference rows.

        Parameters
        ----------
        X : Tensor of shape (n, coordinates)
            Reference rows.
        space : TableSpace or None
            Coordinates of the table that they are rows of; None for arrays.

        Returns
        -------
        RowParts
            Parts, on the device of X.
        """
        device = X.device
        if space is None:
            d = X.shape[1]
            part = torch.arange(d, device=device)
            is_number = torch.ones(d, dtype=torch.bool, device=device)
            return cls(part, (1 / _spread(X)).to(X), is_number)
        kinds = [_is_exchanged(space, column) for column in space.column.tolist()]
        exchanged = torch.tensor(kinds, dtype=torch.bool, device=device)
        part = space.part.to(device)
        is_number = torch.ones(len(space.part_names), dtype=torch.bool, device=device)
        is_number[part[exchanged]] = False
        # One coordinate of a category falls by CATEGORY and another rises by it: 1 in all.
        has_levels = exchanged & ~_is_boolean(space).to(device)
        weight = torch.ones_like(X[0])
        weight[has_levels] = CATEGORY
        return cls(part, weight, is_number)

    @property
    def count(self) -> int:
        """Number of parts."""
        return len(self.is_number)

    def distances(self, x_cf: Tensor, x: Tensor) -> Tensor:
        """Return the distance of rows (..., coordinates) in each part, (..., parts)."""
        size = (x_cf - x).abs() * self.weight
        by_part = size.new_zeros(*size.shape[:-1], self.count)
        return by_part.index_add_(-1, self.part, size)

    def changed(self, x_cf: Tensor, x: Tensor) -> Tensor:
        """Return which parts of rows (..., coordinates) differ, (..., parts)."""
        differs = (x_cf != x).long()
        by_part = differs.new_zeros(*differs.shape[:-1], self.count)
        return by_part.index_add_(-1, self.part, differs) > 0

    def spread(self, values: Tensor) -> Tensor:
        """Return values of parts (..., parts) for each coordinate, (..., coordinates)."""
        return values[..., self.part]

    def only(self, part: Tensor) -> Tensor:
        """Return the mask of the coordinates of one part per row, (n, coordinates)."""
        return self.part == part[:, None]


def _spread(X: Tensor) -> Tensor:
    """Return the scale of each feature: by the median, else by the variance, else 1."""
    rows = X.double().cpu().numpy()
    middle = np.median(rows, axis=0)
    deviation = torch.from_numpy(NORMAL * np.median(np.abs(rows - middle), axis=0)).to(X.device)
    standard = X.double().std(0, correction=0)
    spread = torch.where(deviation > 1e-6 * standard, deviation, standard)
    return torch.where(spread > 0, spread, 1.0)


def _is_exchanged(space: TableSpace, column: int) -> bool:
    """Return whether values of a column are exchanged for others, without any in between."""
    described = space.schema.columns[column]
    return described.kind in ("categorical", "boolean", "fixed") or described.group is not None


def _is_boolean(space: TableSpace) -> Tensor:
    """Return the mask of the coordinates of booleans, which have one instead of one per level."""
    lone = [column.kind == "boolean" and column.group is None for column in space.schema]
    return torch.tensor(lone, dtype=torch.bool)[space.column]
