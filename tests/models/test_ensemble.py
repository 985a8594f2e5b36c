"""Ensemble: the mean of probabilities, columns by label, gradients, honest counts."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from torch import nn

import contrafact as cf
from contrafact.models import Ensemble, as_classifier
from contrafact.nn.networks import seeded

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])


def logistic(**options):
    return LogisticRegression(max_iter=500, **options).fit(X, NAMES[Y])


def network(classes=None, seed=0):
    with seeded(seed):
        module = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    return as_classifier(module, classes=classes)


def test_probabilities_are_the_mean_with_columns_by_label():
    backward = NAMES[::-1]
    members = [logistic(), network(backward), network(seed=1)]
    ensemble = Ensemble(members)
    of_names = {str(name): network(backward).predict_proba(X) for name in backward}
    by_label = np.stack([of_names[name][:, list(backward).index(name)] for name in NAMES], 1)
    parts = [members[0].predict_proba(X), by_label, network(seed=1).predict_proba(X)]
    np.testing.assert_allclose(ensemble.predict_proba(X), np.mean(parts, axis=0), atol=1e-6)
    assert ensemble.classes.tolist() == NAMES.tolist()
    assert ensemble.predict(X[:1])[0] == NAMES[np.mean(parts, axis=0)[0].argmax()]


def test_logits_are_those_of_the_mean_and_have_its_gradient():
    ensemble = Ensemble([logistic(), network(NAMES[::-1])])
    assert ensemble.differentiable and ensemble.dtype == torch.float32
    x = torch.from_numpy(X[:5]).float().requires_grad_()
    proba = ensemble.logits(x).softmax(1)
    np.testing.assert_allclose(proba.detach(), ensemble.predict_proba(X[:5]), atol=1e-6)
    (gradient,) = torch.autograd.grad(proba[:, 1].sum(), x)
    h = 1e-2
    for feature in range(4):
        step = np.eye(4)[feature] * h
        up, down = (ensemble.predict_proba(X[:5] + sign * step)[:, 1] for sign in (1, -1))
        np.testing.assert_allclose(gradient[:, feature], (up - down) / (2 * h), atol=1e-3)


def test_one_member_without_gradients_leaves_none():
    forest = RandomForestClassifier(5, random_state=0).fit(X, NAMES[Y])
    ensemble = Ensemble([forest, network(NAMES)])
    assert not ensemble.differentiable
    with pytest.raises(TypeError, match="no gradients"):
        ensemble.logits(torch.zeros(1, 4))


def test_explained_toward_its_second_class_with_every_row_counted():
    ensemble = Ensemble([logistic(), network(NAMES)])
    explainer = cf.SVCE(n_iter=5, restarts=1).fit(ensemble, X, NAMES[Y])
    before = [ensemble.rows_evaluated, *(member.rows_evaluated for member in ensemble.members)]
    result = explainer.explain(X[::30])
    after = [ensemble.rows_evaluated, *(member.rows_evaluated for member in ensemble.members)]
    own, *of_members = np.subtract(after, before).tolist()
    assert own == sum(of_members) == result.calls.sum() > 0
    proba = ensemble.predict_proba(X[::30])
    assert result.target.tolist() == NAMES[np.argsort(proba, axis=1)[:, -2]].tolist()
    assert result.valid.all()
    assert (ensemble.predict(result.X_cf) == result.target).all()


def test_members_without_names_take_those_of_the_reference():
    with seeded(0):
        modules = [nn.Linear(4, 3), nn.Linear(4, 3)]
    for module in modules:
        cf.fit_classifier(module, X, Y, max_epochs=5, learning_rate=0.05)
    ensemble = Ensemble(modules)
    cf.LineSearch().fit(ensemble, X, NAMES[Y])
    assert ensemble.classes.tolist() == NAMES.tolist()


def test_remarks_of_members_are_those_of_the_ensemble():
    class Frozen(nn.Module):
        def forward(self, x):
            return x[:, :3].detach()

    ensemble = Ensemble([network(NAMES), as_classifier(Frozen(), classes=NAMES)])
    with pytest.warns(UserWarning, match="No gradient passes"):
        ensemble.probe(X)
    assert len(ensemble.remarks.texts) == 1 and not ensemble.differentiable


@pytest.mark.usefixtures("own_random_numbers")
def test_refuses():
    with pytest.raises(ValueError, match="members must be a list of models, at least one"):
        Ensemble([])
    with pytest.raises(TypeError, match=r"members\[1\]: model must be"):
        Ensemble([logistic(), 3])
    with pytest.raises(ValueError, match=r"members\[1\] has the classes \['a', 'b', 'c'\]"):
        Ensemble([logistic(), network(["a", "b", "c"])])
    with pytest.raises(ValueError, match=r"members\[1\] gives 3 outputs"):
        Ensemble([as_classifier(nn.Linear(4, 2), classes=["a", "b"]), network()]).predict(X)
    frame = pd.DataFrame({"a": ["x", "y", "x", "y"], "b": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(TypeError, match="VotingClassifier"):
        cf.NearestUnlike().fit(Ensemble([network(NAMES)]), frame)


def test_counts_of_an_ensemble_of_series_in_another_shape():
    series = X[:, None, :]
    ensemble = Ensemble([network(NAMES), network(NAMES, seed=1)])
    explainer = cf.Glacier(max_iter=3).fit(ensemble, X, NAMES[Y], modality="series")
    before = sum(member.rows_evaluated for member in ensemble.members)
    result = explainer.explain(series[:4, 0])
    after = sum(member.rows_evaluated for member in ensemble.members)
    assert after - before == result.calls.sum()
