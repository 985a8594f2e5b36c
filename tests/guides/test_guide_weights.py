"""Neighbors in a weighted distance: by arrays and by the relevances of prototype models."""

import numpy as np
import pytest
from guide_cases import brute_force, by_first
from hypothesis import given, settings
from hypothesis import strategies as st

import contrafact as cf
from contrafact.guides import NearestUnlikeNeighbor
from contrafact.prototypes import GLVQ, GMLVQ, GRLVQ, LGMLVQ


def series(seed, n, channels=2, length=6):
    return np.random.default_rng(seed).normal(size=(n, channels, length)).cumsum(2)


def weighted_neighbors(x, reference, weights, k):
    member = by_first(reference).argmax(1) == 1
    root = np.sqrt(np.broadcast_to(weights, x.shape[1:]))
    return brute_force(x * root, reference * root, member, k)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6), k=st.integers(1, 4), shape=st.sampled_from([(2, 6), (6,), (2, 1)])
)
def test_neighbors_equal_a_brute_force_search(seed, k, shape):
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=shape) * (rng.uniform(size=shape) > 0.3) + 1e-3
    reference, x = series(seed, 40), series(seed + 1, 5)
    guide = NearestUnlikeNeighbor(weights=weights).fit(by_first, reference)
    arrays, index = guide.guide(x, 1, k)
    np.testing.assert_array_equal(index, weighted_neighbors(x, reference, weights, k))
    found = index.numpy() >= 0
    np.testing.assert_array_equal(arrays.numpy()[found], reference[index.numpy()[found]])


def test_a_weight_of_zero_ignores_the_value():
    reference, x = series(0, 50), series(1, 6)
    weights = np.ones((2, 6))
    weights[1, 2:] = 0
    guide = NearestUnlikeNeighbor(weights=weights).fit(by_first, reference)
    elsewhere = x.copy()
    elsewhere[:, 1, 2:] += 100
    assert guide.guide(x, 1, 3)[1].tolist() == guide.guide(elsewhere, 1, 3)[1].tolist()
    plain = NearestUnlikeNeighbor().fit(by_first, reference)
    assert guide.guide(x, 1, 3)[1].tolist() != plain.guide(x, 1, 3)[1].tolist()


def test_equal_weights_change_nothing():
    reference, x = series(0, 50), series(1, 6)
    plain = NearestUnlikeNeighbor().fit(by_first, reference).guide(x, 1, 3)[1]
    weighted = NearestUnlikeNeighbor(weights=4.0).fit(by_first, reference).guide(x, 1, 3)[1]
    assert plain.tolist() == weighted.tolist()


def test_diverse_guides_differ_where_it_counts():
    """The second value has no weight, so rows that differ there only are no choice."""
    rng = np.random.default_rng(0)
    first = np.repeat([1.0, 1.5, 2.0], 3)
    reference = np.stack([first, 100 * rng.normal(size=9)], 1)
    guide = NearestUnlikeNeighbor(weights=[1, 0], diverse=True).fit(by_first, reference)
    arrays, _ = guide.guide([[-1.0, 0.0]], 1, k=3)
    assert sorted(arrays[0, :, 0].tolist()) == [1.0, 1.5, 2.0]


@pytest.mark.parametrize("kind", [GRLVQ, GMLVQ])
def test_relevances_of_a_model_are_its_weights(kind):
    data = cf.load_dataset("ItalyPowerDemand")
    lvq = kind(max_iter=5, random_state=0).fit(data.X_train, data.y_train)
    relevances = lvq.relevances_
    if kind is GMLVQ:
        relevances = np.diag(lvq.omega_.T @ lvq.omega_)
    model = cf.as_classifier(lvq)
    x = data.X_test[:20]
    guide = NearestUnlikeNeighbor(weights=lvq).fit(model, data.X_train)
    by_array = NearestUnlikeNeighbor(weights=relevances.reshape(1, -1)).fit(model, data.X_train)
    target = data.y_train[0]
    assert guide.guide(x, target, 3)[1].tolist() == by_array.guide(x, target, 3)[1].tolist()


@pytest.mark.parametrize("method", [cf.CELS(max_iter=20), cf.NativeGuide()])
def test_methods_take_a_guide_and_leave_it_as_it_is(method):
    data = cf.load_dataset("ItalyPowerDemand")
    lvq = GRLVQ(max_iter=5, random_state=0).fit(data.X_train, data.y_train)
    given_guide = NearestUnlikeNeighbor(weights=lvq)
    before = dict(vars(given_guide))
    explainer = method.set_params(guide=given_guide).fit(lvq, data.X_train, data.y_train)
    assert vars(given_guide) == before
    result = explainer.explain(data.X_test[:5])
    alone = NearestUnlikeNeighbor(weights=lvq).fit(lvq, data.X_train)
    for row in range(5):
        expected = alone.guide(data.X_test[row : row + 1], result.target[row])[1]
        assert result.info["guide_index"][row] == int(expected)


def test_a_metric_beside_a_given_guide_is_refused():
    data = cf.load_dataset("ItalyPowerDemand")
    lvq = GLVQ(max_iter=2, random_state=0).fit(data.X_train, data.y_train)
    explainer = cf.NativeGuide(guide=NearestUnlikeNeighbor(), metric="dtw")
    with pytest.raises(ValueError, match="metric='dtw' applies to guides by name"):
        explainer.fit(lvq, data.X_train, data.y_train)


@pytest.mark.parametrize("weights", [[-1.0, 1.0], [np.nan, 1.0], [0.0, 0.0], "relevance", []])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(ValueError, match="weights must be None, a fitted LVQ model"):
        NearestUnlikeNeighbor(weights=weights)


def test_weights_that_do_not_fit_are_refused():
    reference = series(0, 20)
    y = by_first(reference).argmax(1)
    options = {"max_iter": 2, "random_state": 0}
    for weights, reason in [
        ([1.0, 2.0, 3.0], r"weights have shape \(3,\).*instance of shape \(2, 6\)"),
        (GLVQ(**options).fit(reference, y), r"GLVQ has no relevances_.*GRLVQ or GMLVQ"),
        (GRLVQ(**options), "GRLVQ has no relevances_"),
        (LGMLVQ(**options).fit(reference, y), r"relevances of LGMLVQ have shape \(2, 12\)"),
        (GRLVQ(**options).fit(reference[:, :1], y), r"shape \(6,\)"),
    ]:
        with pytest.raises(ValueError, match=reason):
            NearestUnlikeNeighbor(weights=weights).fit(by_first, reference)
    with pytest.raises(ValueError, match=r"weights with metric='dtw'"):
        NearestUnlikeNeighbor("dtw", weights=[1.0])
