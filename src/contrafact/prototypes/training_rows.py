"""Rows to train on, and the units in which a model is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils.class_weight import compute_sample_weight
from torch import Tensor

from ..numerics.randomness import row_seeds
from .user_data import check_spread, naming

Array = NDArray[Any]
DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class TrainingRows:
    """Rows in the user's units, with their classes and weights.

    Parameters
    ----------
    X : array of shape (n, features)
        Flat instances.
    t : int array of shape (n,)
        Class of each row, as a column.
    weight : array of shape (n,), optional
        Weight of each row; None: all equal.
    """

    X: Array
    t: Array
    weight: Array | None = None

    def take(self, rows: Array) -> TrainingRows:
        """Return some of the rows, by position."""
        weight = None if self.weight is None else self.weight[rows]
        return TrainingRows(self.X[rows], self.t[rows], weight)

    def weighted(self, factor: Array) -> TrainingRows:
        """Return the rows with their weights multiplied by a factor (n,)."""
        weight = factor if self.weight is None else self.weight * factor
        return replace(self, weight=weight)

    def balanced(
        self,
        class_weight: Literal["balanced"] | Mapping[Any, float],
        classes: Array,
    ) -> TrainingRows:
        """Return the rows with their weights multiplied by those of their classes.

        Parameters
        ----------
        class_weight : "balanced" or mapping of label to float
            Equal weight for every class in sum, or the weight of each label, above 0.
        classes : array of shape (classes,)
            The labels, by column.

        Returns
        -------
        TrainingRows
            The same rows.
        """
        if class_weight == "balanced":
            total = np.bincount(self.t, self.weight)  # (classes,)
            share = len(total) * total
            factor = total.sum() / share[self.t]
            return self.weighted(np.asarray(factor))
        unknown = [label for label in class_weight if label not in classes.tolist()]
        if unknown:
            raise ValueError(
                f"class_weight holds {', '.join(map(repr, unknown))}; the classes are "
                f"{classes.tolist()}."
            )
        with naming("class_weight"):
            weight = np.asarray(compute_sample_weight(class_weight, classes[self.t]))
        return self.weighted(weight)

    def split(
        self,
        fraction: float,
        rng: np.random.RandomState,
    ) -> tuple[TrainingRows, TrainingRows]:
        """Hold out a share of every class.

        Parameters
        ----------
        fraction : float
            The share, between 0 and 1.
        rng : numpy.random.RandomState
            Chooses the rows.

        Returns
        -------
        kept, held : TrainingRows
            The rows to train on, and those held out, without weights.
        """
        with naming("validation_fraction"):
            kept, held = train_test_split(
                np.arange(len(self.X)),
                test_size=float(fraction),
                stratify=self.t,
                random_state=rng,
            )
        held_rows = TrainingRows(self.X[held], self.t[held])
        return self.take(kept), held_rows

    def merged(self) -> TrainingRows:
        """Merge equal rows of a class into one and add their weights.

        So a weight of 2 is exactly the same as a row given twice. The rows are sorted by a hash
        of their values, so the order in which they are given does not matter either.
        """
        key = row_seeds(self.X, 0, self.t)
        _, first, group = np.unique(key, return_index=True, return_inverse=True)
        X = self.X[first]
        t = self.t[first]
        if self.weight is None and len(first) == len(self.X):
            return TrainingRows(X, t)
        return TrainingRows(X, t, np.bincount(group, self.weight))


@dataclass(frozen=True)
class Examples:
    """Rows as tensors on the training device, in training units.

    Parameters
    ----------
    x : Tensor of shape (n, features)
        Instances.
    t : int Tensor of shape (n,)
        Class of each, as a column.
    weight : Tensor of shape (n,), optional
        Weight of each, with mean 1; None: all equal.
    """

    x: Tensor
    t: Tensor
    weight: Tensor | None = None


@dataclass(frozen=True)
class Scaling:
    """Bring data to training units: centered, and of unit spread by one factor for all features.

    Parameters
    ----------
    center : array of shape (features,)
        The weighted mean of the rows.
    spread : float
        The root of the mean variance; 1 where it is 0.
    dtype : torch.dtype
        Of the training.
    device : str
        Of the training.
    """

    center: Array
    spread: float
    dtype: torch.dtype
    device: str

    @classmethod
    def of(
        cls,
        rows: TrainingRows,
        dtype: torch.dtype,
        device: str,
    ) -> Scaling:
        """Measure the center and the spread of rows.

        Parameters
        ----------
        rows : TrainingRows
            The rows.
        dtype : torch.dtype
            Of the training.
        device : str
            Of the training.

        Returns
        -------
        Scaling
            What brings the rows to training units.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            center = np.average(rows.X, axis=0, weights=rows.weight)
            squares = (rows.X - center) ** 2
            variance = np.average(squares, axis=0, weights=rows.weight)
        spread = float(np.sqrt(variance.mean()))
        check_spread(spread, rows.X)
        return cls(center, spread or 1.0, dtype, device)

    def tensor(self, X: Array) -> Tensor:
        """Return instances (n, features) in training units: (X − center) / spread."""
        scaled = (X - self.center) / self.spread
        return torch.as_tensor(
            scaled,
            dtype=self.dtype,
            device=self.device,
        )

    def examples(self, rows: TrainingRows) -> Examples:
        """Return rows as tensors in training units."""
        x = self.tensor(rows.X)
        t = torch.from_numpy(rows.t).to(self.device)
        if rows.weight is None:
            return Examples(x, t)
        weight = torch.as_tensor(rows.weight / rows.weight.mean())
        return Examples(x, t, weight.to(x))
