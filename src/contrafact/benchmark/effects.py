"""What the parameters of an explainer do to its scores, from the runs of an orthogonal array."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import clone

from ..explainers import Explainer
from ..models.classifier import Array
from ..validation import Instance, Integer, ListOf, OneOf, Satisfies, check_parameters
from .orthogonal_arrays import Design, assign

if TYPE_CHECKING:
    import pandas as pd


def _are_levels(value: Any) -> bool:
    """Return whether the value maps names to two or three values each."""
    if not isinstance(value, Mapping) or len(value) < 1:
        return False
    return all(
        isinstance(name, str) and isinstance(values, list | tuple) and len(values) in (2, 3)
        for name, values in value.items()
    )


RULES = {
    "explainer": Instance(Explainer),
    "reference": Satisfies(
        lambda value: isinstance(value, tuple | list) and len(value) == 2, "a pair (X, y)"
    ),
    "levels": Satisfies(_are_levels, "a dictionary from parameter to two or three values"),
    "metrics": ListOf(Instance(str), "names of metrics"),
    "array": OneOf("auto", "L9", "L18", "L27"),
    "random_state": Integer(at_least=0, at_most=2**62),
}


@dataclass(frozen=True)
class ParameterEffects:
    """Hold what the runs of an orthogonal array showed.

    Attributes
    ----------
    runs : DataFrame
        One line per run: the value of each parameter, and each metric's mean over the instances.
    main : DataFrame
        One line per parameter and value: `parameter`, `value`, and the mean of each metric over the
        runs with that value; NaN where one of these has none.
    shares : DataFrame
        One line per parameter, and per pair as "a × b": `term`, `clear`, and of each metric the
        share of its variance among the runs that the term explains, NaN where a run has no value.
        A term is clear where the effect of no other single parameter is mixed with it. Interactions
        of others may be, so that the shares may add up to more than 1.
    """

    runs: pd.DataFrame
    main: pd.DataFrame
    shares: pd.DataFrame


def parameter_effects(
    explainer: Explainer,
    model: Any,
    reference: tuple[Any, Any],
    X: Any,
    levels: Mapping[str, Sequence[Any]],
    metrics: Sequence[str] = ("valid", "sparsity", "l2", "calls"),
    *,
    array: Design | Literal["auto"] = "auto",
    target: Any = None,
    random_state: int = 0,
) -> ParameterEffects:
    """Run an explainer over an orthogonal array of its parameters, and measure their effects.

    9, 18 or 27 runs stand for all combinations: each two parameters meet at all their values
    equally often, so that the mean over the runs with one value does not depend on the others.

    Parameters
    ----------
    explainer : Explainer
        The method; parameters that are not varied stay as they are.
    model : object
        The trained model.
    reference : tuple of two arrays
        X and y to fit the explainer to.
    X : array
        Instances to explain.
    levels : mapping of str to list
        Two or three values of each parameter to vary.
    metrics : sequence of str, default=("valid", "sparsity", "l2", "calls")
        Metrics of `Counterfactuals.evaluate`.
    array : {"auto", "L9", "L18", "L27"}, default="auto"
        The array; "auto": the smallest that has room. Interactions are clear with few parameters in
        a large array: L27 with three holds all combinations.
    target : label or array, optional
        Class to reach; default: the explainer's choice.
    random_state : int, default=0
        Seed of every run.

    Returns
    -------
    ParameterEffects
        The runs, the mean of every value, and shares of the variance.

    Examples
    --------
    >>> import contrafact as cf
    >>> levels = {"tau": [0.5, 0.7, 0.9], "threshold": [0.3, 0.5, 0.7]}
    >>> effects = parameter_effects(
    ...     cf.CELS(max_iter=5), model, (X_train, y_train), X_test[:4], levels, ["sparsity"]
    ... )
    >>> effects.main["parameter"].tolist()
    ['tau', 'tau', 'tau', 'threshold', 'threshold', 'threshold']
    """
    given = {
        "explainer": explainer,
        "reference": reference,
        "levels": levels,
        "metrics": metrics,
        "array": array,
        "random_state": random_state,
    }
    check_parameters("parameter_effects", RULES, given)
    unknown = sorted(set(levels) - set(explainer.get_params()))
    if unknown:
        raise ValueError(
            f"levels holds {unknown[0]!r}; {type(explainer).__name__} has the parameters "
            f"{', '.join(sorted(explainer.get_params()))}."
        )

    shared = sorted(set(levels) & set(metrics))
    if shared:
        raise ValueError(
            f"metrics and levels both name {shared[0]!r}, which would be two columns of one name."
        )

    def score(parameters: dict[str, Any]) -> dict[str, float]:
        fitted = clone(explainer).set_params(**parameters).fit(model, *reference)
        result = fitted.explain(X, target, random_state=random_state)
        scores = result.evaluate(list(metrics), reference, model=model)
        return {name: float(scores[name].mean()) for name in metrics}

    return effects_of(score, levels, array)


def effects_of(
    score: Callable[[dict[str, Any]], dict[str, float]],
    levels: Mapping[str, Sequence[Any]],
    array: Design | Literal["auto"] = "auto",
) -> ParameterEffects:
    """Measure the effects of parameters on any scores.

    Parameters
    ----------
    score : function of a dict
        From a value of each parameter to scores by name.
    levels : mapping of str to sequence
        Two or three values of each parameter.
    array : {"auto", "L9", "L18", "L27"}, default="auto"
        The array.

    Returns
    -------
    ParameterEffects
        The runs, the mean of every value, and shares of the variance.
    """
    import pandas as pd

    design = assign(levels, array)
    names = list(levels)
    settings = [
        {name: levels[name][level] for name, level in zip(names, row, strict=True)}
        for row in design
    ]
    scores = pd.DataFrame([score(setting) for setting in settings])
    main = []
    for name, column in zip(names, design.T, strict=True):
        for level, value in enumerate(levels[name]):
            means = scores[column == level].mean(skipna=False)
            main.append({"parameter": name, "value": value, **means})
    runs = pd.concat([pd.DataFrame(settings, dtype=object), scores], axis=1)
    effects = pd.DataFrame(main)
    effects["value"] = pd.Series([line["value"] for line in main], dtype=object)
    return ParameterEffects(runs, effects, _shares(design, names, scores))


def _shares(design: Array, names: list[str], scores: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the variance of each score that each term explains."""
    import pandas as pd

    centered = scores.to_numpy() - scores.to_numpy().mean(axis=0)
    total = np.square(centered).sum(axis=0)
    rounding = len(scores) * np.square(1e-12 * np.abs(scores.to_numpy()).max(axis=0))
    contrasts = [_contrasts(design[:, [position]]) for position in range(len(names))]
    terms = [(name, contrasts[i], [i]) for i, name in enumerate(names)]
    for a, b in itertools.combinations(range(len(names)), 2):
        cells = _contrasts(design[:, [a, b]])
        mains = np.hstack([contrasts[a], contrasts[b]])
        interaction = _basis(cells - mains @ np.linalg.lstsq(mains, cells, rcond=None)[0])
        terms.append((f"{names[a]} × {names[b]}", interaction, [a, b]))
    lines = []
    for term, basis, parts in terms:
        others = [contrasts[position] for position in range(len(names)) if position not in parts]
        mixed = any(np.abs(basis.T @ other).max(initial=0) > 1e-9 for other in others)
        explained = np.square(basis.T @ centered).sum(axis=0)
        # What does not vary has nothing to explain; what has no value everywhere can't be divided.
        share = np.divide(explained, total, out=0 * total, where=total > rounding)
        values = dict(zip(scores.columns, share, strict=True))
        lines.append({"term": term, "clear": not mixed and basis.shape[1] > 0, **values})
    return pd.DataFrame(lines)


def _contrasts(columns: Array) -> Array:
    """Return an orthonormal basis of what the levels of some columns can explain, but the mean."""
    _, cell = np.unique(columns, axis=0, return_inverse=True)
    indicator = np.eye(cell.max() + 1)[cell.ravel()]
    return _basis(indicator - indicator.mean(axis=0))


def _basis(vectors: Array) -> Array:
    """Return an orthonormal basis of the span of columns."""
    left, size, _ = np.linalg.svd(vectors, full_matrices=False)
    return np.asarray(left[:, size > 1e-9 * max(1.0, size.max(initial=0))])
