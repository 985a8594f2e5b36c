"""Every explainer keeps the contract with every kind of model and every kind of data.

Explainers are found by themselves: a new class in explainers/ is tested without being listed.

What runs where, and why nothing is lost by it:

- The first setting of `_get_test_params` of every class runs in every cell (kind of model x kind of
  data) that its tags admit. In each of them run the checks that depend on the model: truth,
  targets, constraints, k, refinement, confidence, counted calls, budgets, batch = loop, seeds.
- Checks of the base class (refused input, labels, kinds of arrays, failing rows, ...) run in one or
  two cells of every kind of data. They would see the same code again in the others. Which ones and
  why is in the docstring of `contrafact.testing`.
- Every further setting of a class runs in two cells: on its first kind of data with a model that
  has gradients, all checks, and on its last kind with one that has none, those that are seen with
  more than one model. Settings change what the method does, not what it is given; the first setting
  has met every kind of data by then.
- The models of a cell are trained once per process, and the checks of a cell share one fit and the
  results of equal requests, where they do not look at the fit itself.

`test_grid_is_complete` and `test_every_check_meets_every_modality` fail if a cell or a check is
lost.
"""

from dataclasses import replace

import pytest
import torch

import contrafact as cf
from contrafact.explainers.registry import explainer_classes
from contrafact.explainers.support import boundary_walk
from contrafact.testing import CHECKS, check_explainer, plan_checks
from contrafact.testing.case_models import MODELS, PROTOTYPE_MODELS
from contrafact.testing.cases import MODALITIES, make_case

#: What can differ from model to model, and so has to be seen with every kind of it.
MODEL_CHECKS = {
    "batch_equals_loop",
    "bounds_hold",
    "budget_of_calls_is_kept",
    "calls_are_the_rows_the_model_saw",
    "confidence_is_aimed_for",
    "default_target_is_another_class",
    "every_class_as_target",
    "frozen_holds",
    "k_distinct_or_explained",
    "refine_keeps_validity",
    "same_seed_same_result",
    "slope_limit_holds",
    "vacuous_constraints_change_nothing",
    "valid_is_what_the_model_says",
}
#: The same for tables.
TABLE_CHECKS = {
    "table_finds_what_the_reference_holds",
    "table_valid_is_what_the_model_says",
}


def first_setting(cls):
    return cls(**cls._get_test_params()[0])


def cells_of(cls):
    """All cells of the first setting of a class."""
    explainer = first_setting(cls)
    for cell in plan_checks(explainer):
        yield explainer, cell.model, cell.data, cell.checks


def cells_of_further_settings(cls):
    """Two cells for every other setting; one where there is one kind of model only."""
    for i, params in enumerate(cls._get_test_params()[1:], start=1):
        explainer = cls(**params)
        plan = plan_checks(explainer)
        pairs = [(cell.model, cell.data) for cell in plan if cell.data != "table"]
        with_gradients = [pair for pair in pairs if pair[0] in ("torch", "prototype")]
        without = [pair for pair in pairs if pair[0] in ("forest", "prototype")]
        for model, data in dict.fromkeys((with_gradients[0], without[-1])):
            here = [name for name in CHECKS if not CHECKS[name].tables]
            if model == "forest":
                seen_with_more = ("every_model", "two_models")
                here = [name for name in here if CHECKS[name].scope in seen_with_more]
            yield i, explainer, model, data, tuple(here)


def all_cells():
    for name, cls in explainer_classes().items():
        quick = {"linear", "prototype"}  # one cell of every class is part of `make quick`
        for explainer, model, data, checks in cells_of(cls):
            marks = [pytest.mark.quick] if model in quick else []
            quick -= {model}
            name_of_cell = f"{name}-{model}-{data}"
            yield pytest.param(explainer, model, data, checks, id=name_of_cell, marks=marks)
        for i, explainer, model, data, checks in cells_of_further_settings(cls):
            yield pytest.param(explainer, model, data, checks, id=f"{name}{i}-{model}-{data}")


CELLS = list(all_cells())


@pytest.fixture(autouse=True)
def coarse_radius(monkeypatch):
    """Let SVCE find its radius roughly, by few gradients: no check needs more, at several times
    the cost."""
    monkeypatch.setattr(boundary_walk, "LEVELS", 16)
    monkeypatch.setattr(boundary_walk, "MAX_GRADIENTS", 2)


@pytest.mark.contract
@pytest.mark.filterwarnings("ignore:The model puts decoded centroids")  # autoencoders of two epochs
@pytest.mark.parametrize(("explainer", "model", "data", "checks"), CELLS)
def test_contract(explainer, model, data, checks):
    frame = check_explainer(explainer, models=[model], data=[data], checks=checks)
    assert list(frame["check"]) == list(checks)


# --- the grid itself ----------------------------------------------------------------------------


def admitted(cls):
    """Pairs (model, data) that the tags admit, written out without the code under test."""
    tags = cls.tags
    for data, modality in MODALITIES.items():
        if modality not in tags.modalities or (data == "multivariate" and not tags.multivariate):
            continue
        if data == "table":
            kinds = () if tags.prototype_model else ("linear", "forest", "callable")
        else:
            kinds = PROTOTYPE_MODELS if tags.prototype_model else MODELS
        for model in kinds:
            if model != "rocket" or modality == "series":
                yield model, data


@pytest.mark.parametrize("name", list(explainer_classes()))
def test_grid_is_complete(name):
    """Every kind of model with every kind of data, and there everything that can depend on it."""
    cls = explainer_classes()[name]
    cells = {(model, data): set(checks) for _, model, data, checks in cells_of(cls)}
    assert set(cells) == set(admitted(cls))
    for (_, data), checks in cells.items():
        assert checks >= (TABLE_CHECKS if data == "table" else MODEL_CHECKS)
    ids = {cell.id for cell in CELLS}
    assert {f"{name}-{model}-{data}" for model, data in cells} <= ids


@pytest.mark.parametrize("name", list(explainer_classes()))
def test_every_check_meets_every_modality(name):
    cls = explainer_classes()[name]
    seen = {data: set() for _, data in admitted(cls)}
    for _, _, data, checks in cells_of(cls):
        seen[data] |= set(checks)
    for data, checks in seen.items():
        assert checks == {name for name in CHECKS if CHECKS[name].tables == (data == "table")}


@pytest.mark.parametrize("name", list(explainer_classes()))
def test_every_setting_meets_every_check(name):
    cls = explainer_classes()[name]
    met = {}
    for i, _, _, _, checks in cells_of_further_settings(cls):
        met.setdefault(i, set()).update(checks)
        assert set(checks) >= MODEL_CHECKS
    assert list(met) == list(range(1, len(cls._get_test_params())))
    everything = {name for name in CHECKS if not CHECKS[name].tables}
    assert all(checks == everything for checks in met.values())


def test_size_of_the_grid():
    """All modalities: 5 kinds of model on series, 4 on images and rows, 3 on tables."""
    ids = [cell.id for cell in CELLS if cell.id.startswith("NearestUnlike-")]
    assert len(ids) == 21
    assert len(CHECKS) >= 44


def test_one_model_of_tables_has_gradients_and_others_have_none():
    """Or methods that use gradients would never do so on the table of the checks."""
    found = {}
    for model in ("linear", "forest", "callable"):
        explainer = make_case(model, "table").fit(cf.NearestUnlike())
        found[model] = explainer.classifier_.differentiable
    assert found == {"linear": True, "forest": False, "callable": False}


def test_every_check_says_what_must_hold():
    summaries = [check.summary for check in CHECKS.values()]
    assert all(summary.endswith(".") for summary in summaries)
    assert len(set(summaries)) == len(summaries)


def test_old_names_of_checks_are_understood():
    with pytest.warns(DeprecationWarning, match="k_distinct_or_explained"):
        plan = plan_checks(cf.NearestUnlike(), data=["row"], checks=["k_distinct_or_told"])
    assert {cell.checks for cell in plan} == {("k_distinct_or_explained",)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"checks": ["bounds"]}, r"checks \['bounds'\] are unknown"),
        ({"data": ["rows"]}, r"data \['rows'\] are unknown.*'series'"),
        ({"models": ["tree"]}, r"models \['tree'\] are unknown.*'forest'"),
    ],
)
def test_unknown_names_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        check_explainer(cf.NearestUnlike(), **arguments)


# --- the checks can fail ------------------------------------------------------------------------


class DifferentEveryTime(cf.NearestUnlike):
    """Depends on how often it was asked."""

    def _explain(self, batch):
        found = super()._explain(batch)
        self.requests_ = getattr(self, "requests_", 0) + 1
        return replace(found, x=found.x + 0.01 * self.requests_)


class MixesRows(cf.NearestUnlike):
    """Mixes the rows of a request."""

    def _explain(self, batch):
        found = super()._explain(batch)
        return replace(found, x=0.9 * found.x + 0.1 * found.x.mean(0))


class WritesToReference(cf.NearestUnlike):
    """Writes to the reference data."""

    def _fit(self, X, y):
        X.mul_(2)
        super()._fit(X, y)


class DrawsGlobally(cf.NearestUnlike):
    """Draws from the global random numbers, at fit alone, where the base cannot restore them."""

    def fit(self, *args, **options):
        torch.rand(1)
        return super().fit(*args, **options)


class StretchesUnderConstraints(cf.NearestUnlike):
    """Goes farther than it would, as soon as there are constraints of any kind."""

    def explain(self, X, target=None, *, constraints=None, **options):
        result = super().explain(X, target, constraints=constraints, **options)
        if constraints is None:
            return result
        return replace(result, X_cf=result.X + 1.5 * (result.X_cf - result.X))


class AsksBehindTheMeter(cf.NearestUnlike):
    """Asks the model about more rows than are counted, and charged for."""

    def _explain(self, batch):
        for _ in range(5):
            self.classifier_.evaluate(batch.x)
        return super()._explain(batch)


class IgnoresOptions(cf.NearestUnlike):
    """Takes no notice of confidence and of what to do about errors."""

    def explain(self, X, target=None, *, confidence=None, on_error=None, **options):
        return super().explain(X, target, **options)


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize(
    ("explainer", "check"),
    [
        (StretchesUnderConstraints, "vacuous_constraints_change_nothing"),
        (StretchesUnderConstraints, "frozen_corner_costs_little"),
        (AsksBehindTheMeter, "calls_are_the_rows_the_model_saw"),
        (AsksBehindTheMeter, "budget_of_calls_is_kept"),
        (IgnoresOptions, "already_target_respects_confidence"),
        (IgnoresOptions, "on_error_raise"),
        (DifferentEveryTime, "same_seed_same_result"),
        (MixesRows, "batch_equals_loop"),
        (WritesToReference, "inputs_untouched"),
        (DrawsGlobally, "global_random_state_untouched"),
    ],
)
def test_broken_explainers_are_caught(explainer, check):
    """Although checks share a fit and results, each still sees what it is there for."""
    with pytest.raises(AssertionError, match=f"linear, row, {check}:"):
        check_explainer(explainer(), models=["linear"], data=["row"])
