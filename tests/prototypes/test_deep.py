"""DeepLVQ: prototypes in the space of a network, learned together with it."""

import copy

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch import nn

import contrafact as cf
from contrafact.prototypes import DeepLVQ


def backbone(*, norm=False, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Linear(4, 8), *([nn.BatchNorm1d(8)] if norm else []), nn.Tanh(), nn.Linear(8, 3)
        )


@pytest.mark.parametrize("cosine", [False, True])
def test_distance_is_that_of_embeddings(cosine, blobs):
    X, y = blobs
    model = DeepLVQ(2, backbone=backbone(), cosine=cosine, max_iter=5, random_state=0).fit(X, y)
    spread = np.sqrt(np.mean((X - X.mean(0)) ** 2))
    with torch.no_grad():
        z = (
            model.layer_.backbone(torch.from_numpy((X - X.mean(0)) / spread).float())
            .double()
            .numpy()
        )
    w = model.prototypes_
    assert w.shape == (6, 3)
    if cosine:
        z, w = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (z, w))
        np.testing.assert_allclose(model.distances(X), 2 - 2 * z @ w.T, atol=1e-5)
    d = ((z[:, None] - w) ** 2).sum(2)
    np.testing.assert_allclose(model.distances(X), d, atol=1e-5)
    nearest = np.stack([d[:, model.prototype_labels_ == c].min(1) for c in range(3)], axis=1)
    np.testing.assert_allclose(
        model.predict_proba(X), softmax(-nearest / model.temperature_, axis=1), atol=1e-4
    )


def test_everything_is_learned_together(blobs):
    start = backbone()
    model = DeepLVQ(backbone=start, max_iter=3, random_state=0).fit(*blobs)
    for before, after in zip(start.parameters(), model.layer_.backbone.parameters(), strict=True):
        assert not torch.equal(before, after)


def test_the_given_network_is_copied(blobs):
    given = backbone(norm=True).train()
    state = copy.deepcopy(given.state_dict())
    DeepLVQ(backbone=given, max_iter=3, random_state=0).fit(*blobs).predict(blobs[0])
    assert given.training and all(p.requires_grad and p.grad is None for p in given.parameters())
    assert all(torch.equal(value, state[name]) for name, value in given.state_dict().items())


def test_frozen_network(blobs):
    given = backbone()
    model = DeepLVQ(backbone=given, frozen=("backbone",), max_iter=3, random_state=0).fit(*blobs)
    for before, after in zip(given.parameters(), model.layer_.backbone.parameters(), strict=True):
        assert torch.equal(before, after)
    still = DeepLVQ(
        backbone=given, frozen=("backbone",), max_iter=1, learning_rate=0.0, random_state=0
    ).fit(*blobs)
    assert not np.allclose(model.prototypes_, still.prototypes_)


def test_frozen_network_with_batch_norm(blobs):
    given = backbone(norm=True)
    model = DeepLVQ(backbone=given, frozen=("backbone",), max_iter=3, random_state=0).fit(*blobs)
    state = model.layer_.backbone.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in given.state_dict().items())


@pytest.mark.parametrize("norm", [False, True])
def test_average_of_network_and_prototypes(norm, blobs):
    options = {"backbone": backbone(norm=norm), "max_iter": 4, "random_state": 0}
    plain, average = (DeepLVQ(ema=ema, **options).fit(*blobs) for ema in (None, 0.9))
    assert not np.allclose(plain.prototypes_, average.prototypes_)
    for a, b in zip(
        plain.layer_.backbone.parameters(), average.layer_.backbone.parameters(), strict=True
    ):
        assert not torch.equal(a, b)


def test_initial_prototypes_are_instances(blobs):
    X, y = blobs
    model = DeepLVQ(backbone=backbone(), max_iter=1, learning_rate=0.0).fit(
        X, y, initial_prototypes=(X[:3], y[:3])
    )
    np.testing.assert_allclose(model.distances(X)[:3].diagonal(), 0, atol=1e-9)
    np.testing.assert_array_equal(model.exemplars_, X[:3])


def test_exemplars_are_the_nearest_rows(blobs):
    X, y = blobs
    model = DeepLVQ(2, max_iter=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.exemplars_, X[model.distances(X).argmin(0)])


def test_no_linear_metric(blobs):
    with pytest.raises(TypeError, match="no linear metric"):
        DeepLVQ(max_iter=1).fit(*blobs).metric_()


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_units_do_not_matter(factor, blobs):
    X, y = blobs
    options = {
        "backbone": backbone(),
        "batch_size": None,
        "max_iter": 5,
        "dtype": "float64",
        "random_state": 0,
    }
    plain, other = DeepLVQ(**options).fit(X, y), DeepLVQ(**options).fit(factor * X, y)
    np.testing.assert_allclose(other.distances(factor * X), plain.distances(X), rtol=1e-4)
    np.testing.assert_allclose(other.predict_proba(factor * X), plain.predict_proba(X), atol=1e-4)


def test_a_network_without_parameters(blobs):
    DeepLVQ(backbone=nn.Flatten(), max_iter=3, random_state=0).fit(*blobs)


@pytest.mark.parametrize(
    "shape", [(4,), (2, 30), (1, 8, 8)], ids=["rows: mlp", "series: fcn", "images: smallcnn"]
)
def test_default_networks_learn(shape):
    """Classes that differ by their pattern."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = 2 * rng.normal(size=(2, *shape))[y] + 0.5 * rng.normal(size=(60, *shape))
    model = DeepLVQ(embedding=5, max_iter=10, random_state=0).fit(X[:40], y[:40])
    assert model.prototypes_.shape == (2, 5) and model.exemplars_.shape == (2, *shape)
    assert model.score(X[40:], y[40:]) > 0.9


@pytest.mark.parametrize("shape", [(4,), (2, 12)])
def test_twin(shape, blobs):
    y = blobs[1]
    X = np.random.default_rng(0).normal(size=(45, *shape)) + y.reshape(-1, *[1] * len(shape))
    model = DeepLVQ(2, backbone="mlp", max_iter=3, random_state=0).fit(X, y)
    classifier = cf.as_classifier(model)
    assert classifier.differentiable is True
    x = torch.from_numpy(X).requires_grad_()
    logits = classifier.logits(x)
    np.testing.assert_allclose(logits.detach().softmax(1), model.predict_proba(X), atol=1e-6)
    (gradient,) = torch.autograd.grad(logits[:, 0].sum(), x)
    assert float(gradient.abs().sum()) > 0


@pytest.mark.parametrize(
    ("backbone", "shape", "message"),
    [
        (None, (2, 2, 2, 2), "X holds instances of shape .* Accepted without a backbone"),
        (torch.nn.Linear(3, 2), (4,), r"backbone does not take instances of shape \(4,\)"),
        (torch.nn.Identity(), (2, 5), "backbone must return one row of numbers per instance"),
    ],
)
def test_backbones_that_do_not_fit_are_named(backbone, shape, message):
    X = np.random.default_rng(0).normal(size=(10, *shape))
    with pytest.raises(ValueError, match=message):
        DeepLVQ(backbone=backbone, max_iter=1).fit(X, np.arange(10) % 2)


def test_no_more_rows_than_needed_pass_the_network_at_once(own_random_numbers):
    sizes = []

    class Counting(torch.nn.Linear):
        def forward(self, x):
            sizes.append(len(x))
            return super().forward(x)

    X = np.random.default_rng(0).normal(size=(600, 4))
    DeepLVQ(backbone=Counting(4, 3), batch_size=32, max_iter=1).fit(X, np.arange(600) % 2)
    assert max(sizes) <= 256
