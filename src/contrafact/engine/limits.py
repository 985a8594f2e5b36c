"""Limits: what every set of constraints can do, for arrays and for tables."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor
from typing_extensions import Self

from ..models.classifier import Array


class Limits(ABC):
    """The set of candidates that keep all constraints, and projections onto it."""

    @abstractmethod
    def project(self, x_cf: Tensor, x: Tensor) -> Tensor:
        """Bring candidates within every limit; gradients pass.

        Parameters
        ----------
        x_cf : Tensor of shape (n, *shape)
            Candidates.
        x : Tensor of shape (n, *shape)
            The instances they belong to.

        Returns
        -------
        Tensor of shape (n, *shape)
            Candidates that keep every limit, where that is possible.
        """

    @abstractmethod
    def box(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the range of every value that can be moved continuously.

        Parameters
        ----------
        x : Tensor of shape (n, *shape)
            The instances.

        Returns
        -------
        lower, upper : Tensor that broadcasts against x
            Bounds in the working precision.
        free : Tensor of bool that broadcasts against x
            False where a value may not be moved, or only be exchanged for another one.
        """

    @abstractmethod
    def check(self, x_cf: Tensor, x: Tensor) -> dict[str, Tensor]:
        """Check which candidates keep which limit.

        Parameters
        ----------
        x_cf, x : Tensor of shape (n, *shape)
            Candidates and their instances.

        Returns
        -------
        dict of str to Tensor of bool, shape (n,)
            By the name of the limit.
        """

    @abstractmethod
    def impossible(self, x: Tensor) -> list[str]:
        """Explain, per instance, why no change at all can keep the limits; "" where one can."""

    @abstractmethod
    def describe(self) -> str:
        """Describe the limits that were asked for, for messages; "" where there are none."""

    @abstractmethod
    def finish(self, final: Array, original: Array, found: Array) -> Array:
        """Keep the limits in the numbers of the user, which may have another precision.

        Parameters
        ----------
        final : array of shape (n, *shape)
            Counterfactuals in the user's numbers where nothing was changed.
        original : array of shape (n, *shape)
            The instances.
        found : array of shape (n, *shape)
            Counterfactuals as the model sees them.

        Returns
        -------
        array of shape (n, *shape)
            Counterfactuals that keep every limit.
        """

    def check_size(self, n: int) -> None:  # noqa: B027 - most limits hold for all instances
        """Raise ValueError if limits are given by instance, and not for n of them."""

    def take(self, rows: Tensor) -> Self:
        """Return the limits of some instances, in their order; most limits hold for all."""
        return self

    def allows(self, x_cf: Tensor, x: Tensor) -> Tensor:
        """Return the mask of the candidates that keep every limit."""
        kept = self.check(x_cf, x)
        return torch.stack(list(kept.values())).all(0)
