"""Matching of labels, lookup of classes, and doubt about the class order."""

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


@pytest.fixture
def sign():
    """A model whose second output is larger where x is positive."""
    layer = torch.nn.Linear(1, 2, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[-1.0], [1.0]]))
    return cf.as_classifier(layer)


def test_a_wrong_class_order_is_doubted(sign):
    X = np.array([[-1.0], [-2.0], [1.0], [2.0]], dtype=np.float32)
    y = np.array(["negative", "negative", "positive", "positive"])
    assert not has_class_names(sign)
    sign.infer_classes(X, y)
    assert has_class_names(sign)
    assert doubt_class_order(sign, X, y) is None
    text = doubt_class_order(sign, X, y[::-1])
    assert "agrees with only 0% of the labels" in text
    assert "'negative', 'positive', in this order. Check that the class order is correct." in text


def test_classes_without_names_are_reported(sign):
    X = np.ones((2, 1), dtype=np.float32)
    sign.infer_classes(X, None)
    assert doubt_class_order(sign, X, None).endswith("they are called 0, 1.")
