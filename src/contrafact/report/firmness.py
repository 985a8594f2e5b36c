"""How firm the decisions are that a page explains, where the model can prove it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ..engine.result import Counterfactuals, as_numpy
from ..explainers.support.prototype_model import is_prototype_model, unwrap_prototype_model
from ..models.adapters import as_classifier
from ..prototypes.robustness import decision_radius


def with_radius(result: Counterfactuals, model: Any) -> Counterfactuals:
    """Add the robustness radius of every instance to `info`, for a prototype model.

    Parameters
    ----------
    result : Counterfactuals
        The result of any method.
    model : model
        The model that was explained.

    Returns
    -------
    Counterfactuals
        With `info["robustness_radius"]`; as given where it has that already, for tables, whose
        units the radius would not have, and for models that are not prototype models.
    """
    if len(result) == 0 or result.table is not None or "robustness_radius" in result.info:
        return result
    classifier = as_classifier(model)
    if not is_prototype_model(classifier):
        return result
    X = np.asarray(as_numpy(result.X), dtype=np.float64)
    x = torch.from_numpy(X.reshape(len(X), -1))
    unwrapped = unwrap_prototype_model(classifier, x)
    _, owner = np.unique(unwrapped.model.prototype_labels_, return_inverse=True)
    radius = decision_radius(x, unwrapped.prototypes(), torch.from_numpy(owner), unwrapped.metric())
    return replace(result, info={**result.info, "robustness_radius": radius.numpy()})
