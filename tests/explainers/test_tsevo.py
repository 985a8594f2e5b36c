"""TSEvo: the front's sparsest answer, made of authentic windows, the same wherever a row stands."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.explainers import tsevo

ITALY = cf.load_dataset("ItalyPowerDemand")
SMALL = {"population": 16, "generations": 12}


@pytest.fixture(scope="module")
def evolve(linear):
    """Fit on ItalyPowerDemand with some parameters and explain its first test rows."""

    def run(n=12, options=None, X=None, **parameters):
        explainer = cf.TSEvo(**{**SMALL, **parameters}).fit(linear, ITALY.X_train, ITALY.y_train)
        return explainer.explain(ITALY.X_test[:n] if X is None else X, **(options or {}))

    return run


def merit(result):
    """What the answer is chosen by: values changed, then mean distance."""
    distance = np.abs(result.delta).mean((1, 2))
    return result.changed.sum((1, 2)) + distance / (1 + distance)


def bumps(channels=3, length=30, n=60, seed=0):
    """Three classes with names: a bump early, in the middle or late, each in its own channel."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(0, 0.3, (n, channels, length))
    for i, c in enumerate(y):
        X[i, c % channels, 10 * c + 2 : 10 * c + 8] += 2
    return X, np.array(["early", "middle", "late"])[y]


def test_authentic_windows_hold_values_of_the_target_class_only(evolve, linear):
    result = evolve()
    said = linear.predict(ITALY.X_train[:, 0])
    assert result.valid.all() and result.changed.any()
    for i in range(len(result)):
        pool = ITALY.X_train[said == result.target[i]]
        found = (pool == result.X_cf[i]).any(0)
        assert found[result.changed[i]].all()


def test_answers_are_sparser_than_the_baseline(evolve, linear):
    mask = cf.RandomMask().fit(linear, ITALY.X_train, ITALY.y_train).explain(ITALY.X_test[:40])
    result = evolve(40)
    assert result.valid.all()
    assert result.changed_fraction.mean() < 0.5 * mask.changed_fraction.mean()


def test_more_generations_are_never_worse_and_help(evolve):
    """The same random numbers, and the answer is never crowded out."""
    few, more = evolve(30, generations=2), evolve(30, generations=25)
    assert (merit(more) <= merit(few)).all() and merit(more).mean() < 0.8 * merit(few).mean()


def test_the_first_generation_is_a_special_case(evolve):
    result = evolve(generations=0)
    asked_at_both_ends = 4
    assert result.valid.all() and (result.calls <= SMALL["population"] + asked_at_both_ends).all()


@pytest.mark.parametrize("mutation", ["authentic_opposing", "all"])
def test_a_row_gets_the_same_answer_in_any_company(evolve, mutation):
    options, n = {"random_state": 7, "k": 2}, 8
    together = evolve(n, options, mutation=mutation)
    backward = evolve(options=options, mutation=mutation, X=ITALY.X_test[:n][::-1])
    for i in range(n):
        mine = together.X_cf[together.source == i]
        alone = evolve(options=options, mutation=mutation, X=ITALY.X_test[i : i + 1])
        np.testing.assert_allclose(alone.X_cf, mine, atol=1e-12)
        np.testing.assert_allclose(backward.X_cf[backward.source == n - 1 - i], mine, atol=1e-12)


def test_parts_of_a_batch_change_nothing(evolve, monkeypatch):
    whole = evolve()
    monkeypatch.setattr(tsevo, "MAX_ELEMENTS", 5 * 2 * SMALL["population"] * 24)
    np.testing.assert_allclose(evolve().X_cf, whole.X_cf, atol=1e-12)


def test_seed_matters(evolve):
    first, again, other = (evolve(options={"random_state": seed}) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.X_cf, again.X_cf)
    assert (first.X_cf != other.X_cf).any((1, 2)).mean() > 0.5


@pytest.mark.parametrize(
    "option",
    [
        {"population": 30},
        {"mutation": "frequency"},
        {"mutation": "mean"},
        {"mutation": "all"},
        {"crossover_rate": 0.0},
        {"mutation_rate": 0.0},
        {"max_window": 1.0},
        {"thrifty": False},
        {"metric": "dtw"},
    ],
    ids=str,
)
def test_option_matters(evolve, option):
    plain, other = evolve(20), evolve(20, **option)
    differs = (plain.X_cf != other.X_cf).any((1, 2)) | (
        plain.info["guide_index"] != other.info["guide_index"]
    )
    assert differs.any() and other.valid.all()


def test_frequency_bands_keep_the_rest_of_the_spectrum(evolve):
    """One band each: after the first generation the other frequencies are those of the instance."""
    result = evolve(mutation="frequency", generations=0)
    before, after = np.fft.rfft(result.X[:, 0]), np.fft.rfft(result.X_cf[:, 0])
    moved = np.abs(after - before) > 1e-9
    width = moved.sum(1)
    span = moved.shape[1] - moved.argmax(1) - moved[:, ::-1].argmax(1)
    assert (width > 0).all() and (width == span).all() and (width < 13).any()


def test_thrift_saves_model_rows(evolve):
    thrifty, lavish = evolve(30), evolve(30, thrifty=False)
    everything = SMALL["population"] * (SMALL["generations"] + 1)
    assert thrifty.calls.mean() < 0.7 * lavish.calls.mean() < 0.7 * everything


def test_offspring_that_cannot_matter_are_not_asked_about(linear):
    """No row is asked about twice, nor one that a valid one beats in size and distance."""
    seen = []

    def spy(X):
        seen.extend(np.asarray(X).reshape(len(X), 24).copy())
        return linear.predict_proba(np.asarray(X).reshape(len(X), 24))

    classifier = cf.as_classifier(spy, classes=linear.classes_)
    explainer = cf.TSEvo(**SMALL).fit(classifier, ITALY.X_train, ITALY.y_train)
    seen.clear()
    x = ITALY.X_test[0, 0]
    result = explainer.explain(ITALY.X_test[:1])
    asked = np.array(seen[1:-1])
    later = asked[SMALL["population"] :]
    assert len(np.unique(asked, axis=0)) == len(asked) == result.calls.sum() - 2
    valid = np.array([linear.predict(row[None])[0] == result.target[0] for row in asked])
    size, distance = (asked != x).sum(1), np.abs(asked - x).mean(1)
    start = np.flatnonzero(valid[: SMALL["population"]])
    for row in later:
        s, d = (row != x).sum(), np.abs(row - x).mean()
        assert not ((size[start] <= s) & (distance[start] <= d)).any()


def test_a_frozen_window_and_a_frozen_channel_stay():
    X, y = bumps()
    model = LogisticRegression(max_iter=500).fit(X.reshape(len(X), -1), y)
    frozen = np.zeros((3, 30), bool)
    frozen[0], frozen[:, 20:24] = True, True
    explainer = cf.TSEvo(**SMALL).fit(model, X, y)
    middle = X[y == "middle"][:12]
    free = explainer.explain(middle, target="late")
    held = explainer.explain(
        middle, target="late", constraints=cf.Constraints(frozen=frozen, upper=2.2)
    )
    assert free.changed[:, frozen].any() and not held.changed[:, frozen].any()
    assert free.valid.all() and held.valid.all() and held.X_cf[held.changed].max() <= 2.2


def test_many_channels_classes_and_names():
    X, y = bumps()
    model = LogisticRegression(max_iter=500).fit(X.reshape(len(X), -1), y)
    result = cf.TSEvo(**SMALL).fit(model, X, y).explain(X[:12], target="late", k=3)
    new = result.status != "already_target"
    assert result.valid.all() and (result.cf_labels == "late").all() and new.any()
    assert (result.changed.any(2).sum(1)[new] < 3).any(), "never fewer than all channels"


def test_k_answers_differ_and_begin_with_the_best(evolve):
    one, three = evolve(), evolve(options={"k": 3})
    first = np.searchsorted(three.source, np.arange(12))
    np.testing.assert_array_equal(three.X_cf[first], one.X_cf)
    assert three.valid.all() and len(three) > 25


def test_confidence_is_reached(evolve):
    sure = evolve(options={"confidence": 0.9})
    assert (sure.target_proba[:, 1] >= 0.9).all() and (evolve().target_proba[:, 1] < 0.9).any()


def test_a_budget_is_kept_and_more_of_it_is_never_worse(evolve):
    small, large = (evolve(options={"budget": cf.Budget(calls=12 * c)}) for c in (12, 60))
    assert small.calls.max() <= 12 and large.calls.max() <= 60
    assert (
        small.valid.all()
        and (merit(large) <= merit(small)).all()
        and merit(large).sum() < merit(small).sum()
    )


def test_out_of_reach_takes_the_line_and_says_so(evolve):
    result = evolve(options={"constraints": cf.Constraints(frozen=np.arange(24) < 22)})
    lost = ~result.valid
    assert (
        lost.any()
        and result.info["fallback"][lost].all()
        and set(result.status[lost]) == {"infeasible"}
    )
    assert not result.info["fallback"][~lost].any() and (result.info["reached"][lost] == 0).all()


def test_a_class_without_reference_rows_is_told():
    X, y = bumps()
    model = LogisticRegression(max_iter=500).fit(X.reshape(len(X), -1), y)
    keep = y != "late"
    result = cf.TSEvo(**SMALL).fit(model, X[keep], y[keep]).explain(X[:3], target="late")
    new = result.status != "already_target"
    assert (result.status[new] == "infeasible").all() and all(
        "no row" in m for m in result.message[new]
    )


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"population": 7}, "population must be an even number at least 4 .*, got 7"),
        ({"generations": -1}, "generations must be a whole number at least 0 .*, got -1"),
        ({"mutation": "gauss"}, "mutation must be .* or 'all', got 'gauss'"),
        (
            {"crossover_rate": 1.5},
            "crossover_rate must be a number at least 0 and at most 1, got 1.5",
        ),
        ({"metric": "cosine"}, "metric must be.*'cosine'"),
    ],
)
def test_senseless_parameters_are_refused_at_fit(linear, parameters, words):
    with pytest.raises(ValueError, match=words):
        cf.TSEvo(**parameters).fit(linear, ITALY.X_train, ITALY.y_train)
