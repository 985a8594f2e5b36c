"""One meaning of "changed": everything follows `Counterfactuals.changed`, tolerance included."""

from __future__ import annotations

import json
from base64 import b64decode

import numpy as np
import pytest

from contrafact.engine.result import Counterfactuals
from contrafact.report import plot
from contrafact.report.captions import change_text
from contrafact.report.comparison import answer_lines, answers_for
from contrafact.report.page_metrics import page_scores
from contrafact.report.pairs import changed_mask, pair, relative_change
from contrafact.report.payload import payload
from contrafact.report.sentences import sentence

REACHED = {"proba": [[0.9, 0.1]], "cf_proba": [[0.2, 0.8]]}


def above_rounding(result):
    """The mask of changes larger than a millionth of the row's largest."""
    size = np.abs(np.asarray(result.X_cf) - np.asarray(result.X))
    largest = size.reshape(len(size), -1).max(1, initial=0.0)
    return size > 1e-6 * largest.reshape(-1, *[1] * (size.ndim - 1))


@pytest.fixture
def noisy(make, monkeypatch):
    """A series of twenty steps: three changed, all others moved by rounding."""
    monkeypatch.setattr(Counterfactuals, "changed", property(above_rounding))
    X = np.random.default_rng(0).normal(size=(1, 20))
    X_cf = X + 1e-9
    X_cf[0, 5:8] += 2
    return make(X, X_cf, **REACHED)


def test_pairs_have_a_channel_axis(series, noisy):
    assert pair(series, 0)[0].shape == changed_mask(series, 0).shape == (2, 20)
    assert pair(noisy, 0)[0].shape == changed_mask(noisy, 0).shape == (1, 20)
    assert np.flatnonzero(changed_mask(noisy, 0)).tolist() == [5, 6, 7]


def test_rounding_is_no_change_anywhere(noisy):
    assert sentence(noisy, 0).endswith("would have to be higher between t = 5 and 7.")
    assert change_text(noisy, 0) == "15 % of the values changed, in 1 stretch"
    assert "15 % changed" in answer_lines(answers_for({"m": noisy}, 0)[0])
    spans = [ax.patches for ax in plot(noisy, 0).axes if ax.get_ylabel()]
    assert [len(patches) for patches in spans] == [1]
    content = payload({"m": noisy}, {"m": page_scores(noisy, None)}, None, None)
    answer = json.loads(json.dumps(content))["instances"][0]["answers"][0][0]
    bits = np.unpackbits(np.frombuffer(b64decode(answer["mask"]), np.uint8), bitorder="little")
    assert np.flatnonzero(bits).tolist() == [5, 6, 7]
    assert answer["changed_text"] == answer["scores"][0] == "15 %"


def test_features_moved_by_rounding_are_not_listed(make, monkeypatch):
    monkeypatch.setattr(Counterfactuals, "changed", property(above_rounding))
    X = np.array([[1.0, 2.0, 3.0]])
    X_cf = np.array([[1.0 + 1e-9, 3.0, 3.0]])
    result = make(X, X_cf, **REACHED, modality="row")
    assert sentence(result, 0).endswith("this row would need feature 1 3 instead of 2.")
    assert change_text(result, 0) == "1 of 3 features changed"
    content = payload({"m": result}, {"m": page_scores(result, None)}, None, None)
    features = content["instances"][0]["answers"][0][0]["features"]
    assert [line["feature"] for line in features] == [1]


def test_relative_change():
    change = relative_change(np.array([0.0, 2.0, 1.0, -1.0]), np.array([0.0, 1.0, 1.0, 1.0]))
    assert change.tolist() == [0.0, 0.5, 0.0, 2.0]
