"""Donors: which reference rows are good examples, and what is known of them."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from window_problems import SINGLE_WINDOW, WindowModel, smooth_series

import contrafact as cf
from contrafact.explainers import graft
from contrafact.explainers.support.donor_pool import (
    DonorKnowledge,
    evenly_by_class,
    good_donors,
)
from contrafact.explainers.support.guided import FoundGuides
from contrafact.models import as_classifier
from contrafact.models.verdict import Verdict

CLASSES = np.array(["no", "yes"])


def two_clouds(n=20, seed=0):
    """Rows around 0 and around 5, and their class."""
    random = np.random.default_rng(seed)
    of_class = np.repeat([0, 1], n)
    X = random.normal(size=(2 * n, 1, 6)) + 5 * of_class[:, None, None]
    return torch.from_numpy(X), of_class


def verdict_of(of_class, p=0.9):
    proba = np.full((len(of_class), 2), 1 - p)
    proba[np.arange(len(of_class)), of_class] = p
    return Verdict.of_proba(torch.from_numpy(proba))


def test_rows_that_the_model_sees_otherwise_are_no_donors():
    X, of_class = two_clouds()
    says = of_class.copy()
    says[[3, 25]] = 1 - says[[3, 25]]
    rows = good_donors(X, CLASSES[of_class], verdict_of(says), CLASSES)
    assert rows.tolist() == [i for i in range(40) if i not in (3, 25)]


def test_rows_whose_neighbors_disagree_are_no_donors():
    X, of_class = two_clouds()
    X[7] = X[30]  # labeled and seen as "no", among rows of "yes"
    rows = good_donors(X, CLASSES[of_class], verdict_of(of_class), CLASSES)
    assert 7 not in rows.tolist()
    assert len(rows) >= 38
    # without labels, the model's classes are compared with those of the neighbors
    assert 7 not in good_donors(X, None, verdict_of(of_class), CLASSES).tolist()


def test_all_agree_all_are_donors():
    X, of_class = two_clouds()
    rows = good_donors(X, CLASSES[of_class], verdict_of(of_class), CLASSES)
    assert rows.tolist() == list(range(40))


def test_a_class_keeps_the_three_surest():
    """All that the model puts in "yes" are mislabeled."""
    X, of_class = two_clouds()
    labels = np.full(40, "no")
    p = np.linspace(0.6, 0.95, 40)
    proba = np.where(of_class[:, None] == [0, 1], p[:, None], 1 - p[:, None])
    verdict = Verdict.of_proba(torch.from_numpy(proba))
    rows = good_donors(X, labels, verdict, CLASSES)
    assert rows[rows >= 20].tolist() == [37, 38, 39]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_small_classes_are_kept(n):
    X, of_class = two_clouds()
    few = list(range(20)) + list(range(20, 20 + n))
    labels = CLASSES[of_class[few]]
    rows = good_donors(X[few], labels, verdict_of(of_class[few]), CLASSES)
    assert rows[rows >= 20].tolist() == list(range(20, 20 + n))
    only = good_donors(X[[0]], labels[:1], verdict_of(of_class[[0]]), CLASSES)
    assert only.tolist() == [0]


def test_whole_numbers_as_labels():
    X, of_class = two_clouds()
    says = of_class.copy()
    says[3] = 1
    rows = good_donors(X, of_class + 5, verdict_of(says), np.array([5, 6]))
    assert 3 not in rows.tolist()
    assert len(rows) == 39


# --- what is known of them ------------------------------------------------------------------------


@pytest.fixture
def series_problem(open_tasks):
    """Donors, instances and a model whose log-odds are linear in a window."""
    model = WindowModel(*SINGLE_WINDOW)
    classifier = as_classifier(model, classes=[0, 1])
    X = torch.from_numpy(
        np.concatenate([smooth_series(15, seed=1), smooth_series(15, SINGLE_WINDOW, seed=2)])
    )
    classifier.infer_classes(X.numpy(), None)
    knowledge = DonorKnowledge.of(classifier, X, classifier.verdict(X))
    tasks = open_tasks(model, smooth_series(4, seed=3), [1] * 4, modality="series", classes=[0, 1])
    index = torch.arange(15, 20).expand(4, -1)
    return knowledge, tasks, FoundGuides(X[index], index)


def test_the_whole_way_predicts_the_donor(series_problem):
    knowledge, tasks, donors = series_problem
    slope = knowledge.way_to(tasks, donors).slope
    assert slope.shape == donors.x.shape
    way = donors.x - tasks.x[:, None]
    predicted = (slope * way).flatten(2).sum(2)
    proba = (knowledge.proba[donors.index].double() + 0.01).log()
    there = proba[..., 1] - proba[..., 0]
    before = (tasks.before.proba.double() + 0.01).log()
    here = before[:, 1] - before[:, 0]
    torch.testing.assert_close(predicted, there - here[:, None], rtol=1e-3, atol=1e-3)
    # without gradients the direction that separates the classes finds the window
    start, end = SINGLE_WINDOW[0]
    gain = (slope * way).sum((0, 1, 2))
    assert gain[start - 2 : end + 2].sum() > 0.8 * gain.sum()


def test_typical_confidence_is_a_quantile_of_the_class(series_problem):
    knowledge, _, _ = series_problem
    proba = knowledge.proba
    label = proba.argmax(1)
    goals = knowledge.typical_confidence(0.25)
    for c in (0, 1):
        own = proba[label == c, c].double().quantile(0.25)
        assert goals[c] <= own + 1e-9
        assert goals[c] >= min(float(own), 0.5) - 1e-9
    assert (knowledge.typical_confidence(0.75) >= goals).all()
    shaky = DonorKnowledge(torch.tensor([[0.45, 0.55]] * 4), None, knowledge.class_slopes)
    assert shaky.typical_confidence(0.25).tolist() == pytest.approx([0, 0.55])


def test_large_references_are_thinned_by_class(monkeypatch):
    label = torch.tensor([0] * 50 + [1] * 3)
    kept = evenly_by_class(label, 10)
    assert kept.tolist() == [0, 10, 20, 30, 40, 50, 51, 52]
    assert evenly_by_class(label, 53).tolist() == list(range(53))

    data = cf.load_dataset("ItalyPowerDemand")
    model = LogisticRegression(max_iter=1000).fit(data.X_train[:, 0], data.y_train)
    monkeypatch.setattr(graft, "MOST_REFERENCE", 20)
    explainer = cf.Graft().fit(model, data.X_train, data.y_train)
    assert len(explainer.guide_.candidates_) <= 20
    result = explainer.explain(data.X_test[:5])
    assert result.valid.all()
    donor = result.info["donor"]
    for row, x_cf in zip(donor, result.X_cf, strict=True):
        # A window of that very row was grafted, as it is or tilted; so it is near it somewhere.
        assert np.abs(data.X_train[row, 0] - x_cf[0]).min() < 0.5
