"""Check that results are true: targets honored, validity as the model says, array kinds kept."""

from __future__ import annotations

import pickle

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from ..explainers.support.explainer import Explainer
from ..models.classifier import Array
from .cases import Case
from .checks import check

#: Labels of other types than those of the cases; the last ones keep two of the three classes.
OTHER_LABELS = (
    np.array([-3, 0, 7]),
    np.array(["x y", "ü", "0"]),
    np.array([True, False]),
)


@check("one_model")
def check_constructor_only_stores(explainer: Explainer, case: Case) -> None:
    """Check that the constructor stores its parameters and sets nothing else."""
    params = explainer.get_params(deep=False)
    assert clone(explainer).get_params(deep=False) == params, "clone changes the parameters"
    extra = set(vars(explainer)) - set(params)
    assert not extra, f"the constructor sets more than its parameters: {sorted(extra)}"


@check("one_model")
def check_fit_returns_self(explainer: Explainer, case: Case) -> None:
    """Check that `fit` returns the explainer and leaves its parameters as they were."""
    params = explainer.get_params(deep=False)
    fitted = explainer.fit(
        case.classifier(),
        case.X_reference,
        case.y_reference,
        modality=case.modality,
    )
    assert fitted is explainer, "fit does not return self"
    assert explainer.get_params(deep=False) == params, "fit changes the parameters"


@check("two_models")
def check_pickle(explainer: Explainer, case: Case) -> None:
    """Check that a pickled copy of a fitted explainer gives the same counterfactuals."""
    before = case.explain(explainer)
    copy = pickle.loads(pickle.dumps(explainer))
    after = copy.explain(case.X)
    np.testing.assert_allclose(
        after.X_cf,
        before.X_cf,
        atol=1e-5,
        err_msg="a pickled copy gives other counterfactuals",
    )


@check("every_model")
def check_default_target_is_another_class(explainer: Explainer, case: Case) -> None:
    """Check that without a target, every instance gets another class than the model gives it."""
    result = case.explain(explainer)
    assert (result.target != result.labels).all(), "the default target is the class it already has"
    predicted = case.classifier().predict(case.X)
    assert np.array_equal(result.labels, predicted), "labels are not the model's"


@check("every_model")
def check_every_class_as_target(explainer: Explainer, case: Case) -> None:
    """Check that every class can be the target, whatever its label."""
    for label in case.labels:
        result = case.explain(explainer, target=label)
        assert (result.target == label).all(), f"target {label!r} was not honored"
        status = set(result.status[result.labels == label])
        assert status <= {"already_target"}, f"status {status} of instances in their target"


@check("one_model")
def check_one_target_each(explainer: Explainer, case: Case) -> None:
    """Check that targets given one by one stay with their instances."""
    # The classes of the instances take turns; this is not the class an instance is drawn from.
    columns = (np.arange(len(case.X)) + 1) % 3
    wanted = case.labels[columns]
    result = case.explain(explainer, target=wanted)
    assert np.array_equal(result.target, wanted[result.source]), "targets per instance are mixed up"


@check("one_model")
def check_any_labels(explainer: Explainer, case: Case) -> None:
    """Check that labels may be integers, strings or booleans, 0 and False included."""
    for labels in OTHER_LABELS:
        _explain_with_labels(explainer, case, labels)


def _explain_with_labels(explainer: Explainer, case: Case, labels: Array) -> None:
    other = case.relabeled(labels)
    # A falsy label must count as a target like any other.
    falsy = [label for label in labels.tolist() if not label]
    target = falsy[0] if falsy else labels[0]
    result = other.fit(explainer).explain(case.X, target=target)
    dtype = result.target.dtype
    assert dtype.kind == labels.dtype.kind, f"labels {labels} came back as {dtype}"
    assert (result.target == target).all(), f"target {target!r} was not honored"
    assert set(result.labels.tolist()) <= set(labels.tolist()), "labels are not the model's"


@check("every_model")
def check_valid_is_what_the_model_says(explainer: Explainer, case: Case) -> None:
    """Check that `valid`, `cf_labels` and `cf_proba` are the model's answers for X_cf."""
    result = case.explain(explainer)
    classifier = case.classifier()
    predicted = classifier.predict(result.X_cf)
    assert np.array_equal(result.cf_labels, predicted), (
        "cf_labels differ from the model's predictions of X_cf"
    )
    reached = predicted == result.target
    assert np.array_equal(result.valid, reached), "valid differs from what the model says"
    moved = result.valid & (result.labels != result.target)
    assert np.array_equal(result.status == "valid", moved), "status differs from valid"
    proba = classifier.predict_proba(result.X_cf)
    np.testing.assert_allclose(result.cf_proba, proba, atol=1e-5)


@check("every_model")
def check_already_in_target_unchanged(explainer: Explainer, case: Case) -> None:
    """Check that instances that are in their target class come back unchanged and say so."""
    labels = case.classifier().predict(case.X)
    result = case.explain(explainer, target=labels)
    status = set(result.status)
    assert status == {"already_target"}, f"status {status} of instances in their target class"
    assert np.array_equal(result.X_cf, case.X), "instances in their target class were changed"


@check("one_model")
def check_already_target_respects_confidence(explainer: Explainer, case: Case) -> None:
    """Check that `already_target` requires P(target) to reach the confidence."""
    X, confidence = _hesitant_and_confident(case)
    labels = case.classifier().predict(X)
    result = case.fit(explainer).explain(X, target=labels, confidence=confidence)
    hesitant = result.status[result.source == 0]
    confident = result.status[result.source == 1]
    assert set(confident) == {"already_target"}, f"status {confident} at P(target) >= confidence"
    assert np.array_equal(result.X_cf[-1], X[1]), "an instance in its target class was changed"
    assert "already_target" not in hesitant, "already_target although P(target) < confidence"


def _hesitant_and_confident(case: Case) -> tuple[Array, float]:
    """Return one instance below a confidence and one above it, and the confidence."""
    share = np.linspace(0, 1, 201).reshape(-1, *(1,) * (case.X.ndim - 1))
    line = case.X[0] + share * (case.X[1] - case.X[0])  # from one class to another
    proba = case.classifier().predict_proba(line).max(1)
    lowest = proba.argmin()
    highest = proba.argmax()
    confidence = float(proba[lowest] + proba[highest]) / 2
    return line[[lowest, highest]], confidence


@check("one_model")
def check_read_only_input(explainer: Explainer, case: Case) -> None:
    """Check that read-only arrays are accepted."""
    assert not case.X.flags.writeable
    assert not case.X_reference.flags.writeable
    assert len(case.explain(explainer)) == len(case.X)


@check("one_model")
def check_kinds_of_input(explainer: Explainer, case: Case) -> None:
    """Check that NumPy gives NumPy, torch gives torch, and X keeps its precision."""
    wide = case.explain(explainer)
    np.testing.assert_array_equal(wide.X, case.X)

    X_narrow = case.X.astype(np.float32)
    narrow = explainer.explain(X_narrow)
    np.testing.assert_array_equal(narrow.X, X_narrow)

    tensors = explainer.explain(torch.tensor(case.X))
    assert isinstance(tensors.X, Tensor), "torch in, not torch out"
    assert isinstance(tensors.X_cf, Tensor), "torch in, not torch out"
    np.testing.assert_allclose(tensors.X_cf.numpy(), wide.X_cf, atol=1e-5)


@check("two_models")
def check_two_dimensional_series(explainer: Explainer, case: Case) -> None:
    """Check that series of shape (n, length) come back in that shape."""
    if case.data_kind != "series":
        return
    flat = case.X[:, 0]
    flat_reference = case.X_reference[:, 0]
    explainer.fit(case.classifier(), flat_reference, case.y_reference, modality="series")
    result = explainer.explain(flat)
    assert result.X_cf.shape == flat.shape, f"series {flat.shape} came back as {result.X_cf.shape}"


@check("two_models")
def check_constant_instance(explainer: Explainer, case: Case) -> None:
    """Check that constant instances are explained without an error."""
    constant = np.zeros_like(case.X[:2])
    result = case.fit(explainer).explain(constant)
    assert (result.status != "error").all(), f"constant instances fail: {result.message[0]}"


@check("every_model")
def check_refine_keeps_validity(explainer: Explainer, case: Case) -> None:
    """Check that refinement keeps valid rows valid and does not change more values."""
    plain = case.explain(explainer)
    changed_before = plain.changed_fraction.mean()
    for refine in ("minimal", "believable"):
        refined = case.explain(explainer, refine=refine)
        assert (refined.valid >= plain.valid).all(), f"refine={refine!r} made a valid row invalid"
        changed_after = refined.changed_fraction.mean()
        assert changed_after <= changed_before + 1e-9, f"refine={refine!r} changed more"
