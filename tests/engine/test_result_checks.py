"""The invariant of results: what contradicts itself cannot be made."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.benchmark.cell import confirm
from contrafact.engine.result import Counterfactuals
from contrafact.engine.result_checks import STATUSES, check_result

X = np.random.default_rng(0).normal(size=(60, 4))
Y = np.where(X[:, 0] > 0, "up", "down")
MODEL = LogisticRegression().fit(X, Y)


@pytest.fixture(scope="module")
def result():
    """Valid rows, one already in the target class, one not reached."""
    X_cf = X[:6].copy()
    X_cf[:5, 0] = 3.0
    X_cf[5, 0] = -3.0
    at_target = np.flatnonzero(Y[:6] == "up")[0]
    X_cf[at_target] = X[at_target]
    return Counterfactuals.from_arrays(MODEL, X[:6], X_cf, target="up")


def first(result, status):
    return int(np.flatnonzero(result.status == status)[0])


def changed(values, row, value):
    values = np.array(values)
    if values.dtype.kind == "U":
        values = values.astype(object)
    values[row] = value
    return values.astype(str) if values.dtype.kind == "O" else values


def test_the_fixture_has_every_case(result):
    assert {"valid", "already_target", "invalid"} <= set(result.status.tolist())


@pytest.mark.parametrize(
    ("status", "field", "value", "message"),
    [
        ("valid", "valid", False, "status 'valid', but valid is False"),
        ("invalid", "valid", True, "status 'invalid', but valid is True"),
        ("valid", "status", "infeasible", "status 'infeasible', but valid is True"),
        ("valid", "status", "splendid", "is not one of valid, already_target"),
        ("valid", "cf_labels", "down", "status 'valid', but cf_labels is not the target"),
        ("invalid", "cf_labels", "up", "status 'invalid', but cf_labels is the target"),
        ("already_target", "labels", "down", "but labels is not the target"),
        ("already_target", "X_cf", 7.0, "but X_cf differs from X"),
        ("valid", "target", "sideways", r"target\[\d\] is not among the classes"),
        ("valid", "cf_proba", np.nan, r"cf_proba\[\d\] is NaN, but the status is: 'valid'"),
        ("valid", "cf_proba", 5.29, r"cf_proba\[\d\] is not a row of probabilities"),
        ("valid", "proba", -0.5, r"proba\[\d\] is not a row of probabilities"),
        ("valid", "X_cf", np.inf, r"X_cf\[\d\] contains NaN or inf"),
        ("valid", "seconds", -1.0, r"seconds\[\d\] must be at least 0: -1.0"),
        ("valid", "calls", -1, r"calls\[\d\] must be at least 0: -1"),
        ("valid", "source", -1, r"source\[\d\] must be at least 0: -1"),
    ],
)
def test_contradictions_are_named(result, status, field, value, message):
    row = first(result, status)
    values = changed(getattr(result, field), row, value)
    with pytest.raises(ValueError, match=f"Counterfactuals: .*{message}"):
        replace(result, **{field: values})


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("X", np.zeros((6, 4), complex), "X must hold numbers, got dtype complex128"),
        ("X", np.zeros(6), "X has shape"),
        ("X", np.zeros((5, 4)), "one shape, got"),
        ("X", torch.zeros(6, 4), "one kind, got Tensor and ndarray"),
        ("source", np.arange(5), "source must have one entry for each of the 6 rows"),
        ("calls", np.zeros(6), "calls must hold whole numbers, got dtype float64"),
        ("valid", np.ones(6, int), "valid must hold booleans"),
        ("message", [""] * 6, "message must be an array, got list"),
        ("labels", np.zeros(6, int), "labels has dtype int64, classes <U4"),
        ("classes", np.array(["up", "up"]), "classes must be distinct"),
        ("classes", np.array([]), "classes must be an array of labels"),
        ("proba", np.ones((6, 3)) / 3, r"proba must hold numbers of shape \(6, 2\)"),
        ("modality", "sound", "modality must be 'series', 'image' or 'row', got 'sound'"),
        (
            "info",
            {"guide": np.arange(5)},
            r"info\['guide'\] must be an array of one entry for each",
        ),
        ("provenance", "me", "info and provenance must be dictionaries"),
        ("names", np.array(["a"]), "names must have one entry for each of the 4 features"),
    ],
)
def test_sizes_and_types_are_named(result, field, value, message):
    with pytest.raises(ValueError, match=f"Counterfactuals: .*{message}"):
        replace(result, **{field: value})


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_any_status_and_validity_agree_or_are_refused(data):
    """Whatever is drawn, a result that can be made has no contradiction in it."""
    n = 3

    def pick(values):
        chosen = st.lists(st.sampled_from(values), min_size=n, max_size=n)
        return np.array(data.draw(chosen))

    status, valid = pick(STATUSES), pick([True, False])
    labels, cf_labels, target = pick("ab"), pick("ab"), pick("ab")
    X_cf = np.zeros((n, 2)) + pick([0.0, 1.0])[:, None]
    try:
        made = Counterfactuals(
            X=np.zeros((n, 2)),
            X_cf=X_cf,
            source=np.arange(n),
            labels=labels,
            cf_labels=cf_labels,
            target=target,
            proba=np.full((n, 2), 0.5),
            cf_proba=np.full((n, 2), 0.5),
            valid=valid,
            status=status,
            message=np.repeat("", n),
            seconds=np.zeros(n),
            calls=np.zeros(n, int),
            classes=np.array(["a", "b"]),
            modality="row",
        )
    except ValueError as error:
        assert str(error).startswith("Counterfactuals: ")
        return
    for row in range(n):
        said = str(made.status[row])
        assert made.valid[row] == (said in ("valid", "already_target"))
        if said != "error":
            assert made.valid[row] == (made.cf_labels[row] == made.target[row])
        if said == "already_target":
            assert (made.X_cf[row] == made.X[row]).all()
            assert made.labels[row] == made.target[row]


@given(
    moved=st.lists(st.floats(-4, 4), min_size=5, max_size=5),
    target=st.sampled_from(["up", "down", None]),
    frozen=st.lists(st.booleans(), min_size=4, max_size=4),
    confidence=st.sampled_from([None, 0.9]),
)
@settings(max_examples=40, deadline=None)
def test_results_of_given_arrays_and_refinement_agree(moved, target, frozen, confidence):
    X_cf = X[:5].copy()
    X_cf[:, 0] += moved
    given_arrays = Counterfactuals.from_arrays(MODEL, X[:5], X_cf, target)
    limits = cf.Constraints(frozen=np.array(frozen))
    refined = cf.refine(given_arrays, MODEL, constraints=limits, confidence=confidence)
    for made in (given_arrays, refined):
        check_result(made)
        assert (made.valid == (MODEL.predict(made.X_cf) == made.target)).all()
    refinable = given_arrays.status == "valid"
    assert (refined.X_cf[refinable][:, frozen] == X[:5][refinable][:, frozen]).all()


def test_an_instance_in_the_target_class_and_its_edit():
    """It was called already_target although it had been changed."""
    at_target = X[Y == "up"][:3]
    away = at_target.copy()
    away[1, 0], away[2, 0] = 4.0, -4.0
    made = Counterfactuals.from_arrays(MODEL, at_target, away, target="up")
    assert made.status.tolist() == ["already_target", "valid", "invalid"]


def test_refining_with_everything_frozen():
    """It was infeasible and valid at once, with frozen values changed."""
    found = cf.LineSearch().fit(MODEL, X, Y).explain(X[:4])
    refined = cf.refine(found, MODEL, constraints=cf.Constraints(frozen=np.ones(4, bool)))
    assert (refined.status == "infeasible").all() and not refined.valid.any()
    np.testing.assert_array_equal(refined.X_cf, refined.X)


def test_refining_for_another_model_is_consistent():
    found = cf.LineSearch().fit(MODEL, X, Y).explain(X[:4])
    other = LogisticRegression().fit(X, Y[::-1])
    check_result(cf.refine(found, other))


def test_a_row_that_the_model_cannot_answer_is_confirmed_as_an_error():
    def model(rows):
        p = np.where(rows[:, 0] > 2.5, np.nan, MODEL.predict_proba(rows)[:, 1])
        return np.stack([1 - p, p], 1)

    classifier = cf.as_classifier(model, classes=["down", "up"])
    X_cf = X[:3] * [[1, 1, 1, 1]]
    X_cf[0, 0] = 3.0
    claimed = Counterfactuals.from_arrays(MODEL, X[:3], X_cf, target="up")
    confirmed, is_lost = confirm(claimed, classifier, X[:3], np.repeat("up", 3))
    assert confirmed.status[0] == "error" and is_lost.tolist() == [True, False, False]
    check_result(confirmed)


def test_choosing_and_joining_rows_keeps_the_invariant(result):
    for part in (result[::2], result[result.valid], result[[]]):
        check_result(part)
