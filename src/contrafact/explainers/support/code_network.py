"""The network of TS-NUC that moves codes, with its own weights for every task."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from typing_extensions import Self

from ...engine import Tasks
from ...nn.loop import train
from ...nn.networks import seeded


@dataclass(frozen=True)
class CodeNetwork:
    """Three linear layers with ReLU between, applied with stacked weights in batched products.

        F(z) = W₃ ReLU(W₂ ReLU(W₁ z + b₁) + b₂) + b₃      (+ z with `skip`)

    Parameters
    ----------
    weights : Tensor of shape (size,)
        Where every copy starts: trained to reproduce codes, or the identity behind a skip.
    latent : int
        Length of a code.
    skip : bool
        Whether z is added to the output.
    """

    weights: Tensor
    latent: int
    skip: bool

    @classmethod
    def fit(cls, codes: Tensor, max_epochs: int, skip: bool) -> Self:
        """Learn F(z) = z, with dropout after the first layer; with `skip` that needs no training.

        Parameters
        ----------
        codes : Tensor of shape (n, latent)
            Codes of the reference rows.
        max_epochs : int
            Largest number of epochs.
        skip : bool
            Whether z is added to the output.

        Returns
        -------
        CodeNetwork
            The weights that every copy starts with.
        """
        size = codes.shape[1]
        with seeded(0):
            layers = [
                nn.Linear(size, size, dtype=codes.dtype, device=codes.device) for _ in range(3)
            ]
            if skip:
                nn.init.zeros_(layers[-1].weight)
                nn.init.zeros_(layers[-1].bias)
            else:
                _train_to_reproduce(layers, codes, max_epochs)
        parts: list[Tensor] = []
        for layer in layers:
            parts.append(layer.weight.T.detach().flatten())
            parts.append(layer.bias.detach())
        return cls(torch.cat(parts), size, skip)

    @property
    def size(self) -> int:
        """Number of weights."""
        return len(self.weights)

    def start(self, n: int) -> Tensor:
        """Return a copy of the weights for each of n tasks, (n, size)."""
        return self.weights.repeat(n, 1)

    def __call__(self, theta: Tensor, z: Tensor) -> Tensor:
        """Apply F with weights theta[j] to z[j].

        Parameters
        ----------
        theta : Tensor of shape (n, size)
            Weights.
        z : Tensor of shape (n, latent)
            Codes.

        Returns
        -------
        Tensor of shape (n, latent)
            F(z); gradients pass.
        """
        d = self.latent
        h = z[:, None]  # (n, 1, latent)
        for number, layer in enumerate(theta.split(d * d + d, dim=1)):
            if number > 0:
                h = h.relu()
            weight = layer[:, : d * d].unflatten(1, (d, d))
            bias = layer[:, None, d * d :]
            h = torch.baddbmm(bias, h, weight)
        return h[:, 0] + z if self.skip else h[:, 0]


def _train_to_reproduce(
    layers: list[nn.Linear],
    codes: Tensor,
    max_epochs: int,
) -> None:
    first, second, third = layers
    network = nn.Sequential(
        first,
        nn.ReLU(),
        nn.Dropout(0.25),
        second,
        nn.ReLU(),
        third,
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer,
        factor=0.1,
        patience=25,
    )
    train(
        network,
        len(codes),
        lambda rows, epoch: mse_loss(network(codes[rows]), codes[rows]),
        optimizer,
        plateau.step,
        watch=lambda: {"val_loss": mse_loss(network(codes), codes).item()},
        max_epochs=max_epochs,
        batch_size=32,
        patience=100,
        clip=1.0,
    )


class MovingCodes:
    """The codes that the networks of some tasks produce step by step: ẑ = F(z) + noise.

    Parameters
    ----------
    network : CodeNetwork
        F.
    z : Tensor of shape (n, latent)
        What every network is fed first.
    noise_mean, noise_std : float
        Of the noise added to the output.
    feedback : bool
        Whether a network is fed its own last output instead of z.

    Attributes
    ----------
    noise_free : Tensor of shape (n, latent)
        The last output of each network before noise was added.
    """

    def __init__(
        self,
        network: CodeNetwork,
        z: Tensor,
        noise_mean: float,
        noise_std: float,
        feedback: bool,
    ) -> None:
        self.network = network
        self.fed = z.clone()
        self.noise_free = z.clone()
        self.noise_mean = noise_mean
        self.noise_std = noise_std
        self.feedback = feedback

    @property
    def has_noise(self) -> bool:
        """Whether noise is added."""
        return bool(self.noise_mean or self.noise_std)

    def encode(self, tasks: Tasks, theta: Tensor, t: int) -> Tensor:
        """Return ẑ of the tasks still at work.

        Parameters
        ----------
        tasks : Tasks
            The tasks, in a loop of `minimize`.
        theta : Tensor of shape (m, size)
            Weights of their networks.
        t : int
            Number of the step.

        Returns
        -------
        Tensor of shape (m, latent)
            The codes; gradients pass.
        """
        position = tasks["position"]
        z_hat = self.network(theta, self.fed[position])
        self.noise_free[position] = z_hat.detach()
        if self.has_noise:
            noise = tasks.normal(z_hat.shape[1], t).to(z_hat)
            z_hat = z_hat + self.noise_mean + self.noise_std * noise
        if self.feedback:
            self.fed[position] = z_hat.detach()
        return z_hat
