"""Relevance of features without labels."""

from __future__ import annotations

import numpy as np
import pytest

from contrafact.prototypes import unsupervised_relevance


@pytest.fixture(scope="module")
def planted():
    """Eight features of two latent numbers, and five of noise whose spread is 20 times theirs."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(150, 2))
    angles = np.linspace(0.2, 3, 8)
    directions = np.stack([np.cos(angles), np.sin(angles)])
    structure = np.tanh(latent @ directions) + 0.1 * rng.normal(size=(150, 8))
    noise = 20 * structure.std() * rng.normal(size=(150, 5))
    return np.column_stack([structure, noise])


def test_noise_of_large_variance_ranks_below_what_hangs_together(planted):
    # A code of 5 numbers has 3 to spare: enough to copy three features of noise, were it let.
    relevance = unsupervised_relevance(planted, random_state=0)
    assert relevance[:8].min() > 0.5
    assert relevance[8:].max() < 0.1
    assert planted.var(0)[8:].min() > planted.var(0)[:8].max()


def test_a_nonlinear_relation_counts():
    # No line through the copies of t tells its square.
    rng = np.random.default_rng(1)
    t = rng.uniform(-2, 2, size=200)
    copies = t[:, None] + 0.1 * rng.normal(size=(200, 4))
    X = np.column_stack([copies, t**2, rng.normal(size=200)])
    relevance = unsupervised_relevance(X, 2, random_state=0)
    assert relevance[4] > 0.5
    assert relevance[5] < 0.1


def test_one_number_tells_less_than_two_where_two_are_behind(planted):
    one = unsupervised_relevance(planted, 1, random_state=0)
    two = unsupervised_relevance(planted, 2, random_state=0)
    assert two[:8].mean() > one[:8].mean() + 0.1


def test_seeds_units_and_constants(planted):
    X = np.column_stack([planted, np.full(len(planted), 3.7)])
    first = unsupervised_relevance(X, max_iter=30, random_state=3)
    assert first[-1] == 0
    again = unsupervised_relevance(X, max_iter=30, random_state=3)
    np.testing.assert_array_equal(first, again)
    other = unsupervised_relevance(X, max_iter=30, random_state=4)
    assert np.abs(first - other).max() > 1e-3
    factors = 10.0 ** np.arange(-6, 8)
    moved = unsupervised_relevance(X * factors + factors, max_iter=30, random_state=3)
    np.testing.assert_allclose(first, moved, atol=1e-4)


@pytest.mark.parametrize(
    "option", [{"n_components": 3}, {"hidden": 5}, {"max_iter": 29}, {"random_state": 1}]
)
def test_every_option_matters(planted, option):
    given = {"max_iter": 30, "random_state": 0}
    plain = unsupervised_relevance(planted, **given)
    assert np.abs(plain - unsupervised_relevance(planted, **{**given, **option})).max() > 1e-4


def test_bad_inputs_are_named(planted):
    with pytest.raises(ValueError, match=r"X has shape \(4, 13\).*at least 5 rows"):
        unsupervised_relevance(planted[:4])
    with pytest.raises(ValueError, match=r"X has shape \(13,\)"):
        unsupervised_relevance(planted[0])
    with pytest.raises(ValueError, match=r"X\[2, 1\] is nan"):
        broken = planted.copy()
        broken[2, 1] = np.nan
        unsupervised_relevance(broken)
    with pytest.raises(ValueError, match="n_components must be"):
        unsupervised_relevance(planted, 0)
    with pytest.raises(ValueError, match="random_state must be"):
        unsupervised_relevance(planted, random_state=-1)
