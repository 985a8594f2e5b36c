"""Verdicts: made, selected, joined."""

import numpy as np
import pytest
import torch

from contrafact.models import Verdict, as_classifier

X = np.random.default_rng(0).normal(size=(30, 6))


def two_columns(X):
    p = 1 / (1 + np.exp(-X.reshape(len(X), -1)[:, 0]))
    return np.stack([1 - p, p], 1)


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
