"""InceptionTime: convolutions of several lengths side by side, and shortcuts around them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from typing_extensions import override

from ..validation import Rule, check_parameters
from .base import Network
from .option_rules import FEW, SIZE, Sizes

#: Lengths of the convolutions side by side. The paper's 40, 20 and 10, odd, so that same padding
#: is the same at both ends.
KERNELS = (39, 19, 9)
#: A shortcut leads around this many modules.
MODULES_PER_SHORTCUT = 3


class InceptionTime(Network):
    """Classify series by inception modules, or by an ensemble of such networks.

    A module looks at its input at several time scales at once:

        b = Conv_1(h),    module(h) = ReLU(BatchNorm([Conv_39(b), Conv_19(b), Conv_9(b),
                                                      Conv_1(maxpool_3(h))]))

    A shortcut leads around every three modules: to the output of the third is added
    BatchNorm(Conv_1(h)) of the input h of the first, then ReLU. At the end
    logits = W mean_t h_last(t) + b. Several members answer with their mean probability:

        logits_c = log( 1/M sum_m P_m(c | x) )

    Parameters
    ----------
    n_channels : int
        Channels of a series.
    n_classes : int
        Number of logits.
    kernels : sequence of odd int, default=(39, 19, 9)
        Lengths of the convolutions of a module, in time steps. `fit_classifier` cuts them to the
        length of the series.
    width : int, default=32
        Output channels of each convolution, and of the bottleneck Conv_1 before them.
    depth : int, default=6
        Number of modules, a multiple of 3.
    n_members : int, default=1
        Networks in the ensemble. The paper's classifier has 5, which cost five times as much to
        train and to ask, while a counterfactual asks its model hundreds of times; so one is the
        default. Members start from different weights and learn together, from the loss of their
        mean probability; the paper trains each alone.

    Raises
    ------
    ValueError
        If a kernel is even, `depth` is not a multiple of 3, or a size is not positive.

    References
    ----------
    Fawaz et al.: InceptionTime: finding AlexNet for time series classification. Data Mining and
    Knowledge Discovery 34, 2020. https://doi.org/10.1007/s10618-020-00710-y

    Examples
    --------
    >>> InceptionTime(n_channels=1, n_classes=3)(torch.zeros(5, 150)).shape
    torch.Size([5, 3])
    """

    rules: ClassVar[Mapping[str, Rule]] = {
        "n_channels": SIZE,
        "n_classes": SIZE,
        "kernels": Sizes(),
        "width": SIZE,
        "depth": FEW,
        "n_members": FEW,
    }

    def __init__(
        self,
        n_channels: int,
        n_classes: int,
        kernels: Sequence[int] = KERNELS,
        width: int = 32,
        depth: int = 6,
        n_members: int = 1,
    ) -> None:
        check_parameters(
            "InceptionTime",
            self.rules,
            {
                "n_channels": n_channels,
                "n_classes": n_classes,
                "kernels": kernels,
                "width": width,
                "depth": depth,
                "n_members": n_members,
            },
        )
        _check_sizes(kernels, depth)
        super().__init__(n_channels)
        members = [_Member(n_channels, n_classes, kernels, width, depth) for _ in range(n_members)]
        self.members = nn.ModuleList(members)

    @override
    def forward(self, x: Tensor) -> Tensor:
        scaled = self._scaled(x)
        logits = torch.stack([member(scaled) for member in self.members])  # (members, n, classes)
        if len(logits) == 1:
            return logits[0]
        return logits.log_softmax(dim=2).logsumexp(dim=0) - math.log(len(logits))


class _Member(nn.Module):
    """One network of the ensemble: inception blocks, the mean over time, a linear layer."""

    def __init__(
        self, n_channels: int, n_classes: int, kernels: Sequence[int], width: int, depth: int
    ) -> None:
        super().__init__()
        n_features = width * (len(kernels) + 1)
        n_blocks = depth // MODULES_PER_SHORTCUT
        inputs = [n_channels] + [n_features] * (n_blocks - 1)
        self.blocks = nn.Sequential(*(_Block(n_in, kernels, width) for n_in in inputs))
        self.head = nn.Linear(n_features, n_classes)

    @override
    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.blocks(x)  # (n, features, length)
        logits: Tensor = self.head(h.mean(dim=2))
        return logits


class _Block(nn.Module):
    """Three inception modules and the shortcut around them."""

    def __init__(self, n_in: int, kernels: Sequence[int], width: int) -> None:
        super().__init__()
        n_out = width * (len(kernels) + 1)
        inputs = [n_in] + [n_out] * (MODULES_PER_SHORTCUT - 1)
        self.modules_in_row = nn.Sequential(*(_Module(n, kernels, width) for n in inputs))
        self.shortcut = nn.Sequential(nn.Conv1d(n_in, n_out, 1, bias=False), nn.BatchNorm1d(n_out))

    @override
    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.modules_in_row(x) + self.shortcut(x))


class _Module(nn.Module):
    """Convolutions of several lengths side by side, behind a bottleneck, and a max-pooling."""

    def __init__(self, n_in: int, kernels: Sequence[int], width: int) -> None:
        super().__init__()
        # One channel is narrow already; as in the authors' code it goes in as it is.
        self.bottleneck = nn.Conv1d(n_in, width, 1, bias=False) if n_in > 1 else nn.Identity()
        n_narrow = width if n_in > 1 else 1
        self.convolutions = nn.ModuleList(
            nn.Conv1d(n_narrow, width, kernel, padding=kernel // 2, bias=False)
            for kernel in kernels
        )
        self.pooled = nn.Sequential(
            nn.MaxPool1d(3, stride=1, padding=1),
            nn.Conv1d(n_in, width, 1, bias=False),
        )
        self.normalize = nn.BatchNorm1d(width * (len(kernels) + 1))

    @override
    def forward(self, x: Tensor) -> Tensor:
        b = self.bottleneck(x)
        scales = [convolution(b) for convolution in self.convolutions]
        return torch.relu(self.normalize(torch.cat([*scales, self.pooled(x)], dim=1)))


def kernels_within(length: int) -> tuple[int, ...]:
    """Return the lengths of the convolutions, none longer than the series, all odd."""
    longest = length if length % 2 else length - 1
    return tuple(min(kernel, longest) for kernel in KERNELS)


def _check_sizes(kernels: Sequence[int], depth: int) -> None:
    """Refuse sizes of which no network can be built."""
    if any(kernel % 2 == 0 for kernel in kernels):
        raise ValueError(f"kernels = {tuple(kernels)}. Accepted: odd lengths, at least one.")
    if depth % MODULES_PER_SHORTCUT:
        raise ValueError(f"depth = {depth}. Accepted: 3, 6, 9, ….")
