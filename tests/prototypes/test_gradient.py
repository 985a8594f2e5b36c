"""GradientLVQ: every option matters, seeds and repeated fits."""

import numpy as np
import pytest
import torch
from gradient_models import BASE, MODELS, PUBLIC, after_two, every_model, learned
from sklearn.base import ClassifierMixin
from torch import nn

from contrafact.prototypes import (
    CELVQ,
    GLVQ,
    GMLVQ,
    GRLVQ,
    LGMLVQ,
    LVQ1,
    LVQ21,
    RSLVQ,
    DeepLVQ,
    Diversity,
)

HELD = {"validation_fraction": 0.4, "learning_rate": 1.0, "scheduler": None, "max_iter": 25}


def taxicab(x, w):
    return torch.cdist(x, w, p=1)


#: option → (what else is set in both fits, the other value)
CHANGES = {
    "n_prototypes": ({}, {0: 1, 1: 2, 2: 3}),
    "init": ({}, "random"),
    "init_options": ({"init": "noise"}, {"noise_std": 0.5}),
    "optimizer": ({}, "sgd"),
    "learning_rate": ({}, 0.2),
    "scheduler": ({}, None),
    "scheduler_options": ({}, {"eta_min": 0.02}),
    "max_iter": ({}, 4),
    "batch_size": ({}, 8),
    "class_weight": ({}, {0: 5, 1: 1, 2: 1}),
    "validation_fraction": ({}, 0.3),
    "patience": ({**HELD, "restore_best": False}, 1),
    "restore_best": (HELD, False),
    "ema": ({}, 0.9),
    "accumulate": ({"batch_size": 8}, 2),
    "lookahead": ({}, 2),
    "frozen": ({}, ("metric",)),
    "mixed_precision": ({"dtype": "float32"}, True),
    "callbacks": ({}, (after_two,)),
    "regularizers": ({}, (Diversity(0.5),)),
    "distance_fn": ({}, taxicab),
    "tol": ({}, 10.0),
    "temperature": ({}, 3.0),
    "dtype": ({}, "float32"),
    "random_state": ({"init": "random"}, 1),
    "transfer": ({}, "identity"),
    "beta": ({}, 6.0),
    "margin": ({}, 0.2),
    "window": ({}, 0.1),
    "metric_learning_rate": ({}, 0.5),
    "rank": ({}, 1),
    "metric": ({}, "matrix"),
    "backbone": ({}, nn.Sequential(nn.Linear(4, 3), nn.Tanh())),
    "embedding": ({}, 3),
    "cosine": ({}, True),
}


#: no result depends on these: they have tests of their own
SHOWN_ELSEWHERE = {"device", "verbose"}


def settings(kind, option):
    """The two settings to compare, or None where the model can't have the option."""
    base, value = CHANGES[option]
    base = {**BASE, **base}
    if kind in (RSLVQ, CELVQ) and option in ("metric_learning_rate", "rank", "frozen"):
        base["metric"] = "matrix"
    if kind is DeepLVQ:
        if option in ("frozen", "dtype"):
            value = {"frozen": ("backbone",), "dtype": "float64"}[option]
        if option == "batch_size":
            value = 16
        if option in ("patience", "restore_best"):
            base["learning_rate"] = 0.05
    elif kind is LVQ21 and option == "restore_best":
        base |= {"window": 0.1, "learning_rate": 0.05}  # with much more, the loss falls without end
    elif kind is GLVQ and option == "restore_best":
        base["beta"] = 1.5  # a steeper one has its best loss in the last epoch
    elif option == "frozen" and kind in (LVQ1, LVQ21, GLVQ):
        return None  # nothing else to train: see the refusals
    elif option == "distance_fn" and kind in (GRLVQ, GMLVQ, LGMLVQ):
        return None  # refused: there the distance is learned
    return base, {**base, option: value}


PAIRS = [
    (kind, option)
    for kind in MODELS
    for option in kind().get_params()
    if option not in SHOWN_ELSEWHERE
]


PAIRS = [(kind, option) for kind, option in PAIRS if settings(kind, option) is not None]


@pytest.mark.parametrize(
    ("kind", "option"), PAIRS, ids=lambda part: getattr(part, "__name__", part)
)
def test_option_matters(kind, option, blobs):
    X, y = blobs
    one, other = (kind(**setting).fit(X, y) for setting in settings(kind, option))
    if option != "temperature" and one.prototypes_.shape == other.prototypes_.shape:
        learned = [
            np.concatenate([m.prototypes_.ravel(), m.predict_proba(X).ravel()])
            for m in (one, other)
        ]
        assert np.abs(learned[0] - learned[1]).max() > 1e-9
    elif option == "temperature":
        assert np.abs(one.predict_proba(X) - other.predict_proba(X)).max() > 1e-3
        assert other.temperature_ == pytest.approx(3.0)


def test_distance_fn_is_the_distance_of_everything(blobs):
    """The squared Euclidean distance as a function gives what the model has of its own."""
    X, y = 1000 + 30 * blobs[0], blobs[1]

    def squared(x, w):
        return torch.cdist(x, w, compute_mode="donot_use_mm_for_euclid_dist") ** 2

    for kind in (GLVQ, RSLVQ):
        plain, other = (
            kind(**BASE, distance_fn=function).fit(X, y) for function in (None, squared)
        )
        np.testing.assert_allclose(plain.prototypes_, other.prototypes_, rtol=1e-6)
        np.testing.assert_allclose(plain.predict_proba(X), other.predict_proba(X), atol=1e-5)
    model = GLVQ(**BASE, distance_fn=taxicab).fit(X, y)
    by_hand = np.abs(X[:, None] - model.prototypes_).sum(2)
    np.testing.assert_allclose(model.distances(X), by_hand)
    assert (model.prototype_labels_[by_hand.argmin(1)] == model.predict(X)).all()
    with pytest.raises(TypeError, match="distance_fn has no linear metric"):
        model.metric_()
    deep = DeepLVQ(**BASE, distance_fn=taxicab).fit(X, y)
    z = deep.layer_.embed(torch.from_numpy(X)).detach().numpy()
    np.testing.assert_allclose(
        deep.distances(X), np.abs(z[:, None] - deep.prototypes_).sum(2), rtol=1e-4
    )


def test_transfer_may_be_a_function(blobs):
    """The identity and the sigmoid as functions are those by name."""
    for name, function in (("identity", lambda mu: mu), ("sigmoid", lambda mu: (4 * mu).sigmoid())):
        beta = {} if name == "identity" else {"beta": 4.0}
        named = GMLVQ(**BASE, transfer=name, **beta).fit(*blobs)
        given = GMLVQ(**BASE, transfer=function).fit(*blobs)
        np.testing.assert_allclose(named.prototypes_, given.prototypes_)


def test_tol_stops_where_the_loss_rests(blobs):
    options = {"n_prototypes": 2, "random_state": 0, "max_iter": 200}
    full, stopped = (GLVQ(**options, tol=tol).fit(*blobs) for tol in (None, 1e-3))
    steps = np.abs(np.diff(full.loss_history_))
    first = int(np.flatnonzero(steps < 1e-3)[0]) + 2  # the epoch after the first small change
    assert stopped.n_iter_ == first < full.n_iter_
    np.testing.assert_array_equal(stopped.loss_history_, full.loss_history_[:first])


@pytest.mark.parametrize("precision", ["float16", "bfloat16", True])
def test_mixed_precision_is_near_full_precision(precision, blobs):
    """Its error is that of the products: 3 digits in float16, 2 in bfloat16."""
    options = {**BASE, "dtype": "float32", "optimizer": "sgd", "learning_rate": 0.5}
    plain, mixed = (GLVQ(**options, mixed_precision=p).fit(*blobs) for p in (False, precision))
    error = np.abs(plain.prototypes_ - mixed.prototypes_).max()
    assert 0 < error < {"float16": 5e-3}.get(precision, 5e-2)


def test_small_gradients_survive_float16(blobs):
    """Those of a loss of a millionth are below its smallest number, as of a mean over many rows."""
    start = blobs[0][:3], blobs[1][:3]
    options = {"max_iter": 1, "optimizer": "sgd", "scheduler": None, "dtype": "float32"}
    options |= {"transfer": lambda mu: 1e-6 * mu, "learning_rate": 1e6}
    plain, mixed = (
        GLVQ(**options, mixed_precision=p).fit(*blobs, initial_prototypes=start).prototypes_
        for p in (False, "float16")
    )
    assert np.abs(plain - start[0]).max() > 0.01
    np.testing.assert_allclose(mixed, plain, atol=0.002)


def test_given_prototypes_are_where_it_starts(blobs):
    X, y = blobs
    start, labels = X[[7, 4, 3, 2]], y[[7, 4, 3, 2]]
    model = GMLVQ(learning_rate=0.0, max_iter=1).fit(X, y, initial_prototypes=(start, labels))
    np.testing.assert_allclose(model.prototypes_, start, atol=1e-12)
    np.testing.assert_array_equal(model.prototype_labels_, labels)


@every_model
def test_seeds(kind, blobs):
    options = {**BASE, "init": "random", "batch_size": 10}
    one, again = (learned(kind(**options).fit(*blobs), blobs[0]) for _ in range(2))
    np.testing.assert_array_equal(one, again)
    drawn = [kind(**{**options, "random_state": None}).fit(*blobs).prototypes_ for _ in range(2)]
    assert not np.array_equal(*drawn)


@every_model
@pytest.mark.parametrize(
    "random_state",
    [
        0,
        None,
    ],
)
def test_global_random_state_is_left_alone(kind, random_state, blobs):
    before = torch.get_rng_state(), np.random.get_state()[1:3]  # noqa: NPY002
    options = {**BASE, "init": "random", "batch_size": 10, "validation_fraction": 0.2}
    kind(**{**options, "random_state": random_state}).fit(*blobs).predict(blobs[0])
    after = torch.get_rng_state(), np.random.get_state()[1:3]  # noqa: NPY002
    assert torch.equal(before[0], after[0])
    assert np.array_equal(before[1][0], after[1][0]) and before[1][1] == after[1][1]


def test_a_second_fit_leaves_nothing_of_the_first(blobs):
    model = RSLVQ(metric="matrix", validation_fraction=0.3, max_iter=2).fit(*blobs)
    model.set_params(metric="euclidean", validation_fraction=0.0).fit(*blobs)
    assert not {"omega_", "relevances_", "validation_history_"} & set(vars(model))


def test_models_are_all_here():
    """A public model that is not learned by gradient descent has its options tested elsewhere."""
    others = {
        kind.__name__
        for kind in PUBLIC
        if isinstance(kind, type) and issubclass(kind, ClassifierMixin)
    }
    assert others - {kind.__name__ for kind in MODELS} <= {"NearestMean", "MedianLVQ"}
