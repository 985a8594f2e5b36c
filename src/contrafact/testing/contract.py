"""Run an explainer through all checks that its tags admit."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from ..deprecation import renamed_value
from ..explainers.support.explainer import Explainer
from ..validation import Instance, ListOf, Nothing, brief, check_parameters
from . import (
    committee_checks,
    constraint_checks,
    cost_checks,
    error_checks,
    invariance_checks,
    schema_checks,
    truth_checks,
)
from .case_models import MODELS, PROTOTYPE_MODELS
from .cases import MODALITIES, SHAPES, make_case
from .checks import Check
from .table_cases import TABLE_MODELS

if TYPE_CHECKING:
    import pandas as pd

_MODULES = (
    truth_checks,
    invariance_checks,
    constraint_checks,
    committee_checks,
    cost_checks,
    error_checks,
    schema_checks,
)

#: All checks by name, in the order they run.
CHECKS: dict[str, Check] = {
    member.name: member
    for module in _MODULES
    for member in vars(module).values()
    if isinstance(member, Check)
}
_NAMES = Nothing() | ListOf(Instance(str), "names")
RULES = {"explainer": Instance(Explainer), "models": _NAMES, "data": _NAMES, "checks": _NAMES}
_RENAMED_CHECKS = {"k_distinct_or_told": "k_distinct_or_explained"}


@dataclass(frozen=True)
class PlannedCell:
    """Name the checks to run with one kind of model and one kind of data.

    Parameters
    ----------
    model : str
        Kind of model.
    data : str
        Kind of data.
    checks : tuple of str
        Names of the checks.
    """

    model: str
    data: str
    checks: tuple[str, ...]


def plan_checks(
    explainer: Explainer,
    *,
    models: Sequence[str] | None = None,
    data: Sequence[str] | None = None,
    checks: Sequence[str] | None = None,
) -> list[PlannedCell]:
    """List which checks run with which model and data.

    Parameters
    ----------
    explainer : Explainer
        The explainer; its tags decide what it can be checked with.
    models, data, checks : sequence of str, optional
        Kinds of model, kinds of data and names of checks; default: all.

    Returns
    -------
    list of PlannedCell
        One cell for every kind of model with every kind of data that the tags admit. Every check
        is in at least one cell of every kind of data; tables have checks of their own.

    Examples
    --------
    >>> import contrafact as cf
    >>> plan = plan_checks(cf.NearestUnlike(), data=["row"], checks=["pickle", "bounds_hold"])
    >>> [(cell.model, cell.checks) for cell in plan]
    [('torch', ('pickle', 'bounds_hold')), ('linear', ('bounds_hold',)), \
('forest', ('pickle', 'bounds_hold')), ('callable', ('bounds_hold',))]
    """
    values = {"explainer": explainer, "models": models, "data": data, "checks": checks}
    check_parameters("check_explainer", RULES, values)
    names = [renamed_value("check", name, _RENAMED_CHECKS) for name in checks or CHECKS]
    _check_known("checks", names, CHECKS)
    _check_known("data", data or (), SHAPES)
    _check_known("models", models or (), MODELS + PROTOTYPE_MODELS)
    cells = []
    for data_kind in data or SHAPES:
        kinds = tuple(_models_for(explainer, data_kind, models))
        for model_kind in kinds:
            here = tuple(
                name
                for name in names
                if CHECKS[name].tables == (data_kind == "table")
                and model_kind in CHECKS[name].models(kinds)
            )
            cells.append(PlannedCell(model_kind, data_kind, here))
    return cells


def _check_known(parameter: str, names: Iterable[str], known: Collection[str]) -> None:
    """Refuse names that do not exist."""
    unknown = [name for name in names if name not in known]
    if unknown:
        accepted = ", ".join(map(repr, known))
        raise ValueError(f"{parameter} {brief(unknown)} are unknown. Known: {accepted}.")


def _models_for(
    explainer: Explainer, data_kind: str, models: Sequence[str] | None
) -> Iterator[str]:
    """Yield the kinds of model that the explainer's tags admit for a kind of data."""
    tags = explainer.tags
    modality = MODALITIES[data_kind]
    if modality not in tags.modalities:
        return
    if data_kind == "multivariate" and not tags.multivariate:
        return
    if data_kind == "table":
        if not tags.prototype_model:
            yield from (kind for kind in models or TABLE_MODELS if kind in TABLE_MODELS)
        return
    usual = PROTOTYPE_MODELS if tags.prototype_model else MODELS
    for model_kind in models or usual:
        if tags.prototype_model and model_kind not in PROTOTYPE_MODELS:
            continue
        if model_kind == "rocket" and modality != "series":
            continue
        yield model_kind


def check_explainer(
    explainer: Explainer,
    *,
    models: Sequence[str] | None = None,
    data: Sequence[str] | None = None,
    checks: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Check that an explainer keeps the contract, on small problems.

    Every kind of data that the tags admit is tried. A check runs with every kind of model where
    the model can make a difference, and with one or two kinds where it cannot (see
    `contrafact.testing`).

    Parameters
    ----------
    explainer : Explainer
        An unfitted explainer, cheap enough for some hundred small requests; it is cloned.
    models : sequence of str, optional
        Kinds of model: "torch", "linear", "forest", "rocket", "callable", "prototype"; default:
        all but the last, which is for explainers of prototype models and their only one.
    data : sequence of str, optional
        Kinds of data: "series", "multivariate", "image", "row", "table"; default: all that the tags
        admit.
    checks : sequence of str, optional
        Names of checks, keys of `contrafact.testing.CHECKS`; default: all.

    Returns
    -------
    pandas.DataFrame
        One row per check that ran, with columns model, data, check, passed and problem.

    Raises
    ------
    AssertionError
        If a check fails; the message lists all failures.

    Examples
    --------
    >>> import contrafact as cf
    >>> frame = cf.check_explainer(cf.NearestUnlike(), models=["linear"], data=["row"])
    >>> bool(frame["passed"].all())
    True
    """
    import pandas as pd

    plan = plan_checks(explainer, models=models, data=data, checks=checks)
    if not plan:
        raise ValueError(f"No case fits {explainer!r} with models={models}, data={data}.")
    frame = pd.DataFrame([record for cell in plan for record in _run_cell(explainer, cell)])
    failed = frame[~frame["passed"]]
    if len(failed):
        lines = [
            f"  {row.model}, {row.data}, {row.check}: {row.problem}" for row in failed.itertuples()
        ]
        listing = "\n".join(lines)
        raise AssertionError(
            f"{explainer!r} fails {len(failed)} of {len(frame)} checks:\n{listing}"
        )
    return frame


def _run_cell(explainer: Explainer, cell: PlannedCell) -> Iterator[dict[str, Any]]:
    """Run the checks of one cell; yield what became of each."""
    # The copy shares the model with other explainers, but neither fits nor results.
    case = replace(make_case(cell.model, cell.data))
    for name in cell.checks:
        problem = ""
        try:
            with warnings.catch_warnings():
                # Rows that fail are reported by a RuntimeWarning; no check but those of errors
                # may cause one.
                warnings.simplefilter("error", RuntimeWarning)
                CHECKS[name](clone(explainer), case)
        except Exception as error:  # reported by the caller together with all others
            problem = f"{type(error).__name__}: {error}".strip()
        yield {
            "model": cell.model,
            "data": cell.data,
            "check": name,
            "passed": not problem,
            "problem": problem,
        }
