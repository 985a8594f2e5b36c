"""Captions: the class before and after, how much changed, who did it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from contrafact.report.captions import detail, headline


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
