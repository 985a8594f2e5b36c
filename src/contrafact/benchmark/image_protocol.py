"""The protocol of sparse visual counterfactuals: how real images look that models make.

From images of the domain and from images of another one, each set compared with real images.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from ..engine.result import Counterfactuals, as_numpy
from ..explainers.support.explainer import Explainer
from ..metrics.frechet import frechet_distance
from ..models.classifier import Array
from ..models.ensemble import Ensemble
from ..nn.features import FeatureExtractor
from ..validation import Function, Instance, Nothing, Real, Satisfies, check_parameters

#: name of the line of the table that has the images as they are
UNCHANGED = "unchanged"
#: how the two figures of the table have to be read
READING = (
    "Do not read frechet_in alone: it rewards doing nothing, since test images that were not "
    "changed are real images (see the line 'unchanged'). frechet_out starts from images that are "
    "not of the domain, where doing nothing is worst; the mean needs both."
)


def _holds_explainers(given: Any) -> bool:
    """Return whether the value maps names to explainers, one or more."""
    if not isinstance(given, Mapping) or not given:
        return False
    return all(isinstance(explainer, Explainer) for explainer in given.values())


RULES = {
    "models": Satisfies(
        lambda given: isinstance(given, Mapping) and len(given) > 0,
        "a mapping of names to models, at least one",
    ),
    "explainers": Satisfies(_holds_explainers, "a mapping of names to explainers, at least one"),
    "reference": Satisfies(
        lambda given: isinstance(given, tuple) and len(given) == 2, "a pair (X, y)"
    ),
    "features": Instance(FeatureExtractor) | Function("images"),
    "confidence": Nothing() | Real(above=0, below=1),
}


@dataclass(frozen=True)
class VisualProtocol:
    """Hold what `visual_protocol` found.

    Parameters
    ----------
    table : DataFrame
        One line for each model and method, and one for the images as they are.
    results : dict of (model, method, "in" or "out") to Counterfactuals
        All counterfactuals.
    reading : str
        How the table has to be read.
    """

    table: pd.DataFrame
    results: dict[tuple[str, str, str], Counterfactuals]
    reading: str = READING


def visual_protocol(
    models: Mapping[str, Any],
    explainers: Mapping[str, Explainer],
    X: Any,
    X_other: Any,
    reference: tuple[Any, Any],
    features: FeatureExtractor | Callable[[Array], Any],
    real: Any,
    *,
    confidence: float | None = None,
) -> VisualProtocol:
    """Compare models and methods by how real their counterfactual images are.

    With the ensemble of all models deciding the targets, so that all get the same task:

        in    images of the domain, toward the second most likely class of the ensemble
        out   images of another data set, toward the class the ensemble puts them in

    Each set of counterfactuals, best attempts included, is compared with real images by the Fréchet
    distance of their features. The distance in the domain alone rewards doing nothing, so both, and
    their mean, are given, beside those of the images as they are. An image of another data set may
    be in its target class from the start: ask for a `confidence`, or it stays as it is.

    Parameters
    ----------
    models : mapping of str to model
        The models that are compared, with the same classes.
    explainers : mapping of str to Explainer
        The methods, not fitted; each is fitted to each model.
    X : array of shape (n, channels, height, width)
        Test images of the domain.
    X_other : array of shape (m, channels, height, width)
        Images of another data set, of the same shape and range; m = n is best, as the Fréchet
        distance depends on the number of images.
    reference : tuple of two arrays
        Images and labels to fit the methods to.
    features : FeatureExtractor or function of images
        Gives (n, d) features of images; the same for all, and of no model that is compared.
    real : array of shape (k, channels, height, width)
        Real images of the domain, neither in X nor in `reference`.
    confidence : float, optional
        P(target) that every counterfactual has to reach.

    Returns
    -------
    VisualProtocol
        `table` has the columns model, method, frechet_in, frechet_out, frechet_mean; valid_in and
        valid_out, the share in the target class (for the model); p_in and p_out, the mean of
        P(target); all are NaN of what has no model.

    References
    ----------
    Boreiko, Augustin, Croce, Berens, Hein: Sparse visual counterfactual explanations in image
    space. GCPR 2022. https://doi.org/10.48550/arXiv.2205.07972

    Examples
    --------
    >>> import contrafact as cf
    >>> data = cf.load_dataset("digits")
    >>> images, other = data.X_train / 16, data.X_test[:20, :, ::-1] / 16
    >>> train = images[:300], data.y_train[:300]
    >>> models = {"cnn": cf.fit_classifier("smallcnn", *train, max_epochs=3)}
    >>> features = FeatureExtractor(max_epochs=2).fit(images[300:600], data.y_train[300:600])
    >>> found = visual_protocol(
    ...     models, {"line": cf.LineSearch()}, images[900:920], other, train, features,
    ...     images[600:900], confidence=0.5,
    ... )
    >>> found.table["method"].tolist()
    ['unchanged', 'line']
    """
    given = {
        "models": models,
        "explainers": explainers,
        "reference": reference,
        "features": features,
        "confidence": confidence,
    }
    check_parameters("visual_protocol", RULES, given)
    starts = {"in": as_numpy(X), "out": as_numpy(X_other)}
    ensemble = Ensemble(list(models.values()))
    ensemble.infer_classes(*reference)
    targets = {
        "in": _second_class(ensemble, starts["in"]),
        "out": ensemble.predict(starts["out"]),
    }
    transform = features.transform if isinstance(features, FeatureExtractor) else features
    real_features = transform(as_numpy(real))

    def distance(images: Any) -> float:
        return frechet_distance(transform(as_numpy(images)), real_features)

    unchanged = {kind: distance(images) for kind, images in starts.items()}
    lines = [_line("", UNCHANGED, unchanged, {})]
    results: dict[tuple[str, str, str], Counterfactuals] = {}
    for model_name, model in zip(models, ensemble.members, strict=True):
        for method_name, method in explainers.items():
            fitted = clone(method).fit(model, *reference)
            own = {
                kind: fitted.explain(starts[kind], targets[kind], confidence=confidence)
                for kind in starts
            }
            distances = {kind: distance(result.X_cf) for kind, result in own.items()}
            lines.append(_line(model_name, method_name, distances, own))
            results |= {(model_name, method_name, kind): own[kind] for kind in own}
    return VisualProtocol(pd.DataFrame(lines), results)


def _second_class(ensemble: Ensemble, X: Array) -> Array:
    """Return the second most likely class of each image."""
    order = np.argsort(ensemble.predict_proba(X), axis=1, kind="stable")
    return np.asarray(ensemble.classes[order[:, -2]])


def _line(
    model: str,
    method: str,
    distances: Mapping[str, float],
    results: Mapping[str, Counterfactuals],
) -> dict[str, Any]:
    """Make one line of the table."""
    line: dict[str, Any] = {"model": model, "method": method}
    line |= {f"frechet_{kind}": value for kind, value in distances.items()}
    line["frechet_mean"] = np.mean(list(distances.values()))
    for kind in distances:
        result = results.get(kind)
        line[f"valid_{kind}"] = np.nan if result is None else result.valid.mean()
        line[f"p_{kind}"] = np.nan if result is None else result.target_proba[:, 1].mean()
    return line
