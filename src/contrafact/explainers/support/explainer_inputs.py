"""The data of an explainer: the reference at `fit`, and instances that are like it at `explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...engine.instances import Instances, Modality, read_instances
from ...tables import Schema

if TYPE_CHECKING:
    from .explainer import Explainer


def read_reference(
    explainer: Explainer,
    X: Any,
    modality: Modality | None,
    schema: Schema | None,
) -> Instances:
    """Read the argument X of `fit`.

    Parameters
    ----------
    explainer : Explainer
        The method; its tags say what it takes.
    X, modality, schema
        As for `Explainer.fit`.

    Returns
    -------
    Instances
        At least one.
    """
    tags = explainer.tags
    instances = read_instances(X, "X", modality, tags.modalities, schema=schema)
    if len(instances) == 0:
        raise ValueError("X is empty; fit needs reference instances.")
    channels = instances.shape[0]
    if not tags.multivariate and instances.modality != "row" and channels > 1:
        name = type(explainer).__name__
        raise ValueError(f"{name} takes one channel only, X has {channels}.")
    return instances


def read_like_reference(explainer: Explainer, X: Any) -> Instances:
    """Read the argument X of `explain`, which has to be like that of `fit`.

    Parameters
    ----------
    explainer : Explainer
        A fitted method.
    X : array, tensor or data frame
        As for `Explainer.explain`.

    Returns
    -------
    Instances
        Of the shape and with the names that fit saw.
    """
    instances = read_instances(
        X,
        "X",
        explainer.modality_,
        explainer.tags.modalities,
        space=explainer.space_,
        tables=explainer.space_ is not None,
    )
    if instances.shape != explainer.shape_:
        raise ValueError(
            f"X holds instances of shape {instances.shape}; fit saw {explainer.shape_}."
        )
    instances.check_names(explainer._names or explainer.classifier_.feature_names, "fit")
    return instances
