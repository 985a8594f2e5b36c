"""The network of TS-NUC that carries codes, with weights of its own for every instance."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from ...nn.loop import train
from ...nn.networks import seeded


@dataclass(frozen=True)
class Carrier:
    """F: three linear layers with ReLU between, applied with stacked weights in batched products.

        F(z) = W₃ ReLU(W₂ ReLU(W₁ z + b₁) + b₂) + b₃      (+ z with `skip`)

    weights : (size,) where every copy starts: trained to reproduce codes, or the identity behind a skip.
    """

    weights: Tensor
    latent: int
    skip: bool

    @classmethod
    def fit(cls, codes: Tensor, max_epochs: int, skip: bool) -> Carrier:
        """Learn F(z) = z on the codes, with dropout after the first layer; with `skip` F is z as it is."""
        size = codes.shape[1]
        with seeded(0):
            layers = [
                nn.Linear(size, size, dtype=codes.dtype, device=codes.device) for _ in range(3)
            ]
            if skip:
                nn.init.zeros_(layers[-1].weight)
                nn.init.zeros_(layers[-1].bias)
            else:
                first, second, third = layers
                network = nn.Sequential(
                    first, nn.ReLU(), nn.Dropout(0.25), second, nn.ReLU(), third
                )
                optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
                plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
                    optimizer, factor=0.1, patience=25
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
        parts = [
            part.detach().flatten() for layer in layers for part in (layer.weight.T, layer.bias)
        ]
        return cls(torch.cat(parts), size, skip)

    @property
    def size(self) -> int:
        return len(self.weights)

    def start(self, n: int) -> Tensor:
        """(n, size): a copy of the weights for each of n entries."""
        return self.weights.repeat(n, 1)

    def __call__(self, theta: Tensor, z: Tensor) -> Tensor:
        """F with weights theta[j] on z[j]."""
        d, h = self.latent, z[:, None]
        for layer, part in enumerate(theta.split(d * d + d, dim=1)):
            h = torch.baddbmm(
                part[:, None, d * d :],
                h.relu() if layer else h,
                part[:, : d * d].unflatten(1, (d, d)),
            )
        return h[:, 0] + z if self.skip else h[:, 0]
