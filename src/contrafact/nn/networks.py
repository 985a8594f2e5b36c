"""Small reference networks: enough to have something to explain, seeded and free of hidden state.

All of them return logits. Series come as (n, channels, length), or (n, length) for one channel; images as
(n, channels, height, width); rows as (n, features).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import torch
from torch import Tensor, nn


@contextmanager
def seeded(random_state: int) -> Iterator[None]:
    """Draw from torch's RNG as if seeded here, and leave it afterwards as it was."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(random_state)
        yield


class Standardize(nn.Module):
    """(x - mean) / std per channel (per feature for rows); the identity until `fit`."""

    mean: Tensor
    std: Tensor

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(n_channels))
        self.register_buffer("std", torch.ones(n_channels))

    def fit(self, x: Tensor) -> None:
        """Take the mean and the spread of `x`; a constant channel keeps std = 1, so it is only shifted."""
        std, mean = torch.std_mean(x.transpose(0, 1).flatten(1).double(), dim=1, correction=0)
        self.mean.copy_(mean)
        self.std.copy_(torch.where(std > 1e-8 * mean.abs().clamp(min=1e-8), std, 1.0))

    def forward(self, x: Tensor) -> Tensor:
        shape = (-1, *[1] * (x.dim() - 2))
        return (x - self.mean.view(shape)) / self.std.view(shape)


def normalized(module: nn.Module, mean: Sequence[float], std: Sequence[float]) -> nn.Sequential:
    """A module trained on (x − mean) / std, as one that takes x itself, in the units of the data.

    Examples
    --------
    >>> model = normalized(nn.Flatten(), mean=[0.5], std=[0.25])
    >>> model(torch.ones(1, 1, 1, 2))
    tensor([[2., 2.]])
    """
    if len(mean) != len(std) or min(std) <= 0:
        raise ValueError(
            f"mean and std must be as many, std above 0; got {list(mean)} and {list(std)}."
        )
    first = Standardize(len(mean))
    first.mean.copy_(torch.as_tensor(mean))
    first.std.copy_(torch.as_tensor(std))
    return nn.Sequential(first, module).train(module.training)


class Network(nn.Module):
    """What the reference networks share: the input is arranged (n, channels, ...) and standardized."""

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.standardize = Standardize(n_channels)

    def arrange(self, x: Tensor) -> Tensor:
        """Give a series (n, length) its channel axis."""
        return x.unsqueeze(1) if x.dim() == 2 else x


class FCN(Network):
    """Fully convolutional network (Wang, Yan, Oates 2017): the strong plain baseline for series.

        h_0 = x,    h_i = ReLU(BatchNorm(Conv_{k_i}(h_{i-1}))),    logits = W mean_t h_last(t) + b

    Examples
    --------
    >>> FCN(n_channels=1, n_classes=3)(torch.zeros(5, 150)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        n_channels: int,
        n_classes: int,
        widths: Sequence[int] = (128, 256, 128),
        kernels: Sequence[int] = (8, 5, 3),
    ) -> None:
        super().__init__(n_channels)
        self.blocks = nn.Sequential(
            *(
                nn.Sequential(
                    # torch's padding="same" warns for the even kernel of the paper; this is the same padding.
                    nn.ConstantPad1d(((k - 1) // 2, k // 2), 0.0),
                    nn.Conv1d(n_in, n_out, k, bias=False),  # the batch norm has the bias
                    nn.BatchNorm1d(n_out),
                    nn.ReLU(),
                )
                for (n_in, n_out), k in zip(pairwise((n_channels, *widths)), kernels, strict=True)
            )
        )
        self.head = nn.Linear(widths[-1], n_classes)

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.blocks(self.standardize(self.arrange(x)))
        logits: Tensor = self.head(h.mean(dim=2))
        return logits


class BiLSTM(Network):
    """Bidirectional LSTM over time; the last hidden states of both directions decide.

    Examples
    --------
    >>> BiLSTM(n_channels=2, n_classes=4)(torch.zeros(5, 2, 30)).shape
    torch.Size([5, 4])
    """

    def __init__(
        self, n_channels: int, n_classes: int, hidden: int = 128, n_layers: int = 1
    ) -> None:
        super().__init__(n_channels)
        self.lstm = nn.LSTM(n_channels, hidden, n_layers, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        _, (h, _) = self.lstm(self.standardize(self.arrange(x)).transpose(1, 2))
        logits: Tensor = self.head(torch.cat([h[-2], h[-1]], dim=1))
        return logits


class SmallCNN(Network):
    """Strided 3 x 3 convolutions, pooled to 2 x 2: for images of any size from 4 x 4.

    Examples
    --------
    >>> SmallCNN(n_channels=1, n_classes=10)(torch.zeros(5, 1, 28, 28)).shape
    torch.Size([5, 10])
    """

    def __init__(self, n_channels: int, n_classes: int, widths: Sequence[int] = (16, 32)) -> None:
        super().__init__(n_channels)
        self.blocks = nn.Sequential(
            *(
                nn.Sequential(nn.Conv2d(n_in, n_out, 3, stride=2, padding=1), nn.ReLU())
                for n_in, n_out in pairwise((n_channels, *widths))
            ),
            nn.AdaptiveAvgPool2d(2),
        )
        self.head = nn.Linear(4 * widths[-1], n_classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.blocks(self.standardize(self.arrange(x))).flatten(1))
        return logits


class ResidualBlock(nn.Module):
    """ReLU(Norm(Conv(ReLU(Norm(Conv(x))))) + s(x)); s is x itself, or 1 x 1 where the shape changes."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
            nn.ReLU(),
            nn.Conv2d(n_out, n_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
        )
        same = n_in == n_out and stride == 1
        self.shortcut = nn.Identity() if same else nn.Conv2d(n_in, n_out, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


class ResNet8(Network):
    """Residual network of eight layers (He et al. 2016): a stem, three blocks, the mean over the image.

    Examples
    --------
    >>> ResNet8(n_channels=3, n_classes=10)(torch.zeros(5, 3, 32, 32)).shape
    torch.Size([5, 10])
    """

    def __init__(
        self, n_channels: int, n_classes: int, widths: Sequence[int] = (16, 32, 64)
    ) -> None:
        super().__init__(n_channels)
        self.blocks = nn.Sequential(
            nn.Conv2d(n_channels, widths[0], 3, padding=1, bias=False),
            nn.BatchNorm2d(widths[0]),
            nn.ReLU(),
            *(
                ResidualBlock(n_in, n_out, stride=1 if i == 0 else 2)
                for i, (n_in, n_out) in enumerate(pairwise((widths[0], *widths)))
            ),
        )
        self.head = nn.Linear(widths[-1], n_classes)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.blocks(self.standardize(self.arrange(x))).mean(dim=(2, 3)))
        return logits


class MLP(Network):
    """Plain fully connected network for rows; anything else is flattened into rows.

    Examples
    --------
    >>> MLP(n_features=4, n_classes=3)(torch.zeros(5, 4)).shape
    torch.Size([5, 3])
    """

    def __init__(self, n_features: int, n_classes: int, hidden: Sequence[int] = (64,)) -> None:
        super().__init__(n_features)
        self.layers = nn.Sequential(
            *(
                nn.Sequential(nn.Linear(n_in, n_out), nn.ReLU())
                for n_in, n_out in pairwise((n_features, *hidden))
            )
        )
        self.head = nn.Linear((n_features, *hidden)[-1], n_classes)

    def arrange(self, x: Tensor) -> Tensor:
        """Flatten into rows."""
        return x.flatten(1)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.layers(self.standardize(self.arrange(x))))
        return logits


NETWORKS: dict[str, tuple[type[FCN | BiLSTM | SmallCNN | MLP | ResNet8], tuple[int, ...], str]] = {
    # the class, the dimensions one instance may have, and how to say it
    "fcn": (FCN, (1, 2), "series (channels, length)"),
    "bilstm": (BiLSTM, (1, 2), "series (channels, length)"),
    "smallcnn": (SmallCNN, (3,), "images (channels, height, width)"),
    "mlp": (MLP, (1, 2, 3), "rows (features,)"),
    "resnet8": (ResNet8, (3,), "images (channels, height, width)"),
}


def build_network(
    name: str, shape: Sequence[int], n_classes: int, random_state: int = 0
) -> Network:
    """A reference network for instances of `shape` (without n), with weights drawn from `random_state` alone.

    Examples
    --------
    >>> build_network("fcn", (1, 150), n_classes=2)(torch.zeros(5, 1, 150)).shape
    torch.Size([5, 2])
    """
    if name not in NETWORKS:
        raise ValueError(f"{name!r} is not a network. Networks: {', '.join(map(repr, NETWORKS))}.")
    network, dims, takes = NETWORKS[name]
    if len(shape) not in dims:
        raise ValueError(f"network {name!r} takes {takes}; got instances of shape {tuple(shape)}.")
    if network is SmallCNN and min(shape[1:]) < 4:
        raise ValueError(
            f"network 'smallcnn' takes images of at least 4 x 4; got shape {tuple(shape)}."
        )
    n_in = math.prod(shape) if network is MLP else 1 if len(shape) == 1 else shape[0]
    with seeded(random_state):
        return network(n_in, n_classes)
