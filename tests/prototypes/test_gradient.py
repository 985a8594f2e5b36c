"""Every option of the gradient models matters, one by one; what can't be honored is refused."""

import numpy as np
import pytest
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from torch import nn

from contrafact import prototypes
from contrafact.prototypes import (
    CELVQ,
    GLVQ,
    GMLVQ,
    GRLVQ,
    LVQ1,
    LVQ21,
    RSLVQ,
    DeepLVQ,
    Diversity,
    NearestMean,
    RelevanceFloor,
    SparseRelevance,
)
from contrafact.prototypes.gradient import GradientLVQ

PUBLIC = [getattr(prototypes, name) for name in prototypes.__all__]
MODELS = [kind for kind in PUBLIC if isinstance(kind, type) and issubclass(kind, GradientLVQ)]
every_model = pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)

BASE = {"n_prototypes": 2, "max_iter": 6, "random_state": 0}
HELD = {"validation_fraction": 0.4, "lr": 1.0, "scheduler": None, "max_iter": 25}


def after_two(history):
    return len(history["train_loss"]) == 2


#: option → (what else is set in both fits, the other value)
CHANGES = {
    "n_prototypes": ({}, {0: 1, 1: 2, 2: 3}),
    "init": ({}, "random"),
    "optimizer": ({}, "sgd"),
    "lr": ({}, 0.2),
    "scheduler": ({}, None),
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
    "temperature": ({}, 3.0),
    "dtype": ({}, "float32"),
    "random_state": ({"init": "random"}, 1),
    "transfer": ({}, "identity"),
    "beta": ({}, 6.0),
    "margin": ({}, 0.2),
    "window": ({}, 0.1),
    "metric_lr": ({}, 0.5),
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
    if kind in (RSLVQ, CELVQ) and option in ("metric_lr", "rank", "frozen"):
        base["metric"] = "matrix"
    if kind is DeepLVQ:
        if option in ("frozen", "dtype"):
            value = {"frozen": ("backbone",), "dtype": "float64"}[option]
        if option == "batch_size":
            value = 16
        if option in ("patience", "restore_best"):
            base["lr"] = 0.05
    elif kind is LVQ21 and option == "restore_best":
        base |= {"window": 0.1, "lr": 0.05}  # with much more, the loss falls without end
    elif option == "frozen" and kind in (LVQ1, LVQ21, GLVQ):
        return None  # nothing else to train: see the refusals
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
    # else the number or the size of the prototypes is another


@pytest.mark.parametrize("init", ["kmeans", "kmeans++", "random", "means"])
@pytest.mark.parametrize("n", [1, 3])
def test_inits(init, n, blobs):
    """After a step of length zero the prototypes are where they started."""
    X, y = blobs
    model = GLVQ(n, init=init, lr=0.0, max_iter=1, random_state=0).fit(X, y)
    means = np.stack([X[y == c].mean(0) for c in range(3)])
    for c, own in enumerate(model.prototypes_.reshape(3, n, 4)):
        if init in ("random", "kmeans++"):
            rows = X[y == c]
            nearest = np.abs(own[:, None] - rows).max(2)
            assert nearest.min(1).max() < 1e-12
            assert len(np.unique(nearest.argmin(1))) == n
        elif n == 1:
            np.testing.assert_allclose(own[0], means[c])
        elif init == "means":
            assert np.abs(own - means[c]).max() < X[y == c].std()
            assert len(np.unique(own, axis=0)) == n
        else:  # centers: each is the mean of the rows nearest to it
            winner = ((X[y == c][:, None] - own) ** 2).sum(2).argmin(1)
            np.testing.assert_allclose(
                own, [X[y == c][winner == k].mean(0) for k in range(n)], atol=1e-3
            )


def test_given_prototypes_are_where_it_starts(blobs):
    X, y = blobs
    start, labels = X[[7, 4, 3, 2]], y[[7, 4, 3, 2]]
    model = GMLVQ(lr=0.0, max_iter=1).fit(X, y, initial_prototypes=(start, labels))
    np.testing.assert_allclose(model.prototypes_, start, atol=1e-12)
    np.testing.assert_array_equal(model.prototype_labels_, labels)


@pytest.mark.parametrize(
    ("optimizer", "same_as"),
    [
        (torch.optim.SGD([torch.zeros(1)], lr=0.2, momentum=0.5), None),
        (torch.optim.Adam([torch.zeros(1)], lr=0.05), "adam"),
        (torch.optim.SGD([torch.zeros(1)], lr=0.05), "sgd"),
        (torch.optim.AdamW, "adamw"),
        (torch.optim.NAdam, "nadam"),
        (torch.optim.RMSprop, "rmsprop"),
    ],
)
def test_optimizers_by_name_class_and_instance(optimizer, same_as, blobs):
    found = GLVQ(optimizer=optimizer, max_iter=5, random_state=0).fit(*blobs).prototypes_
    named = {
        name: GLVQ(optimizer=name, max_iter=5, random_state=0).fit(*blobs).prototypes_
        for name in ("adam", "adamw", "nadam", "rmsprop", "sgd")
    }
    assert [name for name, there in named.items() if np.array_equal(there, found)] == [same_as] * (
        same_as is not None
    )


@pytest.mark.parametrize(
    ("scheduler", "same"),
    [
        ("cosine", lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)),
        (
            "plateau",
            lambda optimizer: torch.optim.lr_scheduler.ReduceLROnPlateau(
                optimizer, factor=0.5, patience=5
            ),
        ),
        (None, lambda optimizer: torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)),
    ],
)
def test_schedulers(scheduler, same, blobs):
    by_name, by_function = (
        LVQ1(2, scheduler=choice, lr=0.5, max_iter=20, random_state=0).fit(*blobs)
        for choice in (scheduler, same)
    )
    np.testing.assert_array_equal(by_name.prototypes_, by_function.prototypes_)


def test_plateau_halves_the_step(blobs):
    """At a huge step the loss stops falling: from then on plateau differs from no schedule."""
    options = {"lr": 3.0, "random_state": 0}
    curves = [
        GLVQ(2, scheduler=s, max_iter=40, **options).fit(*blobs).loss_history_
        for s in (None, "plateau")
    ]
    differ = np.flatnonzero(curves[0] != curves[1])
    assert 6 < differ[0] < 40


def test_frozen_parameters_stay(blobs):
    X, y = blobs
    start = X[:3], y[:3]
    model = GMLVQ(frozen=("prototypes",), max_iter=5).fit(X, y, initial_prototypes=start)
    np.testing.assert_allclose(model.prototypes_, X[:3], atol=1e-12)
    assert np.abs(model.omega_ - np.eye(4) / 2).max() > 1e-3
    model = GMLVQ(frozen=("metric",), max_iter=5).fit(X, y, initial_prototypes=start)
    np.testing.assert_array_equal(model.omega_, np.eye(4) / 2)
    np.testing.assert_allclose(
        model.prototypes_,
        GLVQ(max_iter=5).fit(X, y, initial_prototypes=start).prototypes_,
        atol=1e-9,
    )


def test_early_stopping_keeps_the_best(blobs):
    X, y = blobs
    held = X[::3] + 0.1, y[::3]
    options = {"n_prototypes": 2, "lr": 1.0, "scheduler": None, "max_iter": 60, "random_state": 0}
    model = GLVQ(patience=4, **options).fit(X, y, validation_data=held)
    curve = model.validation_history_["val_loss"]
    assert model.n_iter_ == len(curve) == curve.argmin() + 5 < 60
    again = GLVQ(**{**options, "max_iter": int(curve.argmin()) + 1}).fit(X, y)
    np.testing.assert_array_equal(
        model.prototypes_, again.prototypes_
    )  # the weights of the best epoch
    accuracy = np.mean(model.predict(held[0]) == held[1])
    assert model.validation_history_["val_accuracy"][curve.argmin()] == pytest.approx(accuracy)
    last = GLVQ(patience=4, restore_best=False, **options).fit(X, y, validation_data=held)
    stopped = GLVQ(**{**options, "max_iter": model.n_iter_}).fit(X, y)
    np.testing.assert_array_equal(last.prototypes_, stopped.prototypes_)


def test_held_out_rows_are_not_trained_on(blobs):
    """A share of every class is left out: the fit is the same as without those rows."""
    X, y = blobs
    model = GLVQ(validation_fraction=0.2, restore_best=False, max_iter=3, random_state=0)
    seen = []
    model._descend, descend = lambda *a: (seen.append(a), descend(*a)), model._descend
    model.fit(X, y)
    _, _, x, _, _, held = seen[0]
    assert len(x) == 36 and len(held[0]) == 9
    assert torch.bincount(held[1]).tolist() == [3, 3, 3]
    assert not (x[:, None] == held[0]).all(2).any()


def test_ema_is_the_average_of_the_weights(blobs):
    """Prototypes after every epoch, averaged by hand."""
    X, y = blobs
    options = {"optimizer": "sgd", "lr": 0.5, "scheduler": None}
    path = [GLVQ(max_iter=n, **options).fit(X, y).prototypes_ for n in range(1, 6)]
    mean = path[0]
    for place in path[1:]:
        mean = 0.7 * mean + 0.3 * place
    found = GLVQ(max_iter=5, ema=0.7, **options).fit(X, y).prototypes_
    np.testing.assert_allclose(found, mean, rtol=1e-9)


def test_lookahead_goes_back_half_of_the_way(blobs):
    X, y = blobs
    start = X[:3], y[:3]
    options = {"optimizer": "sgd", "lr": 0.5, "scheduler": None, "max_iter": 3}
    plain = GLVQ(**options).fit(X, y, initial_prototypes=start).prototypes_
    found = GLVQ(lookahead=3, **options).fit(X, y, initial_prototypes=start).prototypes_
    np.testing.assert_allclose(found, (X[:3] + plain) / 2, rtol=1e-9)


def test_accumulated_batches_are_one_step(blobs):
    """Nine batches of five, one step: the step of all rows at once."""
    options = {"optimizer": "sgd", "scheduler": None, "max_iter": 4, "random_state": 0}
    whole = GMLVQ(2, **options).fit(*blobs)
    parts = GMLVQ(2, batch_size=5, accumulate=9, **options).fit(*blobs)
    np.testing.assert_allclose(parts.prototypes_, whole.prototypes_, rtol=1e-9)
    np.testing.assert_allclose(parts.omega_, whole.omega_, rtol=1e-9)


def test_callbacks_hear_the_curves(blobs):
    heard = []
    model = GLVQ(
        validation_fraction=0.3,
        callbacks=(lambda h: heard.append({k: len(v) for k, v in h.items()}),),
    )
    model.set_params(max_iter=3).fit(*blobs)
    assert heard == [{"train_loss": n, "val_loss": n, "val_accuracy": n} for n in (1, 2, 3)]
    assert GLVQ(callbacks=(after_two,)).fit(*blobs).n_iter_ == 2


def test_verbose_shows_the_epochs(blobs, capsys):
    GLVQ(max_iter=3, verbose=True).fit(*blobs)
    assert "train_loss" in capsys.readouterr().out
    GLVQ(max_iter=3).fit(*blobs)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("kind", [RSLVQ, CELVQ])
def test_temperature_is_the_losses_too(kind, blobs):
    cold, warm = (
        kind(2, temperature=T, max_iter=10, random_state=0).fit(*blobs) for T in (0.1, 10.0)
    )
    assert (cold.temperature_, warm.temperature_) == pytest.approx((0.1, 10.0))
    assert np.abs(cold.prototypes_ - warm.prototypes_).max() > 0.01


# --- what can't be honored ---------------------------------------------------------------------------------

START = "initial_prototypes"
REFUSED = {
    "init": (GLVQ(init="middle"), {}, "init must be one of kmeans"),
    "no prototypes": (GLVQ(0), {}, "n_prototypes must be integers of at least 1, got 0"),
    "half a prototype": (GLVQ(1.5), {}, "n_prototypes must be integers"),
    "unnamed class": (GLVQ({0: 1, 1: 1}), {}, "n_prototypes must name every class once"),
    "unknown class": (
        GLVQ({0: 1, 1: 1, 2: 1, 7: 1}),
        {},
        "n_prototypes must name every class once",
    ),
    "optimizer": (GLVQ(optimizer="newton"), {}, "optimizer must be one of adam"),
    "lr twice": (
        GLVQ(optimizer=torch.optim.SGD([torch.zeros(1)], lr=0.1), lr=0.1),
        {},
        "lr must be None",
    ),
    "scheduler": (GLVQ(scheduler="never"), {}, "scheduler must be 'cosine'"),
    "no epochs": (GLVQ(max_iter=0), {}, "must be at least 1, got 0"),
    "negative batch": (GLVQ(batch_size=-1), {}, "batch_size must be at least 1|-1"),
    "patience": (GLVQ(patience=3), {}, "need something held out"),
    "restore_best": (GLVQ(restore_best=False), {}, "need something held out"),
    "ema": (GLVQ(ema=1.0), {}, "ema must lie between 0 and 1"),
    "accumulate": (GLVQ(accumulate=2), {}, "accumulate=2 needs a batch_size"),
    "accumulate 0": (GLVQ(accumulate=0, batch_size=5), {}, "accumulate must be at least 1"),
    "lookahead": (GLVQ(lookahead=0), {}, "lookahead must be at least 1"),
    "frozen, all": (LVQ1(frozen=("prototypes",)), {}, "frozen must name some, not all"),
    "frozen, unknown": (GLVQ(frozen=("metric",)), {}, r"of the groups \['prototypes'\]"),
    "frozen and changed": (
        GRLVQ(frozen=("metric",), regularizers=(SparseRelevance(0.1),)),
        {},
        "frozen metric",
    ),
    "mixed_precision": (GLVQ(mixed_precision=True), {}, "needs dtype='float32'"),
    "dtype": (GLVQ(dtype="float16"), {}, "dtype must be 'float32' or 'float64'"),
    "temperature": (GLVQ(temperature=0.0), {}, "temperature must be above 0"),
    "no relevances": (
        GLVQ(regularizers=(SparseRelevance(0.1),)),
        {},
        "SparseRelevance needs a model with relev",
    ),
    "no floor": (
        GLVQ(regularizers=(RelevanceFloor(0.1),)),
        {},
        "RelevanceFloor needs a model with relevances",
    ),
    "floor too high": (
        GRLVQ(regularizers=(RelevanceFloor(0.3),)),
        {},
        r"minimum must lie in \[0, 1/4\]",
    ),
    "all sparse": (GRLVQ(regularizers=(SparseRelevance(1e4),)), {}, "smaller l1_weight"),
    "transfer": (GLVQ(transfer="cubic"), {}, "transfer must be one of identity"),
    "beta": (GLVQ(transfer="identity", beta=2.0), {}, "beta=2.0 needs transfer"),
    "window": (LVQ21(window=1.0), {}, "window must lie between 0 and 1"),
    "metric": (RSLVQ(metric="cosine"), {}, "metric must be 'euclidean'"),
    "rank": (GMLVQ(rank=0), {}, "rank must lie between 1 and"),
    "rank without matrix": (RSLVQ(rank=2), {}, "rank=2 needs metric='matrix' or 'local'"),
    "start of another class": (
        GLVQ(),
        {START: (np.zeros((3, 4)), [0, 1, 9])},
        r"initial_prototypes holds labels \[9\]",
    ),
    "start of another size": (GLVQ(), {START: (np.zeros((3, 5)), [0, 1, 2])}, "features"),
    "held out of another class": (
        GLVQ(),
        {"validation_data": (np.zeros((1, 4)), [9])},
        "validation_data holds labels",
    ),
    "negative weight": (GLVQ(), {"sample_weight": np.linspace(-1, 1, 45)}, "at least 0 per row"),
    "no weight": (GLVQ(), {"sample_weight": np.zeros(45)}, "not all zero"),
    "weights of another length": (
        GLVQ(),
        {"sample_weight": np.ones(44)},
        "inconsistent numbers of samples",
    ),
    "means metric": (NearestMean("cosine"), {}, "metric must be one of euclidean"),
    "shrinkage": (
        NearestMean("mahalanobis", shrinkage=2),
        {},
        "shrinkage must lie between 0 and 1",
    ),
    "embedding": (DeepLVQ(backbone="transformer"), {}, "transformer"),
}


@pytest.mark.parametrize(("model", "given", "said"), REFUSED.values(), ids=REFUSED)
def test_what_can_not_be_honored_is_refused(model, given, said, blobs):
    with pytest.raises(ValueError, match=said):
        model.fit(*blobs, **given)


@pytest.mark.parametrize(
    ("model", "given", "said"),
    [
        (GLVQ(), {START: (np.zeros((2, 4)), [0, 1])}, START),
        (GLVQ(), {START: (np.zeros((3, 4)), [0, 1])}, START),
        (
            GLVQ(patience=2),
            {"validation_data": (np.zeros((3, 4)), [0, 1])},
            "validation_data|inconsistent",
        ),
        (
            GLVQ(validation_fraction=0.3, max_iter=2),
            {"validation_data": (np.zeros((1, 4)), [0])},
            "validation_fraction",
        ),
        (GLVQ(batch_size=0, max_iter=2), {}, "batch_size"),
        (GLVQ(max_iter=0), {}, "max_iter"),
        (GLVQ(patience=0, validation_fraction=0.3, max_iter=2), {}, "patience"),
        (GMLVQ(rank=5, max_iter=2), {}, "rank"),
        (GLVQ(beta=-1.0, max_iter=2), {}, "beta"),
        (GLVQ(class_weight={0: 0, 1: 1, 2: 1}), {}, "class_weight"),
        (GLVQ(optimizer=torch.optim.LBFGS), {}, "optimizer"),
        (LVQ1(2, optimizer="sgd", lr=1e200, max_iter=1), {}, "smaller lr"),
        (NearestMean(window=0.1), {}, "window"),
        (NearestMean(shrinkage=0.5), {}, "shrinkage"),
        (RSLVQ(metric_lr=0.5, max_iter=2), {}, "metric_lr"),
    ],
)
def test_what_should_be_refused(model, given, said, blobs):
    with pytest.raises(ValueError, match=said):
        model.fit(*blobs, **given)


# --- rows, weights, seeds -----------------------------------------------------------------------------------


def learned(model, X):
    return np.concatenate(
        [model.prototypes_.ravel(), model.predict_proba(X).ravel(), [model.loss_]]
    )


@every_model
@pytest.mark.parametrize("batch_size", [None, 10])
def test_order_of_rows_does_not_matter(kind, batch_size, blobs):
    X, y = blobs
    order = np.random.default_rng(5).permutation(len(X))
    models = [
        kind(**BASE, batch_size=batch_size).fit(X[rows], y[rows])
        for rows in (slice(None), order, slice(None, None, -1))
    ]
    assert all(np.array_equal(learned(models[0], X), learned(other, X)) for other in models[1:])


@every_model
@pytest.mark.parametrize("options", [{}, {"batch_size": 10}, {"class_weight": "balanced"}], ids=str)
def test_a_weight_is_a_number_of_repeats(kind, options, blobs):
    X, y = blobs
    weight = np.random.default_rng(5).integers(0, 4, len(X))
    weighted = kind(**BASE, **options).fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(len(X)), weight)
    np.testing.assert_array_equal(
        learned(weighted, X), learned(kind(**BASE, **options).fit(X[rows], y[rows]), X)
    )
    assert not np.array_equal(learned(weighted, X), learned(kind(**BASE, **options).fit(X, y), X))


def test_balanced_classes_count_the_same(blobs):
    X, y = blobs
    rows = np.flatnonzero((y > 0) | (np.arange(45) < 15))
    X, y = X[rows], y[rows]
    balanced = GLVQ(**BASE, class_weight="balanced").fit(X, y)
    weighted = GLVQ(**BASE).fit(X, y, sample_weight=compute_sample_weight("balanced", y))
    np.testing.assert_allclose(learned(balanced, X), learned(weighted, X), rtol=1e-9)


def test_balanced_classes_count_repeats(blobs):
    """15 rows of each class, those of class 0 five distinct ones thrice: balanced already."""
    X, y = blobs
    rows = np.concatenate([np.repeat(np.flatnonzero(y == 0)[:5], 3), np.flatnonzero(y > 0)])
    X, y = X[rows], y[rows]
    balanced, plain = (GLVQ(**BASE, class_weight=w).fit(X, y) for w in ("balanced", None))
    np.testing.assert_allclose(learned(balanced, X), learned(plain, X), rtol=1e-9)


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


def test_averaged_metric_has_its_scale(blobs):
    model = GMLVQ(ema=0.9, lr=0.5, metric_lr=1.0, max_iter=20, scheduler=None).fit(*blobs)
    assert model.relevances_.sum() == pytest.approx(1, abs=1e-9)


def test_models_are_all_here():
    """A public model that is not learned by gradient descent has its options tested elsewhere."""
    others = {
        kind.__name__
        for kind in PUBLIC
        if isinstance(kind, type) and issubclass(kind, ClassifierMixin)
    }
    assert others - {kind.__name__ for kind in MODELS} <= {"NearestMean", "MedianLVQ"}
