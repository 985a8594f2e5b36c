"""Training of autoencoders, and the report on what they lose."""

import numpy as np
import pytest
import torch
from torch import nn

import contrafact as cf
from contrafact.nn.autoencoders import (
    Autoencoder,
    ConvAutoencoder,
    LSTMAutoencoder,
)
from contrafact.nn.networks import seeded

ITALY = cf.load_dataset("ItalyPowerDemand")
FAST = {"learning_rate": 5e-3, "max_epochs": 3}


def small(kind, shape=(1, 24), seed=0):
    with seeded(seed):
        if kind == "lstm":
            return LSTMAutoencoder(shape, latent=8, hidden=24)
        return ConvAutoencoder(shape, latent=6, widths=(8, 12))


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def same_weights(a, b):
    return all(
        torch.equal(p, q)
        for p, q in zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    )


def held_out(n, share=0.2, random_state=0):
    """The rows that fit_autoencoder holds out: the first of its permutation."""
    return np.random.default_rng(random_state).permutation(n)[: round(share * n)]


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize("kind", ["minmax", "standard"])
def test_training_scales_by_the_training_rows_alone(kind):
    X = normal(20, 2, 12).numpy()
    rows = held_out(20)
    X[rows] += 50  # were they looked at, mean and range would show it
    seen = np.delete(X, rows, axis=0)
    scaling = cf.fit_autoencoder(small("cnn", (2, 12)), X, scaling=kind, **FAST).scaling
    low = seen.min((0, 2)) if kind == "minmax" else seen.mean((0, 2))
    width = np.ptp(seen, (0, 2)) if kind == "minmax" else seen.std((0, 2))
    np.testing.assert_allclose(scaling.mean, low, rtol=1e-5)
    np.testing.assert_allclose(scaling.std, width, rtol=1e-5)


def test_units_do_not_matter():
    """Powers of two are exact in floating point: the same training, in other units."""
    X = normal(30, 2, 12)
    units = torch.tensor([2.0**10, 2.0**-10])[:, None]
    plain, other = (cf.fit_autoencoder(small("cnn", (2, 12)), x, **FAST) for x in (X, X * units))
    torch.testing.assert_close(other(X * units), plain(X) * units)
    assert plain.history["val_loss"] == pytest.approx(other.history["val_loss"])


@pytest.mark.parametrize(("kind", "epochs", "bar"), [("cnn", 120, 0.35), ("lstm", 150, 0.85)])
def test_it_learns_real_series(kind, epochs, bar):
    """Unseen series come back nearer than the mean series, which leaves 1/4 of the variance."""
    autoencoder = cf.fit_autoencoder(
        small(kind), ITALY.X_train, learning_rate=1e-2, max_epochs=epochs
    )
    X = torch.from_numpy(ITALY.X_test[:300]).float()
    error = float((autoencoder(X) - X).square().mean())
    assert error < bar * float((X - X.mean(0)).square().mean()) < 0.25 * float(X.var())
    losses = autoencoder.history["val_loss"]
    assert min(losses) < losses[0] / 5


def test_it_learns_digits():
    digits = cf.load_dataset("digits")
    autoencoder = cf.fit_autoencoder(
        small("cnn", (1, 8, 8)),
        digits.X_train[:400],
        learning_rate=1e-2,
        max_epochs=40,
        scaling="standard",
    )
    X = torch.from_numpy(digits.X_test).float()
    error = float((autoencoder(X) - X).square().mean())
    assert error < 0.55 * float(
        (X - X.mean(0)).square().mean()
    )  # a code of 6 numbers for 64 pixels


@pytest.mark.usefixtures("own_random_numbers")
def test_same_seed_same_weights_whatever_else_ran():
    torch.manual_seed(1)
    one = cf.fit_autoencoder("cnn", ITALY.X_train, random_state=5, **FAST)
    torch.manual_seed(2)
    np.random.seed(2)  # noqa: NPY002
    two = cf.fit_autoencoder("cnn", ITALY.X_train, random_state=5, **FAST)
    other = cf.fit_autoencoder("cnn", ITALY.X_train, random_state=6, **FAST)
    assert same_weights(one, two) and one.history == two.history
    assert not same_weights(one, other)


def test_the_global_random_state_is_left_alone():
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    cf.fit_autoencoder("lstm", ITALY.X_train[:8], max_epochs=1)
    assert torch.equal(before[0], torch.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002


def test_what_comes_back_is_the_module_at_rest():
    module, data = small("cnn"), ITALY.X_train.copy()
    autoencoder = cf.fit_autoencoder(module, data, **FAST)
    assert autoencoder is module and not any(m.training for m in module.modules())
    assert not any(p.requires_grad for p in module.parameters())
    assert {name: len(curve) for name, curve in module.history.items()} == {
        "train_loss": 3,
        "val_loss": 3,
    }
    assert np.array_equal(data, ITALY.X_train)
    # Fixed weights can be trained further: they must have been made to move again.
    before = [p.clone() for p in module.parameters()]
    cf.fit_autoencoder(module, data, **FAST)
    assert not any(torch.equal(p, q) for p, q in zip(before, module.parameters(), strict=True))


def test_the_best_weights_are_the_ones_returned():
    """Noise can only be learned by heart: the lowest validation loss lies before the end."""
    X = normal(40, 1, 16).numpy()
    autoencoder = cf.fit_autoencoder(
        small("cnn", (1, 16)), X, learning_rate=2e-2, max_epochs=200, patience=6
    )
    losses = autoencoder.history["val_loss"]
    assert len(losses) == np.argmin(losses) + 1 + 6 < 200
    rest = torch.from_numpy(X[held_out(40)])
    now = ((autoencoder(rest) - rest) / autoencoder.scaling.std.view(-1, 1)).square().mean().item()
    assert now == pytest.approx(min(losses), rel=1e-5) and now < 0.99 * losses[-1]


def test_without_held_out_rows_every_epoch_runs():
    autoencoder = cf.fit_autoencoder(
        small("cnn"), ITALY.X_train, validation=0.0, patience=1, **FAST
    )
    assert {name: len(curve) for name, curve in autoencoder.history.items()} == {"train_loss": 3}


def test_one_instance_is_enough_to_train():
    autoencoder = cf.fit_autoencoder(
        small("cnn"), ITALY.X_train[:1], learning_rate=1e-2, max_epochs=200
    )
    x = torch.from_numpy(ITALY.X_train[:1]).float()
    assert (autoencoder(x) - x).square().mean() < 0.1 * x.var()


def test_flat_series_are_lifted():
    flat, lifted = (
        cf.fit_autoencoder(small("cnn"), X, **FAST) for X in (ITALY.X_train[:, 0], ITALY.X_train)
    )
    assert flat.shape == (1, 24) and same_weights(flat, lifted)


def test_torch_numpy_and_whole_numbers_train_the_same():
    X = (10 * ITALY.X_train).round()
    arrays = (X, torch.from_numpy(X), X.astype(int), torch.from_numpy(X).requires_grad_())
    first, *others = (cf.fit_autoencoder(small("cnn"), x, **FAST) for x in arrays)
    assert all(same_weights(first, other) for other in others)


def test_none_is_the_convolutional_one_and_float64_stays():
    assert type(cf.fit_autoencoder(None, ITALY.X_train[:8], max_epochs=1)) is ConvAutoencoder
    double = cf.fit_autoencoder(small("cnn").double(), ITALY.X_train, **FAST)
    assert double(torch.from_numpy(ITALY.X_train)).dtype == torch.float64


@pytest.mark.parametrize(
    "option",
    [
        {"batch_size": 8},
        {"learning_rate": 1e-2},
        {"validation": 0.5},
        {"scaling": "standard"},
        {"random_state": 1},
        {"max_epochs": 2},
    ],
    ids=str,
)
def test_every_option_matters(option):
    plain, changed = (
        cf.fit_autoencoder(small("cnn"), ITALY.X_train, **FAST | o) for o in ({}, option)
    )
    assert not same_weights(plain, changed)


def test_the_old_name_of_the_learning_rate_still_works():
    new = cf.fit_autoencoder(small("cnn"), ITALY.X_train, max_epochs=1, learning_rate=5e-3)
    with pytest.warns(DeprecationWarning, match=r"fit_autoencoder\(lr=...\) is now learning_rate="):
        old = cf.fit_autoencoder(small("cnn"), ITALY.X_train, max_epochs=1, lr=5e-3)
    assert same_weights(old, new)


def test_progress_shows_the_losses(capsys):
    autoencoder = cf.fit_autoencoder(small("cnn"), ITALY.X_train, progress=True, **FAST)
    assert f"val_loss {autoencoder.history['val_loss'][-1]:.4f}" in capsys.readouterr().out
    cf.fit_autoencoder(small("cnn"), ITALY.X_train, **FAST)
    assert capsys.readouterr().out == ""


def with_nan():
    bad = ITALY.X_train.copy()
    bad[17, 0, 4] = np.nan
    return bad


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": with_nan()}, r"X\[17\] contains NaN at channel 0, time 4"),
        ({"X": with_nan()[:, 0]}, r"X\[17\] contains NaN at channel 0, time 4"),
        ({"X": ITALY.X_train[0, 0]}, r"X has shape \(24,\)"),
        ({"X": np.zeros((2, 1, 4, 4, 4))}, r"X has shape \(2, 1, 4, 4, 4\)"),
        ({"X": ITALY.X_train[:0]}, r"X has shape \(0, 1, 24\).*at least one instance"),
        ({"X": [["a", "b"]]}, "X has dtype"),
        ({"module": "vae"}, "'vae' is not an autoencoder. Autoencoders: lstm, cnn"),
        (
            {"module": "lstm", "X": np.zeros((2, 1, 8, 8))},
            r"autoencoder 'lstm' takes series.*\(1, 8, 8\)",
        ),
        (
            {"module": ConvAutoencoder((1, 9))},
            r"module takes instances of shape \(1, 9\); X holds \(1, 24\)",
        ),
        ({"scaling": "robust"}, "scaling must be 'minmax' or 'standard', got 'robust'"),
        ({"validation": 1.0}, "validation must be a number at least 0 and below 1, got 1.0"),
        ({"max_epochs": 0}, "max_epochs must be a whole number at least 1.*, got 0"),
        (
            {"batch_size": 0},
            "batch_size must be a whole number at least 1 .*, got 0",
        ),
        ({"learning_rate": 1e30}, "training diverged in epoch"),
    ],
)
def test_errors_name_the_argument(arguments, message):
    with pytest.raises(ValueError, match=message):
        cf.fit_autoencoder(**{"module": "cnn", "X": ITALY.X_train, "max_epochs": 1} | arguments)


class Halving(Autoencoder):
    """x̂ = x / 2: every error can be told by hand."""

    def __init__(self, shape):
        super().__init__(shape, latent=int(np.prod(shape)))
        self.factor = nn.Parameter(torch.tensor(0.5))

    def _encode(self, x):
        return x.flatten(1)

    def _decode(self, z):
        return self.factor * z.unflatten(1, self.shape)


def up_or_down(X):
    up = X.reshape(len(X), -1).mean(1) > 1
    return np.stack([~up, up], axis=1).astype(float)


MODEL = cf.as_classifier(up_or_down, classes=["down", "up"])
# Means 2, 6 and 0: the first is up, and down once halved.
ROWS = np.array([[[4.0, 0.0]], [[8.0, 4.0]], [[1.0, -1.0]]])
RMSE, MAE, FLIPPED = (
    np.sqrt([2.0, 10.0, 0.25]),
    np.array([1.0, 3.0, 0.5]),
    np.array([1.0, 0.0, 0.0]),
)


def line(rows):
    return [len(rows), RMSE[rows].mean(), MAE[rows].mean(), FLIPPED[rows].mean()]


@pytest.mark.parametrize(
    ("y", "groups"),
    [
        (None, {"down": [2], "up": [0, 1]}),
        (["up", "down", "down"], {"down": [1, 2], "up": [0]}),
        ([7, 7, 3], {3: [2], 7: [0, 1]}),
    ],
    ids=["by prediction", "by text label", "by number"],
)
def test_the_report_is_what_a_hand_computes(y, groups):
    report = cf.reconstruction_report(Halving((1, 2)), MODEL, ROWS, y)
    assert report.index.tolist() == [*groups, "all"] and report.index.name == "class"
    assert report.columns.tolist() == ["n", "rmse", "mae", "flip_rate"]
    assert report["n"].tolist() == [*map(len, groups.values()), 3]
    for name, rows in groups.items():
        np.testing.assert_allclose(report.loc[name].to_numpy(float), line(rows))
    np.testing.assert_allclose(report.loc["all"].to_numpy(float), line([0, 1, 2]))


def test_the_report_takes_tensors_and_flat_series():
    expected = cf.reconstruction_report(Halving((1, 2)), MODEL, ROWS)
    for X in (torch.from_numpy(ROWS), ROWS[:, 0]):
        assert cf.reconstruction_report(Halving((1, 2)), MODEL, X).equals(expected)


def test_the_report_refuses_labels_that_do_not_fit():
    with pytest.raises(ValueError, match=r"y has shape \(2,\)"):
        cf.reconstruction_report(Halving((1, 2)), MODEL, ROWS, ["up", "up"])
