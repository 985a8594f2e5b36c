"""Checks that results are true: targets honored, validity as the model says, kinds kept."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from ..explainers.support.explainer import Explainer
from .cases import Case


def check_constructor_only_stores(explainer: Explainer, case: Case) -> None:
    params = explainer.get_params(deep=False)
    assert clone(explainer).get_params(deep=False) == params, "clone changes the parameters"
    extra = set(vars(explainer)) - set(params)
    assert not extra, f"the constructor sets more than its parameters: {sorted(extra)}"


def check_fit_returns_self(explainer: Explainer, case: Case) -> None:
    params = explainer.get_params(deep=False)
    fitted = explainer.fit(
        case.classifier(), case.X_reference, case.y_reference, modality=case.modality
    )
    assert fitted is explainer, "fit does not return self"
    assert explainer.get_params(deep=False) == params, "fit changes the parameters"


def check_pickle(explainer: Explainer, case: Case) -> None:
    case.fitted(explainer)
    again = pickle.loads(pickle.dumps(explainer))
    before, after = case.answer(explainer), again.explain(case.X)
    np.testing.assert_allclose(
        after.X_cf, before.X_cf, atol=1e-5, err_msg="a pickled copy answers otherwise"
    )


def check_default_target_is_another_class(explainer: Explainer, case: Case) -> None:
    result = case.answer(explainer)
    assert (result.target != result.labels).all(), "the default target is the class it already has"
    assert np.array_equal(result.labels, case.classifier().predict(case.X)), (
        "labels are not the model's"
    )


def check_every_class_as_target(explainer: Explainer, case: Case) -> None:
    case.fitted(explainer)
    for label in case.labels:  # class 0 among them: falsy targets must count
        result = explainer.explain(case.X, target=label)
        assert (result.target == label).all(), f"target {label!r} was not honored"
        assert set(result.status[result.labels == label]) <= {"already_target"}


def check_one_target_each(explainer: Explainer, case: Case) -> None:
    wanted = case.labels[
        (np.arange(len(case.X)) + 1) % 3
    ]  # not the class an instance is drawn from
    result = case.fitted(explainer).explain(case.X, target=wanted)
    assert np.array_equal(result.target, wanted[result.source]), "targets per instance are mixed up"


def check_any_labels(explainer: Explainer, case: Case) -> None:
    for labels in (
        np.array([-3, 0, 7]),
        np.array(["x y", "ü", "0"]),
        np.array([True, False, True])[:2],
    ):
        if len(labels) == 2:
            keep = np.isin(case.y_reference, case.labels[:2])
            other = _subset(case, keep).relabeled(labels)
        else:
            other = case.relabeled(labels)
        result = other.fitted(explainer).explain(case.X, target=labels[0])
        assert result.target.dtype.kind == labels.dtype.kind, (
            f"labels {labels} came back as {result.target.dtype}"
        )
        assert (result.target == labels[0]).all() and set(result.labels.tolist()) <= set(
            labels.tolist()
        )


def _subset(case: Case, keep: Any) -> Case:
    from dataclasses import replace

    return replace(case, X_reference=case.X_reference[keep], y_reference=case.y_reference[keep])


def check_valid_is_what_the_model_says(explainer: Explainer, case: Case) -> None:
    result = case.answer(explainer)
    said = case.classifier().predict(result.X_cf)
    assert np.array_equal(said, result.cf_labels), (
        "cf_labels differ from the model's predictions of X_cf"
    )
    assert np.array_equal(result.valid, said == result.target), (
        "valid differs from what the model says"
    )
    assert ((result.status == "valid") == (result.valid & (result.labels != result.target))).all()
    np.testing.assert_allclose(
        result.cf_proba, case.classifier().predict_proba(result.X_cf), atol=1e-5
    )


def check_already_in_target_unchanged(explainer: Explainer, case: Case) -> None:
    labels = case.classifier().predict(case.X)
    result = case.fitted(explainer).explain(case.X, target=labels)
    assert (result.status == "already_target").all(), (
        f"status {set(result.status)} for instances in their target"
    )
    assert np.array_equal(result.X_cf, case.X), (
        "instances already in their target class were changed"
    )


def check_read_only_input(explainer: Explainer, case: Case) -> None:
    assert not (case.X.flags.writeable or case.X_reference.flags.writeable)
    assert len(case.answer(explainer)) == len(case.X)


def check_kinds_of_input(explainer: Explainer, case: Case) -> None:
    case.fitted(explainer)
    wide = case.answer(explainer)
    narrow = explainer.explain(case.X.astype(np.float32))
    np.testing.assert_array_equal(wide.X, case.X)
    np.testing.assert_array_equal(narrow.X, case.X.astype(np.float32))
    tensors = explainer.explain(torch.tensor(case.X))
    assert isinstance(tensors.X_cf, Tensor) and isinstance(tensors.X, Tensor), (
        "torch in, not torch out"
    )
    np.testing.assert_allclose(tensors.X_cf.numpy(), wide.X_cf, atol=1e-5)


def check_two_dimensional_series(explainer: Explainer, case: Case) -> None:
    if case.data_kind != "series":
        return
    flat = case.X[:, 0]
    explainer.fit(case.classifier(), case.X_reference[:, 0], case.y_reference, modality="series")
    result = explainer.explain(flat)
    assert result.X_cf.shape == flat.shape, f"series {flat.shape} came back as {result.X_cf.shape}"


def check_constant_instance(explainer: Explainer, case: Case) -> None:
    result = case.fitted(explainer).explain(np.zeros_like(case.X[:2]))
    assert (result.status != "error").all(), f"constant instances fail: {result.message[0]}"


def check_refine_keeps_validity(explainer: Explainer, case: Case) -> None:
    plain, refined = case.answer(explainer), case.answer(explainer, refine=True)
    assert (refined.valid >= plain.valid).all(), "refine made a valid row invalid"
    assert refined.changed_fraction.mean() <= plain.changed_fraction.mean() + 1e-9, (
        "refine changed more"
    )
