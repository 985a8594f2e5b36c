"""One request: targets, pieces, progress, provenance, cost; and what fit refuses."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

import contrafact as cf
from contrafact.engine import Tags
from contrafact.explainers.support import explainer as base
from contrafact.explainers.support.explainer import Explainer
from global_state import changes, snapshot


class Halfway(Explainer):
    """Moves half of the way to the largest reference row; asks once on the way."""

    tags = Tags(modalities=("series",), multivariate=False, constraints=frozenset({"bounds"}))
    info_keys = {"asked": "how often the model was asked"}

    def __init__(self, share=0.5, note=None, broken=False):
        self.share, self.note, self.broken = share, note, broken

    def _fit(self, X, y):
        self.goal_ = X[X.flatten(1).mean(1).argmax()]
        if self.broken:
            raise RuntimeError("out of paper")

    def _default_target(self, x, verdict):
        return torch.ones_like(verdict.label)

    def _explain(self, tasks):
        x_cf = tasks.x + self.share * (self.goal_ - tasks.x)
        tasks.ask(x_cf)
        return tasks.candidates(x_cf, asked=torch.ones(len(tasks), dtype=torch.long))


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(20, 1, 6))


def three_means(X):
    """Three classes around the means −1, 0 and 1."""
    score = -((X.reshape(len(X), -1).mean(1)[:, None] - np.array([-1.0, 0.0, 1.0])) ** 2)
    return np.exp(score) / np.exp(score).sum(1, keepdims=True)


def test_a_method_may_choose_its_default_target(counting, X):
    result = Halfway(0.9).fit(counting, X).explain(X)
    assert (result.target == 1).all()
    assert set(result.status[result.labels == 1]) == {"already_target"}
    assert set(result.status[result.labels == 0]) == {"valid"}
    assert (result.info["asked"] == np.where(result.labels == 1, -1, 1)).all()


def test_the_default_target_is_the_runner_up(X):
    X = np.repeat(np.array([-2.0, -0.4, 0.3, 2.0]), 6).reshape(4, 1, 6)
    result = cf.NearestUnlike().fit(three_means, X).explain(X)
    assert result.labels.tolist() == [0, 1, 1, 2] and result.target.tolist() == [1, 0, 2, 1]


@pytest.mark.parametrize(
    "options", [{}, {"k": 3}, {"budget": cf.Budget(calls=20 * 8)}, {"refine": True}]
)
@pytest.mark.parametrize(
    "method", [cf.LineSearch(), cf.RandomMask(n_segments=3)], ids=lambda m: type(m).__name__
)
def test_a_request_in_pieces_gives_the_same(counting, X, monkeypatch, method, options):
    """Sorted by class, so that some pieces have nothing to do."""
    X = X[np.argsort(X.mean((1, 2)))]
    method.fit(counting, X)
    whole = method.explain(X, target=0, random_state=3, **options)
    monkeypatch.setattr(base, "MAX_ELEMENTS", 6 * 3)
    pieces = method.explain(X, target=0, random_state=3, **options)
    for name in ("X_cf", "source", "status", "message", "calls", "cf_proba", "target"):
        np.testing.assert_array_equal(getattr(pieces, name), getattr(whole, name), err_msg=name)
    assert (
        set(whole.status) >= {"valid", "already_target"} and pieces.info.keys() == whole.info.keys()
    )
    for key, values in whole.info.items():
        np.testing.assert_array_equal(pieces.info[key], values)


@pytest.mark.parametrize(
    "options", [{}, {"k": 3}, {"refine": True}, {"k": 2, "refine": True, "confidence": 0.7}]
)
def test_calls_are_the_rows_the_model_saw(counting, X, options):
    explainer = cf.LineSearch().fit(counting, X)
    seen = counting.seen
    result = explainer.explain(X, **options)
    assert result.calls.sum() == counting.seen - seen


def test_progress_is_shown_when_asked_for(counting, X, capsys):
    explainer = cf.LineSearch().fit(counting, X)
    explainer.explain(X)
    assert capsys.readouterr().out == ""
    explainer.explain(X, progress=True)
    shown = capsys.readouterr().out
    assert "LineSearch" in shown and "20/20" in shown


def test_provenance_tells_how_to_ask_again(counting, X):
    explainer = Halfway(0.75, note=[1, 2]).fit(counting, X)
    result = explainer.explain(
        X,
        constraints=cf.Constraints(lower=-9.0),
        budget=cf.Budget(calls=500),
        random_state=11,
        confidence=0.6,
    )
    assert result.provenance == {
        "method": "Halfway",
        "parameters": {"share": 0.75, "note": "[1, 2]", "broken": False},
        "version": cf.__version__,
        "seed": 11,
        "options": {
            "k": 1,
            "refine": False,
            "confidence": 0.6,
            "committee": None,
            "constraints": ["bounds"],
            "budget": {"calls": 500, "seconds": None},
        },
    }


def test_a_failed_fit_leaves_the_earlier_one(counting, X):
    explainer = Halfway().fit(counting, X)
    before = explainer.explain(X)
    explainer.set_params(broken=True)
    with pytest.raises(RuntimeError, match="out of paper"):
        explainer.fit(counting, 10 * X[:, :, :4])
    np.testing.assert_array_equal(explainer.explain(X).X_cf, before.X_cf)
    fresh = Halfway(broken=True)
    with pytest.raises(RuntimeError):
        fresh.fit(counting, X)
    with pytest.raises(ValueError, match="Halfway is not fitted"):
        fresh.explain(X)


@pytest.mark.parametrize(
    ("shape", "options", "words"),
    [
        ((9, 1, 6), {"modality": "video"}, "'video' is unknown"),
        ((9, 1, 6, 6), {}, "holds image data.*accepted here: series"),
        ((9, 2, 6), {}, "Halfway takes one channel only, X has 2"),
        ((0, 1, 6), {}, "X is empty"),
        ((9, 1, 6), {"y": [0, 1] * 4}, r"y has shape \(8,\)"),
        ((9, 1, 6), {"y": [1] * 9}, r"one class only"),
        ((9, 1, 6), {"y": [0, 1, 5] * 3}, "5"),
    ],
)
def test_fit_refuses_what_it_cannot_use(counting, shape, options, words):
    model = cf.as_classifier(counting, classes=[0, 1])
    with pytest.raises(ValueError, match=words):
        Halfway().fit(model, np.random.default_rng(0).normal(size=shape), **options)


def test_a_constraint_the_method_cannot_keep_is_refused(counting, X):
    explainer = Halfway().fit(counting, X)
    with pytest.raises(ValueError, match="cannot keep frozen, max_step; it supports bounds"):
        explainer.explain(X, constraints=cf.Constraints(0.0, frozen=np.ones(6, bool), max_step=1.0))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"k": 0}, ValueError, "k must be.*0"),
        ({"k": True}, ValueError, "k must be.*True"),
        ({"k": 1.5}, ValueError, "k must be.*1.5"),
        ({"confidence": 1.0}, ValueError, "confidence.*1.0"),
        ({"random_state": "a"}, ValueError, "random_state.*'a'"),
        ({"budget": 100}, TypeError, "budget.*100"),
        ({"constraints": {"lower": 0}}, TypeError, "constraints must be.*lower"),
    ],
)
def test_senseless_options_are_refused(counting, X, options, error, words):
    explainer = cf.LineSearch().fit(counting, X)
    with pytest.raises(error, match=words):
        explainer.explain(X, **options)


@pytest.mark.parametrize("options", [{}, {"k": 2, "refine": True, "budget": cf.Budget(calls=9)}])
def test_no_instances_no_counterfactuals(counting, X, options):
    limits = cf.Constraints(lower=-1.0, frozen=np.arange(6) < 2, max_step=1.0)
    result = cf.LineSearch().fit(counting, X).explain(X[:0], constraints=limits, **options)
    assert len(result) == 0 and result.X_cf.shape == (0, 1, 6)
    assert len(cf.refine(result, counting, constraints=limits)) == 0


def test_two_dimensional_series_reach_the_model_as_they_were_given(X):
    shapes = set()

    def model(Z):
        shapes.add(Z.shape[1:])
        return three_means(Z)

    result = cf.LineSearch().fit(model, X[:, 0], modality="series").explain(X[:5, 0])
    assert shapes == {(6,)} and result.X_cf.shape == (5, 6) and result.valid.all()
    lifted = cf.LineSearch().fit(three_means, X).explain(X[:5])
    np.testing.assert_allclose(result.X_cf, lifted.X_cf[:, 0])


def test_reversed_and_foreign_byte_order_views_are_taken(counting, X):
    plain = cf.NearestUnlike().fit(counting, X).explain(X)
    odd = cf.NearestUnlike().fit(counting, X[::-1].copy()[::-1]).explain(X.astype(">f8"))
    np.testing.assert_array_equal(odd.X_cf, plain.X_cf)


def test_in_the_target_class_but_not_confident_is_searched(counting, X):
    """`already_target` means that nothing is left to do, confidence included."""
    X = np.repeat(np.array([-1.0, 0.05, 2.0]), 6).reshape(3, 1, 6)
    explainer = cf.LineSearch().fit(counting, np.concatenate([X, 3 * X, -X]))
    assert explainer.explain(X, target=1).status.tolist() == ["valid"] + ["already_target"] * 2
    firm = explainer.explain(X, target=1, confidence=0.9)
    assert firm.status.tolist() == ["valid", "valid", "already_target"]
    assert (firm.target_proba[:, 1] >= 0.9).all() and firm.changed_fraction[2] == 0


def test_a_model_that_draws_random_numbers_leaves_them_as_they_were(counting, X):
    """As models of skorch do, whose data loaders draw a seed for every prediction."""

    def drawing(X):
        random.random()
        np.random.random()  # noqa: NPY002 - the global generator is meant
        torch.rand(1)
        return counting(X)

    before = snapshot()
    explainer = cf.LineSearch().fit(drawing, X)
    assert not changes(before, snapshot())
    assert explainer.explain(X[:2]).valid.all()
    assert not changes(before, snapshot())
