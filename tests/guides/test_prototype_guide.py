"""Prototype guides: points that represent what the model takes a class to be."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.guides import NearestUnlikePrototype
from contrafact.prototypes import GLVQ, DeepLVQ, NearestMean

X, Y = load_iris(return_X_y=True)


NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]


@pytest.fixture(scope="module")
def model():
    return LogisticRegression(max_iter=500).fit(X, NAMES)


@pytest.mark.parametrize("kind", ["lvq", "median", NearestMean(), GLVQ(2, random_state=1)])
@pytest.mark.parametrize("target", NAMES[[0, 60, 120]])
def test_guides_are_in_the_class_and_the_nearest(model, kind, target):
    guide = NearestUnlikePrototype(kind, 3).fit(model, X, NAMES)
    arrays, _ = guide.guide(X[:20], target, k=1)
    assert (model.predict(arrays[:, 0].numpy()) == target).all()
    column = list(model.classes_).index(target)
    own = guide.candidates_[guide.candidate_class_ == column]
    nearest = torch.cdist(torch.from_numpy(X[:20]), own).amin(1)
    np.testing.assert_allclose((arrays[:, 0] - torch.from_numpy(X[:20])).norm(dim=1), nearest)


def test_median_guides_are_reference_rows(model):
    arrays, _ = (
        NearestUnlikePrototype("median", 3).fit(model, X, NAMES).guide(X[:5], "virginica", k=3)
    )
    rows = {row.tobytes() for row in X}
    assert all(one.numpy().tobytes() in rows for one in arrays.flatten(0, 1))


def test_it_learns_what_the_model_says_not_the_labels(model):
    """A model that calls everything wide "b" gets prototypes on both sides of its own boundary."""

    def wide(rows):
        p = 1 / (1 + np.exp(-10 * (np.asarray(rows).reshape(len(rows), -1)[:, 1] - 3)))
        return np.stack([1 - p, p], 1)

    guide = NearestUnlikePrototype("lvq", 2).fit(cf.as_classifier(wide, classes=["a", "b"]), X)
    width = guide.candidates_[:, 1]
    assert (width[guide.candidate_class_ == 1] > 3).all() and (
        width[guide.candidate_class_ == 0] < 3
    ).all()


def test_diverse_guides_differ_more(model):
    plain, diverse = (
        NearestUnlikePrototype("median", 8, diverse=d)
        .fit(model, X, NAMES)
        .guide(X[:10], "virginica", k=3)[0]
        for d in (False, True)
    )

    def gap(arrays):
        return torch.stack([torch.cdist(a, a).sum() for a in arrays]).mean()

    assert gap(diverse) > gap(plain)


def test_a_model_of_one_class_gets_its_mean():
    def always(rows):
        return np.tile([1.0, 0.0], (len(rows), 1))

    guide = NearestUnlikePrototype().fit(cf.as_classifier(always, classes=[0, 1]), X)
    arrays, _ = guide.guide(X[:2], 0)
    np.testing.assert_allclose(arrays[:, 0], np.tile(X.mean(0), (2, 1)))
    assert (guide.guide(X[:2], 1)[1] == -1).all()


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("som", {}, "kind must be 'lvq', 'median' or a prototype model, got 'som'"),
        ("lvq", {"metric": "dtw"}, "kind='lvq' with metric='dtw'"),
        (DeepLVQ(max_iter=1, random_state=0), {}, "prototypes of shape"),
    ],
)
def test_errors(model, kind, options, message):
    with pytest.raises(ValueError, match=message):
        NearestUnlikePrototype(kind, **options).fit(model, X, NAMES)


@pytest.mark.parametrize("kind", ["cluster", "prototype", "median"])
def test_methods_follow_the_guide_they_are_told_to(kind):
    data = cf.load_dataset("ItalyPowerDemand")
    model = LogisticRegression(max_iter=500).fit(data.X_train[:, 0], data.y_train)
    for method in (cf.CELS, cf.NativeGuide):
        with_neighbor, with_kind = (
            method(guide=guide).fit(model, data.X_train, data.y_train).explain(data.X_test[:20])
            for guide in ("neighbor", kind)
        )
        assert with_kind.valid.all()
        assert (with_kind.X_cf != with_neighbor.X_cf).any()
    with pytest.raises(ValueError, match="guide must be 'neighbor'"):
        cf.CELS(guide="oracle").fit(model, data.X_train, data.y_train)


def test_tsnuc_goes_to_learned_prototypes():
    data = cf.load_dataset("ItalyPowerDemand")
    model = LogisticRegression(max_iter=500).fit(data.X_train[:, 0], data.y_train)
    means, learned = (
        cf.TSNUC(max_epochs=5, max_iter=20, centroids=kind).fit(model, data.X_train, data.y_train)
        for kind in ("predictions", "prototypes")
    )
    assert learned.centroids_.place.shape == means.centroids_.place.shape
    assert not torch.allclose(learned.centroids_.place, means.centroids_.place)
    assert learned.explain(data.X_test[:5]).valid.all()
