"""Autoencoders: their shapes and equations."""

import pytest
import torch
from torch import nn

from contrafact.nn.autoencoders import (
    LSTMAutoencoder,
    build_autoencoder,
)


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def same_weights(a, b):
    return all(
        torch.equal(p, q)
        for p, q in zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    )


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("lstm", (1, 24)),
        ("lstm", (3, 7)),
        ("lstm", (2, 25)),
        ("lstm", (1, 1)),
        ("cnn", (1, 24)),
        ("cnn", (3, 7)),
        ("cnn", (2, 25)),
        ("cnn", (1, 1)),
        ("cnn", (1, 8, 8)),
        ("cnn", (1, 28, 28)),
        ("cnn", (3, 9, 14)),
    ],
    ids=str,
)
def test_an_instance_becomes_a_code_and_comes_back_in_its_shape(kind, shape):
    autoencoder = build_autoencoder(kind, shape)
    x = normal(4, *shape)
    z = autoencoder.encode(x)
    assert z.shape == (4, autoencoder.latent)
    assert autoencoder.decode(z).shape == x.shape
    # Rows do not see each other: the second alone has the code it has among four.
    torch.testing.assert_close(autoencoder.encode(x[1:2])[0], z[1])
    torch.testing.assert_close(autoencoder(x[1:2])[0], autoencoder(x)[1])
    assert not torch.allclose(z[0], z[1])


@pytest.mark.usefixtures("own_random_numbers")
def test_the_lstm_decoder_is_an_lstm_fed_the_code_at_every_step():
    autoencoder = LSTMAutoencoder((2, 9), latent=5, hidden=7).double()
    reference = nn.LSTM(5, 7, batch_first=True).double()

    def torch_order(weight):
        i, f, o, g = weight.detach().chunk(4)
        return torch.cat([i, f, g, o])

    with torch.no_grad():
        reference.weight_ih_l0.copy_(torch_order(autoencoder.feed.weight))
        reference.bias_ih_l0.copy_(torch_order(autoencoder.feed.bias))
        reference.weight_hh_l0.copy_(torch_order(autoencoder.recur.weight))
        reference.bias_hh_l0.zero_()
    z = normal(3, 5).double().requires_grad_()
    states, _ = reference(z[:, None].expand(-1, 9, -1))
    expected = autoencoder.writer(states).transpose(1, 2)
    torch.testing.assert_close(autoencoder.decode(z), expected)
    weight = normal(*expected.shape, seed=1).double()
    (ours,) = torch.autograd.grad((autoencoder.decode(z) * weight).sum(), z)
    (theirs,) = torch.autograd.grad((expected * weight).sum(), z)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.usefixtures("own_random_numbers")
def test_the_lstm_encoder_reads_the_last_state():
    autoencoder = LSTMAutoencoder((2, 9), latent=5, hidden=7)
    x = normal(3, 2, 9)
    states, _ = autoencoder.reader(x.transpose(1, 2))
    torch.testing.assert_close(autoencoder.encode(x), autoencoder.code(states[:, -1]))


def test_weights_follow_the_seed_alone():
    before = torch.get_rng_state()
    one, two, other = (build_autoencoder("cnn", (1, 24), seed) for seed in (3, 3, 4))
    assert same_weights(one, two) and not same_weights(one, other)
    assert torch.equal(before, torch.get_rng_state())
