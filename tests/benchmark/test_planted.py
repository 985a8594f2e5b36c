"""The planted cause is where it is said to be, and nothing smaller than the closed form turns the rule."""

import pickle

import cvxpy as cp
import numpy as np
import pytest

from contrafact.benchmark.planted import (
    localization,
    optimality_gap,
    planted_images,
    planted_series,
)
from contrafact.engine import Candidates, Constraints, Counterfactuals
from contrafact.explainers import SVCE, LineSearch, NearestUnlike
from contrafact.explainers.support.explainer import Explainer

NORMS = [1, 2, "inf"]
CASES = {
    "linear": lambda: planted_series(40, 48, width=8),
    "several places": lambda: planted_series(40, 48, width=7, places=3, channels=2),
    "smooth": lambda: planted_series(
        40, 48, width=8, places=2, background="smooth", random_state=4
    ),
    "image": lambda: planted_images(40, 12, width=4, places=3),
}


@pytest.fixture(scope="module", params=CASES)
def planted(request):
    return CASES[request.param]()


# --- the data and the rule ----------------------------------------------------------------------------------


def test_the_rule_labels_the_data_and_is_fair(planted):
    data = planted.dataset
    for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test)):
        assert (planted.model.predict(X) == y).all()
        assert (y == "present").mean() == 0.5
    assert planted.model.differentiable


def test_the_place_is_the_cause(planted):
    """Swapping in the values at the region of an instance of the other class turns the class; swapping all
    the others does not."""
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
        ({"width": 1}, "width of at least 2"),
        ({"n": 2}, "n must be at least 4"),
        ({"background": "pink"}, "background must be 'noise' or 'smooth', got 'pink'"),
    ],
)
def test_requests_are_checked(wrong, said):
    with pytest.raises(ValueError, match=said):
        planted_series(**({"n": 20, "length": 48} | wrong))


# --- the smallest edit --------------------------------------------------------------------------------------


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
    """present → absent: all places at most b at once; absent → present: the best of one program per place."""
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
    """Two waves in one series: each excess counts, and the closed form is still what cvxpy finds."""
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


# --- the scores ---------------------------------------------------------------------------------------------


class Perfect(Explainer):
    """Knows the truth."""

    def __init__(self, planted):
        self.planted = planted

    def _explain(self, batch):
        delta = self.planted.smallest_edit(batch.x.numpy())
        return Candidates(batch.x + (1 + 1e-6) * batch.x.new_tensor(delta), batch.rows)


def explained(explainer, planted, **options):
    data = planted.dataset
    return explainer.fit(planted.model, data.X_train, data.y_train).explain(data.X_test, **options)


def test_a_perfect_explainer_scores_one(planted):
    result = explained(Perfect(planted), planted)
    assert result.valid.all()
    assert (localization(result, planted) == 1).all().all()
    np.testing.assert_allclose(optimality_gap(result, planted), 1, rtol=1e-5)


def test_the_floors_do_worse(planted):
    """They copy all of a neighbor: everything changes, wherever the cause is."""
    line, nearest = (explained(explainer, planted) for explainer in (LineSearch(), NearestUnlike()))
    share = planted.places[0].mean()
    found = localization(line, planted)
    np.testing.assert_allclose(found["iou"], share)
    np.testing.assert_allclose(found["precision"], share)
    assert (found["recall"] == 1).all()
    assert (optimality_gap(line, planted) > 1.2).all()
    assert (optimality_gap(nearest, planted) >= optimality_gap(line, planted)).all()


def test_nothing_beats_the_smallest_edit(planted):
    """A gradient method, refined or not, comes near and never below."""
    method = SVCE(norm=2, radius=float(1.5 * planted.smallest(planted.dataset.X_test).max()))
    for refine in (False, True):
        gap = optimality_gap(explained(method, planted, refine=refine), planted)
        assert (gap >= 1).all()


def test_other_norms_have_their_own_gap(planted):
    result = explained(Perfect(planted), planted)
    for norm in (1, "inf"):
        assert (optimality_gap(result, planted, norm) > 1.05).all()


def test_failure_is_infinitely_far_and_finds_nothing(planted):
    """Here everything is frozen but one value that decides nothing."""
    free = np.zeros(planted.places.shape[1:], dtype=bool)
    free.flat[np.flatnonzero(~planted.places.any(0))[0]] = True
    result = explained(Perfect(planted), planted, constraints=Constraints(frozen=~free))
    assert not result.valid.any() and np.isinf(optimality_gap(result, planted)).all()
    assert (localization(result, planted)["iou"] == 0).all()


def test_claims_of_another_model_do_not_count(planted):
    """A model that calls everything new "present" is content; the rule is not."""
    X = planted.dataset.X_test
    result = Counterfactuals.judge(
        lambda rows: np.tile([0.5, 0.5], (len(rows), 1)), X, X + 1e-9, np.zeros(len(X), int)
    )
    assert np.isinf(optimality_gap(result, planted)[result.status != "already_target"]).all()


def test_what_had_not_to_change_has_no_score(planted):
    y = planted.dataset.y_test
    result = explained(Perfect(planted), planted, target="present")
    already = y == "present"
    np.testing.assert_array_equal(np.isnan(optimality_gap(result, planted)), already)
    np.testing.assert_array_equal(localization(result, planted).isna().all(axis=1), already)
    assert (localization(result, planted)["iou"][~already] == 1).all()


def test_rounding_is_no_answer():
    """What a projection leaves behind everywhere, 1e-10, is not where a method says the cause is."""
    planted = planted_series(20, 48, width=8)
    X = planted.dataset.X_test
    edited = X + 1.001 * planted.smallest_edit(X)
    for size, expected in ((1e-10, 1), (1e-2, 8 / 48)):
        found = localization(Counterfactuals.judge(planted.model, X, edited + size), planted)
        np.testing.assert_allclose(found["iou"], expected)


def test_partial_overlap_by_hand():
    """Half of the eight planted steps and four others: 4 / 12, 4 / 8, 4 / 8."""
    planted = planted_series(20, 48, width=8)
    X = planted.dataset.X_test
    X_cf = X.copy()
    X_cf[:, 0, 16:24] += 5
    assert planted.region(X)[0, 0, 20:28].all()
    found = localization(Counterfactuals.judge(planted.model, X, X_cf, "present"), planted)
    late = found[planted.dataset.y_test == "absent"]
    np.testing.assert_allclose(late, np.tile([1 / 3, 0.5, 0.5], (len(late), 1)))
