"""Verdicts: made, selected, joined."""

import numpy as np
import pytest
import torch

import contrafact as cf
from contrafact.models import Verdict, as_classifier

X = np.random.default_rng(0).normal(size=(30, 6))


def two_columns(X):
    p = 1 / (1 + np.exp(-X.reshape(len(X), -1)[:, 0]))
    return np.stack([1 - p, p], 1)


class Estimator:
    """An estimator whose probabilities are `factor` times too large."""

    classes_ = np.array([0, 1])

    def __init__(self, factor):
        self.factor = factor

    def predict_proba(self, X):
        return self.factor * two_columns(X)

    def predict(self, X):
        return self.predict_proba(X).argmax(1)


def test_verdict_selects_and_joins():
    verdict = as_classifier(two_columns).verdict(X)
    order = torch.tensor([4, 0, 17])
    picked = verdict[order]
    joined = Verdict.concat([verdict[order[:1]], verdict[order[1:]]])
    for name in ("proba", "label", "score"):
        assert torch.equal(getattr(picked, name), getattr(verdict, name)[order])
        assert torch.equal(getattr(joined, name), getattr(picked, name))


def test_score_of_an_impossible_class_is_finite():
    verdict = Verdict.of_proba(torch.tensor([[0.0, 1.0], [0.25, 0.75]]))
    assert verdict.score.isfinite().all()
    assert verdict.label.tolist() == [1, 1]
    assert verdict.score[1].exp().tolist() == pytest.approx([0.25, 0.75])


@pytest.mark.parametrize("factor", [7, 0.5, -1, np.inf])
@pytest.mark.parametrize("make", [Estimator, lambda factor: Estimator(factor).predict_proba])
def test_what_cannot_be_a_probability_is_refused(make, factor):
    """It gave P(target) = 5.29, valid, at a confidence of 0.9."""
    model = make(factor)
    for ask in (as_classifier(model).predict_proba, as_classifier(model).predict):
        with pytest.raises(ValueError, match=r"must give probabilities.* that sum to 1.*but a row"):
            ask(X)
    with pytest.raises(ValueError, match="must give probabilities"):
        cf.NearestUnlike().fit(model, X, two_columns(X).argmax(1))


def test_rounded_probabilities_and_missing_ones_are_taken():
    as_classifier(Estimator(1.04)).predict(X)
    proba = as_classifier(Estimator(np.nan)).predict_proba(X)
    assert np.isnan(proba).all()


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize("size", [1e-30, 1e-300])
def test_logits_that_the_softmax_cannot_tell_apart_decide(size):
    """The softmax of logits near 1e-30 ties; the larger logit is the module's decision."""
    module = torch.nn.Linear(6, 2, bias=False).double()
    with torch.no_grad():
        module.weight[:] = size * torch.tensor([[1.0], [-1.0]], dtype=torch.double)
    rows = torch.from_numpy(X)
    label = as_classifier(module).predict(X)
    assert label.tolist() == module(rows).argmax(1).tolist()
    assert len(set(label.tolist())) == 2
