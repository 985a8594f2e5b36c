"""The sentences that pictures and the page share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from contrafact.report.words import (
    counted,
    detail,
    digits_apart,
    headline,
    label_text,
    note,
    percent,
    probability_text,
)


def test_headlines(series):
    assert headline(series, 0) == "row 12: 'gun' (0.97) → 'point' (0.62)"
    assert headline(series, 1) == "row 14: 'gun' (0.75) → still 'gun' (0.56), wanted 'point'"
    assert headline(series, 2) == "row 17: already 'point' (0.88)"


def test_headline_of_a_row_the_model_could_not_answer(series):
    silent = replace(series, cf_proba=np.full((3, 2), np.nan), valid=np.zeros(3, dtype=bool))
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


def test_notes_do_not_say_it_twice(series):
    assert note(series, 0) == note(series, 2) == ""
    assert (
        note(series, 1) == "not reached (infeasible): with a frozen window; best P('point') = 0.44"
    )
    remark = replace(series, message=np.array(["2 of 3 counterfactuals", "", ""]))
    assert note(remark, 0) == "2 of 3 counterfactuals"
    assert note(remark, 1) == "not reached (infeasible)"


@pytest.mark.parametrize(
    ("label", "text"),
    [
        (np.str_("gun"), "'gun'"),
        (np.int64(3), "3"),
        (np.bool_(True), "True"),
        ("x" * 40, "'" + "x" * 27 + "…'"),
        ("a\nb", r"'a\nb'"),
        ("日本", "'日本'"),
    ],
)
def test_labels(label, text):
    assert label_text(label) == text
    assert len(text) <= 30


@pytest.mark.parametrize(
    ("p", "text"), [(0.0, "0.00"), (1e-5, "<0.01"), (0.5, "0.50"), (0.9999, ">0.99"), (1.0, "1.00")]
)
def test_no_false_certainty(p, text):
    assert probability_text(p) == text


def test_near_the_boundary_digits_are_added_until_a_class_leads():
    lead = {
        (0.7, 0.3): 2,
        (0.502, 0.498): 3,
        (0.4996, 0.5004): 4,
        (0.5, 0.5): 4,
        (np.nan, np.nan): 4,
    }
    assert {proba: digits_apart(np.array(proba)) for proba in lead} == lead
    assert probability_text(0.5004, 4) == "0.5004" and probability_text(0.0003, 3) == "<0.001"
    assert probability_text(0.9999, 3) == ">0.999"


def test_small_shares_are_not_nothing_and_large_ones_not_all():
    shares = {0: "0 %", 0.0004: "0.04 %", 0.004: "0.4 %", 0.06: "6 %", 0.9999: "99.9 %", 1: "100 %"}
    assert {share: percent(share) for share in shares} == shares


def test_counting():
    assert [
        counted(n, noun)
        for n, noun in [(1, "stretch"), (2, "stretch"), (2, "class"), (2, "region")]
    ] == [
        "1 stretch",
        "2 stretches",
        "2 classes",
        "2 regions",
    ]
