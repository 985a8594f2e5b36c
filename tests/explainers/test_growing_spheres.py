"""Growing Spheres: samples fill their layer, the layer is the nearest, answers are sparse."""

import numpy as np
import pytest
import torch
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
from contrafact.explainers import GrowingSpheres


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 4)) + np.where(y[:, None] == 1, 1.5, -1.5) * [1, 0, 0, 0]
    model = LogisticRegression().fit(X, y)
    return model, X, y, X[model.predict(X) == 0][:20]


def explain(problem, **params):
    model, X, y, rows = problem
    explainer = GrowingSpheres(**params).fit(model, X, y)
    return explainer.explain(rows, target=1, budget=cf.Budget(calls=np.inf))


def to_boundary(problem):
    """The distance to the decision boundary, in scales."""
    model, X, _, rows = problem
    spread = 1.4826 * np.median(np.abs(X - np.median(X, 0)), 0)
    return -model.decision_function(rows) / np.linalg.norm(model.coef_[0] * spread)


def draw(problem, inner, outer, n_samples):
    model, X, y, rows = problem
    drawn = []

    class Noting(GrowingSpheres):
        def _draw(self, tasks, a, b, stream):
            spheres = torch.full_like(a, inner), torch.full_like(b, outer)
            z = super()._draw(tasks, *spheres, stream)
            drawn.append(((z - tasks.x[:, None]) * self.parts_.weight).norm(dim=2))
            return z

    Noting(n_samples=n_samples, max_layers=1).fit(model, X, y).explain(rows, target=1)
    return drawn[0]


def test_samples_are_uniform_in_the_volume_of_their_layer(problem):
    radius = draw(problem, 0.5, 2.0, 200)
    assert float(radius.min()) >= 0.5 - 1e-9 and float(radius.max()) <= 2.0 + 1e-9
    volume = (radius**4 - 0.5**4) / (2.0**4 - 0.5**4)  # of the layer within this radius, 4 features
    deciles = torch.quantile(volume.flatten()[:4000], torch.linspace(0.1, 0.9, 9).double())
    assert torch.allclose(deciles, torch.linspace(0.1, 0.9, 9).double(), atol=0.04)


def test_layer_is_the_nearest_that_holds_the_class(problem):
    result = explain(problem, n_samples=400, growth=1.1, max_layers=60)
    distance = to_boundary(problem)
    outer = result.info["radius"]
    assert result.valid.all() and not result.info["fallback"].any()
    assert (outer >= distance).all()
    assert (outer < 1.6 * distance + 0.05).all()


def test_the_first_ball_does_not_matter_much(problem):
    small, large = (explain(problem, radius=radius, n_samples=200) for radius in (0.3, 4.0))
    ratio = small.info["radius"] / large.info["radius"]
    assert np.abs(np.log(ratio)).mean() < np.log(1.5)
    assert (small.X_cf != large.X_cf).any()


def test_columns_that_are_not_needed_are_given_back(problem):
    model = problem[0]
    result = explain(problem)
    for x, x_cf in zip(result.X, result.X_cf, strict=True):
        changed = np.flatnonzero(x != x_cf)
        for j in changed if len(changed) > 1 else []:
            trial = x_cf.copy()
            trial[j] = x[j]
            assert model.predict(trial[None])[0] == 0
    assert (result.X_cf != result.X).sum(1).mean() < 2


def test_more_layers_reach_farther_and_the_line_is_there_otherwise(problem):
    near = explain(problem, max_layers=1, radius=0.01)
    far = explain(problem, max_layers=40, radius=0.01)
    assert near.info["fallback"].all() and not far.info["fallback"].any()
    assert near.valid.all() and far.valid.all()


@pytest.mark.parametrize("option", [{"n_samples": 10}, {"growth": 2.0}, {"radius": 0.1}])
def test_every_option_changes_the_result(problem, option):
    assert (explain(problem, **option).X_cf != explain(problem).X_cf).any()


@pytest.mark.parametrize("kind", ["logistic", "trees"])
def test_rows_of_tables_stay_rows(kind):
    model = fit_model(kind)
    rows = at_risk(model, 8)
    explainer = GrowingSpheres().fit(model, TABLE, LABELS)
    limits = cf.Constraints(frozen=["sex"], increasing=["age"])
    result = explainer.explain(rows, target="low", k=2, constraints=limits)
    assert result.valid.all()
    assert_rows_of_the_table(result)
    assert (result.frame_cf["age"].to_numpy() >= result.frame["age"].to_numpy()).all()
    assert np.mean([len(set(column_sets(result, i))) for i in range(8)]) > 1.7
    alone = explainer.explain(rows[3:4], target="low", k=2, constraints=limits)
    np.testing.assert_array_equal(alone.X_cf, result.X_cf[result.source == 3])
