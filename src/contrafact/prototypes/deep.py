"""DeepLVQ: prototypes in the space that a network makes of the data, learned together with it."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from ..nn.networks import build_network
from .estimator import Array
from .layers import Euclidean, squared_distance
from .lvq import GLVQ

BACKBONES = {1: "mlp", 2: "fcn", 3: "smallcnn"}


class Embedded(Euclidean):
    """d(x, w) = ‖φ(x) − w‖², φ a network; with `cosine` both are brought to length 1: d = 2 − 2 cos."""

    def __init__(
        self,
        prototypes: Tensor,
        backbone: nn.Module,
        shape: tuple[int, ...],
        cosine: bool,
        origin: Tensor | None = None,
        scale: float = 1.0,
    ) -> None:
        super().__init__(prototypes)
        self.backbone, self.shape, self.cosine = backbone, shape, cosine
        #: data come as origin + scale·(what the network was trained on)
        self.origin, self.scale = origin, scale

    def train(self, mode: bool = True) -> Embedded:
        """A frozen network stays as it is, its batch norms too."""
        super().train(mode)
        if not any(p.requires_grad for p in self.backbone.parameters()):
            self.backbone.eval()
        return self

    def embed(self, x: Tensor) -> Tensor:
        like = next(self.backbone.parameters(), self.prototypes)
        if self.origin is not None:
            x = (x - self.origin.to(x)) / self.scale
        embedded: Tensor = self.backbone(x.to(like.dtype).unflatten(1, self.shape))
        return embedded.to(x.dtype)

    def forward(self, x: Tensor) -> Tensor:
        z, w = self.embed(x), self.prototypes.to(x)
        if self.cosine:
            z, w = (nn.functional.normalize(part, dim=1) for part in (z, w))
        return squared_distance(z, w)

    def placed(self, center: Tensor, scale: float) -> Embedded:
        prototypes = self.prototypes.detach().to(center)
        backbone = copy.deepcopy(self.backbone).to(center.device).eval()
        return Embedded(prototypes, backbone, self.shape, self.cosine, center, scale)


@dataclass(eq=False, repr=False, kw_only=True)
class DeepLVQ(GLVQ):
    """GLVQ in the space of a network, end to end: series, images or rows.

        d(x, w) = ‖φ(x) − w‖²,     minimize over w and φ the loss of GLVQ

    `prototypes_` live in the embedding (K, embedding); `exemplars_` are the training instances nearest to
    them, to be looked at.

    Parameters
    ----------
    backbone : φ: a torch module (copied, never changed) or a reference network's name; default: "mlp" for
        rows, "fcn" for series, "smallcnn" for images.
    embedding : size of the space, where the backbone is not a module.
    cosine : compare directions only.

    `initial_prototypes` of `fit` are instances, and start at their embedding.

    Other parameters: those of GLVQ; `frozen=("backbone",)` trains the prototypes alone.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> DeepLVQ(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    backbone: nn.Module | str | None = None
    embedding: int = 16
    cosine: bool = False
    max_iter: int = 50
    batch_size: int | None = 32
    lr: float | None = 2e-3
    dtype: Literal["float32", "float64"] = "float32"

    def _space(self, x: Tensor) -> Tensor:
        if not hasattr(self, "_network"):
            self._network = self._make_network(x).eval()
        with torch.no_grad():
            return torch.cat(
                [self._network(part.unflatten(1, self.shape_)) for part in x.split(256)]
            )

    def _make_network(self, x: Tensor) -> nn.Module:
        name = BACKBONES[len(self.shape_)] if self.backbone is None else self.backbone
        if isinstance(name, str):
            seed = int(torch.randint(2**31, ()))
            module: nn.Module = build_network(name, self.shape_, self.embedding, seed)
        else:
            module = copy.deepcopy(name)
        return module.to(x)

    def _unit(self, spread: float) -> float:
        return 1.0

    def _make_layer(self, prototypes: Tensor) -> Euclidean:
        if "backbone" in self.frozen:
            self._network.requires_grad_(False)
        return Embedded(prototypes, self._network, self.shape_, self.cosine)

    def _groups(self, layer: Euclidean) -> dict[str, list[Tensor]]:
        return {**super()._groups(layer), "backbone": list(self._network.parameters())}

    def _settle(self, layer: Euclidean, labels: Array) -> None:
        self.layer_ = layer.requires_grad_(False)
        self.prototypes_ = layer.prototypes.cpu().numpy()
        self.prototype_labels_ = labels
        del self._network

    def _look_back(self, X: Array) -> None:
        self.exemplars_ = X[self._distances(X).argmin(0)].reshape(-1, *self.shape_)

    def metric_(self) -> Array | None:
        raise TypeError("DeepLVQ has no linear metric: its distance is a network's.")
