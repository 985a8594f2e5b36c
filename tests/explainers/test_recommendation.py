"""One policy: which method is recommended for which model, data and constraints."""

from __future__ import annotations

import time
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.spatial.distance import cityblock
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

import contrafact as cf
from contrafact.explainers import Recommendation
from contrafact.explainers.method_trials import try_methods
from contrafact.prototypes import GLVQ, GMLVQ, MedianLVQ, NearestMean
from contrafact.testing.table_cases import make_table, train_on_table

X, y = load_iris(return_X_y=True)


def name_of(recommendation: Recommendation) -> str:
    return type(recommendation.method).__name__


def fitted(model):
    return model.fit(X, y)


@pytest.fixture(scope="module")
def forest():
    return fitted(RandomForestClassifier(5, random_state=0))


@pytest.fixture(scope="module")
def network():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 3))


@pytest.mark.parametrize("modality", ["series", "image", "row"])
def test_everything_else_gets_a_graft(modality, forest, network):
    for model in (forest, network):
        recommendation = cf.recommend(model, modality)
        assert name_of(recommendation) == "Graft" and recommendation.options == {}
        assert recommendation.method.level == "steady"
        assert modality in recommendation.reason and "noise of 5 %" in recommendation.reason


def test_images_get_more_donors(network):
    donors = {kind: cf.recommend(network, kind).method.n_donors for kind in ("image", "series")}
    assert donors["image"] > donors["series"]


def test_a_classifier_is_taken_as_well(network):
    classifier = cf.as_classifier(network)
    assert name_of(cf.recommend(classifier, "image")) == "Graft"
    assert classifier.rows_evaluated == 0  # the model is not asked


@pytest.mark.parametrize(
    "model",
    [
        GLVQ(max_iter=5, random_state=0),
        GMLVQ(max_iter=5, random_state=0),
        MedianLVQ(random_state=0),
        NearestMean(),
        make_pipeline(StandardScaler(), GLVQ(max_iter=5, random_state=0)),
        make_pipeline(MinMaxScaler(), "passthrough", GLVQ(max_iter=5, random_state=0)),
        GridSearchCV(GLVQ(max_iter=5, random_state=0), {"n_prototypes": [1]}, cv=2),
    ],
    ids=lambda model: repr(model)[:40],
)
def test_prototype_models_get_the_exact_method(model):
    recommendation = cf.recommend(fitted(model), "row")
    assert name_of(recommendation) == "PrototypeCounterfactual"
    assert recommendation.options == {}
    recommendation.method.fit(model, X, y)  # it takes what is recommended for it


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(max_iter=500),
        make_pipeline(PolynomialFeatures(2), GLVQ(max_iter=5, random_state=0)),
        make_pipeline(MinMaxScaler(clip=True), GLVQ(max_iter=5, random_state=0)),
        MedianLVQ(metric=cityblock, random_state=0),
    ],
    ids=lambda model: repr(model)[:40],
)
def test_other_models_do_not(model):
    assert name_of(cf.recommend(fitted(model), "row")) == "Graft"
    with pytest.raises(TypeError):
        cf.PrototypeCounterfactual().fit(model, X, y)


def test_the_method_can_keep_the_constraints():
    model = fitted(GLVQ(max_iter=5, random_state=0))
    frozen = cf.Constraints(frozen=np.array([True, False, False, False]))
    assert name_of(cf.recommend(model, "series", frozen)) == "PrototypeCounterfactual"
    steady = cf.Constraints(max_step=1.0)
    recommendation = cf.recommend(model, "series", steady)
    assert name_of(recommendation) == "Graft"
    assert steady.kinds <= recommendation.method.tags.constraints


def test_nothing_is_fitted(network, monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("fit was called")

    model = fitted(GLVQ(max_iter=5, random_state=0))
    monkeypatch.setattr(cf.PrototypeCounterfactual, "_fit", refuse)
    assert not hasattr(cf.recommend(model, "row").method, "classifier_")


def test_each_has_a_reason_and_a_repr(network):
    recommendation = cf.recommend(network, "series")
    text = recommendation.reason
    assert text.endswith(".") and ". " not in text  # one sentence
    assert repr(recommendation) == f"<Recommendation: Graft(). {text}>"
    with pytest.raises(FrozenInstanceError):
        recommendation.reason = "another"


def test_wrong_arguments_are_named(network):
    with pytest.raises(ValueError, match=r"modality must be 'series', .* got 'text'"):
        cf.recommend(network, "text")
    with pytest.raises(TypeError, match="constraints must be None or a Constraints object"):
        cf.recommend(network, "row", {"lower": 0})
    with pytest.raises(TypeError, match="model must be a torch module"):
        cf.recommend(3, "row")


# --- by measurement -------------------------------------------------------------------------------

ITALY = cf.load_dataset("ItalyPowerDemand")


@pytest.fixture(scope="module")
def line():
    return LogisticRegression(max_iter=500).fit(ITALY.X_train[:, 0], ITALY.y_train)


def measured(model, **options):
    options = {"X": ITALY.X_train, "y": ITALY.y_train, **options}
    return cf.recommend(model, "series", measure=True, **options)


def test_the_best_of_the_trials_is_recommended_with_the_figures(line):
    found = measured(line)
    reward = {}
    for trial in found.trials:
        reward.setdefault(trial.method, []).append(trial.reward)
    best = max(reward, key=lambda name: np.mean(reward[name]))
    assert name_of(found) == best and found.reason.startswith(f"{best} did best in 16 trials")
    assert {"Graft", "NativeGuide", "CELS", "Glacier"} == set(reward)
    assert f"{sum(trial.calls for trial in found.trials):,} model rows" in found.reason
    for name, values in reward.items():
        assert f"{name} {np.mean(values):.2f} (" in found.reason
    assert not hasattr(found.method, "classifier_")  # not fitted, as without a trial


def test_a_trial_says_what_the_method_does(line):
    """The same request by hand gives the same change, places and cost."""
    found = measured(line, instances=ITALY.X_test[:5])
    for trial in found.trials:
        method = getattr(cf, trial.method)().fit(line, ITALY.X_train, ITALY.y_train)
        result = method.explain(
            ITALY.X_test[trial.row : trial.row + 1], budget=cf.Budget(calls=2000)
        )
        scores = result.evaluate(["sparsity", "segments", "valid"])
        assert trial.change == pytest.approx(scores["sparsity"][0])
        assert trial.stretches == scores["segments"][0] and trial.valid == scores["valid"][0]
        assert trial.calls == result.calls.sum()
        parts = (1 - trial.change) + 1 / trial.stretches + trial.survival
        assert trial.reward == pytest.approx(parts / 3 if trial.valid else 0)
    rows = {trial.method: [] for trial in found.trials}
    for trial in found.trials:
        rows[trial.method].append(trial.row)
    assert all(own == list(range(len(own))) for own in rows.values())


def test_weights_decide(line):
    """Glacier moves every value: worthless by change, perfect by the number of places."""
    by_change = measured(line, weights={"change": 1.0}).trials
    by_place = measured(line, weights={"stretches": 1.0}).trials
    glacier = [
        np.mean([trial.reward for trial in trials if trial.method == "Glacier"])
        for trials in (by_change, by_place)
    ]
    assert glacier[0] < 0.2 and glacier[1] > 0.9
    # What does well is tried more often.
    count = [sum(trial.method == "Glacier" for trial in trials) for trials in (by_change, by_place)]
    assert count[0] < count[1]


def test_trials_keep_the_budget_and_repeat(line):
    one, again = (measured(line, budget=cf.Budget(calls=400)) for _ in range(2))
    assert one.trials == again.trials
    assert sum(trial.calls for trial in one.trials) <= 400
    other = measured(line, random_state=3)
    assert other.trials != measured(line).trials
    short = measured(line, budget=cf.Budget(calls=70))
    assert len(short.trials) == 1
    assert "budget did not suffice for NativeGuide, CELS, Glacier" in short.reason
    with pytest.raises(ValueError, match=r"calls=50.* single trial, .* at least 60 model rows"):
        measured(line, budget=cf.Budget(calls=50))


@pytest.mark.parametrize("calls", [70, 500])
def test_rows_asked_beyond_those_of_fitting_are_within_the_budget(line, calls):
    classifier = cf.as_classifier(line)
    found = measured(classifier, budget=cf.Budget(calls=calls))
    fitted_alone = cf.as_classifier(line)
    for name in {trial.method for trial in found.trials}:
        getattr(cf, name)().fit(fitted_alone, ITALY.X_train, ITALY.y_train, modality="series")
    assert classifier.rows_evaluated - fitted_alone.rows_evaluated <= calls


def test_a_trial_that_is_running_ends_with_the_time():
    quick = LogisticRegression(max_iter=500).fit(ITALY.X_train[:, 0], ITALY.y_train)

    def slow(X):
        time.sleep(0.02 * len(X))
        return quick.predict_proba(X[:, 0])

    start = time.perf_counter()
    trials = try_methods(
        [cf.Glacier()],
        slow,
        (ITALY.X_train, ITALY.y_train),
        ITALY.X_test[:4],
        {"change": 1.0},
        modality="series",
        budget=cf.Budget(seconds=0.5),
    )
    assert time.perf_counter() - start < 10 and len(trials) == 1


def test_rows_of_frames_are_judged_as_those_of_arrays():
    """The class is kept under noise as often, and categories are no obstacle."""
    names = list("abcd")
    frame = pd.DataFrame(X, columns=names)
    of_frame = LogisticRegression(max_iter=500).fit(frame, y)
    of_array = fitted(LogisticRegression(max_iter=500))
    options = {"weights": {"survival": 1}, "measure": True, "y": y}
    by_frame = cf.recommend(of_frame, "row", X=frame, **options)
    by_array = cf.recommend(of_array, "row", X=X, **options)
    kept = [
        np.mean([t.survival for t in found.trials if t.method == "NICE" and t.valid])
        for found in (by_frame, by_array)
    ]
    assert kept[0] == pytest.approx(kept[1], abs=0.2) and kept[0] > 0.5
    mixed = make_table(60, seed=0)
    model = train_on_table("linear", *mixed)
    found = cf.recommend(model, "row", X=mixed[0], y=mixed[1], measure=True)
    assert any(trial.valid for trial in found.trials)


def test_where_nothing_is_reached_the_reason_says_so(line):
    frozen = cf.Constraints(frozen=np.ones(24, bool))
    found = cf.recommend(line, "series", frozen, measure=True, X=ITALY.X_train, y=ITALY.y_train)
    assert name_of(found) == name_of(cf.recommend(line, "series", frozen))
    assert found.reason.startswith("No method reached another class in")


def test_prototype_models_and_rows_are_tried_too():
    found = cf.recommend(fitted(GLVQ(2, random_state=0)), "row", measure=True, X=X, y=y)
    names = {trial.method for trial in found.trials}
    assert names == {"PrototypeCounterfactual", "Graft", "NICE", "CoMTE", "GrowingSpheres"}
    limits = cf.Constraints(lower=0.0)
    bounded = cf.recommend(
        fitted(LogisticRegression(max_iter=500)), "row", limits, measure=True, X=X, y=y
    )
    assert all(limits.kinds <= getattr(cf, t.method).tags.constraints for t in bounded.trials)


def test_images_are_tried_too():
    digits = cf.load_dataset("digits")
    flat = digits.X_train.reshape(len(digits.X_train), -1)
    model = LogisticRegression(max_iter=100).fit(flat, digits.y_train)
    options = {"X": digits.X_train[:300], "y": digits.y_train[:300]}
    found = cf.recommend(model, "image", measure=True, instances=digits.X_test[:2], **options)
    assert {trial.method for trial in found.trials} == {"Graft", "SVCE", "LineSearch"}
    assert all(trial.stretches >= 1 for trial in found.trials if trial.valid)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"measure": True}, "measure=True needs X and y"),
        ({"X": X}, "X needs measure=True"),
        ({"weights": {"change": 1}}, "weights needs measure=True"),
        ({"measure": True, "X": X, "y": y, "weights": {"beauty": 1}}, "weights must be"),
        ({"measure": True, "X": X, "y": y, "weights": {"change": 0}}, "weights must be"),
        ({"measure": True, "X": X, "y": y, "instances": X[:0]}, "instances has shape"),
        ({"measure": 1}, "measure must be True or False"),
    ],
)
def test_what_a_measurement_needs(options, said, forest):
    with pytest.raises(ValueError, match=said):
        cf.recommend(forest, "row", **options)
