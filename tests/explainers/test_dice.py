"""DiCE: every term of the loss matters, options differ, the determinant is the one of the paper."""

import numpy as np
import pytest
from mixed_table import (
    LABELS,
    TABLE,
    assert_rows_of_the_table,
    at_risk,
    column_sets,
    fit_model,
)
from sklearn.linear_model import LogisticRegression

import contrafact as cf


@pytest.fixture(scope="module", params=["logistic", "trees"])
def model(request):
    return fit_model(request.param)


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 6)) + np.where(y[:, None] == 1, 1.5, 0.0) * [1, 1, 1, 0, 0, 0]
    return LogisticRegression().fit(X, y), X, y


def explain(fitted, rows=8, k=1, **params):
    model, X, y = fitted
    instances = X[model.predict(X) == 0][:rows]
    return cf.DiCE(**params).fit(model, X, y).explain(instances, target=1, k=k)


def distance(result, X):
    spread = 1.4826 * np.median(np.abs(X - np.median(X, 0)), 0)
    return (np.abs(result.X_cf - result.X) / spread).sum(1)


def test_options_of_a_table_differ_in_their_columns(model):
    rows = at_risk(model, 10)
    result = cf.DiCE().fit(model, TABLE, LABELS).explain(rows, target="low", k=3)
    assert result.valid.all() and len(result) == 30
    assert_rows_of_the_table(result)
    sets = [column_sets(result, i) for i in range(10)]
    differs = result.info["differs"].reshape(10, 3)
    assert [len(set(options)) for options in sets] == differs.sum(1).tolist()
    assert differs.mean() > 0.9
    # What does not differ has other values.
    assert len(np.unique(result.X_cf, axis=0)) == 30


def test_constraints_hold_in_every_option(model):
    rows = at_risk(model, 10)
    limits = cf.Constraints(frozen=["sex"], increasing=["age"], max_changed=3)
    explainer = cf.DiCE(generations=10).fit(model, TABLE, LABELS)
    result = explainer.explain(rows, target="low", k=2, constraints=limits)
    assert result.valid.all()
    assert (result.frame_cf["sex"].to_numpy() == result.frame["sex"].to_numpy()).all()
    assert (result.frame_cf["age"].to_numpy() >= result.frame["age"].to_numpy()).all()
    assert max(len(columns) for i in range(10) for columns in column_sets(result, i)) <= 3


def test_no_single_column_can_be_given_back(model):
    rows = at_risk(model, 10)
    result = cf.DiCE(generations=5).fit(model, TABLE, LABELS).explain(rows, target="low")
    before, after = result.frame, result.frame_cf
    for i in range(10):
        for column in after.columns:
            same = before.iloc[i][column] == after.iloc[i][column]
            if not same and len(column_sets(result, i)[0]) > 1:
                trial = after.iloc[[i]].copy()
                trial[column] = before.iloc[[i]][column].to_numpy()
                assert model.predict(trial)[0] == "high"


def test_evolution_makes_rows_smaller(blobs):
    start = explain(blobs, generations=0)
    evolved = explain(blobs, generations=40)
    assert start.valid.all() and evolved.valid.all()
    assert distance(evolved, blobs[1]).mean() < distance(start, blobs[1]).mean()
    assert (evolved.info["generations"] > 0).all() and (start.info["generations"] == 0).all()


def test_sparsity_weighs_columns_against_distance(blobs):
    sparse = explain(blobs, rows=20, sparsity=10.0, proximity=0.0, patience=20)
    near = explain(blobs, rows=20, sparsity=0.0, proximity=10.0, patience=20)
    assert (sparse.X_cf != sparse.X).sum() < (near.X_cf != near.X).sum()
    assert distance(sparse, blobs[1]).mean() > distance(near, blobs[1]).mean()


def test_diversity_spreads_the_population(blobs):
    def spread(result):
        gaps = [
            np.abs(one - other).sum()
            for i in range(8)
            for own in [result.X_cf[result.source == i]]
            for one in own
            for other in own
        ]
        return np.mean(gaps)

    alike = explain(blobs, k=3, diversity=0.0)
    diverse = explain(blobs, k=3, diversity=20.0)
    assert spread(diverse) > spread(alike)


def test_patience_ends_the_search_of_each_instance(blobs):
    short = explain(blobs, patience=1)
    long = explain(blobs, patience=15)
    assert short.calls.sum() < long.calls.sum()
    assert (short.info["generations"] <= long.info["generations"]).all()


def test_units_do_not_matter(blobs):
    model, X, y = blobs
    factor = np.array([1000.0, 1, 1, 1, 0.01, 1])
    result = explain(blobs, generations=5)
    other = LogisticRegression().fit(X, y)
    other.coef_ = model.coef_ / factor
    other.intercept_ = model.intercept_
    scaled = cf.DiCE(generations=5).fit(other, X * factor, y)
    again = scaled.explain(result.X * factor, target=1)
    assert ((again.X_cf != again.X).sum(1) <= 6).all()
    assert again.valid.all()
    # Random numbers come from the content, so only the kind of answer can be compared.
    moved = distance(result, X).mean(), distance(again, X * factor).mean()
    assert abs(moved[0] - moved[1]) < 0.25 * moved[0]


def test_batch_equals_loop(model):
    rows = at_risk(model, 5)
    explainer = cf.DiCE(generations=6).fit(model, TABLE, LABELS)
    together = explainer.explain(rows, target="low", k=2)
    for i in range(5):
        alone = explainer.explain(rows[i : i + 1], target="low", k=2)
        np.testing.assert_array_equal(alone.X_cf, together.X_cf[together.source == i])
