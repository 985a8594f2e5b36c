"""Layers: distances by hand, gradients by finite differences."""

import itertools

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck
from torch.func import functional_call

from contrafact.prototypes.layers import (
    Euclidean,
    LocalMatrix,
    Matrix,
    Relevance,
    call_distance,
    make_layer,
)


def random(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


LAYERS = {
    "euclidean": (Euclidean, {}),
    "relevance": (Relevance, {"relevances": random(4, seed=3).abs()}),
    "matrix": (Matrix, {"omega": random(4, 4, seed=4)}),
    "low rank": (Matrix, {"omega": random(2, 4, seed=4)}),
    "local": (LocalMatrix, {"omega": random(3, 2, 4, seed=5)}),
}


every_layer = pytest.mark.parametrize(("kind", "metric"), LAYERS.values(), ids=LAYERS)


@every_layer
def test_distances_by_hand(kind, metric):
    x, w = random(5, 4, seed=1), random(3, 4, seed=2)
    found = kind(w, **metric)(x).detach().numpy()
    for i, k in itertools.product(range(5), range(3)):
        u = (x[i] - w[k]).numpy()
        if kind is Relevance:
            d = metric["relevances"].numpy() @ u**2
        elif kind is Euclidean:
            d = u @ u
        else:
            omega = metric["omega"].numpy()
            image = (omega[k] if kind is LocalMatrix else omega) @ u
            d = image @ image
        assert found[i, k] == pytest.approx(d, rel=1e-12)


@every_layer
def test_gradients_of_the_distances(kind, metric):
    x, w = random(5, 4, seed=1).requires_grad_(), random(3, 4, seed=2)
    layer = kind(w, **metric)
    names = ["prototypes", *metric]
    values = [value.clone().requires_grad_() for value in (w, *metric.values())]

    def distances(x, *values):
        return functional_call(layer, dict(zip(names, values, strict=True)), (x,))

    assert gradcheck(distances, (x, *values))


@every_layer
def test_distances_far_from_the_origin(kind, metric):
    """The center takes the offset away: digits that |x|² + |w|² − 2x·w would lose are kept."""
    x, w, far = (
        random(5, 4, seed=1),
        random(3, 4, seed=2),
        torch.full((4,), 1e6, dtype=torch.float64),
    )
    near = kind(w, **metric)(x).detach()
    torch.testing.assert_close(
        kind(w + far, center=far, **metric)(x + far).detach(), near, rtol=1e-8, atol=1e-8
    )


@every_layer
def test_a_layer_in_other_units(kind, metric):
    x, w, center = random(5, 4, seed=1), random(3, 4, seed=2), random(4, seed=6)
    layer = kind(w, **metric)
    found = layer.placed(center, 3.0)(3.0 * x + center)
    torch.testing.assert_close(found.detach(), 9 * layer(x).detach())


@every_layer
def test_the_metric_has_its_scale_after_a_step(kind, metric):
    layer = kind(random(3, 4, seed=2), **{name: 7 * value for name, value in metric.items()})
    layer.requires_grad_(False).normalize()
    if kind is Relevance:
        assert float(layer.relevances.sum()) == pytest.approx(1)
        assert bool((layer.relevances >= 0).all())
    elif kind is Matrix:
        assert float(torch.trace(layer.omega.T @ layer.omega)) == pytest.approx(1)
    elif kind is LocalMatrix:
        assert [float(torch.trace(o.T @ o)) for o in layer.omega] == pytest.approx([1, 1, 1])


def test_a_metric_without_any_relevance_is_refused():
    with pytest.raises(ValueError, match="smaller l1_weight"):
        Relevance(random(3, 4), torch.zeros(4, dtype=torch.float64)).normalize()
    with pytest.raises(ValueError, match="smaller l1_weight"):
        LocalMatrix(random(2, 4), torch.stack([torch.eye(4), torch.zeros(4, 4)])).normalize()


@pytest.mark.parametrize("metric", ["relevance", "matrix", "local"])
def test_every_metric_starts_as_the_euclidean_one(metric):
    x, w = random(6, 4, seed=1), random(3, 4, seed=2)
    plain = make_layer("euclidean", None, w)(x).detach()
    torch.testing.assert_close(make_layer(metric, None, w)(x).detach(), plain / 4)


def test_low_rank_starts_along_the_axes_on_which_prototypes_differ():
    w = torch.zeros(3, 4, dtype=torch.float64)
    w[:, 2] = torch.tensor([-1.0, 0.0, 1.0])
    np.testing.assert_allclose(
        make_layer("matrix", 1, w).omega.detach().abs(), [[0, 0, 1, 0]], atol=1e-12
    )


@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_distances_of_a_users_function_are_at_least_0(value):
    def function(x, w):
        d = torch.cdist(x, w)
        return torch.where(d == d.min(), value, d)

    with pytest.raises(ValueError, match="distance_fn must return numbers of at least 0, got"):
        call_distance(function, torch.eye(3), torch.eye(2, 3))
