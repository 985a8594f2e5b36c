"""Reference series by class, to draw from."""

from __future__ import annotations

import torch
from torch import Tensor


class ClassSeries:
    """The reference series of each class.

    Parameters
    ----------
    X : Tensor of shape (n, channels, length)
        Reference series.
    column : Tensor of int, shape (n,)
        Their classes.
    n_classes : int
        Number of classes; some may have no series.

    Attributes
    ----------
    mean, spread : Tensor of shape (classes, channels, length)
        Mean and standard deviation of each class; 0 where it has no series.
    """

    def __init__(self, X: Tensor, column: Tensor, n_classes: int) -> None:
        self.X = X
        self._by_class = column.argsort(stable=True)
        self._count = torch.bincount(column, minlength=n_classes)
        self._first = self._count.cumsum(0) - self._count

        classes = torch.arange(n_classes, device=column.device)
        is_member = column == classes[:, None]
        is_member = is_member.to(X.dtype)
        size = self._count.clamp_min(1)
        size = size.reshape(-1, 1, 1)
        self.mean = torch.einsum("cr,rdt->cdt", is_member, X) / size
        square = (X - self.mean[column]).square()
        variance = torch.einsum("cr,rdt->cdt", is_member, square) / size
        self.spread = variance.sqrt()

    def pick(
        self,
        column: Tensor,
        channel: Tensor,
        number: Tensor,
    ) -> Tensor:
        """Pick one channel of a series of each class given.

        Parameters
        ----------
        column, channel : Tensor of int, shape (m,)
            Class, which must have series, and channel.
        number : Tensor of shape (m,)
            A number in [0, 1) that decides which series of the class.

        Returns
        -------
        Tensor of shape (m, length)
            The series.
        """
        count = self._count[column]
        place = (number * count).long()
        position = self._first[column] + place
        member = self._by_class[position]
        return self.X[member, channel]
