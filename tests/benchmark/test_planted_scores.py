"""Scores against planted truth: perfect for a perfect explainer, worse for the others."""

import numpy as np
import pytest

from contrafact.benchmark import localization, optimality_gap, planted_series
from contrafact.engine import Constraints, Counterfactuals
from contrafact.explainers import SVCE, LineSearch, NearestUnlike
from contrafact.explainers.support.explainer import Explainer


class Perfect(Explainer):
    """Knows the truth."""

    def __init__(self, planted):
        self.planted = planted

    def _explain(self, tasks):
        delta = self.planted.smallest_edit(tasks.x.numpy())
        return tasks.candidates(tasks.x + (1 + 1e-6) * tasks.x.new_tensor(delta))


def explained(explainer, planted, **options):
    data = planted.dataset
    return explainer.fit(planted.model, data.X_train, data.y_train).explain(data.X_test, **options)


def test_a_perfect_explainer_scores_one(planted):
    result = explained(Perfect(planted), planted)
    assert result.valid.all()
    assert (localization(result, planted) == 1).all().all()
    np.testing.assert_allclose(optimality_gap(result, planted), 1, rtol=1e-5)


def test_the_baselines_do_worse(planted):
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
    result = Counterfactuals.from_arrays(
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
    """The 1e-10 that a projection leaves everywhere is not where a method says the cause is."""
    planted = planted_series(20, 48, width=8)
    X = planted.dataset.X_test
    edited = X + 1.001 * planted.smallest_edit(X)
    for size, expected in ((1e-10, 1), (1e-2, 8 / 48)):
        found = localization(Counterfactuals.from_arrays(planted.model, X, edited + size), planted)
        np.testing.assert_allclose(found["iou"], expected)


def test_partial_overlap_by_hand():
    """Half of the eight planted steps and four others: 4 / 12, 4 / 8, 4 / 8."""
    planted = planted_series(20, 48, width=8)
    X = planted.dataset.X_test
    X_cf = X.copy()
    X_cf[:, 0, 16:24] += 5
    assert planted.region(X)[0, 0, 20:28].all()
    found = localization(Counterfactuals.from_arrays(planted.model, X, X_cf, "present"), planted)
    late = found[planted.dataset.y_test == "absent"]
    np.testing.assert_allclose(late, np.tile([1 / 3, 0.5, 0.5], (len(late), 1)))


def test_results_and_planted_data_are_told_apart():
    planted = planted_series(20, 48)
    X = planted.dataset.X_test
    result = Counterfactuals.from_arrays(planted.model, X, X[::-1].copy())
    with pytest.raises(TypeError, match="planted must be a Planted object, got None"):
        localization(result, None)
    with pytest.raises(TypeError, match="result must be a Counterfactuals object"):
        optimality_gap(X, planted)
    with pytest.raises(ValueError, match="norm must be 1, 2 or 'inf', got 3"):
        optimality_gap(result, planted, 3)
    with pytest.raises(ValueError, match="accepted: counterfactuals of planted instances"):
        localization(result, planted_series(20, 40))
