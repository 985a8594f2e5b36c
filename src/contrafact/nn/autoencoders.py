"""Autoencoders: a space of few dimensions in which a series or an image can be moved and stay one.

    z = E(x),    x̂ = D(z)

Instances come as (n, channels, length) or (n, channels, height, width). They are scaled on the way in and
the scaling is undone on the way out, so both sides speak the units of the data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from .loop import History
from .networks import Standardize, seeded


class Scaling(Standardize):
    """An affine map per channel that can be undone: to [0, 1] by the range, or to mean 0 and spread 1."""

    def fit_range(self, x: Tensor) -> None:
        """Take the range of `x`; a constant channel is only shifted."""
        low, high = x.transpose(0, 1).flatten(1).aminmax(dim=1)
        self.mean.copy_(low)
        self.std.copy_(torch.where(high > low, high - low, 1.0))

    def inverse(self, x: Tensor) -> Tensor:
        shape = (-1, *[1] * (x.dim() - 2))
        return x * self.std.view(shape) + self.mean.view(shape)


class Autoencoder(nn.Module, ABC):
    """What autoencoders share; one writes `_encode` and `_decode`, between scaled instances and codes.

    Attributes: `shape` of one instance, `latent` size of its code, `history` of the training.
    """

    def __init__(self, shape: Sequence[int], latent: int) -> None:
        super().__init__()
        self.shape, self.latent = tuple(shape), latent
        self.scaling = Scaling(self.shape[0])
        self.history: History = {}

    def encode(self, x: Tensor) -> Tensor:
        """E: (n, *shape) → (n, latent)."""
        return self._encode(self.scaling(x))

    def decode(self, z: Tensor) -> Tensor:
        """D: (n, latent) → (n, *shape)."""
        return self.scaling.inverse(self._decode(z))

    def forward(self, x: Tensor) -> Tensor:
        return self.decode(self.encode(x))

    @abstractmethod
    def _encode(self, x: Tensor) -> Tensor:
        """Scaled instances → codes."""

    @abstractmethod
    def _decode(self, z: Tensor) -> Tensor:
        """Codes → scaled instances."""


class LSTMAutoencoder(Autoencoder):
    """The autoencoder of TS-NUC (Ghosh, Jain, Parida, Das 2024).

        z = W h_T(x),    x̂(t) = V h'_t,    h' an LSTM that is fed z at every step

    Examples
    --------
    >>> autoencoder = LSTMAutoencoder((1, 24))
    >>> autoencoder.decode(autoencoder.encode(torch.zeros(5, 1, 24))).shape
    torch.Size([5, 1, 24])
    """

    def __init__(self, shape: Sequence[int], latent: int = 128, hidden: int = 256) -> None:
        super().__init__(shape, latent)
        self.reader = nn.LSTM(shape[0], hidden, batch_first=True)
        self.code = nn.Linear(hidden, latent)
        self.feed = nn.Linear(latent, 4 * hidden)
        self.recur = nn.Linear(hidden, 4 * hidden, bias=False)
        self.writer = nn.Linear(hidden, shape[0])

    def _encode(self, x: Tensor) -> Tensor:
        _, (h, _) = self.reader(x.transpose(1, 2))
        z: Tensor = self.code(h[-1])
        return z

    def _decode(self, z: Tensor) -> Tensor:
        # The same z enters at every step, so its product with the weights is taken once; nn.LSTM would take
        # it at every step, and gradients for weights that stand still: this is twice as fast in a search.
        fed, recur = self.feed(z), self.recur.weight.T
        h = c = fed.new_zeros(len(z), self.recur.in_features)
        states = []
        for _ in range(self.shape[1]):
            i, f, o, g = torch.addmm(fed, h, recur).chunk(4, dim=1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            states.append(h)
        x: Tensor = self.writer(torch.stack(states, dim=1))
        return x.transpose(1, 2)


class ConvAutoencoder(Autoencoder):
    """Strided convolutions down to a code, and resized convolutions up again: for series and for images.

        h_i = ReLU(Conv(h_{i−1})),  half as long each,    z = W h_last;    D the same way back

    Examples
    --------
    >>> autoencoder = ConvAutoencoder((1, 28, 28))
    >>> autoencoder.decode(autoencoder.encode(torch.zeros(5, 1, 28, 28))).shape
    torch.Size([5, 1, 28, 28])
    """

    def __init__(
        self, shape: Sequence[int], latent: int = 32, widths: Sequence[int] = (32, 64)
    ) -> None:
        super().__init__(shape, latent)
        conv, kernel = (nn.Conv1d, 5) if len(shape) == 2 else (nn.Conv2d, 3)
        channels = (self.shape[0], *widths)
        self.sizes = [self.shape[1:]]
        for _ in widths:
            self.sizes.append(tuple(math.ceil(size / 2) for size in self.sizes[-1]))
        flat = widths[-1] * math.prod(self.sizes[-1])
        self.down = nn.ModuleList(
            conv(n_in, n_out, kernel, stride=2, padding=kernel // 2)
            for n_in, n_out in pairwise(channels)
        )
        self.code = nn.Linear(flat, latent)
        self.spread = nn.Linear(latent, flat)
        self.up = nn.ModuleList(
            conv(n_in, n_out, kernel, padding=kernel // 2)
            for n_in, n_out in pairwise(channels[::-1])
        )

    def _encode(self, x: Tensor) -> Tensor:
        for down in self.down:
            x = down(x).relu()
        z: Tensor = self.code(x.flatten(1))
        return z

    def _decode(self, z: Tensor) -> Tensor:
        x: Tensor = self.spread(z).unflatten(1, (-1, *self.sizes[-1]))
        for up, size in zip(self.up, self.sizes[-2::-1], strict=True):
            x = up(interpolate(x.relu(), size=size))
        return x


AUTOENCODERS: dict[str, tuple[type[LSTMAutoencoder | ConvAutoencoder], tuple[int, ...], str]] = {
    # the class, the dimensions one instance may have, and how to say it
    "lstm": (LSTMAutoencoder, (2,), "series (channels, length)"),
    "cnn": (
        ConvAutoencoder,
        (2, 3),
        "series (channels, length) or images (channels, height, width)",
    ),
}


def build_autoencoder(name: str, shape: Sequence[int], random_state: int = 0) -> Autoencoder:
    """An autoencoder for instances of `shape` (without n), with weights drawn from `random_state` alone."""
    if name not in AUTOENCODERS:
        raise ValueError(
            f"{name!r} is not an autoencoder. Autoencoders: {', '.join(AUTOENCODERS)}."
        )
    autoencoder, dims, takes = AUTOENCODERS[name]
    if len(shape) not in dims:
        raise ValueError(
            f"autoencoder {name!r} takes {takes}; got instances of shape {tuple(shape)}."
        )
    with seeded(random_state):
        return autoencoder(shape)
