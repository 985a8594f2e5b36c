"""Which methods there are, and the one-line way to use them."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING, Any

from ..engine import Counterfactuals
from ..explainers.support.explainer import Explainer

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_METHOD = "LineSearch"


def explainer_classes() -> dict[str, type[Explainer]]:
    """Every concrete explainer defined in this room, by name: a new file is found by itself."""
    room = importlib.import_module(__package__)
    found = {}
    for module in pkgutil.iter_modules(room.__path__):
        for name, member in vars(importlib.import_module(f"{__package__}.{module.name}")).items():
            ours = inspect.isclass(member) and member.__module__.startswith(__package__)
            if ours and issubclass(member, Explainer) and not inspect.isabstract(member):
                found[name] = member
    return dict(sorted(found.items()))


def list_explainers() -> pd.DataFrame:
    """The methods: what each does, what data it takes, whether it uses gradients.

    Examples
    --------
    >>> "LineSearch" in list_explainers().index
    True
    """
    import pandas as pd

    return pd.DataFrame(
        {
            name: {
                "does": (inspect.getdoc(cls) or "").split("\n")[0],
                "modalities": ", ".join(cls.tags.modalities),
                "multivariate": cls.tags.multivariate,
                "gradient": cls.tags.gradient,
                "constraints": ", ".join(sorted(cls.tags.constraints)),
            }
            for name, cls in explainer_classes().items()
        }
    ).T


def explain(
    model: Any,
    X: Any,
    target: Any = None,
    *,
    reference: Any = None,
    method: str | Explainer = DEFAULT_METHOD,
    modality: Any = None,
    **options: Any,
) -> Counterfactuals:
    """Fit a method and explain, in one line.

    Parameters
    ----------
    model : anything `as_classifier` takes.
    X : instances to explain.
    target : None (the runner-up class), one label, or one label each.
    reference : data the method may learn from: an array, (X_train, y_train), or a Dataset; default: X itself.
    method : an explainer, or the name of one (`list_explainers`).
    modality : "series", "image" or "row", where the shape does not tell.
    **options : as for `Explainer.explain`: constraints, k, budget, refine, confidence, …

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X, y)
    >>> explain(model, X[:3], target=2, reference=(X, y)).cf_labels.tolist()
    [2, 2, 2]
    """
    if isinstance(method, str):
        known = explainer_classes()
        if method not in known:
            raise ValueError(f"method {method!r} is unknown. Methods: {', '.join(known)}.")
        method = known[method]()
    elif not isinstance(method, Explainer):
        raise TypeError(f"method must be an Explainer object or the name of one, got {method!r}.")
    if reference is None:
        X_reference, y_reference = X, None
    elif hasattr(reference, "X_train"):
        X_reference, y_reference = reference.X_train, reference.y_train
        modality = modality or reference.modality
    elif isinstance(reference, tuple):
        X_reference, y_reference = reference
    else:
        X_reference, y_reference = reference, None
    return method.fit(model, X_reference, y_reference, modality=modality).explain(
        X, target, **options
    )
