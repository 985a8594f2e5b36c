"""Guides: what all of them have in common."""

import numpy as np
import pytest
import torch
from guide_cases import Parity, brute_force, by_first
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from contrafact.guides import (
    NearestUnlikeCluster,
    NearestUnlikeNeighbor,
    NearestUnlikePrototype,
)
from contrafact.models import as_classifier


@pytest.mark.parametrize("kind", [NearestUnlikeNeighbor, NearestUnlikeCluster])
def test_only_what_the_model_puts_in_the_class(kind):
    """Half of the labels are wrong; the guide never follows them."""
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    model = LogisticRegression(max_iter=500).fit(X, names[y])
    wrong = names[np.random.default_rng(0).permutation(y)]
    told, untold = kind().fit(model, X, wrong), kind().fit(model, X)
    for target in names:
        arrays, index = told.guide(X, target, k=3)
        assert (model.predict(arrays[index >= 0].numpy()) == target).all()
        assert torch.equal(index, untold.guide(X, target, k=3)[1])


@pytest.mark.usefixtures("own_random_numbers")
def test_labels_name_the_outputs_of_a_raw_module():
    module = torch.nn.Linear(2, 3)
    reference = np.random.default_rng(0).normal(size=(50, 2))
    guide = NearestUnlikeNeighbor().fit(
        module, reference, np.array(["a", "b", "c"] * 16 + ["a", "b"])
    )
    with torch.no_grad():
        column = module(torch.from_numpy(reference).float()).argmax(1).numpy()
    _, index = guide.guide(reference[:4], "c")
    expected = brute_force(
        *(a.astype(np.float32) for a in (reference[:4], reference)), column == 2, 1
    )
    np.testing.assert_array_equal(index, expected)


@pytest.mark.parametrize(
    "guide",
    [
        NearestUnlikeNeighbor(),
        NearestUnlikeNeighbor(diverse=True),
        NearestUnlikeNeighbor("dtw"),
        NearestUnlikeCluster(3),
    ],
    ids=["neighbor", "diverse", "dtw", "cluster"],
)
def test_several_targets_in_one_call(guide):
    rng = np.random.default_rng(5)
    reference, x = rng.normal(size=(60, 1, 8)), rng.normal(size=(9, 1, 8))
    guide.fit(as_classifier(Parity(), classes=["a", "b", "c"]), reference)
    targets = np.array(list("abcacbbca"))
    arrays, index = guide.guide(x, targets, k=2)
    for i, target in enumerate(targets):
        one_array, one_index = guide.guide(x[i : i + 1], target, k=2)
        assert torch.equal(arrays[i], one_array[0]) and torch.equal(index[i], one_index[0])
    assert (
        guide.candidate_class_[index] == torch.tensor(["abc".index(t) for t in targets])[:, None]
    ).all()


@pytest.mark.parametrize(
    "guide", [NearestUnlikeNeighbor(), NearestUnlikeCluster(4)], ids=["row", "cluster"]
)
def test_a_class_that_the_model_never_gives_has_no_guide(guide):
    reference = -1 - np.random.default_rng(0).random((20, 3))
    guide.fit(as_classifier(by_first, classes=["low", "high"]), reference, ["low", "high"] * 10)
    x = reference[:2] + 0.5
    arrays, index = guide.guide(x, "high", k=2)
    assert index.tolist() == [[-1, -1], [-1, -1]]
    np.testing.assert_array_equal(arrays, np.repeat(x[:, None], 2, 1))
    assert (guide.guide(x, "low", k=2)[1] >= 0).all()


def test_confident_candidates_are_preferred():
    rng = np.random.default_rng(4)
    reference, x = rng.normal(scale=2, size=(80, 2)), rng.normal(size=(10, 2)) - [2, 0]
    guide = NearestUnlikeNeighbor().fit(by_first, reference)
    p = by_first(reference)[:, 1]
    plain, firm = guide.guide(x, 1, 2)[1], guide.guide(x, 1, 2, confidence=0.9)[1]
    np.testing.assert_array_equal(firm, brute_force(x, reference, p >= 0.9, 2))
    assert (plain != firm).any()
    assert p.max() < 0.9999  # where no candidate is that sure, any will do
    assert torch.equal(guide.guide(x, 1, 2, confidence=0.9999)[1], plain)
    more = int((p >= 0.9).sum()) + 1  # where fewer than k are that sure, k come back all the same
    assert (guide.guide(x, 1, more, confidence=0.9)[1] >= 0).all()


def test_preferred_candidates_are_used_where_there_are_enough():
    rng = np.random.default_rng(4)
    reference, x = rng.normal(scale=2, size=(80, 2)), rng.normal(size=(10, 2)) - [2, 0]
    guide = NearestUnlikeNeighbor().fit(by_first, reference)
    in_class = by_first(reference)[:, 1] > 0.5
    preferred = rng.uniform(size=80) < 0.5
    found = guide.guide(x, 1, 2, preferred=torch.from_numpy(preferred))[1]
    np.testing.assert_array_equal(found, brute_force(x, reference, in_class & preferred, 2))
    plain = guide.guide(x, 1, 2)[1]
    few = torch.from_numpy(in_class.cumsum() == 1)  # up to one of the class: too few for k = 2
    assert torch.equal(guide.guide(x, 1, 2, preferred=few)[1], plain)


def test_the_model_is_asked_once_per_reference_row():
    classifier = as_classifier(by_first, classes=["low", "high"])
    reference = np.random.default_rng(0).normal(size=(50, 3))
    guide = NearestUnlikeNeighbor().fit(classifier, reference)
    guide.guide(reference, "low", 3)
    assert classifier.rows_evaluated == 50


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g, x: NearestUnlikeNeighbor("cosine"), "'euclidean' or 'dtw', got 'cosine'"),
        (
            lambda g, x: NearestUnlikeCluster(0),
            "n_clusters must be a whole number at least 1, got 0",
        ),
        (
            lambda g, x: NearestUnlikeNeighbor("dtw").fit(by_first, x),
            r"needs series .*, got \(5, 3\)",
        ),
        (
            lambda g, x: g.guide(x, "pont"),
            "target 'pont' is not a class of this model. Classes: 'gun', 'point'",
        ),
        (lambda g, x: g.guide(x, ["gun"] * 4 + ["pont"]), "target 'pont' is not a class"),
        (lambda g, x: g.guide(x, ["gun"] * 4), "target has 4 labels for 5 instances"),
        (lambda g, x: g.guide(x, None), "target must be a label, or one per instance, got None"),
        (lambda g, x: g.guide(x[:, :2], "gun"), r"shape \(2,\); fit saw \(3,\)"),
        (lambda g, x: g.guide(np.full((1, 3), np.nan), "gun"), r"X\[0\] contains NaN"),
        (lambda g, x: NearestUnlikeNeighbor().fit(by_first, x[:0]), "X is empty"),
        (lambda g, x: NearestUnlikeNeighbor().fit(by_first, x, [1, 2]), r"y has shape \(2,\)"),
        (lambda g, x: NearestUnlikeNeighbor().guide(x, 1), "not fitted"),
        (lambda g, x: g.guide(x, "gun", k=0), "k must be a whole number at least 1 .*, got 0"),
    ],
)
def test_errors_say_what_was_given(call, message):
    x = np.random.default_rng(0).normal(size=(5, 3))
    guide = NearestUnlikeNeighbor().fit(as_classifier(by_first, classes=["gun", "point"]), x)
    with pytest.raises(ValueError, match=message):
        call(guide, x)


def test_the_old_name_of_the_neighbor_guide():
    import contrafact.guides

    with pytest.warns(DeprecationWarning, match="now contrafact.guides.NearestUnlikeNeighbor"):
        assert contrafact.guides.NearestUnlikeNeighbour is NearestUnlikeNeighbor


@pytest.mark.parametrize(
    ("make", "option", "value"),
    [
        (NearestUnlikeNeighbor, "window", "0.1"),
        (NearestUnlikeNeighbor, "window", 1.5),
        (NearestUnlikeNeighbor, "diverse", "yes"),
        (NearestUnlikeCluster, "n_clusters", None),
        (NearestUnlikeCluster, "n_clusters", [3]),
        (NearestUnlikeCluster, "random_state", "zero"),
        (NearestUnlikePrototype, "n_prototypes", 0),
        (NearestUnlikePrototype, "metric", "cosine"),
    ],
)
def test_options_are_checked_by_name(make, option, value):
    with pytest.raises(ValueError, match=f"^{make.__name__}: {option} must be .*, got "):
        make(**{option: value})


@pytest.mark.parametrize("asked", [{"k": "2"}, {"k": None}, {"k": 1.5}, {"confidence": "high"}])
def test_what_is_asked_is_checked_by_name(asked):
    x = np.random.default_rng(0).normal(size=(5, 3))
    guide = NearestUnlikeNeighbor().fit(by_first, x)
    with pytest.raises(ValueError, match=f"NearestUnlikeNeighbor: {next(iter(asked))} must be "):
        guide.guide(x, 1, **asked)


def test_a_guide_prints_as_its_constructor():
    guide = NearestUnlikeCluster(n_clusters=3)
    assert repr(guide) == "NearestUnlikeCluster(n_clusters=3, random_state=0, diverse=False)"
    weighted = NearestUnlikeNeighbor(weights=np.ones(1000))
    assert "weights=ndarray of shape (1000,)" in repr(weighted)
