"""Mean codes of classes, and the pull toward them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self

from ...prototypes import GLVQ
from ...prototypes.initial import kmeans_centers


@dataclass(frozen=True)
class Centroids:
    """Points that stand for classes in a latent space.

    Parameters
    ----------
    place : Tensor of shape (m, latent)
        The points.
    owner : Tensor of int, shape (m,)
        Class (column) of each.
    beta : float
        Sharpness of the soft minimum.
    """

    place: Tensor
    owner: Tensor
    beta: float

    @classmethod
    def fit(
        cls,
        codes: Tensor,
        column: Tensor,
        n: int,
        beta: float,
        learned: bool = False,
    ) -> Self:
        """Find centroids of every class that occurs.

        Parameters
        ----------
        codes : Tensor of shape (m, latent)
            Codes of the reference rows.
        column : Tensor of int, shape (m,)
            Their classes.
        n : int
            Points per class, at most.
        beta : float
            Sharpness, per mean squared distance of codes to their nearest centroid.
        learned : bool, default=False
            Prototypes of a GLVQ instead of cluster means.

        Returns
        -------
        Centroids
            The fitted centroids.
        """
        z = codes.cpu().double().numpy()
        label = column.cpu().numpy()
        classes = np.unique(label)
        if learned and len(classes) > 1:
            model = GLVQ(n, random_state=0).fit(z, label)
            points = model.prototypes_
            owner = model.prototype_labels_
        else:
            clusters = []
            for c in classes:
                members = z[label == c]
                clusters.append(kmeans_centers(members, min(n, len(members)), 0, n_init=5))
            points = np.concatenate(clusters)
            owner = classes.repeat([len(cluster) for cluster in clusters])
        place = torch.from_numpy(points).to(codes)
        owners = torch.from_numpy(owner).to(codes.device)
        foreign = column[:, None] != owners
        nearest = torch.cdist(codes, place).masked_fill(foreign, torch.inf).amin(1)
        scale = float(nearest.square().mean().clamp_min(1e-12))
        return cls(place, owners, beta / scale)

    def pull(self, z: Tensor, target: Tensor) -> Tensor:
        """Compute how far codes are from the centroids of their target class.

        ‖z − μ‖ where the class has one centroid, −β⁻¹ log Σ exp(−β/2 ‖z − μ‖²) where it has
        several, 0 where it has none.

        Parameters
        ----------
        z : Tensor of shape (n, latent)
            Codes.
        target : Tensor of int, shape (n,)
            Target classes.

        Returns
        -------
        Tensor of shape (n,)
            The pull; gradients pass.
        """
        foreign = target[:, None] != self.owner
        square = (z[:, None] - self.place).square().sum(2)
        distance = square.masked_fill(foreign, 0.0).sum(1).add(1e-12).sqrt()
        lowest = torch.finfo(square.dtype).min / 2
        exponent = (-self.beta / 2 * square).masked_fill(foreign, lowest)
        soft_minimum = exponent.logsumexp(1) / -self.beta
        count = (~foreign).sum(1)
        several = torch.where(count > 1, soft_minimum, 0.0)
        return torch.where(count == 1, distance, several)

    def distance(self, z: Tensor, n_classes: int) -> Tensor:
        """Compute the distance to the nearest centroid of each class.

        Parameters
        ----------
        z : Tensor of shape (n, latent)
            Codes.
        n_classes : int
            Number of classes.

        Returns
        -------
        Tensor of shape (n, n_classes)
            inf where a class has no centroid.
        """
        gap = torch.cdist(z, self.place)
        nearest = gap.new_full((len(z), n_classes), torch.inf)
        return nearest.scatter_reduce(1, self.owner.expand(len(z), -1), gap, "amin")

    def nearest(self, z: Tensor, target: Tensor) -> Tensor:
        """Return the number of the nearest centroid of the target class, (n,)."""
        foreign = target[:, None] != self.owner
        return torch.cdist(z, self.place).masked_fill(foreign, torch.inf).argmin(1)
