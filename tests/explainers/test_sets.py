"""SETS: shapelets are mined, removed and inserted where they decide."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.explainers import sets

SMALL = {"n_candidates": 300, "max_shapelets": 20}
PATTERN = 2.5 * np.sin(np.linspace(0, 2 * np.pi, 12))
PLACE = slice(24, 36)


def planted(n=60, channels=1, length=60, seed=0):
    """Class "wave" has a wave in the last channel at 24…35, class "noise" has none."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 0.25, (n, channels, length))
    y = np.where(np.arange(n) % 2, "wave", "noise")
    X[y == "wave", -1, PLACE] += PATTERN
    return X, y


def fitted(channels=1, **parameters):
    X, y = planted(channels=channels)
    model = LogisticRegression(max_iter=500).fit(X.reshape(len(X), -1), y)
    return cf.SETS(**{**SMALL, **parameters}).fit(model, X, y), planted(20, channels, seed=1)


def test_mined_shapelets_lie_on_the_planted_wave():
    explainer, _ = fitted()
    wave = [s for s in explainer.shapelets_ if explainer.classifier_.classes[s.column] == "wave"]
    overlap = [min(s.start + len(s.values), 36) - max(s.start, 24) for s in wave]
    assert wave and all(o > 3 for o in overlap) and all(s.threshold > 0 for s in wave)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_wave_is_inserted_where_it_belongs(channels):
    explainer, (X, y) = fitted(channels)
    result = explainer.explain(X[y == "noise"], target="wave")
    assert result.valid.all() and not result.info["fallback"].any()
    assert (result.info["shapelet"] >= 0).mean() > 0.8
    touched = result.changed.mean(0)
    assert touched[-1, PLACE].mean() > 0.8 and touched[:-1].sum() == 0
    assert touched[-1, :10].mean() < 0.1 and touched[-1, 50:].mean() < 0.1
    inserted = result.X_cf[:, -1, PLACE]
    correlation = [np.corrcoef(row, PATTERN)[0, 1] for row in inserted]
    before = [np.corrcoef(row, PATTERN)[0, 1] for row in result.X[:, -1, PLACE]]
    assert np.mean(correlation) > 0.8 > 0.5 > np.mean(before)


def test_inserted_shapelets_sit_at_the_local_level():
    explainer, (X, y) = fitted()
    X = X[y == "noise"]
    result = explainer.explain(X, target="wave")
    inserted = [j for j, s in enumerate(explainer.shapelets_) if result.classes[s.column] == "wave"]
    single = np.isin(result.info["shapelet"], inserted)
    for x, x_cf, changed in zip(
        result.X[single], result.X_cf[single], result.changed[single], strict=True
    ):
        assert x_cf[changed].mean() == pytest.approx(x[changed].mean(), abs=1e-9)
    assert single.any()


def test_a_wave_is_removed_by_the_neighbors_stretch():
    explainer, (X, y) = fitted()
    wave = explainer.classifier_.classes.tolist().index("wave")
    explainer.shapelets_ = [s for s in explainer.shapelets_ if s.column == wave]
    result = explainer.explain(X[y == "wave"], target="noise")
    guide = planted()[0][result.info["guide_index"]]
    assert result.valid.all() and (result.info["shapelet"] >= 0).all()
    np.testing.assert_array_equal(result.X_cf, np.where(result.changed, guide, result.X))
    assert result.changed[:, 0, PLACE].mean() > 0.7 and result.changed_fraction.max() <= 0.5


def test_several_channels_are_edited_together_where_one_does_not_do():
    """Both channels must carry the wave: the model counts the weaker one."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(0, 0.2, (60, 2, 60))
    X[y == 1, :, PLACE] += PATTERN

    def weaker(Z):
        score = (np.asarray(Z)[:, :, PLACE] @ PATTERN / (PATTERN @ PATTERN)).min(1)
        p = 1 / (1 + np.exp(-10 * (score - 0.5)))
        return np.stack([1 - p, p], 1)

    explainer = cf.SETS(**SMALL).fit(cf.as_classifier(weaker, classes=["no", "yes"]), X)
    result = explainer.explain(X[y == 0][:10], target="yes")
    joint = ~result.info["fallback"]
    assert result.valid.all() and joint.mean() > 0.5
    assert result.changed[joint].any(2).all() and (result.info["shapelet"][joint] == -1).all()


def test_without_shapelets_the_line_is_taken_and_told():
    explainer, (X, _) = fitted()
    explainer.shapelets_ = []
    result = explainer.explain(X)
    line = cf.LineSearch().fit(explainer.classifier_, planted()[0]).explain(X)
    assert result.valid.all() and result.info["fallback"].all()
    np.testing.assert_allclose(result.X_cf, line.X_cf)


def test_frozen_windows_and_channels_stay():
    explainer, (X, y) = fitted(2)
    frozen = np.zeros((2, 60), bool)
    frozen[0], frozen[:, 24:28] = True, True
    X = X[y == "noise"]
    free = explainer.explain(X, target="wave")
    held = explainer.explain(X, target="wave", constraints=cf.Constraints(frozen=frozen, upper=2.4))
    assert free.changed[:, frozen].any() and not held.changed[:, frozen].any()
    assert held.valid.mean() > 0.8 and held.X_cf[held.changed].max() <= 2.4 < free.X_cf.max()


def test_k_answers_differ_and_begin_with_the_smallest():
    explainer, (X, _) = fitted()
    one, three = explainer.explain(X), explainer.explain(X, k=3)
    first = np.searchsorted(three.source, np.arange(len(X)))
    np.testing.assert_allclose(three.X_cf[first], one.X_cf)
    assert three.valid.all() and len(three) > 2 * len(X)
    short = np.bincount(three.source, minlength=len(X))[three.source] < 3
    assert all(three.message[short])


def test_a_row_gets_the_same_answer_in_any_company():
    explainer, (X, _) = fitted(2)
    together = explainer.explain(X)
    alone = np.concatenate([explainer.explain(x[None]).X_cf for x in X])
    np.testing.assert_allclose(alone, together.X_cf, atol=1e-12)
    np.testing.assert_allclose(explainer.explain(X[::-1]).X_cf[::-1], together.X_cf, atol=1e-12)


def test_parts_of_a_batch_change_nothing(monkeypatch):
    explainer, (X, _) = fitted(2)
    whole = explainer.explain(X)
    monkeypatch.setattr(sets, "MAX_ELEMENTS", 3 * len(explainer.shapelets_) * X[0].size)
    parts = explainer.explain(X)
    np.testing.assert_allclose(parts.X_cf, whole.X_cf, atol=1e-12)
    np.testing.assert_array_equal(parts.calls, whole.calls)


def test_budgets_and_confidence():
    explainer, (X, _) = fitted()
    tight = explainer.explain(X, budget=cf.Budget(calls=10 * len(X)))
    assert tight.calls.max() <= 10 and len(tight) == len(X)
    assert tight.changed_fraction.mean() >= explainer.explain(X).changed_fraction.mean()
    assert (explainer.explain(X, confidence=0.95).target_proba[:, 1] >= 0.95).all()


@pytest.mark.parametrize(
    "option",
    [{"n_candidates": 60}, {"max_shapelets": 2}, {"max_length": 0.1}, {"random_state": 3}],
    ids=str,
)
def test_option_matters(option):
    (plain, (X, _)), (other, _) = fitted(), fitted(**option)
    assert not np.array_equal(plain.explain(X).X_cf, other.explain(X).X_cf)
    if "max_length" in option:
        longest = [max(len(s.values) for s in each.shapelets_) for each in (other, plain)]
        assert longest[0] <= 6 < longest[1]


def test_three_classes_and_fitting_on_one():
    data = cf.load_dataset("ArrowHead")
    model = LogisticRegression(max_iter=500).fit(data.X_train[:, 0], data.y_train)
    result = (
        cf.SETS(**SMALL)
        .fit(model, data.X_train, data.y_train)
        .explain(data.X_test[:10], target="2")
    )
    assert result.valid.all() and (result.cf_labels == "2").all()
    one_class = data.X_train[model.predict(data.X_train[:, 0]) == "0"]
    lone = cf.SETS(**SMALL).fit(model, one_class).explain(data.X_test[:5], target="1")
    new = lone.status != "already_target"
    assert (lone.status[new] == "infeasible").all() and all(
        "no row" in m for m in lone.message[new]
    )


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_candidates": 0}, "n_candidates must be a whole number at least 1 .*, got 0"),
        ({"max_shapelets": 0}, "max_shapelets must be a whole number at least 1 .*, got 0"),
        ({"max_length": 1.5}, "max_length must be a number above 0 and at most 1, got 1.5"),
        ({"metric": "cosine"}, "metric must be.*'cosine'"),
    ],
)
def test_senseless_parameters_are_refused_at_fit(parameters, words):
    with pytest.raises(ValueError, match=words):
        fitted(**parameters)
