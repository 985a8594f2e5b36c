"""Formatters: one rule for probabilities, percentages and numbers, and words for rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from contrafact.report.words import (
    class_probability,
    different_texts,
    digits_apart,
    label_text,
    note,
    number_text,
    over_instances,
    percent_text,
    probability_text,
)


def test_notes_do_not_say_it_twice(series):
    assert note(series, 0) == note(series, 2) == ""
    assert (
        note(series, 1) == "not reached (infeasible): with a frozen window; best P('point') = 0.44"
    )
    remark = replace(series, message=np.array(["2 of 3 counterfactuals", "", ""]))
    assert note(remark, 0) == "2 of 3 counterfactuals"
    assert note(remark, 1) == "not reached (infeasible)"


def test_the_best_probability_reads_as_everywhere_else(series):
    message = np.repeat("not reached within [0, 1]; best P('point') = 0.00", 3)
    cf_proba = np.array([[0.999, 0.001]] * 3)
    hopeless = replace(series, message=message, cf_proba=cf_proba)
    assert note(hopeless, 1) == "not reached (infeasible): within [0, 1]; best P('point') < 0.01"
    near = replace(hopeless, cf_proba=np.array([[0.5004, 0.4996]] * 3))
    assert note(near, 1).endswith("best P('point') = 0.4996")


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
    shares = {
        0: "0 %",
        0.0004: "0.04 %",
        0.004: "0.4 %",
        0.06: "6 %",
        0.996: "99.6 %",
        0.9999: "99.9 %",
        1: "100 %",
    }
    assert {share: percent_text(share) for share in shares} == shares


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (2.0, "2"),
        (0.1 + 0.2, "0.3"),
        (0.123456, "0.1235"),
        (-12.3456, "-12.35"),
        (48123.4, "48123"),
        (12344.5, "12345"),
        (1234567.8, "1234568"),
        (999999999.7, "1e+9"),
        (1.5e10, "1.5e+10"),
        (0.0001, "0.0001"),
        (0.00012346, "0.0001235"),
        (0.00001, "1e-5"),
        (-1.23456e-7, "-1.235e-7"),
        (np.nan, "–"),
        (np.inf, "–"),
        (np.float32(0.1), "0.1"),
    ],
)
def test_numbers(value, text):
    assert number_text(value) == text


@pytest.mark.parametrize("digits", [1, 3, 4, 9, 17])
def test_numbers_read_back(digits):
    """As exact as so many digits allow, over all magnitudes."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=500) * 10.0 ** rng.integers(-12, 12, size=500)
    for value in values:
        assert float(number_text(value, digits)) == pytest.approx(
            value, rel=0.51 * 10 ** (1 - digits)
        )


def test_different_numbers_read_differently():
    rng = np.random.default_rng(0)
    for value in rng.normal(size=200) * 10.0 ** rng.integers(-9, 9, size=200):
        before, after = different_texts(value, np.nextafter(value, np.inf))
        assert before != after
    assert different_texts(1.0, 2.0) == ("1", "2")


def test_a_probability_has_the_digits_of_its_row():
    near = np.array([0.50004, 0.49996, 0.0])
    assert [class_probability(near, c) for c in range(3)] == ["0.5000", "0.5000", "0.0000"]
    assert class_probability(np.array([0.5004, 0.4996]), 0) == "0.5004"
    assert class_probability(np.array([0.996, 0.004]), 0) == ">0.99"


def test_means_say_who_was_in_the_target_class_already():
    assert over_instances(5, 2) == "over 5 instances, 2 of them already in the target class"
    assert over_instances(5, 0) == "over 5 instances, none of them already in the target class"
    assert over_instances(5, 5) == "over 5 instances, all of them already in the target class"
    assert over_instances(1, 0) == "over 1 instance, not already in the target class"
    assert over_instances(1, 1) == "over 1 instance, already in the target class"
