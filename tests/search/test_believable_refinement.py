"""refine="believable": smaller, still valid, and no less like a real series."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.engine import Request
from contrafact.engine.given_arrays import from_arrays
from contrafact.models.committee import Committee
from contrafact.numerics.differences import RealDifferences
from contrafact.search.believable_refinement import shrink_stretches
from contrafact.search.stretches import changed_values, stretch_ids, stretch_lengths

PROBLEMS = [
    (data, kind) for data in ("ItalyPowerDemand", "GunPoint") for kind in ("linear", "forest")
]
METHODS = {
    "CELS": cf.CELS(max_iter=30),
    "NativeGuide": cf.NativeGuide(),
    "NearestUnlike": cf.NearestUnlike(),
}


def make_model(data, kind):
    model = (
        LogisticRegression(max_iter=2000)
        if kind == "linear"
        else RandomForestClassifier(30, random_state=0)
    )
    return model.fit(data.X_train.reshape(len(data.X_train), -1), data.y_train)


@pytest.fixture(scope="module", params=PROBLEMS, ids="-".join)
def problem(request):
    name, kind = request.param
    data = cf.load_dataset(name)
    return data, make_model(data, kind)


def lengths(result):
    """Return the stretch lengths of each row."""
    x_cf, x = torch.as_tensor(result.X_cf), torch.as_tensor(result.X)
    ids = stretch_ids(changed_values(x_cf, x, "series"), "series")
    per_place = stretch_lengths(ids)
    rows = []
    for row in range(len(ids)):
        numbers = range(1, int(ids[row].max()) + 1)
        rows.append([int(per_place[row][ids[row] == number][0]) for number in numbers])
    return rows


def ratios(result, reference):
    limits = RealDifferences.of(torch.as_tensor(reference))
    x_cf, x = torch.as_tensor(result.X_cf), torch.as_tensor(result.X)
    return limits.seam(x_cf, x).numpy(), limits.kink(x_cf, x).numpy()


def sizes(result):
    return np.linalg.norm((result.X_cf - result.X).reshape(len(result), -1), axis=1)


@pytest.mark.parametrize("method", METHODS)
def test_smaller_valid_and_no_less_real(problem, method):
    data, model = problem
    explainer = METHODS[method].fit(model, data.X_train, data.y_train)
    plain = explainer.explain(data.X_test[:15])
    refined = explainer.explain(data.X_test[:15], refine="believable")
    said = model.predict(refined.X_cf.reshape(len(refined), -1))
    assert (said == refined.target).all()
    assert refined.provenance["options"]["refine"] == "believable"
    assert not (refined.changed & ~plain.changed).any()
    assert (sizes(refined) <= sizes(plain) * (1 + 1e-9)).all()
    assert sizes(refined).sum() < 0.98 * sizes(plain).sum()
    for before, after in zip(lengths(plain), lengths(refined), strict=True):
        assert len(after) <= len(before)
        assert min(after) >= min(3, *before)
    for before, after in zip(
        ratios(plain, data.X_train), ratios(refined, data.X_train), strict=True
    ):
        assert (after <= np.maximum(1, before) + 1e-6).all()


def test_a_whole_neighbor_shrinks_to_a_smooth_window():
    data = cf.load_dataset("GunPoint")
    explainer = cf.NearestUnlike().fit(make_model(data, "linear"), data.X_train, data.y_train)
    refined = explainer.explain(data.X_test[:20], refine="believable")
    assert refined.changed_fraction.mean() < 0.4
    seam, kink = ratios(refined, data.X_train)
    assert seam.max() <= 1 and kink.max() <= 1
    minimal = explainer.explain(data.X_test[:20], refine="minimal")
    assert (ratios(minimal, data.X_train)[1] > 1).mean() > 0.5  # it is the form that does it


# --- by hand


def refine_by_hand(model, X, X_cf, limits=None, **options):
    """Refine edits of a function model, target class 1."""
    return from_arrays(
        model,
        np.asarray(X, float),
        np.asarray(X_cf, float),
        1,
        modality="series",
        request=Request(**options),
        improve=lambda tasks, x_cf: shrink_stretches(tasks, x_cf, limits),
    )


def above(score, at_least):
    """Make a model that puts series in class 1 where a score is reached."""

    def model(X):
        reached = score(np.asarray(X)) >= at_least
        return np.stack([~reached, reached], 1).astype(float)

    return model


def test_the_ends_follow_the_equation():
    """What is kept is the edit minus the straight line through its ends outside."""
    t = np.arange(30.0)
    edit = np.where((t >= 5) & (t < 25), np.sin(t / 3) + 0.1 * t, 0)
    model = above(lambda X: (np.abs(X[:, 0]) > 0).sum(1), 8)  # eight changed steps will do
    result = refine_by_hand(model, np.zeros((1, 1, 30)), edit[None, None])
    kept = np.flatnonzero(result.X_cf[0, 0])
    start, end = kept[0], kept[-1] + 1
    assert end - start == 8 and len(kept) == 8
    line = np.interp(t, [start - 1, end], [edit[start - 1], edit[end]])
    expected = (edit - line)[start:end]
    share = result.X_cf[0, 0, start:end] / expected  # the amplitude is the last step
    np.testing.assert_allclose(share, share[0])
    assert share[0] == 1 / 64


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_stretch_at_the_border_is_matched_at_its_inner_end(side):
    ramp = np.linspace(1, 3, 20)
    edit = ramp if side == "left" else ramp[::-1]
    first = (lambda X: X[:, 0, 0]) if side == "left" else (lambda X: X[:, 0, -1])
    model = above(lambda X: np.abs(first(X)) * ((np.abs(X[:, 0]) > 0).sum(1) >= 6), 1e-9)
    result = refine_by_hand(model, np.zeros((1, 1, 20)), edit[None, None])
    shape = result.X_cf[0, 0] if side == "left" else result.X_cf[0, 0, ::-1]
    assert (shape[6:] == 0).all()
    # The edit minus a constant, its value at the first step outside.
    expected = ramp[:6] - ramp[6]
    np.testing.assert_allclose(shape[:6] / shape[0], expected / expected[0])


def test_stretches_that_are_not_needed_are_dropped_least_needed_first():
    X_cf = np.zeros((1, 1, 30))
    X_cf[..., 2:6] = 1.0  # needed
    X_cf[..., 10:14] = 0.5  # helps a little
    X_cf[..., 20:24] = 0.1  # does nothing
    model = above(lambda X: X[:, 0, 2:6].min(1), 1.0)
    result = refine_by_hand(model, np.zeros((1, 1, 30)), X_cf)
    assert result.X_cf[..., 2:6].tolist() == [[[1.0] * 4]]
    assert result.changed.sum() == 4


def test_nothing_gets_shorter_than_three_steps_or_what_it_was():
    X_cf = np.zeros((2, 1, 30))
    X_cf[0, 0, 10:20] = np.hanning(12)[1:-1]
    X_cf[1, 0, 10:12] = 1.0
    model = above(lambda X: np.abs(X[:, 0]).max(1), 1e-12)  # any change at all
    result = refine_by_hand(model, np.zeros((2, 1, 30)), X_cf)
    assert lengths(result) == [[3], [2]]


def test_kinks_of_the_limits_are_not_crossed():
    """A cut through a bump makes a kink: with tight limits the ends stay where they are smooth."""
    t = np.linspace(0, 2 * np.pi, 60)
    X = np.zeros((1, 1, 60))
    X_cf = X.copy()
    X_cf[0, 0, 10:50] = (1 - np.cos(np.linspace(0, 2 * np.pi, 42)))[1:-1]
    real = np.stack([a * np.sin(t + b) for a in (0.5, 2.5) for b in np.linspace(0, 6, 20)])[:, None]
    limits = RealDifferences.of(torch.as_tensor(real))
    model = above(lambda X: np.abs(X[:, 0]).max(1), 0.2)
    free = refine_by_hand(model, X, X_cf)
    held = refine_by_hand(model, X, X_cf, limits)
    assert limits.kink(torch.as_tensor(free.X_cf), torch.as_tensor(X)).item() > 1
    assert limits.kink(torch.as_tensor(held.X_cf), torch.as_tensor(X)).item() <= 1
    assert limits.kink(torch.as_tensor(X_cf), torch.as_tensor(X)).item() <= 1
    assert free.changed.sum() < held.changed.sum()
    assert 0.2 <= np.abs(held.X_cf).max() < 0.25  # the amplitude still goes


def test_channels_share_their_stretches_and_keep_what_was_not_changed():
    X = np.zeros((1, 2, 20))
    X_cf = X.copy()
    X_cf[0, 0, 4:16] = np.hanning(14)[1:-1]
    X_cf[0, 1, 8:11] = 1.0
    model = above(lambda X: np.abs(X[:, 0]).max(1) * (np.abs(X[:, 1]).max(1) > 0), 1e-9)
    result = refine_by_hand(model, X, X_cf)
    assert not (result.changed & (X_cf == X)).any()
    assert lengths(result) == [[3]]


# --- with the rest of a request


def explainer_for(name="ItalyPowerDemand", kind="linear", method="NearestUnlike"):
    data = cf.load_dataset(name)
    return data, METHODS[method].fit(make_model(data, kind), data.X_train, data.y_train)


@pytest.mark.parametrize("method", ["NearestUnlike", "CELS"])
def test_constraints_are_kept(method):
    data, explainer = explainer_for(method=method)
    limits = cf.Constraints(lower=-2.0, upper=2.5, frozen=np.arange(24) < 6, max_step=1.6)
    plain = explainer.explain(data.X_test[:25], constraints=limits)
    result = explainer.explain(data.X_test[:25], constraints=limits, refine="believable")
    valid = result.status == "valid"
    assert valid.sum() > 5 and (valid == (plain.status == "valid")).all()
    for kept in limits.check(result.X[valid], result.X_cf[valid]).values():
        assert np.asarray(kept).all()
    assert sizes(result)[valid].sum() < sizes(plain)[valid].sum()


@pytest.mark.parametrize("method", ["NearestUnlike", "CELS"])
def test_a_batch_is_a_loop(method):
    data, explainer = explainer_for("GunPoint", "forest", method)
    together = explainer.explain(data.X_test[:6], refine="believable")
    for row in range(6):
        alone = explainer.explain(data.X_test[row : row + 1], refine="believable")
        np.testing.assert_array_equal(alone.X_cf[0], together.X_cf[row])


def test_the_budget_is_kept_and_the_best_so_far_returned():
    data, explainer = explainer_for("GunPoint")
    X = data.X_test[:10]
    full = explainer.explain(X, refine="believable")
    some = explainer.explain(X, refine="believable", budget=cf.Budget(calls=10 * 12))
    plain = explainer.explain(X)
    assert some.calls.max() <= 12 and some.valid.all()
    assert sizes(full).sum() < sizes(some).sum() < sizes(plain).sum()


def test_confidence_is_kept():
    data, explainer = explainer_for()
    plain = explainer.explain(data.X_test[:20], confidence=0.8)
    result = explainer.explain(data.X_test[:20], confidence=0.8, refine="believable")
    reached = plain.target_proba[:, 1] >= 0.8
    assert (result.target_proba[reached, 1] >= 0.8).all() and reached.sum() > 5


def test_acceptance_tests_of_the_tasks_are_honored():
    class LargeMiddle:
        def passes(self, tasks, x_cf):
            return (x_cf - tasks.x)[:, 0, 10].abs() >= 0.5

    t = np.arange(20)
    X_cf = np.where((t > 2) & (t < 18), np.sin((t - 2) / 16 * np.pi), 0)[None, None]
    model = above(lambda X: np.abs(X[:, 0]).max(1), 1e-9)
    result = from_arrays(
        model,
        np.zeros((1, 1, 20)),
        X_cf,
        1,
        modality="series",
        improve=lambda tasks, x_cf: shrink_stretches(tasks.requiring(LargeMiddle()), x_cf),
    )
    assert 0.5 <= abs(result.X_cf[0, 0, 10]) < 0.6


def test_the_committee_is_honored():
    t = np.arange(20)
    X_cf = np.where((t > 2) & (t < 18), np.sin((t - 2) / 16 * np.pi), 0)[None, None]
    lenient = above(lambda X: np.abs(X[:, 0]).max(1), 1e-9)
    strict = above(lambda X: np.abs(X[:, 0]).max(1), 0.5)
    alone = refine_by_hand(lenient, np.zeros((1, 1, 20)), X_cf)
    convinced = refine_by_hand(
        lenient, np.zeros((1, 1, 20)), X_cf, committee=Committee([strict, lenient])
    )
    assert np.abs(alone.X_cf).max() < 0.1
    assert 0.5 <= np.abs(convinced.X_cf).max() < 0.55


@pytest.mark.parametrize("name", ["digits", "iris"])
def test_images_and_rows_keep_whole_patches_and_features(name):
    data = cf.load_dataset(name) if name == "digits" else None
    if data is None:
        from sklearn.datasets import load_iris

        X, y = load_iris(return_X_y=True)
        queries = X[40:70]
    else:
        X, y, queries = data.X_train[:300], data.y_train[:300], data.X_test[:15]
    model = LogisticRegression(max_iter=2000).fit(X.reshape(len(X), -1), y)
    explainer = cf.RandomMask(n_segments=8).fit(model, X, y)
    plain = explainer.explain(queries)
    result = explainer.explain(queries, refine="believable")
    assert result.valid.all()
    assert not (result.changed & ~plain.changed).any()
    assert sizes(result).sum() < sizes(plain).sum()


def test_refine_takes_a_reference():
    data, explainer = explainer_for("GunPoint")
    model = explainer.classifier_
    plain = explainer.explain(data.X_test[:8])
    inside = explainer.explain(data.X_test[:8], refine="believable")
    given = cf.refine(plain, model, how="believable", reference=data.X_train)
    np.testing.assert_array_equal(given.X_cf, inside.X_cf)
    own = cf.refine(plain, model, how="believable")
    seam, kink = ratios(own, data.X_test[:8])
    assert own.valid.all() and seam.max() <= 1 and kink.max() <= 1
    assert given.provenance["refined"]["refine"] == "believable"
    with pytest.raises(ValueError, match="reference applies to how='believable'"):
        cf.refine(plain, model, reference=data.X_train)
    with pytest.raises(ValueError, match=r"reference holds series of shape \(1, 20\)"):
        cf.refine(plain, model, how="believable", reference=data.X_train[..., :20])
    with pytest.raises(ValueError, match="refine: how must be 'minimal' or 'believable', got"):
        cf.refine(plain, model, how="smooth")
    assert len(cf.refine(plain[[]], model, how="believable")) == 0
