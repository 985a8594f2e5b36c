"""Watch the features of a network during training, and add noise to them."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class BeforeHead:
    """Keep the inputs F of the last linear layer and, in training, add noise to them.

    Parameters
    ----------
    alpha : float
        α, the deviation of the noise in the first epoch.
    accuracy : float
        Accuracy on attacked rows that controls how α changes.
    """

    features: Tensor

    def __init__(self, alpha: float, accuracy: float) -> None:
        self.alphas = [alpha]
        self.accuracy = accuracy
        self.right: list[Tensor] = []  # of every attacked batch of this epoch

    def __call__(self, layer: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        """Act as a forward pre-hook of the layer."""
        (self.features,) = inputs
        alpha = self.alphas[-1]
        if not (layer.training and alpha):
            return inputs
        noise = torch.randn_like(self.features)
        return (self.features + alpha * noise,)

    def adapt(self) -> None:
        """Increase α by addition or decrease it by halving, after an epoch."""
        alpha = self.alphas[-1]
        accuracy = torch.cat(self.right).double().mean().item()
        if accuracy > self.accuracy:
            alpha += 1e-4
        elif accuracy < 0.8 * self.accuracy:
            alpha *= 0.5
        self.alphas.append(alpha)
        self.right = []
