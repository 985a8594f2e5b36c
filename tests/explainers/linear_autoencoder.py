"""An autoencoder that can be checked by hand."""

import numpy as np
import torch
from torch import nn

from contrafact.nn import Autoencoder


class Pca(Autoencoder):
    """A linear autoencoder: what its decoder can reach is a plane, known exactly."""

    def __init__(self, X, latent):
        super().__init__(X.shape[1:], latent)
        _, _, axes = np.linalg.svd(X.reshape(len(X), -1), full_matrices=False)
        self.axes = nn.Parameter(torch.as_tensor(axes[:latent].T.copy()), requires_grad=False)

    def _encode(self, x):
        return x.flatten(1) @ self.axes

    def _decode(self, z):
        return (z @ self.axes.T).unflatten(1, self.shape)
