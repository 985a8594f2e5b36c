"""refine: nothing that can be given back is kept, and nothing that matters is lost."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.engine.acceptance import CLEAR_MARGIN

PROBLEMS = [
    (data, model) for data in ("ItalyPowerDemand", "digits") for model in ("linear", "forest")
]


@pytest.fixture(scope="module", params=PROBLEMS, ids="-".join)
def problem(request):
    """A trained model, a fitted explainer and its counterfactuals, whole neighbors."""
    return make_problem(*request.param)


def make_problem(name, kind, n=25):
    data = cf.load_dataset(name)
    X, y = data.X_train[:300], data.y_train[:300]
    flat = X.reshape(len(X), -1)
    model = (
        LogisticRegression(max_iter=2000)
        if kind == "linear"
        else RandomForestClassifier(30, random_state=0)
    )
    model.fit(flat, y)
    explainer = cf.NearestUnlike().fit(model, X, y, modality=data.modality)
    rows = np.random.default_rng(0).permutation(len(data.X_test))[:n]
    return model, explainer, explainer.explain(data.X_test[rows])


def clearly(model, X, target, confidence=0.0):
    """Which instances the model clearly puts in their target class: what a search accepts."""
    proba = model.predict_proba(X.reshape(len(X), -1))
    column = np.searchsorted(model.classes_, target)
    wanted = proba[np.arange(len(X)), column]
    proba[np.arange(len(X)), column] = -1
    return (wanted - proba.max(1) >= CLEAR_MARGIN) & (wanted >= confidence)


def one_back(result, i, allowed=lambda x_cf: True):
    """Every way to give back one value of counterfactual i."""
    trials = []
    for at in np.argwhere(result.changed[i]):
        trial = result.X_cf[i].copy()
        trial[tuple(at)] = result.X[i][tuple(at)]
        trials += [trial] if allowed(trial) else []
    return np.array(trials)


def assert_minimal(model, result, confidence=0.0, allowed=lambda x_cf: True):
    # Rows on the very edge (tied votes of a forest) are not worked on.
    worked_on = (result.status == "valid") & clearly(model, result.X_cf, result.target, confidence)
    assert worked_on.sum() > 3
    for i in np.flatnonzero(worked_on):
        trials = one_back(result, i, allowed)
        if len(trials):
            kept = clearly(model, trials, np.repeat(result.target[i], len(trials)), confidence)
            assert not kept.any(), f"row {i}: {kept.sum()} values could be given back"


def test_no_single_value_can_be_given_back_and_validity_stays(problem):
    model, _, result = problem
    refined = cf.refine(result, model)
    said = model.predict(refined.X_cf.reshape(len(refined), -1))
    assert result.valid.all() and refined.valid.all() and (said == result.target).all()
    assert_minimal(model, refined)
    assert not (refined.changed & ~result.changed).any()  # it only ever gives back
    assert (np.abs(refined.delta) <= np.abs(result.delta) + 1e-12).all()
    assert refined.changed_fraction.mean() < 0.4 * result.changed_fraction.mean()


def test_calls_grow_by_the_rows_spent(problem):
    model, _, result = problem
    classifier = cf.as_classifier(model)
    refined = cf.refine(result, classifier)
    assert (refined.calls - result.calls).sum() == classifier.rows_evaluated
    assert (refined.calls > result.calls).all()
    assert refined.seconds.sum() > result.seconds.sum()


def test_costs_less_than_trying_value_by_value():
    model, _, result = make_problem("GunPoint", "linear", n=10)
    spent = cf.refine(result, model).calls - result.calls
    naive = []
    for i in range(len(result)):
        x, current, asked = result.X[i].ravel(), result.X_cf[i].ravel().copy(), 0
        gave = True
        while gave:
            gave = False
            for j in np.argsort(np.abs(current - x)):
                if current[j] != x[j]:
                    trial = current.copy()
                    trial[j] = x[j]
                    asked += 1
                    if clearly(model, trial[None], result.target[i : i + 1])[0]:
                        current, gave = trial, True
        naive.append(asked)
    assert spent.sum() < sum(naive) / 2


@pytest.mark.parametrize("kind", ["linear", "forest"])
def test_confidence_is_kept(kind):
    model, explainer, result = make_problem("ItalyPowerDemand", kind)
    refined = cf.refine(result, model, confidence=0.8)
    before, after = result.target_proba[:, 1], refined.target_proba[:, 1]
    assert (after[before >= 0.8] >= 0.8).all() and (before >= 0.8).sum() > 5
    np.testing.assert_array_equal(refined.X_cf[before < 0.8], result.X_cf[before < 0.8])
    assert all("below the 0.8" in message for message in refined.message[before < 0.8])
    assert_minimal(model, refined[before >= 0.8], confidence=0.8)
    inside = explainer.explain(result.X, confidence=0.8, refine=True)
    np.testing.assert_allclose(inside.X_cf[before >= 0.8], refined.X_cf[before >= 0.8])


@pytest.mark.parametrize("kind", ["linear", "forest"])
def test_constraints_are_kept_while_giving_back(kind):
    model, explainer, result = make_problem("ItalyPowerDemand", kind)
    limits = cf.Constraints(lower=-2.0, upper=2.5, frozen=np.arange(24) < 6, max_step=1.6)
    limited = explainer.explain(result.X, constraints=limits)
    refined = cf.refine(limited, model, constraints=limits)
    valid = limited.status == "valid"
    assert valid.sum() > 5 and refined.valid[valid].all()

    def allowed(x_cf):
        steps = np.abs(np.diff(x_cf, axis=-1)) <= 1.6
        return steps.all() and (x_cf >= -2).all() and (x_cf <= 2.5).all()

    assert all(allowed(x_cf) for x_cf in refined.X_cf[valid])
    np.testing.assert_array_equal(refined.X_cf[..., :6], refined.X[..., :6])
    assert_minimal(model, refined, allowed=allowed)
    assert refined.changed_fraction[valid].mean() < limited.changed_fraction[valid].mean()


def test_several_counterfactuals_per_instance(problem):
    model, explainer, result = problem
    several = explainer.explain(result.X[:8], k=3)
    refined = cf.refine(several, model)
    assert refined.valid.all() and np.array_equal(refined.source, several.source)
    assert_minimal(model, refined)
    at_once = explainer.explain(result.X[:8], k=3, refine=True)
    assert at_once.valid.all()
    assert_minimal(model, at_once)
    flat = at_once.X_cf.reshape(len(at_once), -1)
    assert len(np.unique(np.column_stack([at_once.source, flat]), axis=0)) == len(at_once)


def test_rows_that_are_not_valid_stay_as_they_are(problem):
    model, explainer, result = problem
    mixed = explainer.explain(
        result.X[:8], target=result.labels[:4].tolist() + result.target[4:8].tolist()
    )
    failed = cf.Counterfactuals.from_arrays(
        model, result.X[:3], result.X[:3] + 1e-9, result.target[:3]
    )
    for one in (mixed[:4], failed):
        refined = cf.refine(one, model)
        np.testing.assert_array_equal(refined.X_cf, one.X_cf)
        assert np.array_equal(refined.status, one.status) and np.array_equal(
            refined.calls, one.calls
        )
    assert set(failed.status) == {"invalid"} and set(mixed.status[:4]) == {"already_target"}


def test_foreign_arrays(problem):
    """Another library's counterfactuals: judged first, then refined as our own."""
    model, _, result = problem
    foreign = torch.from_numpy(result.X_cf), torch.from_numpy(result.X)
    judged = cf.Counterfactuals.from_arrays(
        model, foreign[1], foreign[0], result.target.tolist(), method="theirs"
    )
    refined = cf.refine(judged, model)
    assert refined.valid.all() and refined.provenance["method"] == "theirs"
    np.testing.assert_allclose(refined.X_cf.numpy(), cf.refine(result, model).X_cf, atol=1e-12)


def test_foreign_arrays_that_break_the_constraints_are_brought_within_them():
    model, _, result = make_problem("ItalyPowerDemand", "linear")
    limits = cf.Constraints(frozen=np.arange(24) < 4, upper=float(np.quantile(result.X_cf, 0.9)))
    refined = cf.refine(result, model, constraints=limits)
    within = (refined.X_cf <= limits.upper).all((1, 2)) & ~refined.changed[..., :4].any((1, 2))
    assert within[refined.status == "valid"].all() and (refined.status == "valid").sum() > 5
    assert_minimal(model, refined, allowed=lambda x_cf: (x_cf <= limits.upper).all())
    stuck = cf.refine(result, model, constraints=cf.Constraints(frozen=np.ones(24, bool)))
    assert set(stuck.status) == {"infeasible"}
    assert not stuck.valid.any()
    np.testing.assert_array_equal(stuck.X_cf, result.X)  # nothing else keeps the constraints


def test_budget_of_a_refinement_is_kept_and_the_best_so_far_returned(problem):
    model, _, result = problem
    some = cf.refine(result, model, budget=cf.Budget(calls=10 * len(result)))
    full = cf.refine(result, model)
    assert (some.calls - result.calls).max() <= 10 and some.valid.all()
    assert full.changed.sum() < some.changed.sum() < result.changed.sum()


@pytest.mark.usefixtures("own_random_numbers")
def test_a_raw_module_takes_the_class_names_of_the_result():
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(6, 2))
    X = np.random.default_rng(0).normal(size=(30, 1, 6)).astype(np.float32)
    labels = np.array(["up", "down"])  # not in sorted order: the names go by column
    classifier = cf.as_classifier(module, classes=labels)
    result = cf.NearestUnlike().fit(classifier, X).explain(X[:6])
    refined = cf.refine(result, module)
    assert refined.valid.all() and np.array_equal(
        refined.cf_labels, classifier.predict(refined.X_cf)
    )
    assert len(cf.refine(result[[]], module)) == 0
    with pytest.raises(ValueError, match="classes"):
        cf.refine(result, LogisticRegression().fit(X[:, 0], X[:, 0, 0] > 0))


def test_what_only_a_smaller_edit_can_spare_is_given_back():
    """The second value is needed as long as the first is large; shrinking comes before the last
    sweep."""

    def model(X):
        a, b = X.T
        reached = (a >= 0.25) & ((b >= 0.25) | (a <= 0.5))
        return np.stack([~reached, reached], 1).astype(float)

    result = cf.Counterfactuals.from_arrays(model, np.zeros((1, 2)), np.ones((1, 2)), target=1)
    refined = cf.refine(result, model)
    assert refined.X_cf.tolist() == [[0.25, 0.0]]
