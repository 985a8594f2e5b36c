"""Reference networks: shapes, layers, seeds."""

import warnings

import numpy as np
import pytest
import torch

from contrafact.nn.networks import (
    FCN,
    MLP,
    BiLSTM,
    build_network,
    seeded,
)

SHAPES = {
    "fcn": (2, 30),
    "inceptiontime": (2, 30),
    "bilstm": (2, 30),
    "smallcnn": (3, 9, 7),
    "mlp": (5,),
    "resnet8": (3, 9, 7),
}


def inputs(shape, n=6, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(n, *shape))).float()


@pytest.mark.parametrize("name", SHAPES)
def test_logits_depend_on_every_input(name):
    network = build_network(name, SHAPES[name], n_classes=4).eval()
    x = inputs(SHAPES[name]).requires_grad_()
    logits = network(x)
    assert logits.shape == (6, 4)
    assert logits.min() < 0  # logits, not probabilities
    (grad,) = torch.autograd.grad(logits.square().sum(), x)
    assert (grad != 0).all()


@pytest.mark.parametrize("name", SHAPES)
def test_rows_do_not_see_each_other_in_eval_mode(name):
    network = build_network(name, SHAPES[name], n_classes=3).eval()
    x = inputs(SHAPES[name])
    torch.testing.assert_close(network(x)[2:3], network(x[2:3]))


@pytest.mark.parametrize("name", SHAPES)
def test_every_parameter_learns(name):
    network = build_network(name, SHAPES[name], n_classes=3)
    torch.nn.functional.cross_entropy(
        network(inputs(SHAPES[name])), torch.tensor([0, 1, 2, 0, 1, 2])
    ).backward()
    assert [n for n, p in network.named_parameters() if p.grad is None or (p.grad == 0).all()] == []


@pytest.mark.parametrize("network", [FCN(1, 3), BiLSTM(1, 3)])
def test_a_series_without_its_channel_is_lifted(network):
    network.eval()
    x = inputs((1, 20))
    assert torch.equal(network(x[:, 0]), network(x))


@pytest.mark.usefixtures("own_random_numbers")
def test_fcn_follows_the_paper():
    network = FCN(n_channels=3, n_classes=5)
    convolutions = [m for m in network.modules() if isinstance(m, torch.nn.Conv1d)]
    assert [(c.in_channels, c.out_channels, c.kernel_size[0]) for c in convolutions] == [
        (3, 128, 8),
        (128, 256, 5),
        (256, 128, 3),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        features = network.blocks(inputs((3, 17)))
    assert features.shape == (6, 128, 17)  # "same" padding, also for the even kernel
    assert features.min() == 0  # after ReLU


@pytest.mark.usefixtures("own_random_numbers")
def test_fcn_padding_is_the_usual_one():
    x = inputs((3, 17))
    pad, convolution = FCN(3, 2).blocks[0][:2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = torch.nn.functional.conv1d(x, convolution.weight, padding="same")
    torch.testing.assert_close(convolution(pad(x)), expected)


@pytest.mark.usefixtures("own_random_numbers")
def test_bilstm_reads_both_ends():
    """With its forward half cut off, only what the backward half has read is left: all of it."""
    network = BiLSTM(1, 2, hidden=8).eval()
    with torch.no_grad():
        network.head.weight[:, :8] = 0
    x = inputs((1, 12)).requires_grad_()
    (backward,) = torch.autograd.grad(network(x)[:, 0].sum(), x)
    assert (backward[..., 0].abs() > backward[..., -1].abs()).all()  # it ends at the start
    assert (backward != 0).all()


@pytest.mark.usefixtures("own_random_numbers")
def test_mlp_flattens():
    network = MLP(12, 3, hidden=(8, 4)).eval()
    x = inputs((3, 4))
    assert torch.equal(network(x), network(x.flatten(1)))


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize("name", SHAPES)
def test_weights_come_from_the_seed_alone(name):
    torch.manual_seed(1)
    first = build_network(name, SHAPES[name], 3, random_state=7).state_dict()
    torch.manual_seed(2)
    before = torch.get_rng_state()
    second = build_network(name, SHAPES[name], 3, random_state=7).state_dict()
    other = build_network(name, SHAPES[name], 3, random_state=8).state_dict()
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(first[k], second[k]) for k in first)
    head = next(name for name in first if name.endswith("head.weight"))
    assert not torch.equal(first[head], other[head])


def test_seeded_restores_the_state_after_an_error():
    before = torch.get_rng_state()
    with pytest.raises(KeyError), seeded(0):
        torch.rand(3)
        raise KeyError
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        (
            "resnet",
            (1, 20),
            "'resnet' is not a network. Networks: 'fcn', 'inceptiontime', 'bilstm'",
        ),
        ("fcn", (1, 8, 8), r"network 'fcn' takes series .*; got instances of shape \(1, 8, 8\)"),
        ("smallcnn", (1, 20), "network 'smallcnn' takes images"),
        ("smallcnn", (1, 3, 20), "at least 4 x 4"),
    ],
)
def test_errors_say_what_is_accepted(name, shape, message):
    with pytest.raises(ValueError, match=message):
        build_network(name, shape, n_classes=2)
