"""The request: frozen, checked, and fair in sharing the budget."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from contrafact.engine import Budget, Constraints, Request


def test_a_request_can_not_be_changed():
    with pytest.raises(FrozenInstanceError):
        Request().confidence = 0.9


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("k", 0, ValueError),
        ("k", 2.0, ValueError),
        ("refine", "no", ValueError),
        ("refine", None, ValueError),
        ("refine", 1, ValueError),
        ("confidence", 0.0, ValueError),
        ("confidence", "high", ValueError),
        ("on_error", "ignore", ValueError),
        ("budget", 100, TypeError),
        ("constraints", {"lower": 0}, TypeError),
    ],
)
def test_options_are_checked(option, value, error):
    with pytest.raises(error, match=f"explain: {option} must be .*, got "):
        Request(**{option: value})


def test_the_goal_is_the_confidence_or_nothing():
    assert Request().goal == 0.0 and Request(confidence=0.8).goal == 0.8


def test_unsupported_constraints_are_named():
    request = Request(constraints=Constraints(0.0, frozen=np.ones(3, bool), max_step=1.0))
    request.check_supported()
    with pytest.raises(ValueError, match="cannot keep frozen, max_step; it supports bounds"):
        request.check_supported(frozenset({"bounds"}))


def test_true_is_the_minimal_refinement():
    given = [False, True, "minimal", "believable"]
    assert [Request(refine=refine).refinement for refine in given] == [
        None,
        "minimal",
        "minimal",
        "believable",
    ]
    assert Request(refine=True).describe()["refine"] == "minimal"


def test_every_instance_gets_the_same_share():
    meter = Request(budget=Budget(calls=100), k=2).meter(n=7, rows_per_verdict=2)
    assert meter.allowance.tolist() == [14 - 2 * 3] * 7  # before and two answers, two rows each


def test_what_is_described_are_plain_values():
    request = Request(Constraints(upper=1.0), k=3, budget=Budget(seconds=2.0), confidence=0.7)
    assert request.describe() == {
        "k": 3,
        "refine": False,
        "confidence": 0.7,
        "committee": None,
        "constraints": ["bounds"],
        "budget": {"calls": None, "seconds": 2.0},
    }
