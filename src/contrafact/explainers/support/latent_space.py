"""What latent methods share: an autoencoder's code of every instance, and the way back from a moved code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...engine import Batch
from ...engine.batch import place_in_row
from ...nn.autoencoder_training import fit_autoencoder
from ...nn.autoencoders import Autoencoder
from ...numerics.randomness import fold_in, row_normal
from ...prototypes import GLVQ
from ...prototypes.initial import kmeans_centers
from ...search import Point, smallest_level
from ...search.gradient_loop import Decode


@dataclass(frozen=True)
class LatentSpace:
    """Codes of the reference data: the autoencoder, their spread per dimension, and the plane to draw in.

    codes : (n, latent) E(x) of the reference rows.
    spread : (latent,) standard deviation of the codes; 1 where all are equal.
    plane : (latent, 2) the two directions in which the codes vary most.
    """

    autoencoder: Autoencoder
    codes: Tensor
    spread: Tensor
    plane: Tensor

    @classmethod
    def fit(cls, autoencoder: Autoencoder | str | None, X: Tensor, max_epochs: int) -> LatentSpace:
        """Train an autoencoder on X, unless one is given already trained."""
        if autoencoder is None or isinstance(autoencoder, str):
            autoencoder = fit_autoencoder(autoencoder, X, max_epochs=max_epochs)
        elif autoencoder.shape != tuple(X.shape[1:]):
            raise ValueError(
                f"autoencoder takes instances of shape {autoencoder.shape}; X holds {tuple(X.shape[1:])}."
            )
        codes = _encode(autoencoder, X)
        spread = codes.std(0, correction=0)
        floor = 1e-6 * float(spread.max())
        _, _, axes = torch.linalg.svd(codes - codes.mean(0), full_matrices=False)
        plane = codes.new_zeros(codes.shape[1], 2)
        plane[:, : min(2, len(axes))] = axes[:2].T
        return cls(autoencoder, codes, torch.where(spread > floor, spread, 1.0), plane)

    @property
    def unit(self) -> Tensor:
        """What the autoencoder's scaling takes as 1, per channel, shaped to divide instances by."""
        return self.autoencoder.scaling.std.view(-1, *[1] * (len(self.autoencoder.shape) - 1))

    def encode(self, x: Tensor) -> Tensor:
        return _encode(self.autoencoder, x)

    def decode(self, z: Tensor) -> Tensor:
        return self.autoencoder.decode(z)

    def starts(self, batch: Batch, rows: Tensor, z: Tensor) -> Tensor:
        """The code itself for a row's first counterfactual, places around it for further ones."""
        copy = place_in_row(rows)
        seeds = fold_in(batch.seeds[rows.cpu().numpy()], copy.cpu().numpy())
        draws = torch.from_numpy(row_normal(seeds, z.shape[1], stream=1)).to(z)
        return torch.where((copy > 0)[:, None], z + self.spread * draws, z)

    def decoder(self, batch: Batch, rows: Tensor, base: Tensor, residual: bool) -> Decode:
        """From moved codes to candidates: D(z), or with `residual` x + D(z) − D(base).

        The second leaves out what the autoencoder loses: a code that has not moved is no change at all.
        """
        x = batch.x[rows]
        if residual:
            with torch.no_grad():
                still = torch.cat([self.decode(part) for part in base.split(1024)])

        def decode(z: Tensor, entries: Tensor) -> Tensor:
            x_cf = self.decode(z)
            if residual:
                # A batch of another size rounds otherwise: where z has not moved, its own D(z) is taken away.
                moved = (z != base[entries]).any(1).reshape(-1, *[1] * (x.ndim - 1))
                x_cf = x[entries] + (x_cf - torch.where(moved, still[entries], x_cf.detach())).to(
                    x.dtype
                )
            return batch.project(x_cf.to(x.dtype), rows[entries])

        return decode


def shorten(
    batch: Batch, rows: Tensor, decode: Decode, base: Tensor, code: Tensor, steps: int = 6
) -> Tensor:
    """The first candidate the model accepts on the line from `base` to `code`, to within 2^−steps of it."""

    def between(level: Tensor, which: Tensor) -> Tensor:
        s = (level.to(code) / 2**steps)[:, None]
        return decode(torch.lerp(base[which], code[which], s), which)

    return smallest_level(batch, rows, between, 2**steps)[1]


@dataclass(frozen=True)
class Centroids:
    """Mean codes of classes: `place` (m, latent), the class (column) of each in `owner`, and β."""

    place: Tensor
    owner: Tensor
    beta: float

    @classmethod
    def fit(
        cls, codes: Tensor, column: Tensor, n: int, beta: float, learned: bool = False
    ) -> Centroids:
        """Up to n clusters of every class there is, or as many prototypes where they are `learned`; β is per
        mean squared distance of codes to their own."""
        z, t = codes.cpu().double().numpy(), column.cpu().numpy()
        if learned and len(np.unique(t)) > 1:
            model = GLVQ(n, random_state=0).fit(z, t)
            found, owner = model.prototypes_, model.prototype_labels_
        else:
            parts = [
                kmeans_centers(z[t == c], min(n, (t == c).sum()), 0, n_init=5) for c in np.unique(t)
            ]
            found, owner = np.concatenate(parts), np.unique(t).repeat([len(part) for part in parts])
        place, owners = torch.from_numpy(found).to(codes), torch.from_numpy(owner).to(codes.device)
        gap = torch.cdist(codes, place).masked_fill(column[:, None] != owners, torch.inf).amin(1)
        return cls(place, owners, beta / float(gap.square().mean().clamp_min(1e-12)))

    def pull(self, z: Tensor, target: Tensor) -> Tensor:
        """‖z − μ‖ where the class has one centroid, −β⁻¹ log Σ exp(−β/2 ‖z − μ‖²) where it has several, 0
        where it has none."""
        foreign = target[:, None] != self.owner
        square = (z[:, None] - self.place).square().sum(2)
        one = square.masked_fill(foreign, 0.0).sum(1).add(1e-12).sqrt()
        far = torch.finfo(square.dtype).min / 2
        soft = (-self.beta / 2 * square).masked_fill(foreign, far).logsumexp(1) / -self.beta
        own = (~foreign).sum(1)
        return torch.where(own == 1, one, torch.where(own > 1, soft, 0.0))

    def distance(self, z: Tensor, n_classes: int) -> Tensor:
        """(n, classes) distance to the nearest centroid of each class; inf where a class has none."""
        gap = torch.cdist(z, self.place)
        nearest = gap.new_full((len(z), n_classes), torch.inf)
        return nearest.scatter_reduce(1, self.owner.expand(len(z), -1), gap, "amin")

    def nearest(self, z: Tensor, target: Tensor) -> Tensor:
        """The nearest centroid of the target class."""
        return (
            torch.cdist(z, self.place)
            .masked_fill(target[:, None] != self.owner, torch.inf)
            .argmin(1)
        )


class Trace:
    """What the steps looked like: the loss, and the code on the plane, for plots."""

    POINTS = 64

    def __init__(self, plane: Tensor) -> None:
        self.plane = plane
        self.steps: list[tuple[Tensor, Tensor]] = []

    def note(self, point: Point, loss: Tensor) -> None:
        seen = torch.cat([loss.detach()[:, None], point.code.detach() @ self.plane], dim=1)
        self.steps.append((point.entries, seen))

    def curves(self, n: int) -> dict[str, Tensor]:
        """loss_curve (n, POINTS) and path (n, POINTS, 2): steps picked evenly from first to last."""
        entries = (
            torch.cat([e for e, _ in self.steps])
            if self.steps
            else torch.zeros(0, dtype=torch.long)
        )
        seen = torch.cat([s for _, s in self.steps]) if self.steps else self.plane.new_zeros(0, 3)
        seen = torch.cat(
            [seen, seen.new_full((1, 3), torch.nan)]
        )  # stands for rows that never took a step
        order = entries.argsort(stable=True)  # entry by entry, each in the order of its steps
        taken = torch.bincount(entries, minlength=n)
        chosen = (
            torch.linspace(0, 1, self.POINTS, device=taken.device)
            * (taken - 1).clamp_min(0)[:, None]
        )
        place = (taken.cumsum(0) - taken)[:, None] + chosen.round().long()
        order = torch.cat([order, order.new_tensor([len(entries)])])
        picked = seen[order[torch.where(taken[:, None] > 0, place, len(entries))]]
        return {"loss_curve": picked[:, :, 0], "path": picked[:, :, 1:]}


@torch.no_grad()
def _encode(autoencoder: Autoencoder, x: Tensor) -> Tensor:
    x = x.to(next(autoencoder.parameters()))
    return torch.cat([autoencoder.encode(part) for part in x.split(1024)])
