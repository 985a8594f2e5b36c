"""Elastic dissimilarities by their definition, and the pruned search of the nearest prototype."""

import inspect

import numpy as np
import pytest
from aeon.distances import dtw_pairwise_distance, get_distance_function, msm_distance

from contrafact.prototypes import dissimilarity
from contrafact.prototypes.dissimilarity import (
    ELASTIC_OPTIONS,
    check_metric_options,
    dtw_distances,
    elastic_distances,
    nearest_by_dtw,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 2, 12)).cumsum(-1)
Y = RNG.normal(size=(4, 2, 12)).cumsum(-1)


@pytest.mark.parametrize("window", [None, 0.0, 0.1, 0.29, 1.0])
def test_dtw_is_that_of_aeon(window):
    np.testing.assert_allclose(
        dtw_distances(X, Y, window), dtw_pairwise_distance(X, Y, window=window)
    )
    own = dtw_distances(X, None, window)
    np.testing.assert_array_equal(own, own.T)
    np.testing.assert_allclose(own, dtw_pairwise_distance(X, window=window))


def test_blocks_do_not_matter(monkeypatch):
    whole = dtw_distances(X, Y, 0.2), dtw_distances(X, None, 0.2)
    monkeypatch.setattr(dissimilarity, "BLOCK", 9)
    for one, other in zip(
        whole, (dtw_distances(X, Y, 0.2), dtw_distances(X, None, 0.2)), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_other_metrics_are_those_of_aeon():
    """One of them: each takes seconds to compile."""
    theirs = [[msm_distance(x, y, window=0.3, c=0.2) for y in Y] for x in X]
    np.testing.assert_allclose(elastic_distances(X, Y, "msm", 0.3, {"c": 0.2}), theirs)


@pytest.mark.parametrize("metric", sorted(set(ELASTIC_OPTIONS) - {"dtw", "soft_dtw"}))
def test_parameters_go_to_aeon(monkeypatch, metric):
    params = dict.fromkeys(ELASTIC_OPTIONS[metric], 0.5)
    asked = []

    def pairwise(X, Y, **options):
        asked.append(options)
        return np.zeros((len(X), len(Y)))

    monkeypatch.setattr("aeon.distances.pairwise_distance", pairwise)
    elastic_distances(X, Y, metric, 0.25, params)
    assert asked[0].items() >= {"method": metric, "window": 0.25, **params}.items()
    known = inspect.signature(get_distance_function(metric)).parameters
    assert {"window", *params} <= set(known)


def test_smoothing_of_soft_dtw():
    sharp, soft = (elastic_distances(X, Y, "soft_dtw", None, {"gamma": g}) for g in (1e-4, 10.0))
    np.testing.assert_allclose(sharp, dtw_distances(X, Y, None), rtol=1e-3)
    assert np.abs(soft - sharp).max() > 0.1
    np.testing.assert_array_equal(
        elastic_distances(X, Y, "soft_dtw"),
        elastic_distances(X, Y, "soft_dtw", 1.0, {"gamma": 1.0}),
    )


@pytest.mark.parametrize(
    ("metric", "window", "params", "message"),
    [
        ("euclidean", 0.1, None, "window=0.1 needs metric='dtw' or .*, got 'euclidean'"),
        ("dtw", None, {"g": 1}, "metric_params holds 'g'; metric='dtw' takes no arguments"),
        ("msm", None, {"window": 0.1}, "metric_params holds 'window'; it is an option of its own"),
        ("twe", None, {"nu": -1.0}, "nu must be a number at least 0, got -1.0"),
        ("precomputed", None, {"g": 1}, "metric='precomputed' takes no arguments"),
    ],
)
def test_refusals_name_what_was_given(metric, window, params, message):
    with pytest.raises(ValueError, match=message):
        check_metric_options(metric, window, params)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("window", [None, 0.0, 0.1])
def test_pruned_search_finds_the_first_of_the_nearest(window, channels):
    """Also where prototypes coincide, and where a series is a prototype."""
    rng = np.random.default_rng(1)
    W = rng.normal(size=(12, channels, 30)).cumsum(-1)
    W[7] = W[3]
    W[5] += 40
    Z = np.concatenate([W, W + 0.3 * rng.normal(size=W.shape), rng.normal(size=(20, channels, 30))])
    nearest, computed = nearest_by_dtw(Z, W, window)
    np.testing.assert_array_equal(nearest, dtw_distances(Z, W, window).argmin(1))
    assert nearest[7] == 3
    assert computed.min() >= 1
    assert computed.mean() < 9


def test_one_time_step():
    points = np.array([0.0, 1.0, 5.0]).reshape(3, 1, 1)
    assert dtw_distances(points, None, None)[0].tolist() == [0, 1, 25]
    assert nearest_by_dtw(points + 0.1, points, None)[0].tolist() == [0, 1, 2]


def test_each_pair_of_soft_dtw_is_computed_once(monkeypatch):
    series = np.random.default_rng(0).normal(size=(7, 1, 12))
    both = elastic_distances(series, series, "soft_dtw", 0.3)
    monkeypatch.setattr(dissimilarity, "BLOCK", 10)
    pairs = []
    of_pairs = dissimilarity.soft_dtw

    def counted(x, w, importance, first, second, *options):
        pairs.extend(zip(first.tolist(), second.tolist(), strict=True))
        return of_pairs(x, w, importance, first, second, *options)

    monkeypatch.setattr(dissimilarity, "soft_dtw", counted)
    found = elastic_distances(series, None, "soft_dtw", 0.3)
    np.testing.assert_allclose(found, both, atol=1e-9)
    assert len(pairs) == len(set(pairs)) == 7 * 8 // 2
