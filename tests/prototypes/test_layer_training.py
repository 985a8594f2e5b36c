"""Training of a layer: early stopping, batches, callbacks, frozen parameters."""

import numpy as np
import pytest
import torch
from gradient_models import after_two
from sklearn.datasets import load_iris

from contrafact.prototypes import GLVQ, GMLVQ, GRLVQ


def test_frozen_parameters_stay(blobs):
    X, y = blobs
    start = X[:3], y[:3]
    model = GMLVQ(frozen=("prototypes",), max_iter=5).fit(X, y, initial_prototypes=start)
    np.testing.assert_allclose(model.prototypes_, X[:3], atol=1e-12)
    assert np.abs(model.omega_ - np.eye(4) / 2).max() > 1e-3
    model = GMLVQ(frozen=("metric",), beta=3.0, max_iter=5).fit(X, y, initial_prototypes=start)
    np.testing.assert_array_equal(model.omega_, np.eye(4) / 2)
    np.testing.assert_allclose(
        model.prototypes_,
        GLVQ(beta=3.0, max_iter=5).fit(X, y, initial_prototypes=start).prototypes_,
        atol=1e-9,
    )


def test_early_stopping_keeps_the_best(blobs):
    X, y = blobs
    held = X[::3] + 0.1, y[::3]
    options = {
        "n_prototypes": 2,
        "learning_rate": 1.0,
        "scheduler": None,
        "max_iter": 60,
        "random_state": 0,
    }
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


def test_averaged_metric_has_its_scale(blobs):
    model = GMLVQ(
        ema=0.9, learning_rate=0.5, metric_learning_rate=1.0, max_iter=20, scheduler=None
    ).fit(*blobs)
    assert model.relevances_.sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"transfer": lambda mu: mu.detach()},
        {"distance_fn": lambda x, w: torch.cdist(x, w).detach()},
    ],
)
def test_functions_without_a_gradient_are_named(options, blobs):
    with pytest.raises(ValueError, match="distance_fn and transfer must be functions that torch"):
        GLVQ(**options).fit(*blobs)


def test_gradients_that_overflow_in_float16_are_left_out():
    X, y = load_iris(return_X_y=True)
    X = np.c_[X, 0.01 * np.random.default_rng(0).normal(size=(150, 2000))]
    options = {"max_iter": 20, "dtype": "float32", "random_state": 0}
    model = GRLVQ(mixed_precision="float16", **options).fit(X, y)
    assert model.score(X, y) > 0.9
