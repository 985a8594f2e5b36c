"""Models of tables are asked with the frames that they were trained on."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.engine.instances import read_instances, wrap_model
from contrafact.models.tabular import Tabular


@pytest.fixture(scope="module")
def patients():
    rng = np.random.default_rng(0)
    n = 80
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "bmi": rng.normal(27, 4, n).round(1),
            "smokes": rng.random(n) < 0.4,
        },
        index=[f"p{i}" for i in range(n)],
    )
    return frame, (frame["age"] / 40 + frame["smokes"] > 1.8).to_numpy().astype(int)


class Watched:
    """A function of a frame that keeps what it was asked with."""

    def __init__(self):
        self.seen = []

    def __call__(self, frame):
        self.seen.append(frame)
        p = 1 / (1 + np.exp(-np.asarray(frame["age"] / 40 + frame["smokes"] - 1.8)))
        return np.stack([1 - p, p], 1)


def as_array_function(X):
    p = 1 / (1 + np.exp(-(X[:, 0] / 40 + X[:, 2] - 1.8)))
    return np.stack([1 - p, p], 1)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_model_sees_frames_like_the_one_it_was_trained_on(patients, library):
    frame, y = patients
    given = frame if library == "pandas" else pl.from_pandas(frame)
    model = Watched()
    result = cf.NearestUnlike().fit(model, given, y).explain(given[:5])
    assert model.seen
    for asked in model.seen:
        assert type(asked) is type(given)
        assert list(asked.columns) == list(given.columns)
        assert list(asked.dtypes) == list(given.dtypes)
    assert result.valid.all()


@pytest.mark.usefixtures("own_random_numbers")
def test_models_of_arrays_are_asked_with_numbers(patients, recwarn):
    frame, y = patients
    numbers = frame.to_numpy(float)
    module = torch.nn.Sequential(torch.nn.Linear(3, 2))
    estimator = LogisticRegression(max_iter=2000).fit(numbers, y)
    for model in (estimator, as_array_function, module):
        explainer = cf.NearestUnlike().fit(model, frame, y)
        asked = explainer.classifier_.predict_proba(explainer._reference[0])
        plain = cf.as_classifier(model, classes=[0, 1])
        expected = plain.predict_proba(numbers)
        np.testing.assert_allclose(asked, expected, rtol=1e-6, atol=1e-9)
        assert explainer.classifier_.takes_frames is False
    assert not [one for one in recwarn if "feature names" in str(one.message)]


def test_results_of_given_frames_are_those_of_the_model(patients):
    frame, _ = patients
    edited = frame.assign(age=frame["age"] + 0.5, smokes=True)
    for model in (Watched(), as_array_function):
        result = cf.Counterfactuals.from_arrays(model, frame, edited)
        pd.testing.assert_frame_equal(result.frame_cf, edited, check_dtype=False)
        expected = Watched()(edited)
        np.testing.assert_allclose(result.cf_proba, expected)


def test_given_frames_are_not_repaired():
    """What another library returns is judged as it is, broken groups and changed dates too."""
    frame = pd.DataFrame(
        {
            "color_r": [1, 0, 0],
            "color_g": [0, 1, 0],
            "color_b": [0, 0, 1],
            "day": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"]),
            "bmi": [20.5, 30.25, np.nan],
        }
    )
    edited = frame.assign(color_b=1, day=frame["day"].iloc[::-1].to_numpy(), bmi=[np.nan, 1 / 3, 7])
    model = lambda frame: np.eye(2)[(frame["color_b"] + frame["color_r"] > 1).to_numpy(int)]  # noqa: E731
    result = cf.Counterfactuals.from_arrays(model, frame, edited)
    pd.testing.assert_frame_equal(result.frame_cf, edited, check_exact=True)
    pd.testing.assert_frame_equal(result.frame, frame, check_exact=True)
    assert result.valid.tolist() == [True, False, False]


@pytest.mark.usefixtures("own_random_numbers")
def test_texts_are_refused_for_models_of_arrays():
    frame = pd.DataFrame({"age": [1.5, 2.5], "ward": ["A", "B"]})
    with pytest.raises(ValueError, match=r"column 'ward' of X holds categories\. Pass a function"):
        cf.NearestUnlike().fit(torch.nn.Linear(2, 2), frame, [0, 1])


def test_an_error_of_a_function_of_frames_is_its_own(patients):
    frame, y = patients

    def broken(frame):
        raise KeyError("no such column: weight")

    with pytest.raises(KeyError, match="weight"):
        cf.NearestUnlike().fit(broken, frame, y)


def test_a_frame_is_an_array_for_an_explainer_of_arrays(patients):
    """Otherwise it would be searched in other units than those the model was told."""
    frame, y = patients
    numbers = frame.astype(float)
    model = LogisticRegression(max_iter=2000).fit(numbers.to_numpy(), y)
    explainer = cf.LineSearch().fit(model, numbers.to_numpy(), y)
    of_frame = explainer.explain(numbers[:6])
    of_array = explainer.explain(numbers[:6].to_numpy())
    assert np.array_equal(of_frame.X_cf, of_array.X_cf)
    assert of_frame.names.tolist() == list(frame.columns)


def test_arrays_come_back_as_arrays_from_an_explainer_of_tables(patients):
    frame, y = patients
    graded = frame.assign(grade=np.random.default_rng(1).integers(1, 4, len(frame)))
    schema = cf.Schema.infer(graded, kinds={"grade": "categorical"})
    model = LogisticRegression(max_iter=2000).fit(graded.to_numpy(float), y)
    explainer = cf.NearestUnlike().fit(model, graded, y, schema=schema)
    X = graded[:6].to_numpy(float)
    result = explainer.explain(X)
    assert np.array_equal(result.X, X) and result.table is None
    assert set(result.X_cf[:, 3]) <= {1.0, 2.0, 3.0}
    assert np.array_equal(model.predict(result.X_cf) == result.target, result.valid)
    as_tensor = explainer.explain(torch.from_numpy(X))
    assert torch.equal(as_tensor.X_cf, torch.from_numpy(result.X_cf))


def test_rows_off_the_grid_are_asked_about_as_they_are():
    """A value with more places than the reference has is not rounded for the model's answer."""
    frame = pd.DataFrame({"x": np.arange(40) / 2.0, "n": np.arange(40)})
    model = lambda frame: np.eye(2)[(frame["x"] > 3.3).to_numpy(int)]  # noqa: E731
    explainer = cf.NearestUnlike().fit(model, frame, (frame["x"] > 3.3).to_numpy(int))
    row = pd.DataFrame({"x": [3.32, 3.28], "n": [7, 6]})
    result = explainer.explain(row)
    assert result.labels.tolist() == [1, 0] and result.valid.all()
    pd.testing.assert_frame_equal(result.frame[["x"]], row[["x"]])


def test_wrapping_twice_asks_the_same_model(patients):
    frame, _ = patients
    instances = read_instances(frame, "X", None)
    once = wrap_model(Watched(), instances)
    twice = wrap_model(once, instances)
    assert isinstance(twice, Tabular) and twice.inner is once.inner
