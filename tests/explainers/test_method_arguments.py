"""Every argument of every method and request is checked before any work, and named."""

from __future__ import annotations

import dataclasses
import inspect
import math

import numpy as np
import pytest
import torch

import contrafact as cf
from contrafact import guides
from contrafact.engine import budget, request
from contrafact.explainers.registry import explainer_classes
from contrafact.search import Adam, SteepestDescent, Stop, gradient_loop

METHODS = explainer_classes()
STEPS = [Adam, SteepestDescent]
WRONG = ["text", [1.0, 2.0], {"a": 1}, math.nan, 1j, -1, object(), b"text", 10**400]


class Untouchable:
    """A model that fails the test if it is asked anything."""

    def __call__(self, X):
        raise AssertionError("the model was asked")


def parameters_of(cls):
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    signature = inspect.signature(cls.__init__)
    return [p.name for p in signature.parameters.values() if p.kind not in kinds][1:]


GUIDES = [getattr(guides, name) for name in guides.__all__ if name != "Guide"]


@pytest.mark.parametrize("cls", [*METHODS.values(), *GUIDES, *STEPS], ids=lambda cls: cls.__name__)
def test_every_parameter_has_a_rule(cls):
    if cls.__init__ is object.__init__:
        return
    assert set(parameters_of(cls)) == set(cls.rules)


@pytest.mark.parametrize(
    ("cls", "rules"), [(cf.Budget, budget.RULES), (Stop, gradient_loop.STOP_RULES)]
)
def test_every_field_has_a_rule(cls, rules):
    assert {field.name for field in dataclasses.fields(cls)} == set(rules)


def test_every_option_of_a_request_has_a_rule():
    options = set(parameters_of_function(cf.Explainer.explain)) - {"X", "target"}
    assert options == set(request.RULES)


def parameters_of_function(function):
    return list(inspect.signature(function).parameters)[1:]


SETTINGS = [
    (name, parameter)
    for name, cls in METHODS.items()
    if cls.__init__ is not object.__init__
    for parameter in parameters_of(cls)
]


@pytest.mark.parametrize(("name", "parameter"), SETTINGS)
def test_wrong_settings_raise_in_fit_before_the_model_is_asked(name, parameter):
    cls = METHODS[name]
    refused = [value for value in WRONG if not cls.rules[parameter].accepts(value)]
    assert len(refused) >= 7
    for value in refused:
        with pytest.raises((ValueError, TypeError), match=rf"^{name}: {parameter} must be .*, got"):
            cls(**{parameter: value}).fit(Untouchable(), np.zeros((4, 1, 8)), [0, 1, 0, 1])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cf.CELS(lr="0.1"), "learning_rate must be a number .*, got '0.1'"),
        (lambda: cf.CELS(max_iter=-3), "max_iter must be a whole number .*, got -3"),
        (lambda: cf.CELS(tau=5), "tau must be a number .*, got 5"),
        (lambda: cf.CELS(tv_beta=0.5), "tv_beta must be a number at least 1"),
        (lambda: cf.SVCE(norm=1e300), "norm must be a number at least 1 and at most 100 or inf"),
        (lambda: cf.SVCE(bounds=5), r"bounds must be None or a pair \(lower, upper\), got 5"),
        (lambda: cf.SETS(random_state=-1), "random_state must be .*, got -1"),
    ],
)
def test_known_offenders(make, words):
    with pytest.raises(ValueError, match=words):
        make().fit(Untouchable(), np.zeros((4, 1, 8)), [0, 1, 0, 1])


def mean_model(X):
    p = 1 / (1 + np.exp(-np.asarray(X).mean((1, 2))))
    return np.stack([1 - p, p], 1)


X = np.random.default_rng(0).normal(size=(12, 2, 4))


@pytest.fixture(scope="module")
def fitted():
    return cf.NearestUnlike().fit(mean_model, X)


def test_settings_are_checked_again_by_explain(fitted):
    explainer = cf.NearestUnlike().fit(mean_model, X)
    explainer.set_params(metric="cosine")
    with pytest.raises(ValueError, match="NearestUnlike: metric must be"):
        explainer.explain(X)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"k": 0}, "k must be"),
        ({"k": 10**9}, "k must be"),
        ({"k": "2"}, "k must be"),
        ({"k": True}, "k must be"),
        ({"confidence": 1.0}, "confidence must be"),
        ({"confidence": math.nan}, "confidence must be"),
        ({"confidence": "high"}, "confidence must be"),
        ({"budget": 100}, "budget must be None or a Budget object, got 100"),
        ({"refine": "no"}, "refine must be True, False or 'minimal' or 'believable', got 'no'"),
        ({"refine": 1}, "refine must be"),
        ({"on_error": "ignore"}, "on_error must be"),
        ({"random_state": np.random.default_rng(0)}, "random_state must be"),
        ({"random_state": 2**70}, "random_state must be"),
        ({"random_state": 1.0}, "random_state must be"),
        ({"random_state": True}, "random_state must be"),
        ({"progress": "yes"}, "progress must be True or False, got 'yes'"),
        ({"progress": 1}, "progress must be"),
        ({"constraints": {"lower": 0}}, "constraints must be"),
        ({"constraints": cf.Constraints(lower=2.0, upper=1.0)}, "lower 2.0 is above upper 1.0"),
        ({"constraints": cf.Constraints(max_step=[1.0] * 3)}, "max_step has shape"),
        ({"committee": mean_model}, "committee must be a list of models"),
        ({"committee": "automatic"}, "committee must be .*, got 'automatic'"),
        ({"committee": []}, "committee holds no model"),
        ({"committee": [mean_model, 5]}, r"committee\[1\]: model must be"),
        ({"target": "gun"}, "target 'gun' is not a class of this model. Classes: 0, 1"),
        ({"target": 2}, "target 2 is not a class"),
        ({"target": True}, "target True is not a class"),
        ({"target": math.nan}, "target nan is not a class"),
        ({"target": [1, math.nan] * 6}, r"target\[1\] is not finite"),
        ({"target": [0, "1"] * 6}, "target holds '1' and 0"),
        ({"target": [1, 0]}, "target has 2 labels for 12 instances"),
        ({"target": np.zeros((12, 1))}, r"target has shape \(12, 1\)"),
        ({"target": {"a": 1}}, "target must be a label, or one per instance"),
        ({"target": {1}}, "target must be a label, or one per instance"),
        ({"target": object()}, "target must be a label, or one per instance"),
        ({"target": [[1], [1, 0]]}, "target has entries of unequal shape"),
        ({"target": [None] * 12}, "target has dtype object"),
    ],
)
def test_options_of_a_request_are_checked(fitted, options, words):
    before = fitted.classifier_.rows_evaluated
    with pytest.raises((ValueError, TypeError), match=words):
        fitted.explain(X, **options)
    assert fitted.classifier_.rows_evaluated == before


@pytest.mark.parametrize("target", [1.0, np.int8(1), torch.tensor(1), np.array(1), [1.0] * 12])
def test_a_label_of_equal_value_is_that_class(fitted, target):
    assert set(fitted.explain(X, target).target) == {1}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (X[:, :1], r"shape \(1, 4\); fit saw \(2, 4\)"),
        (X[..., :3], r"shape \(2, 3\); fit saw \(2, 4\)"),
        (X[0, 0], r"X has shape \(4,\)"),
        (None, "X must be an array, got None"),
        (torch.zeros(2, 2, 4).to_sparse(), "X is a sparse tensor"),
        (np.full((1, 2, 4), np.nan), r"X\[0\] contains NaN"),
        ([[[1.0, 2.0]], [[1.0]]], r"X has entries of unequal shape.*pad\(X\)"),
    ],
)
def test_instances_have_to_be_like_those_of_fit(fitted, given, words):
    with pytest.raises((ValueError, TypeError), match=words):
        fitted.explain(given)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"modality": "video"}, "modality must be"),
        ({"modality": 3}, "modality must be"),
        ({"refined": True}, "explain has no option 'refined'. Options: constraints, k"),
        ({"k": 0}, "k must be"),
        ({"reference": (X, [0], [1])}, "reference must be .* got a tuple of 3"),
        ({"method": 5}, "method must be an Explainer object or the name of one, got 5"),
        ({"method": cf.CELS}, r"create it first: CELS\(\)"),
        ({"method": "SELC"}, "method 'SELC' is unknown"),
    ],
)
def test_explaining_in_one_call_checks_before_fitting(options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        cf.explain(Untouchable(), X, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"window": 0}, "window must be"),
        ({"n_regions": 1.5}, "n_regions must be"),
        ({"explainer": "CELS"}, "explainer must be"),
        ({"random_state": "0"}, "random_state must be"),
        ({"target": None}, "target must be one label, got None"),
        ({"target": [0, 1]}, r"target must be one label, got \[0, 1\]"),
        ({"target": {"a": 1}}, "target must be one label"),
    ],
)
def test_arguments_of_an_audit(options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        cf.class_audit(Untouchable(), X, **{"target": 0, **options})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"result": X}, "refine: result must be a Counterfactuals object"),
        ({"how": True}, "refine: how must be 'minimal' or 'believable', got True"),
        ({"how": "best"}, "refine: how must be"),
        ({"confidence": 2}, "refine: confidence must be"),
        ({"budget": 5}, "refine: budget must be"),
        ({"constraints": 5}, "refine: constraints must be"),
        ({"committee": 5}, "committee must be"),
        ({"reference": X}, "reference applies to how='believable'"),
        ({"reference": X[:, :1], "how": "believable"}, "reference holds series of shape"),
    ],
)
def test_arguments_of_a_refinement(fitted, options, words):
    values = {"result": fitted.explain(X[:3]), **options}
    with pytest.raises((ValueError, TypeError), match=words):
        cf.refine(values.pop("result"), mean_model, **values)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"X_cf": X[:2]}, r"X_cf has shape \(2, 2, 4\), X \(12, 2, 4\)"),
        ({"X_cf": None}, "X_cf must be an array, got None"),
        ({"method": 5}, "from_arrays: method must be a text, got 5"),
        ({"modality": ["series"]}, r"modality \['series'\] is unknown"),
        ({"target": "gun"}, "target 'gun' is not a class"),
    ],
)
def test_arguments_of_given_results(options, words):
    values = {"X_cf": X, **options}
    with pytest.raises((ValueError, TypeError), match=words):
        cf.Counterfactuals.from_arrays(mean_model, X, **values)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"explainer": cf.CELS}, "check_explainer: explainer must be an Explainer object"),
        ({"models": "linear"}, "check_explainer: models must be None or a list of names"),
        ({"data": [1]}, "check_explainer: data must be"),
        ({"checks": {"pickle"}}, "check_explainer: checks must be"),
        ({"checks": ["pickled"]}, "checks .'pickled'. are unknown"),
    ],
)
def test_arguments_of_the_contract(options, words):
    values = {"explainer": cf.NearestUnlike(), **options}
    with pytest.raises((ValueError, TypeError), match=words):
        cf.check_explainer(values.pop("explainer"), **values)
