"""Committees made from a model and its data: what is refitted, and what gets surrogates."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from aeon.classification.convolution_based import MiniRocketClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import contrafact as cf
from contrafact.models import as_classifier
from contrafact.nn.retraining import Bootstrap


@pytest.fixture(scope="module")
def series():
    """Twenty-four series of two classes that differ by a bump; labels are names."""
    rng = np.random.default_rng(0)
    X = rng.normal(0, 0.3, (24, 1, 16))
    y = np.array(["flat", "bump"] * 12)
    X[y == "bump", 0, 5:10] += 2.0
    return X, y


def kinds(committee):
    return [type(getattr(member, "model", None)).__name__ for member in committee.members]


def accuracy(committee, X, y):
    return [float((member.predict(X) == y).mean()) for member in committee.members]


def test_a_bootstrap_keeps_the_number_of_every_class():
    labels = np.array(["a"] * 9 + ["b"])
    draw = Bootstrap.draw(np.arange(10.0)[:, None], labels, 0, 0)
    assert (draw.labels[draw.drawn] == labels).all()
    assert len(np.unique(draw.drawn)) < 10
    rest, _ = draw.left_out
    assert set(rest[:, 0]) | set(draw.drawn) == set(range(10))


def test_pipelines_are_refitted_with_other_seeds_and_rows(series):
    X, y = series
    model = make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=7))
    model.fit(X[:, 0], y)
    committee = cf.committee(model, X, y, n=2)
    assert repr(committee) == "Committee(2 x Pipeline, refitted on bootstraps)"
    forests = [member.model[-1] for member in committee.members]
    assert len({forest.random_state for forest in (model[-1], *forests)}) == 3
    means = [member.model[0].mean_ for member in committee.members]
    assert not np.allclose(means[0], means[1])
    assert min(accuracy(committee, X, y)) > 0.8


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize(
    ("model", "other"),
    [
        (RandomForestClassifier(5), "MiniRocketClassifier"),
        (LogisticRegression(), "RandomForestClassifier"),
    ],
)
def test_every_third_member_is_of_another_kind(series, model, other):
    X, y = series
    committee = cf.committee(model.fit(X[:, 0], y), X, y, n=3)
    assert kinds(committee) == [type(model).__name__] * 2 + [other]
    assert committee.made.endswith("every third of another kind")
    assert min(accuracy(committee, X, y)) > 0.8


def test_the_same_seed_makes_the_same_committee(series):
    X, y = series
    model = LogisticRegression().fit(X[:, 0], y)
    coefs = [cf.committee(model, X, y, 1, random_state=s).members[0].model.coef_ for s in (3, 3, 4)]
    np.testing.assert_array_equal(coefs[0], coefs[1])
    assert not np.array_equal(coefs[0], coefs[2])


@pytest.mark.usefixtures("own_random_numbers")
def test_aeon_estimators_are_refitted(series):
    X, y = series
    model = MiniRocketClassifier(n_kernels=84, random_state=0).fit(X, y)
    committee = cf.committee(model, X, y, n=1)
    assert kinds(committee) == ["MiniRocketClassifier"]
    assert committee.made == "refitted on bootstraps"
    assert committee.members[0].model.n_kernels == 84


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize("given", ["name", "module"])
def test_networks_trained_here_are_trained_again(series, given):
    X, y = series
    module = "fcn"
    if given == "module":
        module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 2))
    model = cf.fit_classifier(module, X, y, max_epochs=3)
    before = [parameter.clone() for parameter in model.module.parameters()]
    committee = cf.committee(model, X, y, n=2)
    assert committee.made == "refitted on bootstraps"
    first, second = (next(iter(member.module.parameters())) for member in committee.members)
    assert not torch.equal(first, second)
    assert all(map(torch.equal, before, model.module.parameters()))  # the model itself stays
    assert all(len(member.history["train_loss"]) == 3 for member in committee.members)


@pytest.mark.usefixtures("own_random_numbers")
def test_weights_that_cannot_be_drawn_anew_are_not_retrained(series):
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(1))
            self.layer = torch.nn.Linear(16, 2)

        def forward(self, x):
            return self.scale * self.layer(x.flatten(1))

    X, y = series
    model = cf.fit_classifier(Scaled(), X, y, max_epochs=3)
    assert cf.committee(model, X, y, n=1).made.startswith("surrogates")


def test_a_function_gets_surrogates_that_learn_its_own_answers(series):
    X, y = series

    def contrary(X):
        """Call a bump flat, and the other way round."""
        p = 1 / (1 + np.exp(-4 * (X[:, 0, 5:10].mean(1) - 1)))
        return np.stack([p, 1 - p], 1)

    model = as_classifier(contrary, classes=["flat", "bump"])
    committee = cf.committee(model, X, y)
    rocket, forest = "MiniRocketClassifier", "RandomForestClassifier"
    assert kinds(committee) == [rocket, forest, rocket]
    assert "surrogates" in repr(committee)
    assert min(accuracy(committee, X, model.predict(X))) > 0.9


def test_rows_get_three_kinds_of_surrogates(series):
    X, y = series
    inner = LogisticRegression().fit(X[:, 0], y)
    model = as_classifier(inner.predict_proba, classes=inner.classes_)
    committee = cf.committee(model, X[:, 0], n=3)
    expected = ["RandomForestClassifier", "HistGradientBoostingClassifier", "Pipeline"]
    assert kinds(committee) == expected


def test_without_labels_the_members_learn_what_the_model_says(series):
    X, y = series
    swapped = np.where(y == "flat", "bump", "flat")
    model = LogisticRegression().fit(X[:, 0], swapped)
    assert min(accuracy(cf.committee(model, X, n=2), X, swapped)) > 0.8


def test_what_cannot_be_used_is_refused(series):
    X, y = series
    model = LogisticRegression().fit(X[:, 0], y)
    with pytest.raises(ValueError, match=r"'hill'.*Classes: \['bump', 'flat'\]"):
        cf.committee(model, X, np.where(y == "flat", "flat", "hill"))
    with pytest.raises(ValueError, match="two classes or more; all of X is labeled 'flat'"):
        cf.committee(model, X[::2], y[::2])
    with pytest.raises(ValueError, match="n must"):
        cf.committee(model, X, y, n=0)
    with pytest.raises(ValueError, match=r"X\[3\] contains NaN"):
        cf.committee(model, np.where(np.arange(24)[:, None, None] == 3, np.nan, X), y)
