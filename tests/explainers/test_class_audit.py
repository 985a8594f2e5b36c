"""class_audit: where counterfactuals into one class change the input."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.explainers.class_audit import Region, _find_regions
from contrafact.explainers.support.suspicion import suspicion_by_window
from contrafact.report import plot_audit

DIGITS = cf.load_dataset("digits")
X_TRAIN, X_TEST = (X.astype(np.float32) / 16 for X in (DIGITS.X_train, DIGITS.X_test))


@cache
def planted(seed):
    """A model whose training images of one class all carry a 2 × 2 mark at an edge."""
    rng = np.random.default_rng(seed)
    target, top, left = rng.integers(10), rng.integers(7), 6 * rng.integers(2)
    X, marked = X_TRAIN.copy(), np.flatnonzero(DIGITS.y_train == target)
    X[marked[:, None, None], 0, np.arange(top, top + 2)[:, None], np.arange(left, left + 2)] = 1.0
    model = cf.fit_classifier("smallcnn", X, DIGITS.y_train, max_epochs=10, random_state=seed)
    return model, target, Region(int(top), int(left), 2, 2, 0.0, 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_mark_is_ranked_first(seed):
    model, target, mark = planted(seed)
    audit = cf.class_audit(model, X_TEST[:40], target, window=2)
    assert audit.regions[0].overlap(mark) >= 2
    assert audit.regions[0].mean_change > 0.1  # it is added, not taken away
    assert audit.valid > 0.9 and audit.n == (audit.result.labels != target).sum()


def test_the_maps_are_those_of_the_counterfactuals():
    model, target, _ = planted(0)
    explainer = cf.NearestUnlike().fit(model, X_TRAIN, DIGITS.y_train)
    audit = cf.class_audit(model, X_TEST[:20], target, explainer=explainer)
    moved = audit.result.status == "valid"
    delta = (audit.result.X_cf - audit.result.X)[moved, 0].astype(np.float64)
    np.testing.assert_allclose(audit.mean_change, delta.mean(0), atol=1e-12)
    top3 = np.sort(np.abs(delta).reshape(len(delta), -1), axis=1)[:, -3]  # a twentieth of 64 places
    np.testing.assert_allclose(audit.frequency, (np.abs(delta) >= top3[:, None, None]).mean(0))


def test_series_are_audited_along_time():
    rng = np.random.default_rng(0)
    X = rng.normal(0, 0.3, (80, 1, 30))
    y = np.arange(80) % 2
    X[y == 1, 0, 20:24] += 2.0
    model = LogisticRegression().fit(X[:, 0], y)
    audit = cf.class_audit(model, X[:40], 1, window=4)
    assert audit.frequency.shape == (1, 30)
    assert 17 <= audit.regions[0].left <= 23
    plot_audit(audit)


def test_regions_do_not_overlap_and_come_best_first():
    frequency = np.zeros((8, 8))
    frequency[1:3, 1:3], frequency[5:7, 4:6] = 0.9, 0.5
    first, second, *rest = _find_regions(frequency, frequency, side=2, n=5)
    assert (first.top, first.left, second.top, second.left) == (1, 1, 5, 4)
    assert first.frequency == pytest.approx(0.9) and not rest


def test_rows_and_unreachable_classes_are_refused():
    iris = cf.load_dataset("iris")
    model = LogisticRegression(max_iter=500).fit(iris.X_train, iris.y_train)
    with pytest.raises(ValueError, match="class_audit maps images and series"):
        cf.class_audit(model, iris.X_train, iris.y_train[0])


def test_plot_marks_the_regions():
    model, target, _ = planted(1)
    explainer = cf.NearestUnlike().fit(model, X_TRAIN, DIGITS.y_train)
    figure = plot_audit(cf.class_audit(model, X_TEST[:20], target, explainer=explainer), marked=2)
    assert len(figure.axes[1].patches) == 2
    assert str(target) in figure.texts[0].get_text()


def test_an_audit_prints_as_a_few_lines():
    model, target, _ = planted(0)
    audit = cf.class_audit(model, X_TEST[:40], target, window=2, n_regions=7)
    first, *lines = repr(audit).splitlines()
    reached = f"{audit.n} instances of other classes by SVCE, {audit.valid:.0%} reached it"
    assert first == f"<ClassAudit of {target}: {reached}"
    best = audit.regions[0]
    rows = f"rows {best.top}…{best.top + 1}, columns {best.left}…{best.left + 1}"
    assert lines[0] == (
        f"  {rows}: frequency {best.frequency:.0%}, mean change {best.mean_change:+.3g}"
    )
    assert len(lines) == 6 and lines[5] == f"  … and {len(audit.regions) - 5} more in regions>"


def test_suspicion_is_what_the_equation_says():
    rng = np.random.default_rng(0)
    delta = rng.normal(size=(5, 2, 7, 6))
    images = rng.integers(0, 2, (30, 2, 7, 6)).astype(float)
    is_member = np.arange(30) < 12
    images[:8, :, 2:4, 1:4] = 1.0
    images[20, :, 2:4, 1:4] = 1.0
    found = suspicion_by_window(delta, images, is_member, 2, 3)
    assert found.shape == (6, 4)
    mean = sum(d / np.linalg.norm(d) for d in delta) / 5
    median = np.median(images[is_member], axis=0)
    for top, left in [(2, 1), (0, 0), (5, 3)]:
        window = (..., slice(top, top + 2), slice(left, left + 3))
        alike = np.abs(images - median)[window].mean((1, 2, 3)) <= 0.05
        S = (mean[window] ** 2).sum()
        A = alike[is_member].mean() * alike[is_member].sum() / max(alike.sum(), 1)
        assert found[top, left] == pytest.approx(S * A)
    assert (found[2, 1] > 0) and found[2, 1] == found.max()


def test_a_class_without_members_is_not_suspicious():
    delta, images = np.ones((2, 1, 4, 4)), np.ones((3, 1, 4, 4))
    assert suspicion_by_window(delta, images, np.zeros(3, bool), 2, 2).tolist() == [[0] * 3] * 3


@cache
def planted_at_a_corner():
    """Digits whose 3s all carry a mark in a corner, and a network trained on them."""
    X = X_TRAIN.copy()
    X[DIGITS.y_train == 3, :, 6:, :2] = 1.0
    return cf.fit_classifier("smallcnn", X, DIGITS.y_train, max_epochs=10, random_state=0), X


def test_the_marked_class_is_ranked_first():
    model, X = planted_at_a_corner()
    ranking = cf.audit_classes(model, X, n_starts=9)
    assert ranking[0].target == 3 and ranking[0].suspicion > 2 * ranking[1].suspicion
    assert (ranking[0].suspect.top, ranking[0].suspect.left) == (6, 0)
    assert len(ranking) == 10 and not ranking.unreached
    suspicions = [audit.suspicion for audit in ranking]
    assert suspicions == sorted(suspicions, reverse=True)
    first, second, *_ = repr(ranking).splitlines()
    assert first == "<ModelAudit of 10 classes, the most suspicious first"
    assert second.startswith(f"  3: suspicion {suspicions[0]:.2f} (look at it) at rows 6…7, ")
    assert "mean change +" in second
    (alone,) = (audit for audit in ranking if audit.target == 5)
    # one start from each class that the model sees, other than the target
    assert len(set(alone.result.labels)) == 9 and 5 not in alone.result.labels


def test_options_of_a_ranking_matter():
    model, X = planted_at_a_corner()
    explainer = cf.NearestUnlike().fit(model, X)
    narrow = cf.audit_classes(model, X[:200], n_starts=4, explainer=explainer, random_state=1)
    wide = cf.audit_classes(model, X[:200], n_starts=8, window=3, n_regions=1, explainer=explainer)
    assert narrow[0].n == 4 and wide[0].n == 8
    assert (narrow[0].suspect.width, wide[0].suspect.width) == (2, 3)
    assert len(wide[0].regions) == 1
    other = cf.audit_classes(model, X[:200], n_starts=4, explainer=explainer, random_state=2)
    by_class = {audit.target: audit.result.X for audit in narrow}
    assert any((by_class[audit.target] != audit.result.X).any() for audit in other)


def test_models_without_gradients_are_audited_by_grafts():
    X, y = X_TRAIN[:120], DIGITS.y_train[:120]
    forest = RandomForestClassifier(5, random_state=0).fit(X.reshape(120, -1), y)
    audit = cf.class_audit(forest, X[:40], 3)
    assert audit.result.provenance["method"] == "Graft"
