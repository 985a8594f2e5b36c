"""Sets of counterfactuals, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from contrafact.metrics import evaluate

RIDGE = 1e-6


@pytest.fixture
def sets(make):
    """Counterfactuals of the instances `source`, k asked for each."""

    def build(points, source, *, valid=None, k=1, **other):
        points = np.array(points, dtype=float)
        valid = np.ones(len(points), int) if valid is None else np.array(valid, int)
        return make(
            np.zeros_like(points),
            points,
            np.eye(2)[valid * 0],
            np.eye(2)[valid],
            modality="row",
            source=np.array(source),
            provenance={"options": {"k": k}},
            **other,
        )

    return build


def pair(distance):
    """log det of the kernel of two points this far apart."""
    return np.log((1 + RIDGE) ** 2 - 1 / (1 + distance) ** 2)


def test_diversity_by_hand(sets):
    # Sets stand mixed; 3 and 1 in both values is a distance of 2, per value.
    points = [[1, 1], [0, 0], [3, 3], [0, 0], [7, 7]]
    found = evaluate(sets(points, [5, 2, 5, 2, 0]), "diversity")["diversity"]
    expected = [pair(2), pair(0), pair(2), pair(0), np.nan]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_identical_counterfactuals_have_the_least_diversity_and_no_nan(sets):
    rng = np.random.default_rng(0)
    alike = evaluate(sets(np.ones((3, 4)), [0] * 3), "diversity")["diversity"]
    assert np.isfinite(alike).all()
    for _ in range(20):
        points = rng.normal(size=(3, 4)) * 10.0 ** rng.integers(-6, 2)
        points[1] = points[rng.integers(0, 2)]
        other = evaluate(sets(points, [0] * 3), "diversity")["diversity"]
        assert (other >= alike - 1e-9).all()


def test_one_that_did_not_come_is_a_copy(sets):
    """The engine drops counterfactuals that are alike; that must not look better."""
    dropped = evaluate(sets([[1, 1]], [0], k=2), "diversity")["diversity"]
    np.testing.assert_allclose(dropped, [pair(0)], rtol=1e-6)
    two_of_three = evaluate(sets([[1, 1], [3, 3]], [0, 0], k=3), "diversity")["diversity"]
    kept = evaluate(sets([[1, 1], [3, 3], [1, 1]], [0, 0, 0], k=3), "diversity")["diversity"]
    np.testing.assert_allclose(two_of_three, kept[:2], rtol=1e-9)


def test_one_that_is_not_valid_is_a_copy(sets):
    """Else any junk far away would look diverse."""
    points = [[1, 1], [100, -100], [3, 3]]
    found = evaluate(sets(points, [0] * 3, valid=[True, False, True], k=3), "diversity")
    kept = evaluate(sets([[1, 1], [1, 1], [3, 3]], [0] * 3, k=3), "diversity")
    np.testing.assert_allclose(found["diversity"], kept["diversity"], rtol=1e-9)
    none = evaluate(sets(points, [0] * 3, valid=[False] * 3, k=3), "diversity")["diversity"]
    alike = evaluate(sets(np.ones((3, 2)), [0] * 3, k=3), "diversity")["diversity"]
    np.testing.assert_allclose(none, alike, rtol=1e-9)


def test_coverage_by_hand(sets):
    points = [[1, 1], [1, 1], [2, 2], [3, 3], [4, 4], [1, 1]]
    result = sets(points, [0, 0, 0, 1, 1, 2], valid=[True, True, True, True, False, False], k=3)
    # Of three asked for: two distinct; one valid; none.
    np.testing.assert_allclose(
        evaluate(result, "coverage")["coverage"], [2 / 3, 2 / 3, 2 / 3, 1 / 3, 1 / 3, 0]
    )


def test_an_instance_already_there_was_asked_for_no_more(sets):
    result = sets([[0, 0]], [0], k=3, labels=np.array(["b"]), status=np.array(["already_target"]))
    frame = evaluate(result, ["coverage", "diversity"])
    np.testing.assert_array_equal(frame[["coverage", "diversity"]], [[1, np.nan]])
