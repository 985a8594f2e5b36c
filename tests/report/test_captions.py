"""Captions: the class before and after, how much changed, who did it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from contrafact.report.captions import change_text, detail, headline
from contrafact.report.sentences import outcome


def test_headlines(series):
    assert headline(series, 0) == "row 12: 'gun' (0.97) → 'point' (0.62)"
    assert headline(series, 1) == "row 14: 'gun' (0.75) → still 'gun' (0.56), wanted 'point'"
    assert headline(series, 2) == "row 17: already 'point' (0.88)"


def test_headline_of_a_row_the_model_could_not_answer(silent):
    assert headline(silent, 0) == "row 12: 'gun' (0.97) → no answer, wanted 'point'"
    assert "0.03 → unknown" in detail(silent, 0)


def test_headline_counts_siblings(series):
    assert headline(replace(series, source=np.array([3, 3, 4])), 1).startswith("row 3 (2 of 2): ")


def test_details(series):
    assert (
        detail(series, 0)
        == "12 % of the values changed, in 3 stretches   ·   P('point'): 0.03 → 0.62   ·   CELS"
    )
    assert detail(series, 2).startswith("nothing changed")


def test_changes_of_images_are_those_that_can_be_seen(make):
    x = np.zeros((1, 1, 4, 5))
    x[..., 0, 0] = 1
    x_cf = x + 1e-3
    p = {"proba": [[0.9, 0.1]], "cf_proba": [[0.2, 0.8]], "modality": "image"}
    assert change_text(make(x, x_cf, **p), 0) == "no pixel changed visibly"
    x_cf[..., 3, 3] = x_cf[..., 1, 1] = 0.5
    result = make(x, x_cf, **p)
    assert change_text(result, 0) == "10 % of the pixels changed visibly, in 2 regions"
    assert "Typical change: 10 % of the pixels visibly, in 2 regions" in " ".join(outcome(result))
    assert change_text(make(x, x, **p), 0) == "nothing changed"
