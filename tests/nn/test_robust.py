"""Robust training: what it changes, its losses, its noise, its parameters."""

import copy
import math

import numpy as np
import pytest
import torch
from digit_models import SHORT, X_TEST, Y_TEST, X, Y, accuracy, blobs, digit_model
from sklearn.base import clone
from torch import nn
from torch.nn.functional import cross_entropy

from contrafact.nn import RobustTrainer, SmallCNN, robust_accuracy, robust_report
from contrafact.nn.diagnostics import scatter_spectrum, spectral_report
from contrafact.nn.feature_noise import BeforeHead
from contrafact.nn.networks import seeded
from contrafact.nn.robust import divergence
from contrafact.nn.training import TrainingTask

INF = math.inf
TINY = {"max_epochs": 2, "validation": 0.0}


def fit(module="mlp", data=None, **options):
    return RobustTrainer(**TINY | options).fit(module, *(data or blobs()))


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.module.parameters()])


# --- what training changes ------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["fast", "pgd", "trades", "fsr"])
def test_robust_training_raises_robust_accuracy(way):
    """All within 3 points of the standard model's accuracy, which itself falls to about a half."""
    standard, robust = digit_model("standard"), digit_model(way)
    assert accuracy(robust) > max(0.9, accuracy(standard) - 0.03)
    gain = robust_accuracy(robust, X_TEST, Y_TEST) - robust_accuracy(standard, X_TEST, Y_TEST)
    assert gain > 0.12


def test_fsr_flattens_the_spectrum():
    plain, flat = (spectral_report(digit_model(way), X_TEST) for way in ("fast", "fsr"))
    assert flat.top_share < 0.8 * plain.top_share
    assert flat.pc_id > 1.3 * plain.pc_id


def test_robust_training_against_the_largest_change():
    plain = digit_model("standard")
    robust = digit_model("linf")
    before, after = (robust_accuracy(m, X_TEST, Y_TEST, norm=INF, eps=0.1) for m in (plain, robust))
    assert after > before + 0.1


def test_training_against_several_norms_raises_the_worst():
    """Fine-tuning a model that is robust for l∞ alone, for a few epochs."""
    single = digit_model("linf")
    norms, eps = (1, 2, INF), (2.0, 0.5, 0.1)
    measured = {"norms": norms, "eps": eps, "steps": 10, "restarts": 1}
    before = robust_report(single, X_TEST, Y_TEST, **measured)
    tuning = {**SHORT, "max_epochs": 5, "learning_rate": 3e-3}
    trainer = RobustTrainer(norms=norms, eps=eps, attack="fast", **tuning)
    tuned = trainer.fit(copy.deepcopy(single.module), X, Y).classifier_
    after = robust_report(tuned, X_TEST, Y_TEST, **measured)
    assert after.robust_accuracy[1] > before.robust_accuracy[1] + 0.05
    assert after.worst > before.worst + 0.05


def test_one_norm_in_norms_is_that_norm():
    same = [fit(norm=INF, eps=0.2), fit(norms=(INF,), eps=(0.2,))]
    assert torch.equal(*(weights(trainer.classifier_) for trainer in same))


def test_validation_keeps_the_weights_of_the_worst_norm():
    def robust(**options):
        return fit(validation=0.4, max_epochs=1, **options).history_["val_robust_accuracy"][0]

    options = {"learning_rate": 0.0, "steps": 3}
    alone = [robust(norm=norm, eps=eps, **options) for norm, eps in ((1, 0.4), (INF, 0.02))]
    assert robust(norms=(1, INF), eps=(0.4, 0.02), **options) <= min(alone)


def test_more_beta_lets_the_output_change_less():
    def change(beta):
        model = fit(
            objective="trades", beta=beta, eps=0.3, max_epochs=30, learning_rate=0.02
        ).classifier_
        x = torch.as_tensor(blobs()[0], dtype=torch.float32)
        with torch.no_grad():
            return divergence(model.module(x).log_softmax(1), model.module(x + 0.1)).mean()

    assert change(20.0) < 0.5 * change(0.0)


# --- the loss, term by term -----------------------------------------------------------------------


def first_loss(**options):
    """The training loss of one batch of all rows, before any step was taken."""
    return fit(max_epochs=1, batch_size=1000, **options).history_["train_loss"][0]


def untrained():
    x, t = (torch.as_tensor(a) for a in blobs())
    trainer = fit(max_epochs=1, learning_rate=0.0)
    return trainer.classifier_.module, x.float(), t


def test_without_a_radius_it_is_the_cross_entropy():
    module, x, t = untrained()
    entropy = cross_entropy(module(x), t).item()
    for options in ({}, {"objective": "trades"}, {"attack": "fast"}):
        assert first_loss(eps=0.0, **options) == pytest.approx(entropy, rel=1e-5)
    assert first_loss(eps=0.2) > entropy + 1e-3
    # At most β KL more, and without β nothing of the attack is left.
    assert first_loss(eps=0.2, objective="trades", beta=0.0) == pytest.approx(entropy, rel=1e-5)


def test_the_divergence_is_that_of_the_definition():
    f, g = torch.randn(2, 7, 4, generator=torch.Generator().manual_seed(0))
    p, q = f.softmax(1), g.softmax(1)
    torch.testing.assert_close(divergence(f.log_softmax(1), g), (p * (p / q).log()).sum(1))


@pytest.mark.parametrize("top", [1, 3])
def test_the_penalty_is_that_of_the_definition(top):
    """b w(τ) Σ_k λ_k, with b for batches of 128 and w = 1 / T0 in the first epoch."""
    module, x, _ = untrained()
    F = module.layers(module.standardize(x)).detach().numpy()
    scatter = (F - F.mean(0)).T @ (F - F.mean(0))
    penalty = np.linalg.eigvalsh(scatter.astype(float))[-top:].sum()
    options = {"eps": 0.0, "fsr_top": top, "fsr_weight": 0.1, "fsr_warmup": 4}
    added = first_loss(regularizer="fsr", **options) - first_loss(**options)
    assert added == pytest.approx(0.1 * 128 / 60 / 4 * penalty, rel=1e-3)


def test_the_penalty_warms_up_and_then_stays():
    options = {"eps": 0.0, "learning_rate": 0.0, "batch_size": 1000, "max_epochs": 5}
    plain = fit(**options).history_["train_loss"]
    added = np.subtract(
        fit(regularizer="fsr", fsr_warmup=4, **options).history_["train_loss"], plain
    )
    np.testing.assert_allclose(added / added[-1], [0.25, 0.5, 0.75, 1, 1], rtol=1e-4)


@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (5, 2, 3)])
def test_scatter_spectrum(shape):
    F = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows = F.flatten(1).numpy()
    expected = np.linalg.svd(rows - rows.mean(0), compute_uv=False) ** 2
    np.testing.assert_allclose(scatter_spectrum(F), expected[: min(rows.shape)], atol=1e-9)


# --- activation noise -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accuracy", "expected"), [(0.71, 0.2001), (0.7, 0.2), (0.57, 0.2), (0.55, 0.1)]
)
def test_noise_grows_slowly_and_halves(accuracy, expected):
    before_head = BeforeHead(0.2, accuracy=0.7)
    before_head.right = [torch.arange(100) < round(100 * accuracy)]
    before_head.adapt()
    assert before_head.alphas == [0.2, pytest.approx(expected)]
    assert before_head.right == []


@pytest.mark.usefixtures("own_random_numbers")
def test_noise_is_of_the_given_size_and_in_training_only():
    before_head, layer, F = BeforeHead(0.2, 0.5), nn.Linear(50, 2), torch.ones(400, 50)
    with seeded(0):
        (noisy,) = before_head(layer, (F,))
    assert (noisy - F).std().item() == pytest.approx(0.2, rel=0.03)
    assert torch.equal(before_head.features, F)
    assert torch.equal(before_head(layer.eval(), (F,))[0], F)


def test_noise_is_told_and_leaves_no_trace():
    trainer = fit(activation_noise=0.3, noise_accuracy=0.0, eps=0.01, max_epochs=3)
    assert trainer.history_["noise"] == pytest.approx([0.3, 0.3001, 0.3002])
    assert "noise" not in fit().history_
    assert not any(m._forward_pre_hooks for m in trainer.classifier_.module.modules())


# --- the trainer ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize(
    ("option", "given"),
    [
        ({"attack": "fast"}, {}),
        ({"norm": INF}, {}),
        ({"eps": 0.1}, {}),
        ({"steps": 2}, {}),
        ({"norms": (1, INF)}, {}),
        ({"eps": (0.3, 0.1)}, {"norms": (1, INF)}),
        ({"norm_choice": "worst"}, {"norms": (1, INF)}),
        ({"objective": "trades"}, {}),
        ({"beta": 1.0}, {"objective": "trades"}),
        ({"regularizer": "fsr"}, {}),
        ({"fsr_weight": 0.1}, {"regularizer": "fsr"}),
        ({"fsr_top": 1}, {"regularizer": "fsr"}),
        ({"fsr_warmup": 1}, {"regularizer": "fsr"}),
        ({"activation_noise": 0.1}, {}),
        ({"noise_accuracy": 0.999}, {"activation_noise": 0.1, "eps": 0.01}),
        ({"bounds": (-1.0, 2.0)}, {}),
        ({"max_epochs": 3}, {}),
        ({"batch_size": 8}, {}),
        ({"learning_rate": 1e-2}, {}),
        ({"validation": 0.5}, {}),
        ({"random_state": 1}, {}),
    ],
    ids=str,
)
def test_every_option_matters(option, given):
    module = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
    start = {k: v.clone() for k, v in module.state_dict().items()}
    found = []
    for options in (given, given | option):
        module.load_state_dict(start)
        found.append(weights(fit(module, **options).classifier_))
    assert not torch.equal(*found)


@pytest.mark.usefixtures("own_random_numbers")
def test_same_seed_same_weights_and_the_global_state_is_left_alone():
    options = {"regularizer": "fsr", "activation_noise": 0.1, "validation": 0.3}
    torch.manual_seed(1)
    one = fit(**options)
    torch.manual_seed(2)
    before = torch.get_rng_state()
    two = fit(**options)
    assert torch.equal(before, torch.get_rng_state())
    assert (
        torch.equal(weights(one.classifier_), weights(two.classifier_))
        and one.history_ == two.history_
    )


def test_the_weights_of_the_lowest_robust_loss_are_kept():
    rng = np.random.default_rng(0)
    noise, labels = rng.random((60, 5)), rng.integers(0, 2, 60)
    held_out = rng.random((80, 5)), rng.integers(0, 2, 80)
    trainer = RobustTrainer(
        attack="fast", eps=0.05, validation=held_out, learning_rate=0.02, max_epochs=200, patience=5
    )
    history = trainer.fit("mlp", noise, labels).history_
    assert len(history["val_loss"]) == np.argmin(history["val_loss"]) + 1 + 5 < 200
    module, x, t = (
        trainer.classifier_.module,
        torch.as_tensor(held_out[0]).float(),
        torch.as_tensor(held_out[1]),
    )
    again = trainer._measure(TrainingTask(module, np.arange(2), x, t, x, t))
    assert again["val_loss"] == pytest.approx(min(history["val_loss"]), rel=1e-5)
    assert (
        again["val_loss"] > cross_entropy(module(x), t).item() + 1e-3
    )  # it is the loss under attack


def test_a_model_that_only_withstands_the_fast_attack_is_seen_through():
    """Validation attacks with all steps, also beside fast training."""
    one, many = (
        fit(attack="fast", steps=steps, validation=0.4).history_["val_loss"] for steps in (1, 20)
    )
    assert one != many


@pytest.mark.usefixtures("own_random_numbers")
def test_batch_norm_and_dropout_take_no_part_in_the_attack():
    """One batch per epoch, so the running mean must have moved once: by a tenth of the way."""
    module = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2))
    fit(module, eps=0.0, max_epochs=1, batch_size=1000)
    np.testing.assert_allclose(module[0].running_mean, 0.1 * blobs()[0].mean(0), rtol=1e-5)


@pytest.mark.parametrize("name", ["fcn", "bilstm"])
def test_series_without_bounds(name):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    series = np.sin((1 + y)[:, None] * np.linspace(0, 6, 12)) + 0.1 * rng.normal(size=(40, 12))
    options = {
        "attack": "fast",
        "bounds": None,
        "max_epochs": 12,
        "learning_rate": 0.01,
        "batch_size": 16,
    }
    model = fit(name, (series, y), **options).classifier_
    assert robust_accuracy(model, series, y, bounds=None) > 0.9


def test_clone_and_get_params():
    trainer = RobustTrainer(eps=0.3, objective="trades", bounds=None)
    assert clone(trainer).get_params() == trainer.get_params()
    assert "classifier_" not in vars(clone(fit()))


def test_the_old_name_of_the_learning_rate_still_works():
    with pytest.warns(DeprecationWarning, match=r"RobustTrainer\(lr=...\) is now learning_rate="):
        trainer = RobustTrainer(lr=0.3)
    assert trainer.get_params() == RobustTrainer(learning_rate=0.3).get_params()


@pytest.mark.usefixtures("own_random_numbers")
def test_fit_returns_itself_and_names_the_classes():
    X, y = blobs()
    module = SmallCNN(1, 2)
    trainer = RobustTrainer(**TINY)
    labels = np.array(["high", "low"])[y]
    assert trainer.fit(module, X.repeat(8, 1).reshape(60, 1, 4, 4), labels) is trainer
    assert trainer.classifier_.module is module and not module.training
    assert trainer.classifier_.classes.tolist() == ["high", "low"]
    assert trainer.classifier_.history is trainer.history_


def test_progress_shows_the_losses(capsys):
    fit(progress=True, validation=0.2)
    assert "val_robust_accuracy" in capsys.readouterr().out


CONVOLUTIONS = nn.Sequential(nn.Unflatten(1, (1, 2)), nn.Conv1d(1, 2, 2), nn.Flatten())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attack": "cw"}, "attack must be 'fast' or 'pgd', got 'cw'"),
        ({"objective": "mart"}, "objective must be 'at' or 'trades', got 'mart'"),
        ({"regularizer": "l2"}, "regularizer must be None or 'fsr', got 'l2'"),
        ({"norm": 0}, "norm must be a number from 1 to inf, got 0"),
        ({"norms": (2, 2)}, "norms must be a sequence of different numbers from 1 to inf or None"),
        ({"norms": ()}, "norms must be a sequence of different numbers from 1 to inf or None"),
        (
            {"norms": (1, 2), "eps": (1.0,)},
            r"eps must hold one radius for each of the norms \(1, 2",
        ),
        ({"eps": (1.0, 2.0)}, r"eps must be one number where norms is None, got \(1.0, 2.0\)"),
        ({"norm_choice": "all"}, "norm_choice must be 'random' or 'worst', got 'all'"),
        ({"eps": -1.0}, "eps must be a finite number at least 0"),
        ({"steps": 0}, "steps must be a whole number at least 1.*, got 0"),
        ({"beta": -1.0}, "RobustTrainer: beta must be a number at least 0, got -1.0"),
        ({"fsr_weight": -1.0}, "fsr_weight must be a number at least 0"),
        ({"fsr_top": 0}, "fsr_top must be a whole number at least 1.*, got 0"),
        ({"fsr_warmup": 0}, "fsr_warmup must be a whole number at least 1.*, got 0"),
        (
            {"activation_noise": -0.1},
            "activation_noise must be a number at least 0 .*, got -0.1",
        ),
        ({"bounds": (0.0, 0.4)}, r"X must lie within bounds \(0.0, 0.4\)"),
        (
            {"validation": (2 + np.eye(2), [0, 1])},
            r"X must lie within bounds \(0.0, 1.0\), got values from 2 to 3",
        ),
        ({"max_epochs": 0}, "max_epochs must be a whole number at least 1"),
        (
            {"learning_rate": 1e30, "regularizer": "fsr", "batch_size": 8},
            "training diverged in epoch 1; try a smaller learning_rate",
        ),
        ({"module": CONVOLUTIONS, "regularizer": "fsr"}, "module Sequential runs no nn.Linear"),
        ({"module": CONVOLUTIONS, "activation_noise": 0.1}, "module Sequential runs no nn.Linear"),
    ],
)
def test_errors_name_the_argument(options, message):
    with pytest.raises(ValueError, match=message):
        fit(**options)
