"""Accuracy under attack and the spectrum of features."""

import math

import numpy as np
import pytest
import torch
from digit_models import X_TEST, Y_TEST, accuracy, blobs, digit_model
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from torch import nn

from contrafact.models import as_classifier
from contrafact.nn import robust_accuracy, robust_report
from contrafact.nn.diagnostics import last_linear, spectral_report

INF = math.inf
CONVOLUTIONS = nn.Sequential(nn.Unflatten(1, (1, 2)), nn.Conv1d(1, 2, 2), nn.Flatten())


@pytest.fixture(scope="module")
def logistic():
    X, y = load_iris(return_X_y=True)
    keep = y != 0
    return LogisticRegression().fit(X[keep], y[keep]), X[keep], y[keep]


@pytest.mark.parametrize(("norm", "dual"), [(1, INF), (1.5, 3), (2, 2), (INF, 1)])
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


def test_the_worst_norm_counts_rows_that_stand_under_all(logistic):
    model, X, y = logistic
    norms, eps = (1, 2, INF), (0.5, 0.4, 0.25)
    report = robust_report(model, X, y, norms, eps, bounds=None)
    assert report.accuracy == model.score(X, y)
    assert report.eps == dict(zip(norms, eps, strict=True))
    for norm, radius in report.eps.items():
        alone = robust_accuracy(model, X, y, norm, radius, bounds=None)
        assert report.robust_accuracy[norm] == alone
    margin = np.where(y == 2, 1, -1) * model.decision_function(X)
    w = model.coef_[0]
    lost = max(0.5 * np.abs(w).max(), 0.4 * np.linalg.norm(w), 0.25 * np.abs(w).sum())
    assert report.worst == pytest.approx((margin > lost).mean(), abs=0.011)


def test_the_worst_norm_is_below_every_norm():
    report = robust_report(
        digit_model("fast"), X_TEST, Y_TEST, (1, INF), (1.2, 0.11), steps=5, restarts=1
    )
    assert 0 < report.worst < min(report.robust_accuracy.values()) < report.accuracy


@pytest.mark.usefixtures("own_random_numbers")
def test_robust_report_errors():
    module = nn.Linear(2, 2)
    for options, message in (
        ({"norms": 2}, "norms must be a sequence of different numbers from 1 to inf, got 2"),
        ({"norms": (1, 2), "eps": (1.0,)}, "eps must hold one radius for each of the norms"),
        ({"steps": 0}, "robust_report: steps must be a whole number at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            robust_report(module, *blobs(), **options)


def test_robust_accuracy_where_nothing_withstands(logistic):
    model, X, y = logistic
    assert robust_accuracy(model, X, y, eps=1e3, bounds=None) == 0


@pytest.mark.usefixtures("own_random_numbers")
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


def test_robust_accuracy_is_repeatable_and_falls_with_the_radius():
    model = digit_model("standard")
    found = [robust_accuracy(model, X_TEST, Y_TEST, eps=eps) for eps in (0.0, 0.2, 0.5, 1.0)]
    assert found == sorted(found, reverse=True) and found[0] == accuracy(model) and found[-1] < 0.2
    assert robust_accuracy(model, X_TEST, Y_TEST) == found[2]


@pytest.mark.parametrize("stronger", [{"steps": 20}, {"restarts": 10}], ids=str)
def test_more_attack_finds_more(stronger):
    weak = {"steps": 2, "restarts": 1}
    one, more = (
        robust_accuracy(digit_model("fast"), X_TEST, Y_TEST, **o) for o in (weak, weak | stronger)
    )
    assert more < one


def test_being_sure_is_not_being_robust():
    """A million times the logits decide the same."""

    class Sure(nn.Module):
        def forward(self, x):
            return 1e6 * digit_model("standard").module(x)

    sure = robust_accuracy(Sure(), X_TEST, Y_TEST)
    assert sure < robust_accuracy(digit_model("standard"), X_TEST, Y_TEST) + 0.05


def test_robust_accuracy_knows_the_users_labels():
    names = np.array(list("jihgfedcba"))  # not in sorted order
    renamed = as_classifier(digit_model("fast").module, classes=names)
    expected = robust_accuracy(digit_model("fast"), X_TEST, Y_TEST, restarts=1)
    assert robust_accuracy(renamed, X_TEST, names[Y_TEST], restarts=1) == expected


@pytest.mark.usefixtures("own_random_numbers")
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
        ({"norm": 0.9}, "norm must be a number from 1 to inf, got 0.9"),
        ({"restarts": 0}, "restarts must be a whole number at least 1.*, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            robust_accuracy(**{"model": model, "X": X, "y": y} | options)


def test_spectral_report_is_the_spectrum_of_the_covariance():
    module = digit_model("standard").module
    with torch.no_grad():
        features = (
            module.blocks(module.standardize(torch.as_tensor(X_TEST).float())).flatten(1).double()
        )
    variances = np.linalg.eigvalsh(np.cov(features.numpy().T, ddof=0))[::-1]
    report = spectral_report(digit_model("standard"), X_TEST)
    np.testing.assert_allclose(report.spectrum, variances, atol=1e-8 * variances[0])
    assert report.top_share == pytest.approx(variances[0] / variances.sum())
    held = variances.cumsum() / variances.sum()
    assert held[report.pc_id - 1] >= 0.9 > held[report.pc_id - 2]


@pytest.mark.usefixtures("own_random_numbers")
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


@pytest.mark.usefixtures("own_random_numbers")
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
