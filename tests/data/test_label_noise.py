"""Rows that disagree with their neighbors: planted wrong labels are found."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from contrafact.data import disagreeing_rows, load_dataset


def digits(n=600):
    X, y = load_digits(return_X_y=True)
    return X[:n], y[:n]


def with_wrong_labels(y, share, seed=0):
    """Give a share of the rows one of the other labels; returns the labels and who has them."""
    rng = np.random.default_rng(seed)
    classes = np.unique(y)
    wrong = rng.choice(len(y), round(share * len(y)), replace=False)
    shift = rng.integers(1, len(classes), len(wrong))
    column = np.searchsorted(classes, y)
    column[wrong] = (column[wrong] + shift) % len(classes)
    planted = np.zeros(len(y), dtype=bool)
    planted[wrong] = True
    return classes[column], planted


def test_neighbors_are_those_of_brute_force():
    X, y = digits(80)
    X = X + 1e6  # far from the origin, where products of rows would cancel
    distance = np.linalg.norm(X[:, None] - X[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    nearest = distance.argsort(axis=1)[:, :7]
    votes = [np.bincount(labels, minlength=10) for labels in y[nearest]]
    own = np.array([vote[label] for vote, label in zip(votes, y, strict=True)])
    found = disagreeing_rows(X, y, k=7)
    np.testing.assert_allclose(found.agreement, own / 7)
    assert found.mask.tolist() == [bool(vote.max() > n) for vote, n in zip(votes, own, strict=True)]


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_planted_labels_are_found_among_digits(share):
    X, y = digits()
    noisy, planted = with_wrong_labels(y, share)
    found = disagreeing_rows(X, noisy)
    assert found.mask[planted].mean() > 0.95
    assert found.mask[~planted].mean() < 0.05
    assert abs(found.noise - share) < 0.03


def test_planted_labels_are_found_among_series():
    data = load_dataset("GunPoint")
    X = np.concatenate([data.X_train, data.X_test])
    y = np.concatenate([data.y_train, data.y_test])
    noisy, planted = with_wrong_labels(y, 0.1)
    clean = disagreeing_rows(X, y)
    found = disagreeing_rows(X, noisy)
    assert found.mask[planted].mean() > 0.8
    assert found.noise - clean.noise == pytest.approx(0.1, abs=0.03)


def test_labels_without_relation_to_the_rows_are_all_noise():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = rng.integers(0, 4, size=400)
    assert disagreeing_rows(X, y, k=20).noise == pytest.approx(0.75, abs=0.15)


def test_text_labels_images_and_one_class():
    X = np.arange(12.0).reshape(6, 1, 1, 2)
    y = np.array(["a", "a", "a", "b", "b", "b"])
    flat = disagreeing_rows(X.reshape(6, 2), y, k=2)
    assert (disagreeing_rows(X, y, k=2).agreement == flat.agreement).all()
    alone = disagreeing_rows(X, np.full(6, "a"), k=2)
    assert not alone.mask.any()
    assert alone.noise == 0


def test_a_tie_is_no_disagreement():
    X = [[0.0], [1.0], [1.1], [2.5], [2.6]]
    y = ["a", "a", "b", "b", "b"]
    found = disagreeing_rows(X, y, k=2)
    assert found.agreement.tolist() == [0.5, 0.5, 0.0, 1.0, 1.0]
    assert found.mask.tolist() == [False, False, True, False, False]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (([[1.0], [2.0]], [0, 1], 2), "k = 2, X has 2 rows"),
        (([[1.0], [2.0]], [0, 1], 0), "k must be a whole number at least 1"),
        (([[1.0], [2.0]], [0], 1), r"y has shape \(1,\)"),
        (([[1.0], [float("nan")]], [0, 1], 1), r"X\[1\] contains NaN"),
        (([1.0, 2.0], [0, 1], 1), r"X has shape \(2,\)"),
    ],
)
def test_bad_input_is_refused(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        disagreeing_rows(*arguments)
