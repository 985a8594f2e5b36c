"""Scaling of channels."""

import numpy as np
import pytest
import torch

from contrafact.nn import normalized
from contrafact.nn.scaling import Scaling, Standardize


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def inputs(shape, n=6, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(n, *shape))).float()


@pytest.mark.parametrize("shape", [(5,), (3, 20), (2, 6, 6)])
def test_standardize_fits_each_channel(shape):
    scale = torch.arange(1.0, shape[0] + 1).view(-1, *[1] * (len(shape) - 1))
    x = 100 * scale + 10 * scale * inputs(shape, n=500)
    layer = Standardize(shape[0])
    assert torch.equal(layer(x), x)
    layer.fit(x)
    z = layer(x).transpose(0, 1).flatten(1)
    torch.testing.assert_close(z.mean(1), torch.zeros(shape[0]), atol=1e-4, rtol=0)
    torch.testing.assert_close(z.std(1), torch.ones(shape[0]), atol=1e-2, rtol=0)


def test_standardize_leaves_a_constant_channel_finite():
    layer = Standardize(2)
    layer.fit(torch.tensor([[5.0, 0.0], [5.0, 1.0]]))
    assert layer(torch.tensor([[5.0, 0.0], [6.0, 1.0]])).tolist() == [[0.0, -1.0], [1.0, 1.0]]


def two_scales():
    """Channels of unequal scale, and one that is constant."""
    x = normal(20, 3, 10).double()
    return torch.stack([5 + 1e3 * x[:, 0], 1e-3 * x[:, 1], torch.full_like(x[:, 2], 7.0)], dim=1)


@pytest.mark.parametrize("kind", ["minmax", "standard"])
def test_scaling_can_be_undone(kind):
    x, scaling = two_scales(), Scaling(3).double()
    (scaling.fit_range if kind == "minmax" else scaling.fit)(x)
    torch.testing.assert_close(scaling.inverse(scaling(x)), x)
    scaled = scaling(x).transpose(0, 1).flatten(1)
    assert scaled[2].eq(0).all()  # a constant channel is shifted, not divided by its spread of 0
    if kind == "minmax":
        assert scaled[:2].amin(1).tolist() == [0, 0] and scaled[:2].amax(1).tolist() == [1, 1]
    else:
        torch.testing.assert_close(scaled[:2].mean(1), torch.zeros(2).double(), atol=1e-9, rtol=0)
        torch.testing.assert_close(scaled[:2].std(1, correction=0), torch.ones(2).double())


def test_scaling_takes_images():
    x, scaling = normal(5, 2, 4, 6), Scaling(2)
    scaling.fit_range(x)
    torch.testing.assert_close(scaling.inverse(scaling(x)), x)
    assert float(scaling(x).min()) == 0 and float(scaling(x).max()) == 1


@pytest.mark.usefixtures("own_random_numbers")
def test_normalized_takes_the_units_of_the_data():
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(8, 2)).eval()
    model = normalized(module, mean=[1.0, -2.0], std=[0.5, 4.0])
    x = inputs((2, 4))
    mean, std = torch.tensor([[1.0], [-2.0]]), torch.tensor([[0.5], [4.0]])
    assert torch.equal(model(x), module((x - mean) / std))
    assert not model.training and normalized(module.train(), [0.0], [1.0]).training


@pytest.mark.parametrize(("mean", "std"), [([0.0, 1.0], [1.0]), ([0.0], [0.0]), ([0.0], [-1.0])])
def test_normalized_refuses_what_is_no_scaling(mean, std):
    with pytest.raises(ValueError, match="mean and std must have the same length, and std must be"):
        normalized(torch.nn.Flatten(), mean, std)
