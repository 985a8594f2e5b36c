"""Choose a method and its settings for a model, a kind of data and constraints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.arrays import as_real
from ..engine import Budget, Constraints
from ..engine.request import SEED
from ..models import Classifier, as_classifier
from ..tables import is_frame
from ..validation import Boolean, Instance, Nothing, OneOf, Real, Rule, Satisfies, check_parameters
from .baselines import LineSearch
from .cels import CELS
from .comte import CoMTE
from .glacier import Glacier
from .graft import Graft
from .growing_spheres import GrowingSpheres
from .method_trials import LEAST_CALLS, Trial, take_rows, try_methods
from .nativeguide import NativeGuide
from .nice import NICE
from .prototype_counterfactual import PrototypeCounterfactual
from .support.explainer import Explainer
from .support.prototype_model import is_prototype_model
from .svce import SVCE

MODALITIES = ("series", "image", "row")
WEIGHTS = {"change": 1.0, "stretches": 1.0, "survival": 1.0}


def _are_weights(value: Any) -> bool:
    """Return whether the value maps some of the three names to weights, one above 0."""
    if not isinstance(value, Mapping) or not set(value) <= set(WEIGHTS):
        return False
    weight = Real(at_least=0, at_most=1e9)
    return all(map(weight.accepts, value.values())) and sum(value.values()) > 0


RULES: dict[str, Rule] = {
    "modality": OneOf(*MODALITIES),
    "constraints": Nothing() | Instance(Constraints),
    "measure": Boolean(),
    "weights": Nothing()
    | Satisfies(
        _are_weights,
        "a dictionary with weights of 'change', 'stretches' and 'survival', at least 0, not all 0",
    ),
    "budget": Nothing() | Instance(Budget),
    "random_state": SEED,
}
#: rows on which methods are tried where none are given
HANDFUL = 8
#: Donors of an image: a patch has to fit where it is put, so more images are tried than of series.
IMAGE_DONORS = 48


@dataclass(frozen=True, repr=False)
class Recommendation:
    """Hold a recommended method, its options and the reason.

    Attributes
    ----------
    method : Explainer
        The method, not fitted.
    options : dict
        Options to pass to `Explainer.explain`; empty where the method needs none.
    reason : str
        Why, and what the answers withstand; where methods were tried, what each of them did.
    trials : tuple of Trial, default=()
        What was measured, where methods were tried.
    """

    method: Explainer
    options: dict[str, Any]
    reason: str
    trials: tuple[Trial, ...] = ()

    def __repr__(self) -> str:
        settings = [f"{name}={value!r}" for name, value in self.options.items()]
        return f"<Recommendation: {', '.join([repr(self.method), *settings])}. {self.reason}>"


def recommend(
    classifier: Any,
    modality: str,
    constraints: Constraints | None = None,
    *,
    measure: bool = False,
    X: Any = None,
    y: Any = None,
    instances: Any = None,
    weights: Mapping[str, float] | None = None,
    budget: Budget | None = None,
    random_state: int = 0,
) -> Recommendation:
    """Choose a method and its settings for a model and a kind of data.

    `contrafact.explain` and `contrafact explain` use it when no method is named. The model is not
    evaluated and nothing is fitted, unless `measure` is true: then a few methods are tried on a
    handful of rows, those that do well more often (a softmax bandit), and the best is chosen.

    Parameters
    ----------
    classifier : Classifier or model
        The trained model; anything `as_classifier` takes.
    modality : {"series", "image", "row"}
        The kind of data.
    constraints : Constraints, optional
        Limits that the counterfactuals have to keep; the method supports their kinds.
    measure : bool, default=False
        Whether to try methods.
    X, y : array or data frame, and array, optional
        Reference data to fit them to, with `measure`.
    instances : array of shape (n, ...) or data frame, optional
        Rows to try them on; default: 8 rows of X.
    weights : dict, optional
        What matters, by name: "change" (few values), "stretches" (few places), "survival" (the
        class is kept under noise); default: all equally.
    budget : Budget, optional
        Limits of all trials together; to fit a method, which asks about the reference data, comes
        on top of the calls. Default: 20 seconds.
    random_state : int, default=0
        Seed of the trials.

    Returns
    -------
    Recommendation
        The unfitted method, the options for `explain`, and the reason.

    Raises
    ------
    ValueError
        If the modality is unknown, or `measure` has no data.
    TypeError
        If `constraints` is not a Constraints object, or the model is of no known kind.

    Notes
    -----
    Prototype models get the exact method, everything else `Graft` at its default level: what it
    returns is taken from a real instance of the target class and keeps its class under noise of 5 %
    of the data's standard deviation. No refinement is recommended: undoing values one by one ends
    at the decision boundary, where noise takes the answer back.

    For rows, measured on 50 test rows each, `Graft` beside `CoMTE` with refinement: features
    changed 1.1 to 1.4 and 1.1 to 1.2 (iris), 1.8 and 1.8 (wine), 3.6 and 3.9 (breast cancer,
    logistic regression), 6.7 and 4.5 (breast cancer, random forest). Under the noise .89 to .95 and
    .49 to .66 kept their class. The model was asked about 105 to 228 rows per instance, and about
    36 to 856.

    Examples
    --------
    >>> recommendation = recommend(model, "series")
    >>> recommendation
    <Recommendation: Graft(). Graft joins a stretch of a real series of the target class ...>
    >>> explainer = recommendation.method.fit(model, X_train, y_train)
    >>> bool(explainer.explain(X_test[:4], **recommendation.options).valid.all())
    True
    >>> recommend(model, "series", measure=True, X=X_train, y=y_train, weights={"change": 1}).reason
    '... did best in ... trials, which took ... model rows. Mean reward, from 0 to 1: ...'
    """
    values = {
        "modality": modality,
        "constraints": constraints,
        "measure": measure,
        "weights": weights,
        "budget": budget,
        "random_state": random_state,
    }
    check_parameters("recommend", RULES, values)
    wrapped = as_classifier(classifier)
    if not measure:
        given = {"X": X, "y": y, "instances": instances, "weights": weights, "budget": budget}
        idle = [name for name, value in given.items() if value is not None]
        if idle:
            raise ValueError(f"{idle[0]} needs measure=True: else nothing is tried.")
        return _choose(wrapped, modality, constraints)
    if X is None or y is None:
        raise ValueError("measure=True needs X and y, reference data to fit the methods to.")
    trials = try_methods(
        _candidates(wrapped, modality, constraints),
        classifier,
        (X, y),
        _handful(X, instances, random_state),
        WEIGHTS if weights is None else weights,
        modality=modality,  # type: ignore[arg-type]  # checked above
        constraints=constraints,
        budget=budget,
        random_state=random_state,
    )
    if not trials:
        raise ValueError(
            f"budget={budget} does not suffice for a single trial, which takes time and at least "
            f"{LEAST_CALLS} model rows."
        )
    return _best(trials, _candidates(wrapped, modality, constraints))


def _handful(X: Any, instances: Any, seed: int) -> Any:
    """Return the rows to try methods on."""
    if instances is not None:
        return _some_rows(instances, "instances")
    reference = _some_rows(X, "X")
    order = np.random.RandomState(seed % 2**32).permutation(len(reference))
    return take_rows(reference, order[:HANDFUL])


def _some_rows(X: Any, name: str) -> Any:
    """Check that an argument holds rows; a data frame is returned as it is."""
    rows = X if is_frame(X) else as_real(X, name)
    if len(rows.shape) < 2 or len(rows) == 0:
        raise ValueError(f"{name} has shape {rows.shape}. Accepted: one row or more.")
    return rows


def _candidates(
    classifier: Classifier, modality: str, constraints: Constraints | None
) -> list[Explainer]:
    """Return the methods worth trying; first the one that is recommended without a trial."""
    first = _choose(classifier, modality, constraints).method
    others: list[Explainer] = {
        "series": [NativeGuide(), CELS(), Glacier()],
        "image": [SVCE(), LineSearch()],
        "row": [NICE(), CoMTE(), GrowingSpheres()],
    }[modality]
    if not isinstance(first, Graft):
        others.insert(0, Graft())
    return [first, *(method for method in others if _supports(type(method), constraints))]


def _best(trials: list[Trial], methods: list[Explainer]) -> Recommendation:
    """Recommend the method of the largest mean reward, and say what the others did."""
    by_name: dict[str, list[Trial]] = {}
    for trial in trials:
        by_name.setdefault(trial.method, []).append(trial)
    reward = {name: float(np.mean([t.reward for t in own])) for name, own in by_name.items()}
    # Among equals the first stays first: what is recommended without a trial.
    ranked = sorted(by_name, key=lambda name: -reward[name])
    told = [f"{name} {reward[name]:.2f} ({_in_words(by_name[name])})" for name in ranked]
    calls = sum(trial.calls for trial in trials)
    counted = f"{len(trials)} trials, which took {calls:,} model rows"
    if any(trial.valid for trial in trials):
        reason = f"{ranked[0]} did best in {counted}. Mean reward, from 0 to 1: {'; '.join(told)}."
    else:
        reason = (
            f"No method reached another class in {counted}; {ranked[0]} is what is recommended "
            "without trials."
        )
    left = [type(method).__name__ for method in methods]
    untried = [name for name in left if name not in by_name]
    if untried:
        reason += f" The budget did not suffice for {', '.join(untried)}."
    chosen = next(method for method in methods if type(method).__name__ == ranked[0])
    return Recommendation(chosen, {}, reason, tuple(trials))


def _in_words(trials: list[Trial]) -> str:
    """Describe what a method did on its rows."""
    reached = [trial for trial in trials if trial.valid]
    if not reached:
        return f"no class reached in {len(trials)}"
    change = np.mean([trial.change for trial in reached])
    stretches = np.mean([trial.stretches for trial in reached])
    survival = np.mean([trial.survival for trial in reached])
    return (
        f"{len(reached)} of {len(trials)} reached, {change:.0%} changed in {stretches:.1f} places, "
        f"kept under noise {survival:.0%}"
    )


def _choose(
    classifier: Classifier, modality: str, constraints: Constraints | None
) -> Recommendation:
    """Apply the policy: an exact method where there is one, else a graft."""
    if is_prototype_model(classifier) and _supports(PrototypeCounterfactual, constraints):
        return Recommendation(
            PrototypeCounterfactual(),
            {},
            "The model is a prototype model, for which PrototypeCounterfactual finds the smallest "
            "change exactly.",
        )
    if modality == "series":
        return Recommendation(
            Graft(),
            {},
            "Graft joins a stretch of a real series of the target class without a visible seam, as "
            "short as keeps its class under noise of 5 % of the data's standard deviation.",
        )
    if modality == "image":
        return Recommendation(
            Graft(n_donors=IMAGE_DONORS),
            {},
            "Graft blends a patch of a real image of the target class into its surroundings, as "
            "small as keeps its class under noise of 5 % of the data's standard deviation.",
        )
    return Recommendation(
        Graft(),
        {},
        "Graft takes values of a real row of the target class, as few as keep their class under "
        "noise of 5 % of the features' standard deviations.",
    )


def _supports(method: type[Explainer], constraints: Constraints | None) -> bool:
    """Return whether a method can keep the constraints."""
    return constraints is None or constraints.kinds <= method.tags.constraints
