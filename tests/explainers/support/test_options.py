"""k options of rows of tables: other columns where there are such, else clearly other values."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.explainers.support.found_options import LEAST_STEP
from contrafact.testing.case_models import with_quick_votes

IRIS, SPECIES = load_iris(return_X_y=True, as_frame=True)
NO_OTHER = "no other set of columns was found that changes the class"


@pytest.fixture(scope="module")
def iris():
    forest = RandomForestClassifier(20, random_state=0).fit(IRIS[::2], SPECIES[::2])
    return with_quick_votes(forest), IRIS[::2], SPECIES[::2].to_numpy(), IRIS[1::8]


def options_of(result, source):
    """Return values, sets of changed columns and messages of the valid options of a row."""
    own = (result.source == source) & result.valid
    changed = [frozenset(np.flatnonzero(row)) for row in result.changed[own]]
    return result.X_cf[own], changed, result.message[own].tolist()


@pytest.mark.parametrize("name", ["Graft", "CoMTE", "DiCE", "NICE", "GrowingSpheres"])
def test_three_valid_options_that_say_where_columns_repeat(iris, name):
    model, X, y, rows = iris
    explainer = getattr(cf, name)().fit(model, X, y)
    result = explainer.explain(rows, k=3, on_error="raise")
    scale = np.array([column.scale for column in result.table.schema])
    n_complete = 0
    n_repeating = 0
    for source in range(len(rows)):
        values, changed, messages = options_of(result, source)
        n_complete += len(values) == 3
        for i, columns in enumerate(changed):
            earlier = [j for j in range(i) if changed[j] == columns]
            told = f"the same columns as option {earlier[0] + 1}, " if earlier else ""
            assert messages[i].startswith(told)
            assert ("the same columns" in messages[i]) == bool(earlier)
            assert not earlier or NO_OTHER in messages[i]
            n_repeating += bool(earlier)
            for j in earlier:
                assert (np.abs(values[i] - values[j]) / scale).max() >= LEAST_STEP
    assert n_complete >= len(rows) - 1
    assert n_repeating > 0


def test_the_first_option_is_that_of_one_alone(iris):
    model, X, y, rows = iris
    explainer = cf.Graft().fit(model, X, y)
    one = explainer.explain(rows)
    three = explainer.explain(rows, k=3)
    first = np.unique(three.source, return_index=True)[1]
    assert np.array_equal(three.X_cf[first], one.X_cf)


@pytest.mark.parametrize("name", ["Graft", "DiCE"])
def test_same_options_in_a_batch_and_alone(iris, name):
    model, X, y, rows = iris
    explainer = getattr(cf, name)().fit(model, X, y)
    batch = explainer.explain(rows[:4], k=3)
    for i in range(4):
        alone = explainer.explain(rows[i : i + 1], k=3)
        assert np.array_equal(alone.X_cf, batch.X_cf[batch.source == i])
        assert np.array_equal(alone.message, batch.message[batch.source == i])


def linear_model(frame, weights):
    """A model of the weighted sum of the columns, with the threshold 0."""
    model = LogisticRegression().fit(frame, frame.sum(axis=1) > 0)
    model.coef_ = np.array([weights])
    model.intercept_ = np.zeros(1)
    return model


def test_two_columns_share_what_each_does_alone():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 2)).round(2), columns=["a", "b"])
    model = linear_model(frame, [5.0, 5.0])
    row = pd.DataFrame({"a": [-0.8], "b": [-0.7]})
    result = cf.Graft().fit(model, frame).explain(row, True, k=3, on_error="raise")
    values, changed, messages = options_of(result, 0)
    assert changed[2] == {0, 1} and set(changed[:2]) == {frozenset({0}), frozenset({1})}
    alone = values[:2].max(0)
    assert (values[2] < alone).all()
    assert messages == ["", "", ""]


def test_the_only_column_goes_farther_by_whole_steps():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"visits": rng.integers(0, 30, 200), "age": rng.integers(20, 80, 200)},
    )
    model = LogisticRegression(max_iter=500).fit(frame, frame["visits"] > 12)
    limits = cf.Constraints(frozen=["age"], bounds={"visits": (0, 25)})
    row = pd.DataFrame({"visits": [3], "age": [50]})
    result = cf.Graft().fit(model, frame).explain(row, True, k=3, constraints=limits)
    visits = result.frame_cf["visits"].to_numpy()
    scale = result.table.schema["visits"].scale
    assert result.valid.all() and len(visits) == 3
    assert (np.diff(visits) >= LEAST_STEP * scale).all() and visits.max() <= 25
    assert result.message.tolist() == [
        "",
        *[f"the same columns as option 1, with other values: {NO_OTHER}"] * 2,
    ]


def test_a_yes_or_no_has_no_other_value():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"smokes": rng.random(200) < 0.5, "age": rng.integers(20, 80, 200)})
    model = LogisticRegression(max_iter=500).fit(frame, frame["smokes"])
    limits = cf.Constraints(frozen=["age"])
    row = pd.DataFrame({"smokes": [False], "age": [50]})
    result = cf.Graft().fit(model, frame).explain(row, True, k=3, constraints=limits)
    assert result.valid.tolist() == [True]
    assert result.message[0] == f"1 of 3 counterfactuals: {NO_OTHER}"


def test_methods_tell_in_their_info_what_repeats(iris):
    model, X, y, rows = iris
    result = cf.DiCE().fit(model, X, y).explain(rows, k=3)
    repeats = np.array(["the same columns" in message for message in result.message])
    assert repeats.any()
    assert np.array_equal(result.info["differs"] == 1, ~repeats)


def test_a_spent_budget_is_the_reason(iris):
    model, X, y, rows = iris
    explainer = cf.Graft().fit(model, X, y)
    result = explainer.explain(rows, k=3, budget=cf.Budget(calls=200 * len(rows)))
    short = np.flatnonzero(np.bincount(result.source) < 3)
    assert len(short)
    for message in result.message[np.isin(result.source, short) & result.valid]:
        assert "budget" in message and NO_OTHER not in message
