"""The reference, and how models are asked about variants."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import contrafact as cf
from contrafact import metrics
from contrafact.metrics import MetricInputs, Reference, detectors, evaluate, inputs


def test_another_model_may_order_its_classes_otherwise(changes):
    result, _ = changes(lambda x: x[:, 0] >= 0.5, np.zeros((2, 1)), [[1.0], [0.0]])
    backwards = cf.as_classifier(lambda x: np.eye(2)[1 - (x[:, 0] >= 0.5)], classes=["b", "a"])
    assert evaluate(result, "transfer_validity", other_model=backwards)[
        "transfer_validity"
    ].tolist() == [
        1,
        0,
    ]
    strange = cf.as_classifier(lambda x: np.eye(2)[x[:, 0].astype(int)], classes=["a", "x"])
    with pytest.raises(
        ValueError, match=r"other_model does not know the class 'b'\. Its classes: .*'x'"
    ):
        evaluate(result, "transfer_validity", other_model=strange)


def test_the_model_is_asked_in_blocks(changes, monkeypatch):
    rng = np.random.default_rng(0)
    result, model = changes(lambda x: x.mean(1), rng.random((7, 4)), rng.random((7, 4)))
    names = ["controllability", "noise_survival"]
    reference = rng.random((5, 4))
    whole = evaluate(result, names, reference, model=model)
    monkeypatch.setattr(inputs, "MAX_ELEMENTS", 1)
    parts = evaluate(result, names, reference, model=model)
    np.testing.assert_array_equal(whole[names], parts[names])


def test_detectors_are_fitted_once(make, monkeypatch):
    fits = []
    whole = detectors.LOF._fit
    monkeypatch.setattr(detectors.LOF, "_fit", lambda self, *a: fits.append(1) or whole(self, *a))
    reference = Reference(np.random.default_rng(0).normal(size=(9, 2)))
    p = np.tile([1.0, 0.0], (3, 1))
    result = make(np.zeros((3, 2)), np.ones((3, 2)), p, p, modality="row")
    first = evaluate(result, ["lof", "lof_increase"], reference)
    again = evaluate(result, ["lof", "lof_increase"], pickle.loads(pickle.dumps(reference)))
    assert len(fits) == 2  # the copy learns anew
    evaluate(result[:2], "lof", reference)
    assert len(fits) == 2
    np.testing.assert_array_equal(first["lof"], again["lof"])


def test_spread_is_per_feature_or_per_channel(make):
    p = [[1.0, 0.0]]
    rows = make(np.zeros((1, 2)), np.zeros((1, 2)), p, p, modality="row")
    np.testing.assert_allclose(Reference([[0, 0], [2, 20]]).spread(rows), [1, 10])
    series = make(np.zeros((1, 2, 2)), np.zeros((1, 2, 2)), p, p)
    channels = Reference([[[-1, 1], [0, 0]], [[1, -1], [4, 4]]]).spread(series)
    np.testing.assert_allclose(channels, [1, 1, 2, 2])


def test_old_names_work_with_a_warning(three):
    with pytest.warns(DeprecationWarning, match=r"Given is now contrafact\.metrics\.MetricInputs"):
        assert metrics.Given is MetricInputs
    reference = Reference(np.zeros((2, 2, 4)))
    given = MetricInputs(reference)
    with pytest.warns(DeprecationWarning, match="now MetricInputs.require_reference"):
        assert given.known() is reference
    with pytest.warns(DeprecationWarning, match="now MetricInputs.available"):
        assert given.kinds(three) == given.available(three) == {"reference"}


def test_a_reference_that_was_not_declared_is_missed():
    with pytest.raises(ValueError, match='lists "reference" in its `needs`'):
        MetricInputs().require_reference()
