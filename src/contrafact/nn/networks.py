"""Small reference networks, to have a model to explain.

All of them return logits. Series come as (n, channels, length), or (n, length) for one channel;
images as (n, channels, height, width); rows as (n, features).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from threading import RLock
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from typing_extensions import override

from ..validation import Rule, brief, check_parameters
from .base import Network
from .image_networks import ResNet8, SmallCNN
from .inception import InceptionTime, kernels_within
from .option_rules import FEW, SIZE, Sizes

#: Held while torch's global generator is seeded: threads that train do so one after another.
_SEEDING = RLock()


@contextmanager
def seeded(random_state: int) -> Iterator[None]:
    """Seed torch's random numbers inside the block, and restore the generator after it."""
    with _SEEDING, torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(random_state)
        yield


class FCN(Network):
    """Classify series by a fully convolutional network, a strong baseline.

        h_0 = x,    h_i = ReLU(BatchNorm(Conv_{k_i}(h_{i-1}))),    logits = W mean_t h_last(t) + b

    Parameters
    ----------
    n_channels : int
        Channels of a series.
    n_classes : int
        Number of logits.
    widths : sequence of int, default=(128, 256, 128)
        Output channels of each convolution.
    kernels : sequence of int, default=(8, 5, 3)
        Length of each convolution, in time steps.

    References
    ----------
    Wang, Yan, Oates: Time series classification from scratch with deep neural networks: a strong
    baseline. IJCNN 2017. https://doi.org/10.1109/IJCNN.2017.7966039

    Examples
    --------
    >>> FCN(n_channels=1, n_classes=3)(torch.zeros(5, 150)).shape
    torch.Size([5, 3])
    """

    rules: ClassVar[Mapping[str, Rule]] = {
        "n_channels": SIZE,
        "n_classes": SIZE,
        "widths": Sizes(),
        "kernels": Sizes(),
    }

    def __init__(
        self,
        n_channels: int,
        n_classes: int,
        widths: Sequence[int] = (128, 256, 128),
        kernels: Sequence[int] = (8, 5, 3),
    ) -> None:
        check_parameters(
            "FCN",
            self.rules,
            {
                "n_channels": n_channels,
                "n_classes": n_classes,
                "widths": widths,
                "kernels": kernels,
            },
        )
        if len(widths) != len(kernels):
            raise ValueError(
                f"FCN: widths and kernels must be equally many, got {len(widths)} and "
                f"{len(kernels)}."
            )
        super().__init__(n_channels)
        channels = pairwise((n_channels, *widths))
        blocks = [
            self._block(n_in, n_out, kernel)
            for (n_in, n_out), kernel in zip(channels, kernels, strict=True)
        ]
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(widths[-1], n_classes)

    @staticmethod
    def _block(n_in: int, n_out: int, kernel: int) -> nn.Sequential:
        """Make one convolution that keeps the length."""
        # torch's padding="same" warns for the even kernel of the paper; this is the same padding.
        padding = ((kernel - 1) // 2, kernel // 2)
        return nn.Sequential(
            nn.ConstantPad1d(padding, 0.0),
            nn.Conv1d(n_in, n_out, kernel, bias=False),  # the batch norm has the bias
            nn.BatchNorm1d(n_out),
            nn.ReLU(),
        )

    @override
    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.blocks(self._scaled(x))  # (n, width, length)
        logits: Tensor = self.head(h.mean(dim=2))
        return logits


class BiLSTM(Network):
    """Classify series by the last hidden states of both directions of a bidirectional LSTM.

    Parameters
    ----------
    n_channels : int
        Channels of a series.
    n_classes : int
        Number of logits.
    hidden : int, default=128
        Size of the hidden state of each direction.
    n_layers : int, default=1
        Number of LSTM layers.

    References
    ----------
    Graves, Schmidhuber: Framewise phoneme classification with bidirectional LSTM and other neural
    network architectures. Neural Networks 18, 2005. https://doi.org/10.1016/j.neunet.2005.06.042

    Examples
    --------
    >>> BiLSTM(n_channels=2, n_classes=4)(torch.zeros(5, 2, 30)).shape
    torch.Size([5, 4])
    """

    rules: ClassVar[Mapping[str, Rule]] = {
        "n_channels": SIZE,
        "n_classes": SIZE,
        "hidden": SIZE,
        "n_layers": FEW,
    }

    def __init__(
        self,
        n_channels: int,
        n_classes: int,
        hidden: int = 128,
        n_layers: int = 1,
    ) -> None:
        check_parameters(
            "BiLSTM",
            self.rules,
            {
                "n_channels": n_channels,
                "n_classes": n_classes,
                "hidden": hidden,
                "n_layers": n_layers,
            },
        )
        super().__init__(n_channels)
        self.lstm = nn.LSTM(
            int(n_channels), int(hidden), int(n_layers), batch_first=True, bidirectional=True
        )
        self.head = nn.Linear(2 * hidden, n_classes)

    @override
    def forward(self, x: Tensor) -> Tensor:
        over_time = self._scaled(x).transpose(1, 2)  # (n, length, channels)
        _, (h, _) = self.lstm(over_time)  # h: (2 * layers, n, hidden)
        last_forward, last_backward = h[-2:]
        logits: Tensor = self.head(torch.cat([last_forward, last_backward], dim=1))
        return logits


class MLP(Network):
    """Classify rows by a fully connected network; anything else is flattened into rows.

    Parameters
    ----------
    n_features : int
        Values per instance.
    n_classes : int
        Number of logits.
    hidden : sequence of int, default=(64,)
        Width of each hidden layer; empty for a linear model.

    Examples
    --------
    >>> MLP(n_features=4, n_classes=3)(torch.zeros(5, 4)).shape
    torch.Size([5, 3])
    """

    rules: ClassVar[Mapping[str, Rule]] = {
        "n_features": SIZE,
        "n_classes": SIZE,
        "hidden": Sizes(empty=True),
    }

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        hidden: Sequence[int] = (64,),
    ) -> None:
        check_parameters(
            "MLP", self.rules, {"n_features": n_features, "n_classes": n_classes, "hidden": hidden}
        )
        super().__init__(n_features)
        widths = (n_features, *hidden)
        layers: list[nn.Module] = []
        for n_in, n_out in pairwise(widths):
            layers.append(nn.Sequential(nn.Linear(n_in, n_out), nn.ReLU()))
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(widths[-1], n_classes)

    @override
    def arrange(self, x: Tensor) -> Tensor:
        return x.flatten(1)

    @override
    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.layers(self._scaled(x)))
        return logits


class ReferenceNetwork(NamedTuple):
    """Describe a network that can be built by name, and the instances it takes."""

    make: type[FCN | InceptionTime | BiLSTM | SmallCNN | MLP | ResNet8]
    dimensions: tuple[int, ...]
    takes: str


NETWORKS = {
    "fcn": ReferenceNetwork(FCN, (1, 2), "series (channels, length)"),
    "inceptiontime": ReferenceNetwork(InceptionTime, (1, 2), "series (channels, length)"),
    "bilstm": ReferenceNetwork(BiLSTM, (1, 2), "series (channels, length)"),
    "smallcnn": ReferenceNetwork(SmallCNN, (3,), "images (channels, height, width)"),
    "mlp": ReferenceNetwork(MLP, (1, 2, 3), "rows (features,)"),
    "resnet8": ReferenceNetwork(ResNet8, (3,), "images (channels, height, width)"),
}


def build_network(
    name: str,
    shape: Sequence[int],
    n_classes: int,
    random_state: int = 0,
) -> Network:
    """Build a reference network with random weights.

    Parameters
    ----------
    name : {"fcn", "inceptiontime", "bilstm", "smallcnn", "mlp", "resnet8"}
        The network.
    shape : sequence of int
        Shape of one instance, without n.
    n_classes : int
        Number of logits.
    random_state : int, default=0
        Seed; the weights depend on nothing else.

    Returns
    -------
    Network
        In train mode.

    Raises
    ------
    ValueError
        If there is no such network, or it does not take instances of this shape.

    Examples
    --------
    >>> build_network("fcn", (1, 150), n_classes=2)(torch.zeros(5, 1, 150)).shape
    torch.Size([5, 2])
    """
    if not isinstance(name, str) or name not in NETWORKS:
        raise ValueError(
            f"module {brief(name)} is not a network. Networks: {', '.join(map(repr, NETWORKS))}."
        )
    network = NETWORKS[name]
    if len(shape) not in network.dimensions:
        raise ValueError(
            f"network {name!r} takes {network.takes}; got instances of shape {tuple(shape)}."
        )
    if network.make is SmallCNN and min(shape[1:]) < 4:
        raise ValueError(
            f"network 'smallcnn' takes images of at least 4 x 4; got shape {tuple(shape)}."
        )
    n_inputs = _n_inputs(network, shape)
    with seeded(random_state):
        if network.make is InceptionTime:
            return InceptionTime(n_inputs, n_classes, kernels_within(shape[-1]))
        return network.make(n_inputs, n_classes)


def _n_inputs(network: ReferenceNetwork, shape: Sequence[int]) -> int:
    """Return the number of channels, or of values where the network flattens."""
    if network.make is MLP:
        return math.prod(shape)
    if len(shape) == 1:
        return 1
    return shape[0]
