"""Names of columns: taken from a data frame, kept through everything a result can go through."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression

import contrafact as cf


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    return LogisticRegression(max_iter=5000).fit(X.to_numpy(), y), X, y


def test_a_frame_gives_its_columns(wine, tmp_path):
    model, X, y = wine
    result = cf.LineSearch().fit(model, X, y).explain(X[:4])
    assert result.names.tolist() == X.columns.tolist()
    again = cf.Counterfactuals.load(result.save(tmp_path / "wine"))
    for kept in (again, result[1:3], cf.refine(result, model)):
        assert np.array_equal(kept.names, result.names)


def test_an_array_has_no_names(wine, tmp_path):
    model, X, y = wine
    result = cf.LineSearch().fit(model, X, y).explain(X[:2].to_numpy())
    assert result.table is None and np.array_equal(result.X, X[:2])
    assert (
        result.names is None
        and cf.Counterfactuals.load(result.save(tmp_path / "wine")).names is None
    )


def test_time_steps_are_not_channels():
    data = cf.load_dataset("ItalyPowerDemand")
    frame = pd.DataFrame(data.X_train[:, 0], columns=[f"h{t}" for t in range(24)])
    model = LogisticRegression(max_iter=1000).fit(frame.to_numpy(), data.y_train)
    result = (
        cf.NearestUnlike().fit(model, frame, data.y_train, modality="series").explain(frame[:3])
    )
    assert result.modality == "series" and result.names is None


def test_names_must_fit(wine):
    model, X, y = wine
    result = cf.LineSearch().fit(model, X, y).explain(X[:2])
    with pytest.raises(ValueError, match="names must have one entry for each of the 13"):
        replace(result, names=np.array(["a", "b"]))


def test_columns_in_another_order_are_refused(wine):
    """By position they would be other columns, and every answer wrong without a word."""
    model, X, y = wine
    named = LogisticRegression(max_iter=5000).fit(X, y)
    shuffled = X[X.columns[::-1]]
    explainer = cf.LineSearch().fit(named, X, y)
    with pytest.raises(ValueError, match=r"another order: 'proline'.* instead of 'alcohol'"):
        explainer.explain(shuffled[:3])
    with pytest.raises(ValueError, match="columns of the model in another order"):
        cf.LineSearch().fit(named, shuffled, y)
    unnamed = cf.LineSearch().fit(model, X, y)  # the model has no names: those of fit count
    with pytest.raises(ValueError, match="columns of fit in another order"):
        unnamed.explain(shuffled[:3])


def test_other_columns_are_refused_by_name(wine):
    model, X, y = wine
    explainer = cf.LineSearch().fit(model, X, y)
    with pytest.raises(ValueError, match="missing 'alcohol'; not expected 'wine'"):
        explainer.explain(X.rename(columns={"alcohol": "wine"})[:3])


def test_arrays_need_no_names(wine):
    _, X, y = wine
    named = LogisticRegression(max_iter=5000).fit(X, y)
    result = cf.LineSearch().fit(named, X, y).explain(X[:3].to_numpy())
    assert result.valid.all()
