"""The radius in which a decision stands, against brute force."""

import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.prototypes import (
    GLVQ,
    GMLVQ,
    LGMLVQ,
    DeepLVQ,
    MedianLVQ,
    NearestMean,
    pair_bounds,
    robustness_radius,
)
from contrafact.prototypes.pair_bounds import quadratic_distance
from contrafact.prototypes.robustness import decision_radius

ANGLES = np.linspace(0, 2 * np.pi, 4001)


def circle(norm):
    """Points of the unit sphere of an l_p norm in the plane."""
    points = np.stack([np.cos(ANGLES), np.sin(ANGLES)], 1)
    return points / np.linalg.norm(points, norm, axis=1, keepdims=True)


def decisions(x, w, owner, omega):
    """The class of the nearest prototype."""
    away = x[:, None] - w
    if omega is not None:
        local = np.broadcast_to(omega, (len(w), *omega.shape[-2:]))
        away = np.einsum("krd,nkd->nkr", local, away)
    return owner[(away**2).sum(2).argmin(1)]


def make(seed, kind, counts):
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(len(counts)), counts)
    w = rng.normal(size=(len(owner), 2))
    shape = {"euclidean": None, "matrix": (2, 2), "local": (len(owner), 2, 2)}[kind]
    omega = None if shape is None else rng.normal(size=shape)
    return rng.normal(size=(5, 2)), w, owner, omega


def radii(x, w, owner, omega, norm):
    tensor = None if omega is None else torch.from_numpy(omega)
    parts = map(torch.from_numpy, (x, w, owner))
    return decision_radius(*parts, tensor, norm).numpy()


def brute_force(point, w, owner, omega, norm):
    """The nearest point of the plane that is decided otherwise, or undecided.

    It is on a line where two prototypes are equally near: the nearest point of the line, or where
    two lines meet.
    """
    metric = np.eye(2) if omega is None else omega.T @ omega
    d = np.einsum("kd,de,ke->k", point - w, metric, point - w)
    label = owner[d.argmin()]
    own, others = np.flatnonzero(owner == label), np.flatnonzero(owner != label)
    pairs = [(j, k) for j in others for k in own]
    normal = np.array([2 * metric @ (w[k] - w[j]) for j, k in pairs])
    room = np.array([d[k] - d[j] for j, k in pairs])  # normal · δ ≤ room where j is nearer
    candidates = []
    for a, c in zip(normal, room, strict=True):
        if norm == 2:
            candidates.append(a * c / (a @ a))
        else:
            axis = np.abs(a).argmax()
            candidates.append(np.eye(2)[axis] * c / a[axis])
    for p in range(len(pairs)):
        for q in range(p):
            both = normal[[p, q]]
            if abs(np.linalg.det(both)) > 1e-9:
                candidates.append(np.linalg.solve(both, room[[p, q]]))
    best = np.inf
    for delta in candidates:
        moved = np.einsum("kd,de,ke->k", point + delta - w, metric, point + delta - w)
        if moved[others].min() <= moved[own].min() + 1e-9 * moved.max():
            best = min(best, np.linalg.norm(delta, norm))
    return best


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["euclidean", "matrix"]),
    counts=st.lists(st.integers(1, 3), min_size=2, max_size=4),
    norm=st.sampled_from([1, 2]),
)
def test_the_ball_keeps_the_decision_and_touches_another(seed, kind, counts, norm):
    x, w, owner, omega = make(seed, kind, counts)
    found = radii(x, w, owner, omega, norm)
    before = decisions(x, w, owner, omega)
    for point, label, radius in zip(x, before, found, strict=True):
        if not 1e-4 < radius < 1e3:
            continue
        for scale in (0.3, 0.9, 1 - 1e-7):
            inside = decisions(point + scale * radius * circle(norm), w, owner, omega)
            assert (inside == label).all()
        assert radius == pytest.approx(brute_force(point, w, owner, omega, norm), rel=1e-5)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    counts=st.lists(st.integers(1, 2), min_size=2, max_size=3),
)
def test_with_local_metrics_it_is_exact_for_one_prototype_and_safe_for_several(seed, counts):
    x, w, owner, omega = make(seed, "local", counts)
    found = radii(x, w, owner, omega, 2)
    before = decisions(x, w, owner, omega)
    for point, label, radius in zip(x, before, found, strict=True):
        if not 1e-4 < radius < 1e3:
            continue
        for scale in (0.3, 0.9, 1 - 1e-7):
            inside = decisions(point + scale * radius * circle(2), w, owner, omega)
            assert (inside == label).all()
        if counts[label] == 1:
            outside = decisions(point + 1.01 * radius * circle(2), w, owner, omega)
            assert (outside != label).any()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), bend=st.sampled_from([-1.0, 0.0, 1.0]))
def test_distance_to_a_quadratic_set(seed, bend):
    """Against a grid: no point of the set is nearer, and one is about as near."""
    rng = np.random.default_rng(seed)
    s = rng.normal(size=(1, 2)) * bend
    g, r = rng.normal(size=(1, 1, 2)), np.array([[rng.uniform(0.05, 1)]])
    distance = quadratic_distance(*map(torch.from_numpy, (s, g, r))).item()
    axis = np.linspace(-4, 4, 401)
    grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    member = (s * grid**2 + 2 * g[0] * grid).sum(1) + r[0] <= 0
    if not member.any():
        assert distance > 3.5
        return
    nearest = np.linalg.norm(grid[member], axis=1).min()
    assert distance <= nearest + 1e-9 and nearest - distance < 0.04


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    size=st.sampled_from([1e-6, 1.0, 1e6]),
    bend=st.sampled_from([0.0, 1e-3, 1.0, 1e3]),
    absent=st.booleans(),
)
def test_the_largest_dual_value_is_found(seed, size, bend, absent):
    """Against scipy's bounded search over the multipliers, in many directions and units."""
    rng = np.random.default_rng(seed)
    s = bend * rng.normal(size=(3, 20))
    g = size * rng.normal(size=(4, 3, 20))
    if absent:
        g[..., s.argmin(1)] = 0  # the maximum may then lie at the end of the multipliers
    r = size * rng.uniform(0.01, 10, size=(4, 3))
    found = quadratic_distance(*map(torch.from_numpy, (s, g, r))).numpy()
    for i, pair in np.ndindex(r.shape):

        def dual(log, i=i, pair=pair):
            """The dual at the multiplier 1/(pole + e^log)."""
            pole = max(-s[pair].min(), 0)
            pulls = g[i, pair] ** 2 / (np.exp(log) + (s[pair] + pole))
            return (r[i, pair] - pulls.sum()) / (np.exp(log) + pole)

        grid = np.linspace(-60, 60, 400)
        start = grid[np.argmax([dual(log) for log in grid])]
        near = (start - 0.5, start + 0.5)
        best = minimize_scalar(lambda log: -dual(log), bounds=near, method="bounded")
        assert found[i, pair] ** 2 == pytest.approx(-best.fun, rel=1e-6)


@pytest.mark.parametrize("gap", [0.0, 1e-5, 1e-4, 1e-2])
def test_metrics_of_prototypes_that_are_almost_at_one_place(gap):
    """|x|² ≥ 2 |x − w|² is the ball around 2w of radius √2 |w|; the dual is flat near its top."""
    w = np.array([[0.0, 0.0], [gap, 0.0]])
    omega = np.stack([np.eye(2), np.sqrt(2) * np.eye(2)])
    found = radii(np.array([[1.0, 0.0]]), w, np.array([0, 1]), omega, 2)
    assert found[0] == pytest.approx(1 - (2 + np.sqrt(2)) * gap, rel=1e-7)


def test_many_pairs_are_worked_on_in_parts(monkeypatch):
    rng = np.random.default_rng(0)
    w, omega, x = (torch.from_numpy(rng.normal(size=n)) for n in ((6, 3), (6, 3, 3), (9, 3)))
    owner = torch.arange(6) % 3
    at_once = decision_radius(x, w, owner, omega, 2)
    monkeypatch.setattr(pair_bounds, "MAX_NUMBERS", 20)
    torch.testing.assert_close(decision_radius(x, w, owner, omega, 2), at_once)


def test_it_is_the_shortest_certified_counterfactual_over_all_classes():
    X, y = load_iris(return_X_y=True)
    for model in (GLVQ(3, random_state=0), GMLVQ(2, random_state=0), MedianLVQ(2), NearestMean()):
        model.fit(X, y)
        rows = X[::10]
        shortest = np.full(len(rows), np.inf)
        explainer = cf.PrototypeCounterfactual().fit(model, X, y)
        for label in range(3):
            result = explainer.explain(rows, target=label)
            moved = result.status == "valid"
            distance = result.info["distance"][moved]
            np.minimum.at(shortest, result.source[moved], distance)
            # The explainer reports it as well, also behind scalers.
            radius = robustness_radius(model, rows)
            np.testing.assert_allclose(
                result.info["robustness_radius"][moved], radius[result.source[moved]]
            )
        np.testing.assert_allclose(robustness_radius(model, rows), shortest, atol=1e-6)


@pytest.mark.parametrize("model", [GLVQ(3, max_iter=5), LGMLVQ(2, max_iter=3)])
def test_a_thousand_digits_take_less_than_a_millisecond_each(model):
    X, y = load_digits(return_X_y=True)
    model.set_params(random_state=0).fit(X, y)
    seconds = []
    for _ in range(3):
        start = time.process_time()
        radius = robustness_radius(model, X[:1000])
        seconds.append(time.process_time() - start)
    assert min(seconds) < 1.0
    assert (radius > 0).all() and np.isfinite(radius).all()


def test_equal_prototypes_of_two_classes_leave_no_room():
    x, w = np.zeros((1, 2)), np.array([[1.0, 0], [1.0, 0], [5, 5]])
    assert radii(x, w, np.array([0, 1, 1]), None, 2).tolist() == [0.0]


def test_what_has_no_linear_metric_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="has no linear metric"):
        robustness_radius(MedianLVQ(metric="dtw").fit(X[::5], y[::5]), X[:2])
    with pytest.raises(TypeError, match="no linear metric"):
        robustness_radius(DeepLVQ(max_iter=1).fit(X, y), X[:2])
    with pytest.raises(TypeError, match=r"model must be a model of contrafact\.prototypes"):
        robustness_radius(LogisticRegression().fit(X, y), X[:2])
    with pytest.raises(ValueError, match="norm must be 1 or 2, got 3"):
        robustness_radius(GLVQ(max_iter=1).fit(X, y), X[:2], norm=3)
    with pytest.raises(ValueError, match="norm must be 2 where every prototype has its own"):
        robustness_radius(LGMLVQ(max_iter=1).fit(X, y), X[:2], norm=1)
