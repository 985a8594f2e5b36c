"""Find methods by name, list them, and explain in one call."""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from ..data.cleaning import as_float
from ..engine import Constraints, Counterfactuals
from ..engine.request import RULES as REQUEST_RULES
from ..models import as_classifier
from ..tables import Schema, is_frame
from ..validation import Instance, Nothing, OneOf, brief, check_parameters
from .graft import Graft
from .recommendation import MODALITIES, recommend
from .support.explainer import Explainer

if TYPE_CHECKING:
    import pandas as pd


def explainer_classes() -> dict[str, type[Explainer]]:
    """Return every concrete explainer of this package by name; a new file is found by itself."""
    package = importlib.import_module(__package__)
    found = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{__package__}.{info.name}")
        for name, member in vars(module).items():
            if _is_method(member):
                found[name] = member
    return dict(sorted(found.items()))


def _is_method(member: Any) -> bool:
    """Return whether a module's member is a concrete explainer of this package."""
    # Python 3.10 takes an alias such as dict[str, int] for a class, which issubclass refuses.
    if not inspect.isclass(member) or Explainer not in getattr(member, "__mro__", ()):
        return False
    return member.__module__.startswith(__package__) and not inspect.isabstract(member)


def find_explainer(name: str) -> type[Explainer]:
    """Return the explainer with a name, whatever its case.

    Parameters
    ----------
    name : str
        Name of a class in this package, such as "CELS" or "cels".

    Returns
    -------
    type
        The class.

    Raises
    ------
    ValueError
        If there is none; the message lists the names and the one that is most similar.

    Examples
    --------
    >>> find_explainer("comte").__name__
    'CoMTE'
    """
    check_parameters("find_explainer", {"name": Instance(str, "a text")}, {"name": name})
    classes = explainer_classes()
    by_lower_case = {known.lower(): cls for known, cls in classes.items()}
    wanted = name.lower()
    if wanted in by_lower_case:
        return by_lower_case[wanted]
    guess = ""
    for similar in difflib.get_close_matches(wanted, by_lower_case, n=1):
        guess = f" Did you mean {by_lower_case[similar].__name__}?"
    raise ValueError(f"method {brief(name)} is unknown.{guess} Methods: {', '.join(classes)}.")


def as_explainer(method: str | Explainer) -> Explainer:
    """Return an explainer for a method given by name or as an object.

    Parameters
    ----------
    method : str or Explainer
        A name, for the method with its default parameters; or the explainer itself.

    Returns
    -------
    Explainer
        A new one for a name, else the object given.

    Raises
    ------
    ValueError
        If the name is unknown.
    TypeError
        If it is neither, for example a class.
    """
    if isinstance(method, str):
        return find_explainer(method)()
    if isinstance(method, Explainer):
        return method
    if inspect.isclass(method):
        raise TypeError(
            "method must be an Explainer object or the name of one, got the class "
            f"{method.__name__}; create it first: {method.__name__}()."
        )
    raise TypeError(f"method must be an Explainer object or the name of one, got {brief(method)}.")


def check_support(
    explainer: Explainer, modality: str, constraints: Constraints | None = None
) -> None:
    """Check that a method takes a kind of data and can keep the constraints.

    `fit` and `explain` check the same; this is for refusing a request before any work.

    Parameters
    ----------
    explainer : Explainer
        The method, fitted or not.
    modality : {"series", "image", "row"}
        The kind of data.
    constraints : Constraints, optional
        The limits asked for.

    Raises
    ------
    ValueError
        If the method does not support one of them.
    """
    name = type(explainer).__name__
    tags = explainer.tags
    if modality not in tags.modalities:
        accepted = " and ".join(tags.modalities)
        raise ValueError(f"{name} takes {accepted} data, not {modality} data.")
    if constraints is None:
        return
    missing = constraints.kinds - tags.constraints
    if missing:
        raise ValueError(
            f"{name} cannot keep constraints of this kind: {', '.join(sorted(missing))}."
        )


def default_refinement(explainer: Explainer, modality: str) -> Literal["believable", False]:
    """Return the refinement of a method that was named, where the user does not say.

    An exact result cannot shrink, and a graft is as small as its own tests allow; images change in
    many pixels, which refining leaves ragged.

    Parameters
    ----------
    explainer : Explainer
        The method.
    modality : {"series", "image", "row"}
        The kind of data.

    Returns
    -------
    "believable" or False
        A value of the option `refine`.
    """
    is_small = explainer.tags.prototype_model or isinstance(explainer, Graft)
    return False if is_small or modality == "image" else "believable"


def list_explainers() -> pd.DataFrame:
    """List the methods: what each does, which data it takes, whether it uses gradients.

    Returns
    -------
    pandas.DataFrame
        One row per method, indexed by name, with the columns "does", "modalities",
        "multivariate", "gradient" and "constraints".

    Examples
    --------
    >>> "LineSearch" in list_explainers().index
    True
    """
    import pandas as pd

    rows = {name: _describe(cls) for name, cls in explainer_classes().items()}
    return pd.DataFrame(rows).T


def _describe(cls: type[Explainer]) -> dict[str, Any]:
    """Return the row of a method in `list_explainers`."""
    summary, _, _ = (inspect.getdoc(cls) or "").partition("\n")
    return {
        "does": summary,
        "modalities": ", ".join(cls.tags.modalities),
        "multivariate": cls.tags.multivariate,
        "gradient": cls.tags.gradient,
        "constraints": ", ".join(sorted(cls.tags.constraints)),
    }


def explain(
    model: Any,
    X: Any,
    target: Any = None,
    *,
    reference: Any = None,
    method: str | Explainer | None = None,
    modality: Any = None,
    schema: Schema | None = None,
    **options: Any,
) -> Counterfactuals:
    """Fit a method and explain instances, in one call.

    Parameters
    ----------
    model : Classifier or model
        The trained model; anything `as_classifier` takes.
    X : array of shape (n, ...)
        Instances to explain: rows (n, features), series (n, channels, length) or (n, length),
        images (n, channels, height, width).
    target : label or sequence of n labels, optional
        The class wanted; default: the runner-up class of each instance.
    reference : array, (X_train, y_train) or Dataset, optional
        Data the method may learn from; default: `X` itself.
    method : str or Explainer, optional
        An explainer or the name of one (`list_explainers`); default: what `recommend` chooses for
        the model and the data.
    modality : {"series", "image", "row"}, optional
        The kind of data; default: that of the Dataset given as reference, else by the number of
        dimensions (2: rows, 3: series, 4: images).
    schema : Schema, optional
        What the columns of data frames of rows hold; default: inferred from the reference.
    **options
        As for `Explainer.explain`: constraints, k, budget, refine, confidence, ... They take
        precedence over the recommended ones.

    Returns
    -------
    Counterfactuals
        One row per counterfactual.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X, y)
    >>> explain(model, X[:3], target=2, reference=(X, y)).cf_labels.tolist()
    [2, 2, 2]
    """
    given = X if reference is None else reference
    explainer, options = fitted_explainer(model, given, method, modality, schema, options)
    return explainer.explain(X, target, **options)


def fitted_explainer(
    model: Any,
    reference: Any,
    method: str | Explainer | None,
    modality: Any,
    schema: Schema | None,
    options: Mapping[str, Any],
) -> tuple[Explainer, dict[str, Any]]:
    """Choose a method where none is given, and fit it.

    Parameters
    ----------
    model, reference, method, modality, schema
        As for `explain`; the reference has to be given.
    options : mapping of str to object
        Those for `Explainer.explain`, which are checked first.

    Returns
    -------
    explainer : Explainer
        Fitted.
    options : dict
        The options given, and recommended ones where a method was chosen.
    """
    check_parameters(
        "explain", {"modality": Nothing() | OneOf(*MODALITIES)}, {"modality": modality}
    )
    _check_options(options)
    X_reference, y_reference = reference, None
    if hasattr(reference, "X_train"):
        X_reference = reference.X_train
        y_reference = reference.y_train
        modality = modality or reference.modality
    elif isinstance(reference, tuple):
        if len(reference) != 2:
            raise ValueError(
                f"reference must be an array, (X_train, y_train) or a Dataset, got a tuple of "
                f"{len(reference)}."
            )
        X_reference, y_reference = reference

    if method is None:
        model = as_classifier(model)
        modality = modality or _modality_of(X_reference)
        recommendation = recommend(model, modality, options.get("constraints"))
        method = recommendation.method
        options = {**recommendation.options, **options}
    explainer = as_explainer(method)
    explainer.fit(model, X_reference, y_reference, modality=modality, schema=schema)
    return explainer, dict(options)


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that `Explainer.explain` does not take, before anything is fitted."""
    accepted = list(inspect.signature(Explainer.explain).parameters)[3:]  # after self, X, target
    unknown = [name for name in options if name not in (*accepted, "modality")]
    if unknown:
        raise TypeError(f"explain has no option {unknown[0]!r}. Options: {', '.join(accepted)}.")
    # What may stand for a committee, `Explainer.explain` knows.
    values = {name: value for name, value in options.items() if name != "committee"}
    rules = {**REQUEST_RULES, "modality": Nothing() | OneOf(*MODALITIES)}
    check_parameters("explain", rules, values)


def _modality_of(X: Any) -> str:
    """Return the kind of data that an array of this many dimensions holds."""
    if is_frame(X):
        return "row"
    dimensions = as_float(X, "X").ndim
    return {3: "series", 4: "image"}.get(dimensions, "row")
