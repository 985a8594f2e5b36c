"""Every prototype model is a scikit-learn classifier."""

import inspect
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import ClassifierMixin, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from bad_inputs import bad_arrays, refuses
from contrafact import prototypes
from contrafact.prototypes import DeepLVQ, NearestMean

PUBLIC = [getattr(prototypes, name) for name in prototypes.__all__]
MODELS = [kind for kind in PUBLIC if isinstance(kind, type) and issubclass(kind, ClassifierMixin)]


def quick(kind, **options):
    """A model that trains briefly, with those options that it has."""
    options = {"max_iter": 3, "random_state": 0, **options}
    return kind(
        **{
            name: value
            for name, value in options.items()
            if name in inspect.signature(kind).parameters
        }
    )


class Stop:
    """Ends the training in epoch 60, whatever max_iter the checks set."""

    def __call__(self, history):
        return len(history["train_loss"]) >= 60

    def __repr__(self):
        return "Stop()"


every_model = pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)


def test_none_is_forgotten():
    names = "NearestMean LVQ1 LVQ21 GLVQ GRLVQ GMLVQ LGMLVQ RSLVQ CELVQ DeepLVQ"
    assert set(names.split()) <= {kind.__name__ for kind in MODELS}


@pytest.mark.usefixtures("own_random_numbers")
@parametrize_with_checks(
    [
        NearestMean("mahalanobis"),
        *(
            quick(kind, callbacks=(Stop(),), learning_rate=0.01 if kind is DeepLVQ else 0.3)
            for kind in MODELS
        ),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@every_model
def test_clone_forgets_what_was_learned_and_learns_it_again(kind, blobs):
    model = quick(kind, n_prototypes=2).fit(*blobs)
    again = clone(model)
    assert not hasattr(again, "prototypes_")
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(
        again.fit(*blobs).predict_proba(blobs[0]), model.predict_proba(blobs[0])
    )


@every_model
def test_pickle(kind, blobs):
    model = quick(kind, n_prototypes=2).fit(*blobs)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(blobs[0]), model.predict_proba(blobs[0]))
    np.testing.assert_array_equal(again.prototypes_, model.prototypes_)


@every_model
def test_pipeline_is_the_model_on_scaled_rows(kind, blobs):
    X, y = blobs[0] * [1, 10, 100, 1000], blobs[1]
    scaled = StandardScaler().fit_transform(X)
    pipeline = make_pipeline(StandardScaler(), quick(kind)).fit(X, y)
    np.testing.assert_array_equal(
        pipeline.predict_proba(X), quick(kind).fit(scaled, y).predict_proba(scaled)
    )


@every_model
def test_grid_search_finds_the_better_setting(kind):
    """Class 0 lies on both sides of class 1: one prototype each can't tell them apart, two can."""
    rng = np.random.default_rng(0)
    centers = np.array([-4.0, 0.0, 4.0])
    X = np.stack([centers[np.arange(60) % 3], np.zeros(60)], axis=1) + 0.3 * rng.normal(
        size=(60, 2)
    )
    y = (np.arange(60) % 3 == 1).astype(int)
    model = quick(kind, max_iter=10)
    grid = {"n_prototypes": [1, 2], "learning_rate": [1e-3, 0.02]}
    grid = {name: values for name, values in grid.items() if name in model.get_params()}
    search = GridSearchCV(model, grid or {"metric": ["euclidean", "mahalanobis"]}, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    if "n_prototypes" in grid and kind is not DeepLVQ:  # a network needs only one
        assert search.best_params_["n_prototypes"] == 2
        assert search.best_score_ > 0.95 > 0.8 > search.cv_results_["mean_test_score"].min()


@every_model
@pytest.mark.parametrize(
    "names",
    [
        np.array(["oak", "ash", "elm"]),
        np.array([30, -5, 7]),
        np.array(["b", "a", "c"], dtype=object),
    ],
    ids=["strings", "integers", "objects"],
)
def test_labels_are_only_names(kind, names, blobs):
    """Sorted alike, labels change nothing but what the classes are called."""
    X, y = blobs
    ranks = np.argsort(np.argsort(names))
    plain, named = quick(kind).fit(X, ranks[y]), quick(kind).fit(X, names[y])
    np.testing.assert_array_equal(named.classes_, np.unique(names))
    np.testing.assert_array_equal(named.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_array_equal(named.predict(X), np.unique(names)[plain.predict(X)])
    np.testing.assert_array_equal(
        named.prototype_labels_, np.unique(names)[plain.prototype_labels_]
    )


@every_model
def test_bool_labels(kind, blobs):
    X, y = blobs
    model = quick(kind, max_iter=10).fit(X, y == 1)
    assert model.classes_.dtype == bool and model.predict(X).dtype == bool
    assert model.score(X, y == 1) > 0.6


@every_model
def test_pandas(kind, blobs):
    X, y = blobs
    frame = pd.DataFrame(X, columns=list("abcd"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = quick(kind).fit(frame, pd.Series(y))
        found = model.predict_proba(frame)
    assert model.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_allclose(
        found, quick(kind).fit(X, y).predict_proba(X), rtol=1e-9
    )  # by column, not by row
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("badc")])


@every_model
def test_read_only_arrays(kind, blobs):
    X, y = (part.copy() for part in blobs)
    for part in (X, y):
        part.setflags(write=False)
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = quick(kind).fit(X, y).predict_proba(X)
    finally:
        torch.set_warn_always(always)
    np.testing.assert_array_equal(found, quick(kind).fit(*blobs).predict_proba(blobs[0]))


@every_model
def test_arrays_are_left_as_they_were(kind, blobs):
    X, y, weight = blobs[0].copy(), blobs[1].copy(), np.arange(1.0, 46.0)
    model = quick(kind)
    extra = (
        {"sample_weight": weight}
        if "sample_weight" in inspect.signature(model.fit).parameters
        else {}
    )
    model.fit(X, y, **extra).predict(X)
    np.testing.assert_array_equal(X, blobs[0])
    np.testing.assert_array_equal(y, blobs[1])
    np.testing.assert_array_equal(weight, np.arange(1.0, 46.0))


@every_model
def test_float32_is_read_as_the_numbers_it_holds(kind, blobs):
    X, y = blobs[0].astype(np.float32), blobs[1]
    wide = X.astype(np.float64)
    found = quick(kind).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(found, quick(kind).fit(wide, y).predict_proba(wide))


@every_model
@pytest.mark.parametrize(
    "shape", [(2, 6), (1, 12), (2, 3, 2)], ids=["series", "one channel", "images"]
)
def test_instances_keep_their_shape(kind, shape, blobs):
    X = np.random.default_rng(1).normal(size=(45, *shape)) + np.reshape(
        blobs[1], (-1, *[1] * len(shape))
    )
    model = quick(kind, n_prototypes=2, backbone="mlp").fit(X, blobs[1])
    places = getattr(
        model, "exemplars_", model.prototypes_
    )  # prototypes of a network live in its own space
    assert places.shape == (len(model.prototype_labels_), *shape)
    assert model.n_features_in_ == 12
    # The same as rows, and the flat prototypes are the same numbers.
    rows = quick(kind, n_prototypes=2, backbone="mlp").fit(X.reshape(45, 12), blobs[1])
    np.testing.assert_array_equal(rows.predict_proba(X.reshape(45, 12)), model.predict_proba(X))
    np.testing.assert_array_equal(rows.prototypes_.ravel(), model.prototypes_.ravel())
    with pytest.raises(ValueError, match="shape"):
        model.predict(X.swapaxes(1, 2) if shape[0] != shape[1] else X[:, :1])


@every_model
def test_margins_reject_and_statistics(kind, blobs):
    X, y = blobs
    model = quick(kind, n_prototypes=2).fit(X, y)
    d = model.distances(X)
    margin = []
    for row in d:
        win = row.argmin()
        other = row[model.prototype_labels_ != model.prototype_labels_[win]].min()
        margin.append((other - row[win]) / (other + row[win]))
    np.testing.assert_allclose(model.margins(X), margin, atol=1e-12)
    threshold = np.median(margin)
    np.testing.assert_array_equal(model.reject(X, threshold), np.array(margin) < threshold)
    assert not model.reject(X, 0.0).any() and model.reject(X, 1.01).all()

    table = model.prototype_statistics(X, y)
    for k, line in enumerate(table.itertuples()):
        won = d.argmin(1) == k
        assert line.label == model.prototype_labels_[k] and line.wins == won.sum()
        if won.any():
            assert line.purity == pytest.approx(np.mean(y[won] == line.label))
            assert line.radius == pytest.approx(d[won, k].max())
            assert line.mean_distance == pytest.approx(d[won, k].mean())
    assert table.wins.sum() == len(X)


@every_model
@pytest.mark.parametrize(
    ("X", "y", "said"),
    [
        ([[0.0, 1.0], [np.nan, 1.0]], [0, 1], "NaN"),
        ([[0.0, 1.0], [2.0, 1.0]], ["a", "a"], "one class only"),
        ([[0.0, 1.0], [2.0, 1.0]], [0.5, 1.2], "Unknown label type"),
    ],
    ids=["NaN", "one class", "numbers"],
)
def test_wrong_data_are_refused(kind, X, y, said):
    with pytest.raises(ValueError, match=said):
        quick(kind).fit(X, y)


ROWS = np.random.default_rng(0).normal(size=(8, 2))
SIDES = [0, 1] * 4


@pytest.mark.parametrize("bad", bad_arrays(ROWS))
def test_data_that_cannot_be_used_are_named(bad):
    value = bad_arrays(ROWS)[bad]
    model = prototypes.NearestMean().fit(ROWS, SIDES)
    refuses("X", prototypes.GLVQ().fit, value, SIDES)
    refuses("X", model.predict, value)
    refuses("sample_weight", model.fit, ROWS, SIDES, value if bad != "none" else "abc")
    for pair in ((value, SIDES), value if bad != "none" else 3):
        refuses("initial_prototypes", prototypes.GLVQ().fit, ROWS, SIDES, pair)


@pytest.mark.parametrize("y", [None, "ab", 3, SIDES[:-1], np.ma.masked_array(SIDES, SIDES), {}])
def test_labels_that_cannot_be_used_are_named(y):
    model = prototypes.NearestMean().fit(ROWS, SIDES)
    for call in (model.score, model.prototype_statistics, prototypes.GLVQ().fit):
        refuses("y", call, ROWS, y)
