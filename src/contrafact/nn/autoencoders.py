"""Autoencoders: codes of few dimensions, in which series and images can be changed.

    z = E(x),    x̂ = D(z)

Instances come as (n, channels, length) or (n, channels, height, width). They are scaled before E
and the scaling is undone after D, so both sides use the units of the data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate
from typing_extensions import override

from ..numerics import ceil_div
from ..validation import Rule, check_parameters
from .loop import History
from .networks import seeded
from .option_rules import SIZE, Sizes
from .scaling import Scaling


class Autoencoder(nn.Module, ABC):
    """Map instances to codes of few dimensions and back; base class of autoencoders.

    A subclass implements `_encode` and `_decode`, between scaled instances and codes.

    Parameters
    ----------
    shape : sequence of int
        Shape of one instance: (channels, length) or (channels, height, width).
    latent : int
        Size of the code of an instance.

    Attributes
    ----------
    shape : tuple of int
        Shape of one instance.
    latent : int
        Size of a code.
    scaling : Scaling
        The scaling of each channel, fitted by `fit_autoencoder`.
    history : dict of str to list of float
        Curves of the training, one value per epoch.
    """

    def __init__(self, shape: Sequence[int], latent: int) -> None:
        super().__init__()
        self.shape = tuple(shape)
        self.latent = latent
        self.scaling = Scaling(self.shape[0])
        self.history: History = {}

    def encode(self, x: Tensor) -> Tensor:
        """Compute codes, z = E(x).

        Parameters
        ----------
        x : Tensor of shape (n, *shape)
            Instances in the units of the data.

        Returns
        -------
        Tensor of shape (n, latent)
            Their codes.
        """
        return self._encode(self.scaling(x))

    def decode(self, z: Tensor) -> Tensor:
        """Compute instances, x̂ = D(z).

        Parameters
        ----------
        z : Tensor of shape (n, latent)
            Codes.

        Returns
        -------
        Tensor of shape (n, *shape)
            Instances in the units of the data.
        """
        return self.scaling.inverse(self._decode(z))

    @override
    def forward(self, x: Tensor) -> Tensor:
        return self.decode(self.encode(x))

    @abstractmethod
    def _encode(self, x: Tensor) -> Tensor:
        """Map scaled instances to codes."""

    @abstractmethod
    def _decode(self, z: Tensor) -> Tensor:
        """Map codes to scaled instances."""


class LSTMAutoencoder(Autoencoder):
    """Encode and decode series by LSTMs, as TS-NUC does.

        z = W h_T(x),    x̂(t) = V h'_t,    h' an LSTM that gets z at every step

    Parameters
    ----------
    shape : (int, int)
        Channels and length of a series.
    latent : int, default=128
        Size of a code.
    hidden : int, default=256
        Size of the hidden states.

    References
    ----------
    Ghosh, Jain, Parida, Das: TS-NUC: nearest unlike cluster guided generative counterfactual
    estimation for time series classification. ICPR 2024, LNCS 15326, pp. 392-406.

    Examples
    --------
    >>> autoencoder = LSTMAutoencoder((1, 24))
    >>> autoencoder.decode(autoencoder.encode(torch.zeros(5, 1, 24))).shape
    torch.Size([5, 1, 24])
    """

    rules: ClassVar[Mapping[str, Rule]] = {
        "shape": Sizes(2),
        "latent": SIZE,
        "hidden": SIZE,
    }

    def __init__(
        self,
        shape: Sequence[int],
        latent: int = 128,
        hidden: int = 256,
    ) -> None:
        check_parameters(
            "LSTMAutoencoder", self.rules, {"shape": shape, "latent": latent, "hidden": hidden}
        )
        super().__init__(shape, latent)
        self.reader = nn.LSTM(int(shape[0]), int(hidden), batch_first=True)
        self.code = nn.Linear(hidden, latent)
        self.feed = nn.Linear(latent, 4 * hidden)
        self.recur = nn.Linear(hidden, 4 * hidden, bias=False)
        self.writer = nn.Linear(hidden, shape[0])

    @override
    def _encode(self, x: Tensor) -> Tensor:
        _, (h, _) = self.reader(x.transpose(1, 2))
        z: Tensor = self.code(h[-1])
        return z

    @override
    def _decode(self, z: Tensor) -> Tensor:
        # The same z enters at every step, so its product with the weights is computed once. nn.LSTM
        # would repeat it at every step, and compute gradients of weights that a search keeps fixed:
        # this is twice as fast there.
        fed = self.feed(z)  # (n, 4 * hidden)
        recur = self.recur.weight.T
        h = fed.new_zeros(len(z), self.recur.in_features)
        c = h
        states = []
        for _ in range(self.shape[1]):
            gates = torch.addmm(fed, h, recur)
            i, f, o, g = gates.chunk(4, dim=1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            states.append(h)
        x: Tensor = self.writer(torch.stack(states, dim=1))  # (n, length, channels)
        return x.transpose(1, 2)


class ConvAutoencoder(Autoencoder):
    """Encode series and images by strided convolutions, and decode them by resized ones.

        h_i = ReLU(Conv(h_{i-1})),  half as long each,    z = W h_last;    D the same way back

    Parameters
    ----------
    shape : sequence of int
        Shape of one instance: (channels, length) or (channels, height, width).
    latent : int, default=32
        Size of a code.
    widths : sequence of int, default=(32, 64)
        Output channels of each convolution of E.

    Examples
    --------
    >>> autoencoder = ConvAutoencoder((1, 28, 28))
    >>> autoencoder.decode(autoencoder.encode(torch.zeros(5, 1, 28, 28))).shape
    torch.Size([5, 1, 28, 28])
    """

    rules: ClassVar[Mapping[str, Rule]] = {
        "shape": Sizes(2, 3),
        "latent": SIZE,
        "widths": Sizes(),
    }

    def __init__(
        self,
        shape: Sequence[int],
        latent: int = 32,
        widths: Sequence[int] = (32, 64),
    ) -> None:
        check_parameters(
            "ConvAutoencoder", self.rules, {"shape": shape, "latent": latent, "widths": widths}
        )
        super().__init__(shape, latent)
        is_series = len(shape) == 2
        conv = nn.Conv1d if is_series else nn.Conv2d
        kernel = 5 if is_series else 3
        padding = kernel // 2
        channels = (self.shape[0], *widths)
        self.sizes = [self.shape[1:]]  # before each convolution, and after the last
        for _ in widths:
            halved = tuple(ceil_div(size, 2) for size in self.sizes[-1])
            self.sizes.append(halved)
        flat = widths[-1] * math.prod(self.sizes[-1])
        self.down = nn.ModuleList(
            conv(n_in, n_out, kernel, stride=2, padding=padding)
            for n_in, n_out in pairwise(channels)
        )
        self.code = nn.Linear(flat, latent)
        self.spread = nn.Linear(latent, flat)
        self.up = nn.ModuleList(
            conv(n_in, n_out, kernel, padding=padding) for n_in, n_out in pairwise(channels[::-1])
        )

    @override
    def _encode(self, x: Tensor) -> Tensor:
        for down in self.down:
            x = down(x).relu()
        z: Tensor = self.code(x.flatten(1))
        return z

    @override
    def _decode(self, z: Tensor) -> Tensor:
        *larger, smallest = self.sizes
        x: Tensor = self.spread(z).unflatten(1, (-1, *smallest))
        for up, size in zip(self.up, reversed(larger), strict=True):
            x = up(interpolate(x.relu(), size=size))
        return x


class ReferenceAutoencoder(NamedTuple):
    """Describe an autoencoder that can be built by name, and the instances it takes."""

    make: type[LSTMAutoencoder | ConvAutoencoder]
    dimensions: tuple[int, ...]
    takes: str


AUTOENCODERS = {
    "lstm": ReferenceAutoencoder(
        LSTMAutoencoder,
        (2,),
        "series (channels, length)",
    ),
    "cnn": ReferenceAutoencoder(
        ConvAutoencoder,
        (2, 3),
        "series (channels, length) or images (channels, height, width)",
    ),
}


def build_autoencoder(
    name: str,
    shape: Sequence[int],
    random_state: int = 0,
) -> Autoencoder:
    """Build an autoencoder with random weights.

    Parameters
    ----------
    name : {"lstm", "cnn"}
        The autoencoder.
    shape : sequence of int
        Shape of one instance, without n.
    random_state : int, default=0
        Seed; the weights depend on nothing else.

    Returns
    -------
    Autoencoder
        Untrained.

    Raises
    ------
    ValueError
        If there is no such autoencoder, or it does not take instances of this shape.
    """
    if name not in AUTOENCODERS:
        raise ValueError(
            f"module {name!r} is not an autoencoder. Autoencoders: {', '.join(AUTOENCODERS)}."
        )
    autoencoder = AUTOENCODERS[name]
    if len(shape) not in autoencoder.dimensions:
        raise ValueError(
            f"autoencoder {name!r} takes {autoencoder.takes}; "
            f"got instances of shape {tuple(shape)}."
        )
    with seeded(random_state):
        return autoencoder.make(shape)
