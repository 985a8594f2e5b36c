import math

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.nn.functional import cross_entropy

from contrafact.models import as_classifier
from contrafact.nn import RobustTrainer, SmallCNN, fit_classifier, robust_accuracy
from contrafact.nn.diagnostics import last_linear, scatter_spectrum, spectral_report
from contrafact.nn.networks import seeded
from contrafact.nn.robust import BeforeHead, divergence
from contrafact.nn.training import Task

INF = math.inf
DIGITS = load_digits()
ORDER = np.random.default_rng(0).permutation(len(DIGITS.target))
X, Y = (DIGITS.images[:, None] / 16)[ORDER[:700]], DIGITS.target[ORDER[:700]]
X_TEST, Y_TEST = (DIGITS.images[:, None] / 16)[ORDER[700:1000]], DIGITS.target[ORDER[700:1000]]
SHORT = {"max_epochs": 15, "batch_size": 64, "lr": 1e-2}
TINY = {"max_epochs": 2, "validation": 0.0}


def blobs(n=60, seed=0):
    """Two classes of rows in the unit square."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return (0.3 + 0.4 * y[:, None] + 0.08 * rng.normal(size=(n, 2))).clip(0, 1), y


def fit(module="mlp", data=None, **options):
    return RobustTrainer(**TINY | options).fit(module, *(data or blobs()))


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.module.parameters()])


def accuracy(model):
    return (model.predict(X_TEST) == Y_TEST).mean()


# --- what training changes ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models():
    torch.set_num_threads(1)
    ways = {
        "fast": {"attack": "fast"},
        "pgd": {"steps": 5},
        "trades": {"attack": "fast", "objective": "trades"},
        "fsr": {"attack": "fast", "regularizer": "fsr", "fsr_weight": 1e-3, "fsr_warmup": 5},
    }
    robust = {
        way: RobustTrainer(**SHORT, **o).fit("smallcnn", X, Y).classifier_
        for way, o in ways.items()
    }
    return {"standard": fit_classifier("smallcnn", X, Y, **SHORT), **robust}


@pytest.mark.parametrize("way", ["fast", "pgd", "trades", "fsr"])
def test_robust_training_raises_robust_accuracy(models, way):
    """All within 3 points of the standard model's accuracy, which itself falls to about a half."""
    standard, robust = models["standard"], models[way]
    assert accuracy(robust) > max(0.9, accuracy(standard) - 0.03)
    gain = robust_accuracy(robust, X_TEST, Y_TEST) - robust_accuracy(standard, X_TEST, Y_TEST)
    assert gain > 0.12


def test_fsr_flattens_the_spectrum(models):
    plain, flat = (spectral_report(models[way], X_TEST) for way in ("fast", "fsr"))
    assert flat.top_share < 0.8 * plain.top_share
    assert flat.pc_id > 1.3 * plain.pc_id


def test_robust_training_against_the_largest_change():
    plain = fit_classifier("smallcnn", X, Y, **SHORT)
    robust = (
        RobustTrainer(norm=INF, eps=0.1, attack="fast", **SHORT).fit("smallcnn", X, Y).classifier_
    )
    before, after = (robust_accuracy(m, X_TEST, Y_TEST, norm=INF, eps=0.1) for m in (plain, robust))
    assert after > before + 0.1


def test_more_beta_lets_the_output_change_less():
    def change(beta):
        model = fit(objective="trades", beta=beta, eps=0.3, max_epochs=30, lr=0.02).classifier_
        x = torch.as_tensor(blobs()[0], dtype=torch.float32)
        with torch.no_grad():
            return divergence(model.module(x).log_softmax(1), model.module(x + 0.1)).mean()

    assert change(20.0) < 0.5 * change(0.0)


# --- the loss, term by term ---------------------------------------------------------------------------------


def first_loss(**options):
    """The training loss of one batch of all rows, before any step was taken."""
    return fit(max_epochs=1, batch_size=1000, **options).history_["train_loss"][0]


def untrained():
    x, t = (torch.as_tensor(a) for a in blobs())
    trainer = fit(max_epochs=1, lr=0.0)
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
    options = {"eps": 0.0, "lr": 0.0, "batch_size": 1000, "max_epochs": 5}
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


# --- activation noise ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accuracy", "expected"), [(0.71, 0.2001), (0.7, 0.2), (0.57, 0.2), (0.55, 0.1)]
)
def test_noise_grows_slowly_and_halves(accuracy, expected):
    before_head = BeforeHead(0.2, accuracy=0.7)
    before_head.right = [torch.arange(100) < round(100 * accuracy)]
    before_head.adapt()
    assert before_head.alphas == [0.2, pytest.approx(expected)]
    assert before_head.right == []


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


# --- the trainer --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "given"),
    [
        ({"attack": "fast"}, {}),
        ({"norm": INF}, {}),
        ({"eps": 0.1}, {}),
        ({"steps": 2}, {}),
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
        ({"lr": 1e-2}, {}),
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
        attack="fast", eps=0.05, validation=held_out, lr=0.02, max_epochs=200, patience=5
    )
    history = trainer.fit("mlp", noise, labels).history_
    assert len(history["val_loss"]) == np.argmin(history["val_loss"]) + 1 + 5 < 200
    module, x, t = (
        trainer.classifier_.module,
        torch.as_tensor(held_out[0]).float(),
        torch.as_tensor(held_out[1]),
    )
    again = trainer._measure(Task(module, np.arange(2), x, t, x, t))
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
    options = {"attack": "fast", "bounds": None, "max_epochs": 12, "lr": 0.01, "batch_size": 16}
    model = fit(name, (series, y), **options).classifier_
    assert robust_accuracy(model, series, y, bounds=None) > 0.9


def test_clone_and_get_params():
    trainer = RobustTrainer(eps=0.3, objective="trades", bounds=None)
    assert clone(trainer).get_params() == trainer.get_params()
    assert "classifier_" not in vars(clone(fit()))


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
        ({"norm": 1}, "norm must be 2 or inf, got 1"),
        ({"eps": -1.0}, "eps must be a finite number of at least 0"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"beta": -1.0}, "beta must be at least 0, got -1.0"),
        ({"fsr_weight": -1.0}, "fsr_weight must be at least 0"),
        ({"fsr_top": 0}, "fsr_top must be at least 1, got 0"),
        ({"fsr_warmup": 0}, "fsr_warmup must be at least 1, got 0"),
        ({"activation_noise": -0.1}, "activation_noise must be at least 0, got -0.1"),
        ({"bounds": (0.0, 0.4)}, r"X must lie within bounds \(0.0, 0.4\)"),
        (
            {"validation": (2 + np.eye(2), [0, 1])},
            r"X must lie within bounds \(0.0, 1.0\), got values from 2 to 3",
        ),
        ({"max_epochs": 0}, "max_epochs and batch_size must be at least 1"),
        (
            {"lr": 1e30, "regularizer": "fsr", "batch_size": 8},
            "training diverged in epoch 1; try a smaller lr",
        ),
        ({"module": CONVOLUTIONS, "regularizer": "fsr"}, "module Sequential runs no nn.Linear"),
        ({"module": CONVOLUTIONS, "activation_noise": 0.1}, "module Sequential runs no nn.Linear"),
    ],
)
def test_errors_name_the_argument(options, message):
    with pytest.raises(ValueError, match=message):
        fit(**options)


# --- diagnostics --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def logistic():
    X, y = load_iris(return_X_y=True)
    keep = y != 0
    return LogisticRegression().fit(X[keep], y[keep]), X[keep], y[keep]


@pytest.mark.parametrize(("norm", "dual"), [(2, 2), (INF, 1)])
def test_robust_accuracy_of_a_linear_model_is_exact(logistic, norm, dual):
    """It is right within eps where the margin exceeds eps ||w||_dual."""
    model, X, y = logistic
    margin = (
        np.where(y == 2, 1, -1)
        * model.decision_function(X)
        / np.linalg.norm(model.coef_, ord=dual, axis=1)
    )
    for eps in (0.0, 0.2, 0.5):
        found = robust_accuracy(model, X, y, norm=norm, eps=eps, steps=50, bounds=None)
        assert found == pytest.approx(
            (margin > eps).mean(), abs=0.011
        )  # a row in a hundred may be missed


def test_robust_accuracy_where_nothing_withstands(logistic):
    model, X, y = logistic
    assert robust_accuracy(model, X, y, eps=1e3, bounds=None) == 0


def test_robust_accuracy_leaves_the_model_and_the_random_state_alone():
    module = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2))
    module[1].eval()
    before = [p.clone() for p in module.state_dict().values()]
    state = torch.get_rng_state()
    robust_accuracy(module, *blobs(), eps=0.1)
    spectral_report(module, blobs()[0])
    assert torch.equal(state, torch.get_rng_state())
    assert [m.training for m in module] == [True, False, True, True] and module.training
    assert all(torch.equal(a, b) for a, b in zip(before, module.state_dict().values(), strict=True))
    assert all(p.grad is None for p in module.parameters())
    assert not any(m._forward_pre_hooks for m in module.modules())


def test_robust_accuracy_is_repeatable_and_falls_with_the_radius(models):
    model = models["standard"]
    found = [robust_accuracy(model, X_TEST, Y_TEST, eps=eps) for eps in (0.0, 0.2, 0.5, 1.0)]
    assert found == sorted(found, reverse=True) and found[0] == accuracy(model) and found[-1] < 0.2
    assert robust_accuracy(model, X_TEST, Y_TEST) == found[2]


@pytest.mark.parametrize("stronger", [{"steps": 20}, {"restarts": 10}], ids=str)
def test_more_attack_finds_more(models, stronger):
    weak = {"steps": 2, "restarts": 1}
    one, more = (
        robust_accuracy(models["fast"], X_TEST, Y_TEST, **o) for o in (weak, weak | stronger)
    )
    assert more < one


def test_being_sure_is_not_being_robust(models):
    """A million times the logits decide the same."""

    class Sure(nn.Module):
        def forward(self, x):
            return 1e6 * models["standard"].module(x)

    sure = robust_accuracy(Sure(), X_TEST, Y_TEST)
    assert sure < robust_accuracy(models["standard"], X_TEST, Y_TEST) + 0.05


def test_robust_accuracy_knows_the_users_labels(models):
    names = np.array(list("jihgfedcba"))  # not in sorted order
    renamed = as_classifier(models["fast"].module, classes=names)
    expected = robust_accuracy(models["fast"], X_TEST, Y_TEST, restarts=1)
    assert robust_accuracy(renamed, X_TEST, names[Y_TEST], restarts=1) == expected


def test_robust_accuracy_errors():
    X, y = blobs()
    with pytest.raises(
        TypeError, match=r"model must be differentiable, got RandomForestClassifier"
    ):
        robust_accuracy(RandomForestClassifier(2).fit(X, y), X, y)
    with pytest.raises(
        TypeError, match=r"model must be differentiable, got RandomForestClassifier"
    ):
        robust_accuracy(as_classifier(RandomForestClassifier(2).fit(X, y)), X, y)
    model = LogisticRegression().fit(X, y)
    for options, message in (
        ({"y": y + 1}, r"y must hold classes of the model, \[0, 1\], got \[1, 2\]"),
        ({"X": X + 3}, r"X must lie within bounds"),
        ({"X": np.where(X > 0.5, np.nan, X)}, "contains NaN"),
        ({"norm": 3}, "norm must be 2 or inf, got 3"),
        ({"restarts": 0}, "restarts must be at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            robust_accuracy(**{"model": model, "X": X, "y": y} | options)


def test_spectral_report_is_the_spectrum_of_the_covariance(models):
    module = models["standard"].module
    with torch.no_grad():
        features = (
            module.blocks(module.standardize(torch.as_tensor(X_TEST).float())).flatten(1).double()
        )
    variances = np.linalg.eigvalsh(np.cov(features.numpy().T, ddof=0))[::-1]
    report = spectral_report(models["standard"], X_TEST)
    np.testing.assert_allclose(report.spectrum, variances, atol=1e-8 * variances[0])
    assert report.top_share == pytest.approx(variances[0] / variances.sum())
    held = variances.cumsum() / variances.sum()
    assert held[report.pc_id - 1] >= 0.9 > held[report.pc_id - 2]


def test_the_last_layer_is_the_one_that_runs_last():
    class Shuffled(nn.Module):
        def __init__(self):
            super().__init__()
            self.head, self.body = nn.Linear(3, 2), nn.Linear(2, 3)

        def forward(self, x):
            return self.head(self.body(x))

    module = Shuffled()
    assert last_linear(module, torch.zeros(2, 2)) is module.head
    assert len(spectral_report(module, blobs()[0]).spectrum) == 3


def test_spectral_report_errors():
    X, y = blobs()
    with pytest.raises(
        TypeError, match="model must be a torch module or a classifier made of one, got Log"
    ):
        spectral_report(LogisticRegression().fit(X, y), X)
    with pytest.raises(ValueError, match=r"module Sequential runs no nn\.Linear"):
        spectral_report(CONVOLUTIONS, X)
    with pytest.raises(ValueError, match="X must hold rows whose features differ"):
        spectral_report(nn.Linear(2, 2), X[:1])
