"""Matching of labels, lookup of classes, and doubt about the class order."""

import html

import numpy as np
import pytest
import torch

import contrafact as cf
from contrafact.models.labels import (
    doubt_class_order,
    find_class,
    has_class_names,
    match_labels,
)
from contrafact.models.remarks import ModelWarning


def test_labels_that_read_like_classes_become_these():
    assert match_labels(np.array([2, 1]), np.array(["1", "2"])).tolist() == ["2", "1"]
    assert match_labels(np.array(["2", "1"]), np.array([1, 2])).tolist() == [2, 1]


@pytest.mark.parametrize(
    ("y", "classes"),
    [([1, 2], [1, 2, 3]), (["a"], ["a", "b"]), ([1, 3], ["1", "2"])],
    ids=["both numbers", "both text", "unknown label"],
)
def test_other_labels_stay(y, classes):
    labels = np.array(y)
    assert match_labels(labels, np.array(classes)) is labels


def test_classes_are_found_by_their_text():
    assert find_class("1", np.array([0, 1])) == 1
    assert find_class("2", np.array([1.0, 2.0])) == 2.0
    assert find_class("True", np.array([False, True])) is True
    assert find_class("b", np.array(["a", "b"])) == "b"
    with pytest.raises(ValueError, match=r"--to '3' is not a class .* Classes: 0, 1\."):
        find_class("3", np.array([0, 1]), "--to")
    with pytest.raises(ValueError, match=r"target 'x' .* 19, … \(30\)\."):
        find_class("x", np.arange(30))


def swapped_network():
    """A module whose first output stands for 'ok', the class of positive values."""
    layer = torch.nn.Linear(3, 2, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0] * 3, [-1.0] * 3]))
    return layer


def machine_data(n=40):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) % 2, "ok", "bearing")
    X = np.where(y == "ok", 1.0, -1.0)[:, None] + 0.3 * rng.normal(size=(n, 3))
    return X.astype(np.float32), y


@pytest.mark.usefixtures("own_random_numbers")
def test_fit_warns_of_outputs_in_another_order(tmp_path):
    X, y = machine_data()
    with pytest.warns(ModelWarning, match=r"classes=\['ok', 'bearing'\]") as caught:
        explainer = cf.NearestUnlike().fit(swapped_network(), X, y)
    assert len([each for each in caught if each.category is ModelWarning]) == 1
    result = explainer.explain(X[:4])
    (remark,) = result.provenance["remarks"]
    assert "agrees with 0% of the labels" in remark
    assert "In the order ['ok', 'bearing'] it agrees with 100%" in remark
    assert "--classes ok,bearing" in remark
    page = result.report(tmp_path / "why.html").read_text()
    assert html.escape(remark) in page


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.filterwarnings("error::contrafact.models.remarks.ModelWarning")
def test_the_order_that_the_warning_names_helps():
    X, y = machine_data()
    model = cf.as_classifier(swapped_network(), classes=["ok", "bearing"])
    result = cf.NearestUnlike().fit(model, X, y).explain(X[:4])
    assert result.labels.tolist() == y[:4].tolist()
    assert "remarks" not in result.provenance


def test_reference_rows_are_asked_about_once():
    X, y = machine_data()
    seen = []

    def model(X):
        seen.append(len(X))
        p = 1 / (1 + np.exp(-X.sum(1)))
        return np.column_stack([1 - p, p])

    cf.NearestUnlike().fit(model, X, y)
    assert seen == [2, 2, 1, len(X)]  # twice to compare, the number of outputs, the reference


def three_of_ten_swapped():
    y = np.repeat(np.arange(10), 30)
    order = np.arange(10)
    order[[3, 7]] = 7, 3
    return order[y], y


@pytest.mark.parametrize(
    ("predicted", "y", "better"),
    [
        (np.array([1, 1, 0, 0]), np.array([0, 0, 1, 1]), [1, 0]),
        (*three_of_ten_swapped(), [0, 1, 2, 7, 4, 5, 6, 3, 8, 9]),
        (np.array([1, 2, 0] * 20), np.array([0, 1, 2] * 20), [2, 0, 1]),
    ],
    ids=["two", "two of ten", "cycle"],
)
def test_the_best_order_is_named(predicted, y, better):
    classes = np.unique(y)
    text = doubt_class_order(predicted, y, classes)
    assert f"classes={better}" in text
    assert (np.array(better)[predicted] == y).all()


def test_a_fair_model_is_not_doubted():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, size=90)
    noisy = np.where(rng.random(90) < 0.4, rng.integers(0, 3, size=90), y)
    assert doubt_class_order(noisy, y, np.arange(3)) is None


def test_a_model_no_better_than_chance_is_doubted():
    text = doubt_class_order(np.zeros(6, dtype=int), np.array([0, 1] * 3), np.arange(2))
    assert "agrees with 50% of the labels" in text and "classes=[...]" in text


@pytest.mark.usefixtures("own_random_numbers")
def test_classes_are_known_before_or_after_the_first_answer():
    X, y = machine_data()
    classifier = cf.as_classifier(swapped_network())
    assert not has_class_names(classifier)
    classifier.infer_classes(X, y)
    assert has_class_names(classifier)
