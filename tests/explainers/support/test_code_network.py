"""The network of TS-NUC: stacked weights are as many networks."""

import pytest
import torch
from torch import nn

from contrafact.explainers.support.code_network import CodeNetwork


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


D = 5
SIZE = 3 * (D * D + D)


def plain_network(theta):
    """The same weights as a network of torch's own: per layer Wᵀ row by row, then the bias."""
    network = nn.Sequential(
        nn.Linear(D, D), nn.ReLU(), nn.Linear(D, D), nn.ReLU(), nn.Linear(D, D)
    ).double()
    layers = [layer for layer in network if isinstance(layer, nn.Linear)]
    with torch.no_grad():
        for layer, part in zip(layers, theta.split(D * D + D), strict=True):
            layer.weight.copy_(part[: D * D].reshape(D, D).T)
            layer.bias.copy_(part[D * D :])
    return network, layers


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize("skip", [False, True])
def test_stacked_weights_are_as_many_networks(skip):
    code_network = CodeNetwork(torch.zeros(SIZE).double(), D, skip)
    theta, z, weight = normal(6, SIZE), normal(6, D, seed=1), normal(6, D, seed=2)
    theta.requires_grad_()
    out = code_network(theta, z)
    (gradient,) = torch.autograd.grad((out * weight).sum(), theta)
    for j in range(6):
        network, layers = plain_network(theta[j])
        alone = network(z[j]) + (z[j] if skip else 0)
        torch.testing.assert_close(out[j], alone)
        (alone * weight[j]).sum().backward()
        own = torch.cat(
            [g.flatten() for layer in layers for g in (layer.weight.grad.T, layer.bias.grad)]
        )
        torch.testing.assert_close(gradient[j], own)


def test_every_copy_starts_at_the_networks_weights_and_none_shares_them():
    code_network = CodeNetwork(normal(SIZE), D, skip=False)
    copies = code_network.start(3)
    assert (
        code_network.size == SIZE
        and copies.shape == (3, SIZE)
        and (copies == code_network.weights).all()
    )
    copies[0] += 1
    assert (copies[1] == code_network.weights).all() and not (
        copies[0] == code_network.weights
    ).any()


def test_a_skip_starts_as_the_identity_and_can_leave_it():
    codes = normal(20, D)
    code_network = CodeNetwork.fit(codes, max_epochs=1, skip=True)
    theta = code_network.start(20).requires_grad_()
    out = code_network(theta, codes)
    assert torch.equal(out, codes)
    (gradient,) = torch.autograd.grad(out.sum(), theta)
    assert (gradient.abs().amax(1) > 0).all()


@pytest.mark.usefixtures("own_random_numbers")
def test_a_trained_code_networkreproduces_codes():
    codes = normal(100, 2) @ normal(
        2, 16, seed=1
    )  # on a plane, as codes of few kinds of series are

    def error(epochs):
        code_network = CodeNetwork.fit(codes, max_epochs=epochs, skip=False)
        return float((code_network(code_network.start(100), codes) - codes).square().mean())

    assert error(200) < 0.05 * float(codes.var()) < error(1) / 10


@pytest.mark.usefixtures("own_random_numbers")
def test_the_code_networkis_seeded_and_leaves_the_random_state_alone():
    before = torch.get_rng_state()
    one = CodeNetwork.fit(normal(20, D), max_epochs=2, skip=False)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(99)
    assert torch.equal(
        one.weights, CodeNetwork.fit(normal(20, D), max_epochs=2, skip=False).weights
    )
