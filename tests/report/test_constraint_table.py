"""The table of constraints: each one in words, and which rows keep it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from contrafact import Constraints
from contrafact.report.constraint_table import kept_constraints

REACHED = {"proba": [[0.9, 0.1]], "cf_proba": [[0.2, 0.8]]}


def test_finds_each_limit_broken(make):
    X = np.zeros((4, 1, 5))
    X_cf = X.copy()
    X_cf[0, 0, 2], X_cf[1, 0, 2], X_cf[2, 0, 4] = -3, 3, 1
    result = make(X, X_cf, [[0.9, 0.1]] * 4, [[0.1, 0.9]] * 4)
    limits = Constraints(lower=-2.0, upper=2.0, frozen=np.arange(5) > 3, max_step=2.5)
    kept = kept_constraints(result, limits)
    assert {words: np.flatnonzero(~rows).tolist() for words, rows in kept.items()} == {
        "nothing below -2": [0],
        "nothing above 2": [1],
        "1 of 5 values frozen": [2],
        "no step larger than 2.5": [0, 1],
    }


@pytest.mark.parametrize(
    "bound", [1.0, [1.0, 2.0], [[1.0], [2.0]], np.ones((2, 5)), [1, 1, 1, 1, 2.0]]
)
def test_bounds_of_every_shape(make, bound):
    X = np.zeros((1, 2, 5))
    result = make(X, X + 1, **REACHED)
    (words,) = kept_constraints(result, Constraints(upper=bound))
    assert kept_constraints(result, Constraints(upper=bound))[words].tolist() == [True]
    assert kept_constraints(result, Constraints(lower=np.asarray(bound) + 0.5)).popitem()[
        1
    ].tolist() == [False]
    same = np.ptp(bound) == 0
    assert words == (
        "nothing above 1" if same else "nothing above a bound of its own each, from 1 to 2"
    )


def test_names_what_is_limited_and_keeps_silent_of_infinity(make):
    result = make(np.zeros((1, 3)), np.ones((1, 3)), **REACHED, modality="row")
    result = replace(result, names=np.array(["age", "glucose", "temp"]))
    limits = Constraints(np.full(3, -np.inf), [np.inf, 12.0, np.inf], frozen=[True, False, True])
    assert list(kept_constraints(result, limits)) == [
        "nothing above 12 in glucose",
        "2 of 3 values frozen: age and temp",
    ]


def test_spares_those_not_to_be_changed_and_nothing_at_all(series):
    strict = Constraints(upper=-100.0, max_step=1e-9)
    assert [rows.tolist() for rows in kept_constraints(series, strict).values()] == [
        [False, False, True]
    ] * 2
    assert [rows.tolist() for rows in kept_constraints(series[:0], strict).values()] == [[], []]


def test_forgives_the_rounding_of_the_instance_itself(make):
    X = np.full((1, 3), 0.1 + 1e-10)
    assert kept_constraints(make(X, X, **REACHED), Constraints(upper=0.1))[
        "nothing above 0.1"
    ].all()
    assert not kept_constraints(make(X - 1, X, **REACHED), Constraints(upper=0.1))[
        "nothing above 0.1"
    ].any()


def test_steps_per_channel(make):
    X = np.zeros((1, 2, 5))
    X_cf = X.copy()
    X_cf[0, 1, 2] = 2
    result = make(X, X_cf, **REACHED)
    words = {
        (1.0, np.inf): "no step larger than 1 in channel 0",
        (1.0, 2.0): "no step larger than a bound of its own each, from 1 to 2",
        (3.0, 1.0): "no step larger than a bound of its own each, from 1 to 3",
    }
    for limit, told in words.items():
        kept = kept_constraints(result, Constraints(max_step=limit))
        assert {text: rows.tolist() for text, rows in kept.items()} == {told: [limit[1] >= 2]}
    assert kept_constraints(result, Constraints(max_step=np.inf)) == {}
