"""Layers that scale each channel of their input."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from typing_extensions import override

from ..data.arrays import finite_array, for_torch
from ..validation import Instance, brief, check_parameters


def per_channel(values: Tensor, like: Tensor) -> Tensor:
    """Shape one value per channel so that it broadcasts against instances.

    Parameters
    ----------
    values : Tensor of shape (channels,)
        One value per channel.
    like : Tensor of shape (n, channels, ...)
        Instances; only the number of axes is used.

    Returns
    -------
    Tensor of shape (channels, 1, ..., 1)
        A view of `values`.
    """
    trailing = [1] * (like.dim() - 2)
    return values.view(-1, *trailing)


class Standardize(nn.Module):
    """Compute (x - mean) / std per channel (per feature for rows); the identity until `fit`.

    Parameters
    ----------
    n_channels : int
        Number of channels, or of features for rows.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(n_channels))
        self.register_buffer("std", torch.ones(n_channels))

    def fit(self, x: Tensor) -> None:
        """Take mean and standard deviation of data; a constant channel is only shifted.

        Parameters
        ----------
        x : Tensor of shape (n, channels, ...)
            The data.
        """
        values = _values_per_channel(x).double()
        std, mean = torch.std_mean(values, dim=1, correction=0)
        varies = std > 1e-8 * mean.abs().clamp(min=1e-8)
        self.mean.copy_(mean)
        self.std.copy_(torch.where(varies, std, 1.0))

    @override
    def forward(self, x: Tensor) -> Tensor:
        mean = per_channel(self.mean, x)
        std = per_channel(self.std, x)
        return (x - mean) / std


class Scaling(Standardize):
    """Scale each channel, to [0, 1] or to mean 0 and deviation 1, in a way that can be undone."""

    def fit_range(self, x: Tensor) -> None:
        """Take the range of data as [0, 1]; a constant channel is only shifted.

        Parameters
        ----------
        x : Tensor of shape (n, channels, ...)
            The data.
        """
        low, high = _values_per_channel(x).aminmax(dim=1)
        width = torch.where(high > low, high - low, 1.0)
        self.mean.copy_(low)
        self.std.copy_(width)

    def inverse(self, x: Tensor) -> Tensor:
        """Undo the scaling.

        Parameters
        ----------
        x : Tensor of shape (n, channels, ...)
            Scaled instances.

        Returns
        -------
        Tensor of shape (n, channels, ...)
            The instances in the units of the data.
        """
        mean = per_channel(self.mean, x)
        std = per_channel(self.std, x)
        return x * std + mean


def _values_per_channel(x: Tensor) -> Tensor:
    """Reorder (n, channels, ...) to (channels, values)."""
    return x.transpose(0, 1).flatten(1)


def normalized(
    module: nn.Module,
    mean: Sequence[float],
    std: Sequence[float],
) -> nn.Sequential:
    """Put a normalization in front of a module, so that it takes the units of the data.

    Parameters
    ----------
    module : torch.nn.Module
        A module trained on (x - mean) / std; not copied.
    mean : sequence of float, of length channels
        Mean of each channel.
    std : sequence of float, of length channels
        Standard deviation of each channel, positive.

    Returns
    -------
    torch.nn.Sequential
        Takes x itself; in the same train or eval mode as the module.

    Raises
    ------
    ValueError
        If `mean` and `std` differ in length, or a deviation is not positive.

    Examples
    --------
    >>> model = normalized(nn.Flatten(), mean=[0.5], std=[0.25])
    >>> model(torch.ones(1, 1, 1, 2))
    tensor([[2., 2.]])
    """
    check_parameters("normalized", {"module": Instance(nn.Module)}, {"module": module})
    center = finite_array(mean, "mean", ("channels",))
    spread = finite_array(std, "std", ("channels",))
    if len(center) != len(spread) or len(center) == 0 or spread.min() <= 0:
        raise ValueError(
            "mean and std must have the same length, and std must be positive, "
            f"got mean={brief(mean)} and std={brief(std)}."
        )
    first = Standardize(len(center))
    first.mean.copy_(torch.from_numpy(for_torch(center)))
    first.std.copy_(torch.from_numpy(for_torch(spread)))
    return nn.Sequential(first, module).train(module.training)
