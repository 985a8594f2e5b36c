"""Provenance: how a result was made, as plain values that are kept with it."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from ..models.classifier import Classifier
from .request import Request


def provenance_of(
    method: BaseEstimator, classifier: Classifier, request: Request
) -> dict[str, Any]:
    """Return what a result depends on besides the data.

    Parameters
    ----------
    method : BaseEstimator
        The explainer.
    classifier : Classifier
        Its model.
    request : Request
        What was asked of it.

    Returns
    -------
    dict
        Method, parameters, version, seed and options; remarks about the model, if there are any.
    """
    from .. import __version__

    plain = (int, float, str, bool, type(None))
    parameters = {
        name: value if isinstance(value, plain) else repr(value)
        for name, value in method.get_params(deep=False).items()
    }
    provenance = {
        "method": type(method).__name__,
        "parameters": parameters,
        "version": __version__,
        "seed": request.seed,
        "options": request.describe(),
    }
    remarks = classifier.remarks.texts
    return {**provenance, "remarks": list(remarks)} if remarks else provenance
