"""LayeredClassifier: prototype models whose distance is a torch layer."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from typing_extensions import override

from ..data.arrays import for_torch
from .estimator import Array, PrototypeClassifier
from .layers import Euclidean
from .losses import class_scores


class LayeredClassifier(PrototypeClassifier):
    """A prototype model whose distance is a layer: it has gradients and exact counterfactuals.

    Attributes
    ----------
    layer_ : Euclidean
        Computes the distances, in the user's units.
    """

    layer_: Euclidean

    #: rows that a layer sees at once where no gradients are needed
    rows_at_once: ClassVar[int] = 4096

    @override
    def _distances(self, X: Array) -> Array:
        x = torch.from_numpy(for_torch(X))
        return np.asarray(self._without_gradients(self.layer_, x))

    @torch.no_grad()
    def _without_gradients(self, layer: nn.Module, x: Tensor) -> Tensor:
        """Apply a layer to rows, some at a time."""
        return torch.cat([layer(part) for part in x.split(self.rows_at_once)])

    def metric_(self) -> Array | None:
        """Return Ω of the metric d(x, w) = ‖Ω(x − w)‖².

        Returns
        -------
        array of shape (rank, D) or (K, rank, D), or None
            Ω; one per prototype where every prototype has its own; None: plainly Euclidean.
        """
        check_is_fitted(self)
        if not self.layer_.is_linear:
            raise TypeError(
                f"{type(self).__name__} with a distance_fn has no linear metric, as exact "
                "counterfactuals and radii need; methods that use gradients, like SVCE, take it."
            )
        for name in self.layer_.metric_parameters:
            values = getattr(self.layer_, name).detach().cpu().numpy()
            if values.ndim == 1:
                return np.diag(np.sqrt(values))
            return np.asarray(values)
        return None

    def differentiable_twin(self) -> Any:
        """Return a differentiable function with the same probabilities, as `as_classifier` needs.

        Returns
        -------
        function
            From a Tensor of rows (n, features) to logits (n, classes) whose softmax is
            `predict_proba`.
        """
        check_is_fitted(self)
        layer = self.layer_
        owner = self._owner()
        n_classes = len(self.classes_)
        temperature = self.temperature_

        def logits(x: Tensor) -> Tensor:
            return class_scores(
                layer(x),
                owner.to(x.device),
                n_classes,
                temperature,
            )

        return logits

    def _store_layer(self, layer: Euclidean, labels: Array) -> None:
        """Keep a trained layer that is in the user's units, and the labels of its prototypes."""
        self.layer_ = layer.requires_grad_(False)
        flat = layer.prototypes.detach().cpu().numpy()
        self.prototypes_ = flat.reshape(-1, *self.shape_)
        self.prototype_labels_ = labels
