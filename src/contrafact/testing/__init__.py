"""check_explainer: does a method keep the contract? Public, for anyone's explainer."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..explainers.support.explainer import Explainer
from . import constraint_checks, cost_checks, error_checks, invariance_checks, truth_checks
from .cases import MODELS, PROTOTYPE_MODELS, SHAPES, Case, make_case

if TYPE_CHECKING:
    import pandas as pd

Check = Callable[[Explainer, Case], None]
CHECK_MODULES: tuple[ModuleType, ...] = (
    truth_checks,
    invariance_checks,
    constraint_checks,
    cost_checks,
    error_checks,
)

#: all checks by name, in the order they run
CHECKS: dict[str, Check] = {
    name.removeprefix("check_"): function
    for module in CHECK_MODULES
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if name.startswith("check_") and function.__module__ == module.__name__
}


def cases_for(
    explainer: Explainer, models: Sequence[str] | None = None, data: Sequence[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Pairs (model kind, data kind) that the explainer's tags admit; ROCKET takes series only."""
    usual = PROTOTYPE_MODELS if explainer.tags.prototype_model else MODELS
    for data_kind in data or SHAPES:
        modality = "series" if data_kind == "multivariate" else data_kind
        if modality not in explainer.tags.modalities:
            continue
        if data_kind == "multivariate" and not explainer.tags.multivariate:
            continue
        for model_kind in models or usual:
            if explainer.tags.prototype_model and model_kind not in PROTOTYPE_MODELS:
                continue
            if model_kind != "rocket" or modality == "series":
                yield model_kind, data_kind


def check_explainer(
    explainer: Explainer,
    *,
    models: Sequence[str] | None = None,
    data: Sequence[str] | None = None,
    checks: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Run an explainer through the contract on small problems.

    Parameters
    ----------
    explainer : an unfitted explainer, cheap enough for some hundred small requests; it is cloned.
    models : kinds of model to try: "torch", "linear", "forest", "rocket", "callable", "prototype"; default:
        all but the last, which is for explainers of prototype models; they meet no other.
    data : kinds of data: "series", "multivariate", "image", "row"; default: all its tags admit.
    checks : names of checks; default: all.

    Returns
    -------
    a frame of the checks that ran; an AssertionError lists the failures, if there are any.

    Examples
    --------
    >>> import contrafact as cf
    >>> frame = check_explainer(cf.NearestUnlike(), models=["linear"], data=["row"])
    >>> bool(frame["passed"].all())
    True
    """
    import pandas as pd
    from sklearn.base import clone

    if not isinstance(explainer, Explainer):
        raise TypeError(f"explainer must be an Explainer object, got {explainer!r}.")
    unknown = set(checks or ()) - set(CHECKS)
    if unknown:
        raise ValueError(f"checks {sorted(unknown)} are unknown. Checks: {', '.join(CHECKS)}.")
    lines: list[dict[str, Any]] = []
    for model_kind, data_kind in cases_for(explainer, models, data):
        case = replace(make_case(model_kind, data_kind))  # its fit is of this explainer alone
        for name in checks or CHECKS:
            problem = ""
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", RuntimeWarning)  # rows that failed quietly
                    CHECKS[name](clone(explainer), case)
            except Exception as error:  # a check's verdict, told below with all others
                problem = f"{type(error).__name__}: {error}".strip()
            lines.append(
                {
                    "model": model_kind,
                    "data": data_kind,
                    "check": name,
                    "passed": not problem,
                    "problem": problem,
                }
            )
    if not lines:
        raise ValueError(f"No case fits {explainer!r} with models={models}, data={data}.")
    frame = pd.DataFrame(lines)
    failed = frame[~frame["passed"]]
    if len(failed):
        listing = "\n".join(
            f"  {row.model}, {row.data}, {row.check}: {row.problem}" for row in failed.itertuples()
        )
        raise AssertionError(
            f"{explainer!r} fails {len(failed)} of {len(frame)} checks:\n{listing}"
        )
    return frame
