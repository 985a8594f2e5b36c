"""Committee: votes, the order of classes, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contrafact.models import Committee, as_classifier


def step(X):
    """P of the second class: a logistic function of the first feature."""
    p = 1 / (1 + np.exp(-X[:, 0]))
    return np.stack([1 - p, p], 1)


X = np.array([[-2.0], [1.0], [3.0]])
ONES = torch.ones(3, dtype=torch.long)


def model(classes, function=step):
    return as_classifier(function, classes=classes)


def test_columns_of_the_members_follow_the_model_that_is_explained():
    explained = model(["no", "yes"])
    reordered = model(["yes", "no"], lambda X: step(X)[:, ::-1])
    votes = Committee([explained, reordered]).matched_to(explained, X).votes(X, ONES)
    assert votes.tolist() == [[False, True, True]] * 2


def test_members_without_class_names_take_those_of_the_model():
    committee = Committee([step]).matched_to(model(["no", "yes"]), X)
    assert committee.members[0].classes.tolist() == ["no", "yes"]


def test_a_class_that_a_made_member_never_saw_gets_no_vote():
    explained = model(["no", "maybe", "yes"], lambda X: np.insert(step(X), 1, 0.0, axis=1))
    matched = Committee([model(["no", "yes"])], made="surrogates").matched_to(explained, X)
    assert matched.votes(X, ONES).tolist() == [[False] * 3]
    assert matched.votes(X, 2 * ONES).tolist() == [[False, True, True]]


@pytest.mark.parametrize("classes", [["no", "perhaps"], ["no", "yes", "maybe"]])
def test_other_classes_are_refused(classes):
    stranger = model(classes, lambda X: np.full((len(X), len(classes)), 1 / len(classes)))
    with pytest.raises(ValueError, match=r"committee\[1\] has the classes .*explained are"):
        Committee([step, stranger]).matched_to(model(["no", "yes"]), X)


def test_no_member_is_refused():
    with pytest.raises(ValueError, match="committee holds no model"):
        Committee([])


def test_a_margin_asks_for_more_than_the_decision():
    committee = Committee([step])
    slight = np.array([[1e-6], [1.0], [-1.0]])
    assert committee.vote(0, slight, ONES).tolist() == [True, True, False]
    assert committee.vote(0, slight, ONES, 1e-3).tolist() == [False, True, False]
