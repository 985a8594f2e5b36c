"""Choose a method and its settings for a model, a kind of data and constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..engine import Constraints
from ..models import Classifier, as_classifier
from .baselines import RandomMask
from .cels import CELS
from .comte import CoMTE
from .prototype_counterfactual import PrototypeCounterfactual
from .support.explainer import Explainer
from .support.prototype_model import is_prototype_model
from .svce import SVCE

MODALITIES = ("series", "image", "row")


@dataclass(frozen=True, repr=False)
class Recommendation:
    """Hold a recommended method, its options and the reason.

    Attributes
    ----------
    method : Explainer
        The method, not fitted.
    options : dict
        Options to pass to `Explainer.explain`, such as `{"refine": True}`.
    reason : str
        One sentence that says why.
    """

    method: Explainer
    options: dict[str, Any]
    reason: str

    def __repr__(self) -> str:
        settings = [f"{name}={value!r}" for name, value in self.options.items()]
        return f"<Recommendation: {', '.join([repr(self.method), *settings])}. {self.reason}>"


def recommend(
    classifier: Any, modality: str, constraints: Constraints | None = None
) -> Recommendation:
    """Choose a method and its settings for a model and a kind of data.

    `contrafact.explain` and `contrafact explain` use it when no method is named. The model is not
    evaluated and nothing is fitted.

    Parameters
    ----------
    classifier : Classifier or model
        The trained model; anything `as_classifier` takes.
    modality : {"series", "image", "row"}
        The kind of data.
    constraints : Constraints, optional
        Limits that the counterfactuals have to keep; the method supports their kinds.

    Returns
    -------
    Recommendation
        The unfitted method, the options for `explain`, and the reason.

    Raises
    ------
    ValueError
        If the modality is unknown.
    TypeError
        If `constraints` is not a Constraints object, or the model is of no known kind.

    Notes
    -----
    Rows get CoMTE because it changed the fewest values of the methods that take rows: 11 to 37 %,
    and the least in each of nine cases (iris, wine and breast cancer, each with logistic
    regression, a neural network and a random forest; 45 test rows, every one valid). It took 37 to
    163 model rows per instance on iris and wine, and up to 857 with the 30 features of breast
    cancer. SVCE in the l1 norm took 1,750 to 1,920 with the two models that have gradients.

    Examples
    --------
    >>> recommendation = recommend(model, "series")
    >>> recommendation
    <Recommendation: CELS(), refine=True. For series, CELS with refinement reaches ...>
    >>> explainer = recommendation.method.fit(model, X_train, y_train)
    >>> bool(explainer.explain(X_test[:4], **recommendation.options).valid.all())
    True
    """
    if modality not in MODALITIES:
        known = ", ".join(map(repr, MODALITIES))
        raise ValueError(f"modality {modality!r} is unknown. Accepted: {known}.")
    if constraints is not None and not isinstance(constraints, Constraints):
        raise TypeError(
            f"constraints must be a Constraints object, got {type(constraints).__name__}."
        )
    return _choose(as_classifier(classifier), modality, constraints)


def _choose(
    classifier: Classifier, modality: str, constraints: Constraints | None
) -> Recommendation:
    """Apply the policy: an exact method where there is one, else by the kind of data."""
    if is_prototype_model(classifier) and _supports(PrototypeCounterfactual, constraints):
        return Recommendation(
            PrototypeCounterfactual(),
            {"refine": False},
            "The model is a prototype model, for which PrototypeCounterfactual finds the smallest "
            "change exactly.",
        )
    if modality == "series":
        return Recommendation(
            CELS(),
            {"refine": True},
            "For series, CELS with refinement reaches the target by changing few values in few "
            "stretches.",
        )
    if modality == "row":
        return Recommendation(
            CoMTE(),
            {"refine": True},
            "For rows, CoMTE with refinement changes the fewest features, and takes them from a "
            "real row of the target class.",
        )
    if classifier.differentiable:
        # The change is spread over many pixels; undoing it pixel by pixel would leave speckle.
        return Recommendation(
            SVCE(),
            {"refine": False},
            "For images and a model with gradients, SVCE finds the smallest ball around the image "
            "that contains the target class.",
        )
    return Recommendation(
        RandomMask(),
        {"refine": True},
        "The model has no gradients; RandomMask with refinement copies few patches from a similar "
        "image of the target class.",
    )


def _supports(method: type[Explainer], constraints: Constraints | None) -> bool:
    """Return whether a method can keep the constraints."""
    return constraints is None or constraints.kinds <= method.tags.constraints
