"""Exceptions of models and methods can be seen: kept, logged, or raised."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import contrafact as cf
from contrafact.explainers.support.explainer import Explainer


class Mistyped(Explainer):
    """A method with a bug of its author."""

    def _explain(self, tasks):
        return tasks.candidates(undefined_name)  # noqa: F821


class Undeclared(Explainer):
    """Reports something it did not declare."""

    def _explain(self, tasks):
        return tasks.candidates(tasks.x, steps=tasks.rank)


X = np.random.default_rng(0).normal(size=(20, 1, 6))


def test_a_bug_in_a_method_is_raised_when_asked_for(counting):
    explainer = Mistyped().fit(counting, X)
    with pytest.raises(NameError, match="undefined_name"):
        explainer.explain(X, on_error="raise")


def test_a_bug_in_a_method_is_kept_and_logged(counting, caplog):
    explainer = Mistyped().fit(counting, X)
    with (
        caplog.at_level(logging.ERROR, logger="contrafact"),
        pytest.warns(RuntimeWarning, match="20 of 20 rows failed; row 0: NameError"),
    ):
        result = explainer.explain(X)
    assert set(result.status) == {"error"} and not result.valid.any()
    assert sorted(result.exceptions) == list(range(20))
    assert isinstance(result.exceptions[3], NameError)
    assert len(caplog.records) == 1  # one bug, one traceback
    assert "in _explain" in caplog.text and "undefined_name" in caplog.text


def poisonous(Z):
    if (Z > 50).any():
        raise ValueError("too hot")
    p = 1 / (1 + np.exp(-Z.mean((1, 2))))
    return np.stack([1 - p, p], 1)


def test_a_model_that_raises_is_seen_for_its_row_alone():
    hot = X.copy()
    hot[7] = 99.0
    explainer = cf.LineSearch().fit(poisonous, X)
    with pytest.raises(ValueError, match="too hot"):
        explainer.explain(hot, on_error="raise")
    with pytest.warns(RuntimeWarning, match="1 of 20"):
        result = explainer.explain(hot)
    assert list(result.exceptions) == [7] and str(result.exceptions[7]) == "too hot"
    assert np.array_equal(result.status == "error", np.arange(20) == 7)


def test_exceptions_follow_their_input_row_in_large_requests(monkeypatch):
    from contrafact.explainers.support import explainer as base

    hot = X.copy()
    hot[7] = 99.0
    monkeypatch.setattr(base, "MAX_ELEMENTS", 6 * 3)
    with pytest.warns(RuntimeWarning):
        result = cf.LineSearch().fit(poisonous, X).explain(hot)
    assert list(result.exceptions) == [7]


def test_results_with_exceptions_can_be_saved(tmp_path):
    hot = X.copy()
    hot[7] = 99.0
    with pytest.warns(RuntimeWarning):
        result = cf.LineSearch().fit(poisonous, X).explain(hot)
    again = cf.Counterfactuals.load(result.save(tmp_path / "hot"))
    assert again.exceptions == {} and again.message[7] == "ValueError: too hot"


def test_info_must_be_declared(counting):
    with pytest.raises(TypeError, match="Undeclared reports steps in info"):
        Undeclared().fit(counting, X).explain(X, on_error="raise")


@pytest.mark.parametrize("on_error", ["ignore", None, True])
def test_on_error_is_checked(counting, on_error):
    with pytest.raises(ValueError, match="on_error must be 'row' or 'raise'"):
        cf.LineSearch().fit(counting, X).explain(X, on_error=on_error)
