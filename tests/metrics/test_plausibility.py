"""Plausibility against plain formulas, written out here."""

from __future__ import annotations

import numpy as np
from plain_formulas import column, plain_dtw, score
from sklearn.neighbors import LocalOutlierFactor


def test_dtw_lof_inlier_is_what_scikit_learn_predicts(make):
    """The published share: LocalOutlierFactor(novelty=True).predict on DTW distances says 1."""
    rng = np.random.default_rng(1)
    reference = rng.normal(size=(30, 8))
    points = reference[:12] + np.linspace(0, 3, 12)[:, None] * rng.normal(size=(12, 8))
    mutual = np.array([[plain_dtw(a[None], b[None]) for b in reference] for a in reference])
    to_rows = np.array([[plain_dtw(a[None], b[None]) for b in reference] for a in points])
    detector = LocalOutlierFactor(novelty=True, metric="precomputed").fit(mutual)
    expected = (detector.predict(to_rows) == 1).astype(float)
    assert 0 < expected.mean() < 1
    np.testing.assert_array_equal(
        score(make, "dtw_lof_inlier", points, reference, modality="series"), expected
    )


def test_ynn_by_hand(make):
    reference = column(0, 1, 2, 3, 4, 10, 11, 12, 13, 14)
    labels = np.array(["a", "a", "a", "b", "b", "b", "b", "b", "b", "c"])
    found = score(make, "ynn", column(1.9, 12, 12), (reference, labels), target=["b", "b", "a"])
    np.testing.assert_allclose(found, [2 / 5, 4 / 5, 0])
    np.testing.assert_allclose(
        score(make, "ynn", column(0), (reference[2:4], labels[2:4])), [1 / 2]
    )


def test_connectedness_by_hand(make):
    # The third neighbor is 2 away inside and 3 at the ends; of 100 it is 93 away, so 100 is no core
    # row.
    reference, labels = column(*range(10), 100, 50, 60), ["b"] * 11 + ["a", "c"]
    points = column(12, 12.5, 99, -3, 50)
    found = score(make, "connectedness", points, (reference, labels), target=["b"] * 4 + ["a"])
    np.testing.assert_array_equal(found, [1, 0, 0, 1, np.nan])
