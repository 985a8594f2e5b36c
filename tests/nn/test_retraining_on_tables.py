"""Committees of models of tables: refitted on frames, or surrogates in coordinates."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

import contrafact as cf
from contrafact.testing.table_cases import AskedInUnits, make_table, train_on_table


@pytest.fixture(scope="module")
def patients():
    frame, y = make_table(80, seed=1)
    return frame, y, train_on_table("linear", frame, y)


def kinds(committee):
    return repr(committee)


def test_pipelines_are_refitted_on_frames(patients):
    frame, y, model = patients
    committee = cf.committee(model, frame, y)
    assert kinds(committee) == (
        "Committee(2 x Pipeline, 1 x RandomForestClassifier, "
        "trained on bootstraps, every third of another kind)"
    )
    first, second, _ = committee.members
    assert list(first.model.feature_names_in_) == list(frame.columns)
    means = [member.model[0].mean_ for member in (first, second)]
    assert not np.allclose(*means)
    found = GridSearchCV(model, {"logisticregression__C": [0.5, 1.0]}, cv=2).fit(frame, y)
    assert kinds(cf.committee(found, frame, y, n=1)).startswith("Committee(1 x Pipeline, refitted")


def test_other_models_get_surrogates(patients):
    frame, _, model = patients
    committee = cf.committee(AskedInUnits(model, {}), frame)
    assert kinds(committee) == (
        "Committee(1 x RandomForestClassifier, 1 x HistGradientBoostingClassifier, 1 x Pipeline, "
        "surrogates fitted to the model's answers)"
    )


@pytest.mark.parametrize("as_function", [False, True])
def test_every_member_agrees_or_the_row_says_so(patients, as_function):
    frame, y, model = patients
    asked = AskedInUnits(model, {}) if as_function else model
    asked = cf.as_classifier(asked, classes=["high", "low"]) if as_function else asked
    rows = frame[model.predict(frame) == "high"][:5]
    members = cf.committee(asked, frame, y)
    for committee in (members, "auto"):
        explainer = cf.NearestUnlike().fit(asked, frame, y)
        result = explainer.explain(rows, "low", committee=committee)
        votes = result.info["committee_votes"]
        assert set(result.status) <= {"valid", "invalid"} and (votes >= 0).all()
        assert (model.predict(result.frame_cf) == "low").tolist() == result.valid.tolist()
        if committee is members:
            for member in members.members:
                said = (
                    member.model.predict(result.frame_cf)
                    if hasattr(member, "model")
                    else member._evaluate(result.frame_cf).label.numpy()
                )
                agree = said == ("low" if hasattr(member, "model") else 1)
                votes = votes - agree
            assert (votes == 0).all()


def test_the_data_are_left_alone(patients):
    frame, y, model = patients
    copy = frame.copy(deep=True)
    cf.committee(model, frame, y, n=1)
    pd.testing.assert_frame_equal(frame, copy)
