"""DeepLVQ: prototypes in the space that a network makes of the data, learned together with it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from typing_extensions import override

from ..nn.networks import NETWORKS, build_network
from ..validation import Boolean, Instance, Integer, Nothing, OneOf, Rule
from .estimator import Array
from .gradient_rules import accept_old_names
from .layers import DistanceFunction, Euclidean, call_distance, squared_distance
from .lvq import GLVQ
from .soft_dtw import SoftDTW
from .training_rows import Scaling

#: default networks, by the number of axes of an instance
BACKBONES = {1: "mlp", 2: "fcn", 3: "smallcnn"}


class Embedded(Euclidean):
    """Compute d(x, w) = ‖φ(x) − w‖² with φ a network.

    Parameters
    ----------
    prototypes : Tensor of shape (K, embedding)
        Where the prototypes are, in the space of the network.
    backbone : nn.Module
        φ.
    shape : tuple of int
        Shape of one instance, as the network takes it.
    cosine : bool
        Bring φ(x) and w to length 1 first: d = 2 − 2 cos.
    origin : Tensor of shape (D,), optional
        Data come as origin + scale · (what the network was trained on); default: 0.
    scale : float, default=1.0
        See `origin`.
    function : function of two Tensors, default=squared_distance
        The distance in the space of the network.
    """

    def __init__(
        self,
        prototypes: Tensor,
        backbone: nn.Module,
        shape: tuple[int, ...],
        cosine: bool,
        origin: Tensor | None = None,
        scale: float = 1.0,
        function: DistanceFunction = squared_distance,
    ) -> None:
        super().__init__(prototypes)
        self.backbone = backbone
        self.shape = shape
        self.cosine = cosine
        self.origin = origin
        self.scale = scale
        self.function = function

    @override
    def train(self, mode: bool = True) -> Embedded:
        super().train(mode)
        # A frozen network stays as it is, its batch norms too.
        if not any(parameter.requires_grad for parameter in self.backbone.parameters()):
            self.backbone.eval()
        return self

    def embed(self, x: Tensor) -> Tensor:
        """Return φ(x) (n, embedding) of flat instances (n, D)."""
        like = next(self.backbone.parameters(), self.prototypes)
        if self.origin is not None:
            x = (x - self.origin.to(x)) / self.scale
        instances = x.to(like.dtype).unflatten(1, self.shape)
        embedded: Tensor = self.backbone(instances)
        return embedded.to(x.dtype)

    @override
    def forward(self, x: Tensor) -> Tensor:
        z = self.embed(x)
        w = self.prototypes.to(x)
        if self.cosine:
            z = nn.functional.normalize(z, dim=1)
            w = nn.functional.normalize(w, dim=1)
        return call_distance(self.function, z, w)

    @override
    def placed(self, center: Tensor, scale: float) -> Embedded:
        prototypes = self.prototypes.detach().to(center)
        backbone = copy.deepcopy(self.backbone).to(center.device).eval()
        return Embedded(
            prototypes,
            backbone,
            self.shape,
            self.cosine,
            center,
            scale,
            self.function,
        )


@accept_old_names
@dataclass(eq=False, repr=False, kw_only=True)
class DeepLVQ(GLVQ):
    """Learn prototypes in the space of a network, together with the network.

        d(x, w) = ‖φ(x) − w‖²,     minimize over w and φ the loss of GLVQ

    Instances may be rows, series or images. `initial_prototypes` of `fit` are instances, and
    start at their embedding.

    Parameters
    ----------
    n_prototypes : int or dict from label to int, default=1
        Prototypes per class.
    backbone : nn.Module or str, optional
        φ: a torch module (copied, never changed) or the name of a reference network; default:
        "mlp" for rows, "fcn" for series, "smallcnn" for images.
    embedding : int, default=16
        Size of the space, where the backbone is not a module.
    cosine : bool, default=False
        Compare directions only.
    max_iter : int, default=50
        Passes over the data.
    batch_size : int or None, default=32
        Rows per step; None: all.
    learning_rate : float or None, default=0.002
        Length of a step; None: 0.05.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the training.
    **options
        The options of GLVQ, by name; `frozen=("backbone",)` trains the prototypes alone.

    Attributes
    ----------
    prototypes_ : array of shape (K, embedding)
        The prototypes, in the space of the network.
    exemplars_ : array of shape (K, *shape)
        The training instances nearest to them, to look at.

    References
    ----------
    de Vries, Memisevic, Courville: Deep learning vector quantization. ESANN 2016.

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
    learning_rate: float | None = 2e-3
    dtype: Literal["float32", "float64"] = "float32"

    steepness: ClassVar[float] = 1.0
    rows_at_once: ClassVar[int] = 256
    rules: ClassVar[Mapping[str, Rule]] = {
        "backbone": Instance(nn.Module, "a torch module") | OneOf(*NETWORKS) | Nothing(),
        "embedding": Integer(at_least=1, at_most=10**6),
        "cosine": Boolean(),
    }

    @override
    def metric_(self) -> Array | None:
        raise TypeError("DeepLVQ has no linear metric: its distance is computed by a network.")

    @override
    def _embed(self, x: Tensor) -> Tensor:
        if not hasattr(self, "_network"):
            self._network = self._make_network(x).eval()
        as_given = nn.Sequential(nn.Unflatten(1, self.shape_), self._network)
        try:
            embedding = self._without_gradients(as_given, x)
        except RuntimeError as error:
            raise ValueError(
                f"backbone does not take instances of shape {self.shape_}: {error}"
            ) from error
        if embedding.ndim != 2:
            raise ValueError(
                "backbone must return one row of numbers per instance, it returned shape "
                f"{tuple(embedding.shape)}."
            )
        return embedding

    def _make_network(self, x: Tensor) -> nn.Module:
        """Build or copy the network, on the device and in the dtype of the data."""
        backbone = self.backbone
        if backbone is None and len(self.shape_) not in BACKBONES:
            raise ValueError(
                f"X holds instances of shape {self.shape_}. Accepted without a backbone: rows "
                "(features,), series (channels, length) and images (channels, height, width)."
            )
        if backbone is None:
            backbone = BACKBONES[len(self.shape_)]
        if isinstance(backbone, nn.Module):
            return copy.deepcopy(backbone).to(x)
        seed = int(torch.randint(2**31, ()))
        network: nn.Module = build_network(backbone, self.shape_, self.embedding, seed)
        return network.to(x)

    @override
    def _unit(self, spread: float) -> float:
        return 1.0

    @override
    def _check_combinations(self, validated: bool) -> None:
        super()._check_combinations(validated)
        if isinstance(self.distance_fn, SoftDTW):
            raise ValueError(
                "distance_fn=SoftDTW(...) compares series; the space of a network has no time. "
                "Use GLVQ, GRLVQ, RSLVQ or CELVQ."
            )

    @override
    def _make_layer(self, prototypes: Tensor, scaling: Scaling) -> Euclidean:
        if "backbone" in self.frozen:
            self._network.requires_grad_(False)
        function = squared_distance if self.distance_fn is None else self.distance_fn
        assert not isinstance(function, SoftDTW)
        return Embedded(prototypes, self._network, self.shape_, self.cosine, function=function)

    @override
    def _groups(self, layer: Euclidean) -> dict[str, list[Tensor]]:
        groups = super()._groups(layer)
        groups["backbone"] = list(self._network.parameters())
        return groups

    @override
    def _store_layer(self, layer: Euclidean, labels: Array) -> None:
        self.layer_ = layer.requires_grad_(False)
        self.prototypes_ = layer.prototypes.cpu().numpy()
        self.prototype_labels_ = labels
        del self._network

    @override
    def _finish(self, X: Array) -> None:
        nearest = self._distances(X).argmin(0)  # (K,)
        self.exemplars_ = X[nearest].reshape(-1, *self.shape_)
