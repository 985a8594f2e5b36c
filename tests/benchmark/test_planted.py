"""The planted cause is where it is said to be, and no smaller edit turns the rule."""

import pickle

import cvxpy as cp
import numpy as np
import pytest

from contrafact.benchmark import planted_series

NORMS = [1, 2, "inf"]


def test_the_rule_labels_the_data_and_is_fair(planted):
    data = planted.dataset
    for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test)):
        assert (planted.model.predict(X) == y).all()
        assert (y == "present").mean() == 0.5
    assert planted.model.differentiable


def test_the_place_is_the_cause(planted):
    """Values at the region from the other class turn the class; all the other values do not."""
    X, y = planted.dataset.X_test, planted.dataset.y_test
    present = X[y == "present"]
    region = planted.region(present)
    silent = planted.places.any(0)
    other = X[y == "absent"]
    assert (planted.model.predict(np.where(region, other, present)) == "absent").all()
    assert (planted.model.predict(np.where(silent, present, other)) == "present").all()


def test_regions_are_single_places(planted):
    region = planted.region(planted.dataset.X_test)
    assert (region.reshape(len(region), -1).sum(1) == planted.places[0].sum()).all()
    used = {mask.tobytes() for mask in region}
    assert used == {place.tobytes() for place in planted.places}


def test_same_seed_same_data():
    one, again, other = (planted_series(20, 32, random_state=s).dataset for s in (0, 0, 1))
    np.testing.assert_array_equal(one.X_train, again.X_train)
    assert not np.array_equal(one.X_train, other.X_train)


def test_smooth_is_smoother():
    rough, smooth = (
        planted_series(40, 200, background=b).dataset.X_train for b in ("noise", "smooth")
    )
    assert np.abs(np.diff(smooth)).mean() < 0.6 * np.abs(np.diff(rough)).mean()


def test_planted_data_can_be_sent_to_another_process(planted):
    again = pickle.loads(pickle.dumps(planted))
    X = planted.dataset.X_test
    np.testing.assert_array_equal(again.model.predict(X), planted.dataset.y_test)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"width": 30, "places": 2}, "places=2 of width=30 do not fit into length=48"),
        ({"width": 1}, "width must be a whole number at least 2"),
        ({"n": 2}, "n must be a whole number at least 4"),
        ({"noise": -3}, "noise must be a number at least 0"),
        ({"random_state": None}, "random_state must be a whole number"),
        ({"channels": "1"}, "channels must be a whole number"),
        ({"background": "pink"}, "background must be 'noise' or 'smooth', got 'pink'"),
    ],
)
def test_requests_are_checked(wrong, said):
    with pytest.raises(ValueError, match=said):
        planted_series(**({"n": 20, "length": 48} | wrong))


@pytest.mark.parametrize("norm", NORMS)
def test_the_edit_turns_the_class_at_its_end_and_not_before(planted, norm):
    X, y = planted.dataset.X_test, planted.dataset.y_test
    delta = planted.smallest_edit(X, norm)
    assert (planted.model.predict(X + (1 + 1e-6) * delta) != y).all()
    assert (planted.model.predict(X + (1 - 1e-6) * delta) == y).all()
    order = np.inf if norm == "inf" else norm
    np.testing.assert_allclose(
        planted.smallest(X, norm), np.linalg.norm(delta.reshape(len(X), -1), order, axis=1)
    )


@pytest.mark.parametrize("norm", NORMS)
def test_nothing_smaller_turns_the_class_says_cvxpy(planted, norm):
    """All places at most b for "absent", the best of one program per place for "present"."""
    X = planted.dataset.X_test[:8]
    filters = planted.model.module.filters.numpy().reshape(len(planted.places), -1)
    found = planted.smallest(X, norm)
    for x, y, smallest in zip(X.reshape(len(X), -1), planted.dataset.y_test, found, strict=False):
        delta = cp.Variable(x.size)
        z = filters @ (x + delta)
        ways = (
            [[z <= planted.threshold]]
            if y == "present"
            else [[zi >= planted.threshold] for zi in z]
        )
        problems = [cp.Problem(cp.Minimize(cp.norm(delta, norm)), way) for way in ways]
        assert min(p.solve() for p in problems) == pytest.approx(smallest, rel=1e-3)


def test_several_causes_have_all_to_go():
    """Two waves in one series: each excess counts, and the closed form is what cvxpy finds."""
    planted = planted_series(40, 48, width=8, places=3, noise=0.1)
    X, y = planted.dataset.X_test, planted.dataset.y_test
    x = X[y == "present"][:1].copy()
    second = next(place for place in planted.places if not (planted.region(x)[0] & place).any())
    x[0][second] += planted.template
    assert planted.region(x).sum() == 16
    assert planted.model.predict(x + (1 + 1e-6) * planted.smallest_edit(x)).tolist() == ["absent"]
    delta = cp.Variable(48)
    filters = planted.model.module.filters.numpy().reshape(3, -1)
    problem = cp.Problem(
        cp.Minimize(cp.norm(delta)), [filters @ (x.ravel() + delta) <= planted.threshold]
    )
    assert problem.solve() == pytest.approx(planted.smallest(x)[0], rel=1e-4)


def test_no_random_edit_of_the_smallest_size_turns_the_class(planted):
    rng = np.random.default_rng(0)
    X, y = planted.dataset.X_test, planted.dataset.y_test
    for i in range(4):
        step = rng.normal(size=(2000, *X.shape[1:])) * planted.places.any(0)
        step *= (
            0.999 * planted.smallest(X[i : i + 1]) / np.linalg.norm(step.reshape(2000, -1), axis=1)
        ).reshape(-1, *[1] * (X.ndim - 1))
        assert (planted.model.predict(X[i] + step) == y[i]).all()


def test_unknown_norms_are_refused(planted):
    with pytest.raises(ValueError, match="norm must be 1, 2 or 'inf', got 3"):
        planted.smallest(planted.dataset.X_test, 3)
