"""What the page is told about the prototypes of a prototype model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..explainers.support.prototype_model import is_prototype_model, unwrap_prototype_model
from ..models.classifier import Array
from ..report.words import number_text
from .workspace import Workspace

#: prototypes that are shown of an instance, the nearest first
MOST_PROTOTYPES = 6


class Prototypes:
    """Find the nearest prototypes of instances.

    Parameters
    ----------
    workspace : Workspace
        What is explored; its model has to be a prototype model.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        flat = torch.from_numpy(workspace.reference.values).double().flatten(1)
        unwrapped = unwrap_prototype_model(workspace.gate.classifier, flat)
        self._points = unwrapped.prototypes()
        self._metric = unwrapped.metric()
        model = unwrapped.model
        columns = {label: c for c, label in enumerate(workspace.classes.tolist())}
        self._labels = [columns[label] for label in model.prototype_labels_.tolist()]
        self._relevances = getattr(model, "relevances_", None)

    @classmethod
    def of(cls, workspace: Workspace) -> Prototypes | None:
        """Return the prototypes of a workspace; None where its model has none."""
        return cls(workspace) if is_prototype_model(workspace.model) else None

    def nearest(self, row: Array) -> list[dict[str, Any]]:
        """Return the nearest prototypes of an instance with their distances and relevances."""
        x = torch.from_numpy(self._workspace.to_engine(row)).double().flatten(1)
        difference = x - self._points
        if self._metric is not None:
            # One Ω for all, or one for each prototype.
            subscripts = "rd,kd->kr" if self._metric.ndim == 2 else "krd,kd->kr"
            difference = torch.einsum(subscripts, self._metric, difference)
        distance = difference.norm(dim=1)
        order = distance.argsort(stable=True)[:MOST_PROTOTYPES].tolist()
        return [
            {
                "label": self._labels[k],
                "distance_text": f"distance {number_text(float(distance[k]), 3)}",
                "values": self._travel(k),
                "relevance": self._relevance(k),
            }
            for k in order
        ]

    def _travel(self, k: int) -> Any:
        """Return a prototype as instances travel."""
        space = self._workspace.data.space
        point = self._points[k : k + 1]
        values = np.asarray(point if space is None else space.codes(point))
        return values.reshape(self._workspace.shape).tolist()

    def _relevance(self, k: int) -> Any:
        """Return how much each value counts in the distance to a prototype."""
        if self._relevances is None:
            return None
        own = self._relevances[k] if self._relevances.ndim > 1 else self._relevances
        if own.size != int(np.prod(self._workspace.shape)):
            return None
        return own.reshape(self._workspace.shape).tolist()
