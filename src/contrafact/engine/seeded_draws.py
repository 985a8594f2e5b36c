"""Random numbers that belong to a task: the same wherever it stands in a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..models.classifier import Array
from ..numerics import fold_in, row_normal, row_uniform


class SeededDraws:
    """Draw numbers from one seed per entry; a base of `Tasks`.

    Attributes
    ----------
    seed : array of uint64, shape (n,)
        The seed of each entry.
    x : Tensor
        Precision and device of the numbers.
    """

    if TYPE_CHECKING:
        x: Tensor

        @property
        def seed(self) -> Array:
            """The seed of each entry."""
            ...

    def seeds(self, *numbers: Tensor | int) -> Array:
        """Derive further seeds from the tasks' own and some numbers (a step, a restart)."""
        seeds = self.seed
        for number in numbers:
            data = number.cpu().numpy() if isinstance(number, Tensor) else number
            seeds = fold_in(seeds, data)
        return seeds

    def uniform(self, size: int, *numbers: Tensor | int, stream: int = 0) -> Tensor:
        """Draw numbers in [0, 1) from each task's own seed.

        Parameters
        ----------
        size : int
            Numbers per task.
        *numbers : int or Tensor of shape (n,)
            What makes these draws differ from others, see `seeds`.
        stream : int, default=0
            Independent sequence.

        Returns
        -------
        Tensor of shape (n, size)
            The numbers, in the precision of the model.
        """
        draws = row_uniform(self.seeds(*numbers), size, stream)
        return self.as_tensor(draws)

    def normal(self, size: int, *numbers: Tensor | int, stream: int = 0) -> Tensor:
        """Draw standard normal numbers from each task's own seed.

        Parameters
        ----------
        size : int
            Numbers per task.
        *numbers : int or Tensor of shape (n,)
            What makes these draws differ from others, see `seeds`.
        stream : int, default=0
            Independent sequence.

        Returns
        -------
        Tensor of shape (n, size)
            The numbers, in the precision of the model.
        """
        draws = row_normal(self.seeds(*numbers), size, stream)
        return self.as_tensor(draws)

    def as_tensor(self, values: Any) -> Tensor:
        """Return an array in the precision and on the device of the instances."""
        return torch.as_tensor(values).to(self.x)
