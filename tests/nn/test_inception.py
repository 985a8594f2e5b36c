"""InceptionTime: the layers of the paper, and the ensemble."""

import pytest
import torch

from contrafact.nn import InceptionTime, fit_classifier
from contrafact.nn.networks import build_network, seeded


def series(n=6, n_channels=2, length=30, seed=0):
    return torch.randn(n, n_channels, length, generator=torch.Generator().manual_seed(seed))


def convolutions(network):
    return [m for m in network.modules() if isinstance(m, torch.nn.Conv1d)]


@pytest.mark.usefixtures("own_random_numbers")
def test_the_layers_follow_the_paper():
    network = InceptionTime(n_channels=3, n_classes=5)
    lengths = [c.kernel_size[0] for c in convolutions(network)]
    assert [lengths.count(k) for k in (39, 19, 9)] == [6, 6, 6]
    assert lengths.count(1) == 6 + 6 + 2  # bottlenecks, after the pooling, shortcuts
    widths = {c.out_channels for c in convolutions(network)}
    assert widths == {32, 128}
    assert sum(c.out_channels == 128 for c in convolutions(network)) == 2  # the two shortcuts


@pytest.mark.usefixtures("own_random_numbers")
def test_a_module_is_what_the_equation_says():
    block = InceptionTime(2, 3, kernels=(5, 3), width=4).eval().members[0].blocks[0]
    module = block.modules_in_row[0]
    x = series()
    b = torch.nn.functional.conv1d(x, module.bottleneck.weight)
    five = torch.nn.functional.conv1d(b, module.convolutions[0].weight, padding=2)
    three = torch.nn.functional.conv1d(b, module.convolutions[1].weight, padding=1)
    pooled = torch.nn.functional.max_pool1d(x, 3, stride=1, padding=1)
    narrow = torch.nn.functional.conv1d(pooled, module.pooled[1].weight)
    together = torch.cat([five, three, narrow], dim=1) / (1 + 1e-5) ** 0.5  # a fresh batch norm
    torch.testing.assert_close(module(x), together.relu())


@pytest.mark.usefixtures("own_random_numbers")
def test_a_shortcut_leads_around_three_modules():
    block = InceptionTime(2, 3, kernels=(5,), width=4).eval().members[0].blocks[0]
    torch.nn.init.zeros_(block.modules_in_row[-1].normalize.weight)
    x = series()
    assert len(block.modules_in_row) == 3
    assert torch.equal(block(x), block.shortcut(x).relu())


@pytest.mark.parametrize(
    ("length", "kernels"), [(150, [39, 19, 9]), (24, [23, 19, 9]), (9, [9, 9, 9]), (2, [1, 1, 1])]
)
def test_kernels_are_not_longer_than_the_series(length, kernels):
    network = build_network("inceptiontime", (1, length), n_classes=2)
    first = network.members[0].blocks[0].modules_in_row[0]
    assert [c.kernel_size[0] for c in first.convolutions] == kernels
    assert network(torch.zeros(3, 1, length)).shape == (3, 2)


@pytest.mark.usefixtures("own_random_numbers")
def test_the_ensemble_answers_with_the_mean_probability():
    network = InceptionTime(2, 4, kernels=(5, 3), width=4, n_members=3).eval()
    x = 3 * series()
    p = torch.stack([member(x).softmax(dim=1) for member in network.members])
    assert (p.std(dim=0) > 1e-3).any()  # members differ
    torch.testing.assert_close(network(x).softmax(dim=1), p.mean(dim=0))


@pytest.mark.usefixtures("own_random_numbers")
def test_a_series_without_its_channel_is_lifted():
    network = InceptionTime(1, 3, kernels=(5, 3), width=4).eval()
    x = series(n_channels=1)
    assert torch.equal(network(x[:, 0]), network(x))


def test_it_learns_how_wide_a_bump_is_and_the_seed_decides():
    t = torch.arange(40)
    y = [0, 1] * 20
    width = torch.tensor([1.0, 4.0])[torch.tensor(y)].unsqueeze(1)
    X = torch.exp(-(((t - 20) / width) ** 2))
    X = (torch.cat([X[:, None], -X[:, None]], dim=1) + 0.1 * series(40, 2, 40)).numpy()

    def trained(seed):
        with seeded(seed):
            module = InceptionTime(2, 2, kernels=(9, 5), width=4, depth=3, n_members=2)
        return fit_classifier(module, X, y, max_epochs=30, random_state=seed)

    model = trained(0)
    assert (model.predict(X) == y).mean() > 0.95
    torch.testing.assert_close(trained(0).predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernels": (8, 5)}, r"kernels = \(8, 5\)\. Accepted: odd lengths"),
        ({"kernels": ()}, "kernels"),
        ({"depth": 4}, "depth = 4. Accepted: 3, 6, 9"),
        ({"n_members": 0}, "n_members must be a whole number at least 1.*, got 0"),
        ({"width": 0}, "width must be a whole number at least 1.*, got 0"),
    ],
)
def test_sizes_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        InceptionTime(1, 2, **options)
