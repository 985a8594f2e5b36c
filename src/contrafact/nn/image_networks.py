"""Small reference networks for images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn
from typing_extensions import override

from ..validation import Rule, check_parameters
from .base import Network
from .option_rules import SIZE, Sizes


class SmallCNN(Network):
    """Classify images from 4 x 4 pixels by strided 3 x 3 convolutions, pooled to 2 x 2.

    Parameters
    ----------
    n_channels : int
        Channels of an image.
    n_classes : int
        Number of logits.
    widths : sequence of int, default=(16, 32)
        Output channels of each convolution.

    Examples
    --------
    >>> SmallCNN(n_channels=1, n_classes=10)(torch.zeros(5, 1, 28, 28)).shape
    torch.Size([5, 10])
    """

    rules: ClassVar[Mapping[str, Rule]] = {
        "n_channels": SIZE,
        "n_classes": SIZE,
        "widths": Sizes(),
    }

    def __init__(
        self,
        n_channels: int,
        n_classes: int,
        widths: Sequence[int] = (16, 32),
    ) -> None:
        check_parameters(
            "SmallCNN",
            self.rules,
            {"n_channels": n_channels, "n_classes": n_classes, "widths": widths},
        )
        super().__init__(n_channels)
        layers: list[nn.Module] = []
        for n_in, n_out in pairwise((n_channels, *widths)):
            convolution = nn.Conv2d(n_in, n_out, 3, stride=2, padding=1)
            layers.append(nn.Sequential(convolution, nn.ReLU()))
        self.blocks = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2))
        self.head = nn.Linear(4 * widths[-1], n_classes)

    @override
    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.blocks(self._scaled(x))  # (n, width, 2, 2)
        logits: Tensor = self.head(h.flatten(1))
        return logits


class ResidualBlock(nn.Module):
    """Apply two convolutions and add a shortcut around them.

        ReLU(Norm(Conv(ReLU(Norm(Conv(x))))) + s(x))

    where s is the identity, or a 1 x 1 convolution where the shape changes.

    Parameters
    ----------
    n_in, n_out : int
        Channels of the input and of the output.
    stride : int
        Step of the first convolution, in pixels.
    """

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
            nn.ReLU(),
            nn.Conv2d(n_out, n_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
        )
        if n_in == n_out and stride == 1:
            self.shortcut: nn.Module = nn.Identity()
        else:
            self.shortcut = nn.Conv2d(n_in, n_out, 1, stride)

    @override
    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


class ResNet8(Network):
    """Classify images by a residual network of eight layers.

    A stem and three blocks, then the mean over the image.

    Parameters
    ----------
    n_channels : int
        Channels of an image.
    n_classes : int
        Number of logits.
    widths : sequence of three int, default=(16, 32, 64)
        Channels of each block; each but the first halves height and width.

    References
    ----------
    He, Zhang, Ren, Sun: Deep residual learning for image recognition. CVPR 2016.
    https://doi.org/10.1109/CVPR.2016.90

    Examples
    --------
    >>> ResNet8(n_channels=3, n_classes=10)(torch.zeros(5, 3, 32, 32)).shape
    torch.Size([5, 10])
    """

    rules: ClassVar[Mapping[str, Rule]] = {
        "n_channels": SIZE,
        "n_classes": SIZE,
        "widths": Sizes(3),
    }

    def __init__(
        self,
        n_channels: int,
        n_classes: int,
        widths: Sequence[int] = (16, 32, 64),
    ) -> None:
        check_parameters(
            "ResNet8",
            self.rules,
            {"n_channels": n_channels, "n_classes": n_classes, "widths": widths},
        )
        super().__init__(n_channels)
        stem = [
            nn.Conv2d(n_channels, widths[0], 3, padding=1, bias=False),
            nn.BatchNorm2d(widths[0]),
            nn.ReLU(),
        ]
        channels = pairwise((widths[0], *widths))
        blocks = [
            ResidualBlock(n_in, n_out, stride=1 if i == 0 else 2)
            for i, (n_in, n_out) in enumerate(channels)
        ]
        self.blocks = nn.Sequential(*stem, *blocks)
        self.head = nn.Linear(widths[-1], n_classes)

    @override
    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.blocks(self._scaled(x))  # (n, channels, height / 4, width / 4)
        logits: Tensor = self.head(h.mean(dim=(2, 3)))
        return logits
