"""Training of classifiers: accuracy, seeds, options, errors."""

import numpy as np
import pytest
import torch
from aeon.datasets import load_gunpoint, load_italy_power_demand
from sklearn.datasets import load_digits, load_wine
from torch import nn

from contrafact.nn.image_networks import SmallCNN
from contrafact.nn.networks import FCN, MLP, BiLSTM
from contrafact.nn.training import _hold_out, fit_classifier


def waves(n=60, seed=0, noise=0.3):
    """Two classes of series: one period of a sine, or two."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    t = np.linspace(0, 2 * np.pi, 24)
    return np.sin((1 + y)[:, None, None] * t) + noise * rng.normal(size=(n, 1, 24)), y


X, Y = waves()
X_TEST, Y_TEST = waves(200, seed=1)
FAST = {"learning_rate": 1e-2, "max_epochs": 30}


def small_fcn(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return FCN(1, 2, widths=(8, 8), kernels=(5, 3))


@pytest.mark.parametrize(
    ("load", "epochs", "bar"),
    [(load_gunpoint, 45, 0.95), (load_italy_power_demand, 10, 0.93)],
    ids=["GunPoint", "Italy"],
)
def test_fcn_learns_real_series(load, epochs, bar):
    X_test, y_test = load(split="test")
    classifier = fit_classifier(
        "fcn", *load(split="train"), max_epochs=epochs
    )  # far less than the default
    assert (classifier.predict(X_test) == y_test).mean() >= bar


def test_small_cnn_learns_digits():
    digits = load_digits()
    images = digits.images[:, None]
    classifier = fit_classifier(
        "smallcnn", images[:1000], digits.target[:1000], learning_rate=5e-3, max_epochs=8
    )
    assert (classifier.predict(images[1000:]) == digits.target[1000:]).mean() > 0.85


def test_mlp_learns_rows_of_unequal_scale():
    X, y = load_wine(return_X_y=True)  # one feature in the thousands, one around 0.1
    rows = np.random.default_rng(0).permutation(len(X))
    classifier = fit_classifier(
        "mlp", X[rows[:120]], y[rows[:120]], learning_rate=1e-2, max_epochs=60
    )
    assert (classifier.predict(X[rows[120:]]) == y[rows[120:]]).mean() > 0.9


def test_bilstm_learns():
    classifier = fit_classifier("bilstm", X, Y, **FAST)
    assert (classifier.predict(X_TEST) == Y_TEST).mean() > 0.95


@pytest.mark.parametrize(
    ("shape", "expected"), [((6,), MLP), ((2, 12), FCN), ((1, 8, 8), SmallCNN)]
)
def test_the_network_follows_the_dimensions(shape, expected):
    rows = np.random.default_rng(0).normal(size=(8, *shape))
    assert type(fit_classifier(None, rows, [0, 1] * 4, max_epochs=1).module) is expected


def test_flat_series_can_be_asked_for_by_name():
    classifier = fit_classifier("bilstm", X[:, 0], Y, **FAST)
    assert isinstance(classifier.module, BiLSTM)
    assert (classifier.predict(X_TEST[:, 0]) == Y_TEST).mean() > 0.95


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize(
    "labels",
    [np.array(["sad", "glad"]), np.array([True, False]), np.array([3, -1]), np.array([0.5, -2.0])],
    ids=str,
)
def test_labels_of_any_kind(labels):
    classifier = fit_classifier(small_fcn(), X, labels[Y], **FAST)
    assert classifier.classes.tolist() == sorted(labels.tolist())
    assert (classifier.predict(X_TEST) == labels[Y_TEST]).mean() > 0.9


@pytest.mark.usefixtures("own_random_numbers")
def test_torch_and_numpy_train_the_same():
    one = fit_classifier(small_fcn(), X, Y, max_epochs=3)
    two = fit_classifier(small_fcn(), torch.as_tensor(X), torch.as_tensor(Y), max_epochs=3)
    assert same_weights(one.module, two.module)


def same_weights(a, b):
    return all(
        torch.equal(p, q)
        for p, q in zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    )


@pytest.mark.usefixtures("own_random_numbers")
def test_same_seed_same_weights_whatever_else_ran():
    torch.manual_seed(1)
    one = fit_classifier("fcn", X, Y, max_epochs=2, random_state=5)
    torch.manual_seed(2)
    np.random.seed(2)  # noqa: NPY002
    two = fit_classifier("fcn", X, Y, max_epochs=2, random_state=5)
    other = fit_classifier("fcn", X, Y, max_epochs=2, random_state=6)
    assert same_weights(one.module, two.module) and one.history == two.history
    assert not same_weights(one.module, other.module)


@pytest.mark.usefixtures("own_random_numbers")
def test_dropout_is_seeded_too():
    def module():
        torch.manual_seed(0)
        return nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(24, 2))

    one, two = (fit_classifier(module(), X, Y, max_epochs=2, random_state=5) for _ in range(2))
    assert same_weights(one.module, two.module)


def test_the_global_random_state_is_left_alone():
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    fit_classifier("mlp", X[:, 0], Y, max_epochs=2)
    assert torch.equal(before[0], torch.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.usefixtures("own_random_numbers")
def test_inputs_are_left_alone():
    data, labels = X.copy(), Y.copy()
    fit_classifier(small_fcn(), data, labels, max_epochs=2)
    assert np.array_equal(data, X) and np.array_equal(labels, Y)


def test_the_best_weights_are_the_ones_returned():
    """Labels of noise: training overfits, so the lowest validation loss lies before the end."""
    rng = np.random.default_rng(0)
    noise, labels = rng.normal(size=(60, 5)), rng.integers(0, 2, 60)
    noise_val, labels_val = rng.normal(size=(200, 5)), rng.integers(0, 2, 200)
    classifier = fit_classifier(
        "mlp",
        noise,
        labels,
        validation=(noise_val, labels_val),
        learning_rate=0.02,
        max_epochs=300,
        patience=7,
    )
    losses = classifier.history["val_loss"]
    assert len(losses) == np.argmin(losses) + 1 + 7 < 300
    with torch.no_grad():
        logits = classifier.module(torch.as_tensor(noise_val, dtype=torch.float32))
    now = nn.functional.cross_entropy(logits, torch.as_tensor(labels_val)).item()
    assert now == pytest.approx(min(losses), rel=1e-5)


@pytest.mark.usefixtures("own_random_numbers")
def test_history_and_mode():
    module = small_fcn()
    classifier = fit_classifier(module, X, Y, validation=0.2, max_epochs=4)
    assert classifier.module is module and not any(m.training for m in module.modules())
    assert {name: len(curve) for name, curve in classifier.history.items()} == {
        "train_loss": 4,
        "val_loss": 4,
        "val_accuracy": 4,
    }
    assert classifier.history["train_loss"][-1] < classifier.history["train_loss"][0]


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize(
    "option",
    [
        {"batch_size": 8},
        {"learning_rate": 1e-2},
        {"weight_decay": 1.0},
        {"validation": 0.5},
        {"random_state": 1},
    ],
    ids=str,
)
def test_every_option_matters(option):
    plain, changed = (fit_classifier(small_fcn(), X, Y, max_epochs=3, **o) for o in ({}, option))
    assert not same_weights(plain.module, changed.module)


def test_held_out_rows_are_a_share_of_every_class():
    target = np.repeat([0, 1, 2, 3], [50, 10, 2, 1])
    held_out = _hold_out(target, 0.2, random_state=0)
    assert np.bincount(target[held_out], minlength=4).tolist() == [10, 2, 0, 0]
    assert np.bincount(target[_hold_out(target, 0.9, 0)], minlength=4).tolist() == [45, 9, 1, 0]
    assert not np.array_equal(held_out, _hold_out(target, 0.2, random_state=1))


def test_tiny_sets_train():
    """One instance per class: nothing to hold out, whatever the share."""
    classifier = fit_classifier(
        "mlp", np.eye(3), ["a", "b", "c"], validation=0.5, learning_rate=0.05, max_epochs=100
    )
    assert classifier.predict(np.eye(3)).tolist() == ["a", "b", "c"]
    assert len(classifier.history["train_loss"]) == 100 and "val_loss" not in classifier.history


@pytest.mark.parametrize(("n", "watched"), [(60, 0), (200, 2)])
def test_only_larger_sets_hold_out_by_default(n, watched):
    classifier = fit_classifier(small_fcn(), *waves(n), max_epochs=2)
    assert len(classifier.history.get("val_loss", [])) == watched


@pytest.mark.usefixtures("own_random_numbers")
def test_a_batch_norm_never_gets_a_single_row():
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    rows = np.random.default_rng(0).normal(size=(9, 3))  # 8 + 1 with batches of 8
    fit_classifier(
        module, rows, [0, 1, 0, 1, 0, 1, 0, 1, 0], validation=0.0, batch_size=8, max_epochs=1
    )


@pytest.mark.usefixtures("own_random_numbers")
def test_float64_modules_stay_float64():
    classifier = fit_classifier(small_fcn().double(), X, Y, max_epochs=1)
    assert classifier.module.head.weight.dtype == torch.float64


def test_progress_shows_the_losses(capsys):
    classifier = fit_classifier(small_fcn(), X, Y, max_epochs=2, progress=True)
    assert f"train_loss {classifier.history['train_loss'][-1]:.4f}" in capsys.readouterr().out
    fit_classifier(small_fcn(), X, Y, max_epochs=2)
    assert capsys.readouterr().out == ""


def with_nan():
    bad = X.copy()
    bad[17, 0, 4] = np.nan
    return bad


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": with_nan()}, r"X\[17\] contains NaN at channel 0, time 4"),
        ({"validation": (with_nan(), Y)}, r"validation\[0\]\[17\] contains NaN"),
        ({"y": Y[:-1]}, r"y has shape \(59,\)"),
        ({"y": np.zeros(60, int)}, r"y must hold at least two classes, got \[0\]"),
        ({"X": X[0, 0]}, r"X has shape \(24,\)"),
        ({"module": "transformer"}, "module must be a torch module, 'fcn', .*got 'transformer'"),
        ({"module": "smallcnn"}, "network 'smallcnn' takes images"),
        ({"module": FCN(1, 3)}, r"module must give one logit per class, \(2, 2\).* got \(2, 3\)"),
        ({"module": nn.Flatten()}, "module Flatten has no parameters"),
        ({"max_epochs": 0}, "max_epochs must be a whole number at least 1.*, got 0"),
        ({"validation": 1.0}, "validation must be a share from 0 to below 1"),
        ({"validation": (X[:, :, :9], Y)}, r"instances of shape \(1, 24\), got \(1, 9\)"),
        ({"validation": (X, Y + 1)}, r"labels among \[0, 1\], got \[1, 2\]"),
        (
            {"learning_rate": 1e30, "module": "mlp"},
            "training diverged in epoch 1; try a smaller learning_rate",
        ),
    ],
)
def test_errors_name_the_argument(arguments, message):
    with pytest.raises(ValueError, match=message):
        fit_classifier(**{"module": None, "X": X, "y": Y, "max_epochs": 2} | arguments)


def test_the_old_name_of_the_learning_rate_still_works():
    new = fit_classifier(small_fcn(), X, Y, max_epochs=2, learning_rate=1e-2)
    with pytest.warns(DeprecationWarning, match=r"fit_classifier\(lr=...\) is now learning_rate="):
        old = fit_classifier(small_fcn(), X, Y, max_epochs=2, lr=1e-2)
    assert same_weights(old.module, new.module)
