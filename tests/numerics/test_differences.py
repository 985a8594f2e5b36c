"""Limits of real differences, and edits that leave them."""

import numpy as np
import pytest
import torch

from contrafact.numerics import RealDifferences


def series(*values):
    """One series of one channel, shape (1, 1, length)."""
    return torch.tensor([[values]], dtype=torch.float64)


def random_series(n=40, channels=2, length=30, seed=0):
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randn(n, channels, length, generator=generator, dtype=torch.float64)
    return steps.cumsum(dim=-1)


@pytest.mark.parametrize("reach", [0, 2, 5])
def test_limits_are_quantiles_near_the_place(reach):
    X = random_series()
    limits = RealDifferences.of(X, quantile=0.9, reach=reach)
    assert limits.first.shape == (2, 29)
    assert limits.second.shape == (2, 28)
    first = np.abs(np.diff(X.numpy(), axis=-1))
    second = np.abs(np.diff(X.numpy(), n=2, axis=-1))
    for t in (0, 1, 14, 27):
        near = slice(max(0, t - reach), t + reach + 1)
        for channel in (0, 1):
            by_hand = np.quantile(first[:, channel, near], 0.9)
            assert limits.first[channel, t].item() == pytest.approx(by_hand)
            by_hand = np.quantile(second[:, channel, near], 0.9)
            assert limits.second[channel, t].item() == pytest.approx(by_hand)


def test_blocks_do_not_change_the_limits(monkeypatch):
    X = random_series()
    whole = RealDifferences.of(X)
    monkeypatch.setattr("contrafact.numerics.differences.MAX_ELEMENTS", 700)
    blocked = RealDifferences.of(X)
    assert torch.equal(blocked.first, whole.first)
    assert torch.equal(blocked.second, whole.second)


def test_seam_and_kink_by_hand():
    x = series(0, 1, 2, 3, 4, 5)
    limits = RealDifferences(first=torch.full((1, 5), 2.0), second=torch.full((1, 4), 4.0))
    x_cf = series(0, 1, 7, 8, 4, 5)
    # steps across edges: 1 → 7 is 6, 8 → 4 is 4
    assert limits.seam(x_cf, x).tolist() == [3.0]
    # bends that hold an edge: 5 (0, 1, 7), -5 (1, 7, 8), -5 (7, 8, 4), 5 (8, 4, 5)
    assert limits.kink(x_cf, x).tolist() == [1.25]
    assert limits.seam_ratios(x_cf, x).tolist() == [[[0, 3, 0, 2, 0]]]
    assert limits.kink_ratios(x_cf, x).tolist() == [[[1.25, 1.25, 1.25, 1.25]]]


def test_only_edges_count():
    x = series(0, 0, 0, 0, 0, 0, 0)
    limits = RealDifferences(first=torch.ones(1, 6), second=torch.ones(1, 5))
    # the spike inside the edit touches no value that was left
    x_cf = series(0, 1, 1, 50, 1, 1, 0)
    assert limits.seam(x_cf, x).tolist() == [1.0]
    assert limits.kink(x_cf, x).tolist() == [1.0]


def test_edges_are_those_of_a_channel():
    x = torch.zeros(1, 2, 4, dtype=torch.float64)
    limits = RealDifferences(first=torch.ones(2, 3), second=torch.ones(2, 2))
    x_cf = x.clone()
    x_cf[0, 1] = torch.tensor([3.0, 9.0, 3.0, 9.0])  # a whole channel: it has no edge in time
    assert limits.seam(x_cf, x).tolist() == [0.0]
    assert limits.kink(x_cf, x).tolist() == [0.0]


def test_nothing_or_everything_changed_has_no_edge():
    X = random_series()
    limits = RealDifferences.of(X)
    for x_cf in (X, X + 1, X.flip(0)):
        assert not limits.seam(x_cf, X).any()
        assert not limits.kink(x_cf, X).any()


def test_real_stretches_joined_by_a_line_show_less_than_pasted_ones():
    """A donor's stretch plus the line that meets x at both ends hides its seam."""
    X = random_series(n=60, channels=1)
    x, donor = X[:20], X[20:40]
    limits = RealDifferences.of(X)
    start, end = 10, 20
    pasted, joined = x.clone(), x.clone()
    pasted[..., start:end] = donor[..., start:end]
    gap = x - donor
    weight = torch.arange(1, end - start + 1, dtype=torch.float64) / (end - start + 1)
    line = torch.lerp(gap[..., start - 1, None], gap[..., end, None], weight)
    joined[..., start:end] = donor[..., start:end] + line
    assert (limits.seam(pasted, x) > 1).double().mean() > 0.5
    assert (limits.seam(joined, x) > 1).double().mean() < 0.1


def test_ratios_do_not_depend_on_the_unit_or_on_other_rows():
    X = random_series()
    x_cf = X.clone()
    x_cf[:, :, 5:9] += 1.5
    limits = RealDifferences.of(X)
    scaled = RealDifferences.of(1000 * X)
    assert torch.allclose(scaled.seam(1000 * x_cf, 1000 * X), limits.seam(x_cf, X))
    assert torch.allclose(scaled.kink(1000 * x_cf, 1000 * X), limits.kink(x_cf, X))
    order = torch.randperm(len(X), generator=torch.Generator().manual_seed(1))
    assert torch.equal(limits.kink(x_cf[order], X[order]), limits.kink(x_cf, X)[order])


def test_constant_places_have_a_finite_limit():
    X = torch.zeros(4, 2, 6, dtype=torch.float64)
    X[:, 0, 3:] = 2.0  # standard deviation 1; constant but for one step
    limits = RealDifferences.of(X, reach=0)
    assert limits.first[0].tolist() == pytest.approx([1e-6, 1e-6, 2, 1e-6, 1e-6])
    assert limits.first[1].tolist() == pytest.approx([1e-6] * 5)
    x_cf = X[:1].clone()
    x_cf[0, 1, 2] = 0.5
    assert limits.seam(x_cf, X[:1]).tolist() == pytest.approx([0.5e6])


@pytest.mark.parametrize("length", [1, 2])
def test_short_series_have_no_kink(length):
    X = random_series(length=length)
    limits = RealDifferences.of(X)
    x_cf = X.clone()
    x_cf[..., 0] += 100
    assert limits.kink(x_cf, X).tolist() == [0.0] * len(X)
    assert bool((limits.seam(x_cf, X) > 1).all()) == (length == 2)


def test_single_precision_is_compared_in_double():
    X = random_series().float()
    limits = RealDifferences.of(X)
    assert limits.first.dtype == limits.seam(X, X).dtype == torch.float64
    assert RealDifferences.of(X.double()).first.equal(limits.first)


def test_no_rows_have_no_seam():
    X = random_series()
    limits = RealDifferences.of(X)
    assert limits.seam(X[:0], X[:0]).shape == (0,)
    assert limits.kink(X[:0], X[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (torch.zeros(3, 4), {}, r"X has shape \(3, 4\). Accepted: \(n, channels, length\)"),
        (torch.zeros(0, 1, 4), {}, r"X has shape \(0, 1, 4\)"),
        (
            torch.zeros(3, 1, 4),
            {"quantile": 99},
            "quantile must be a number above 0 and at most 1, got 99",
        ),
        (torch.zeros(3, 1, 4), {"reach": -1}, "reach must be a whole number at least 0, got -1"),
    ],
)
def test_bad_arguments(X, options, message):
    with pytest.raises(ValueError, match=message):
        RealDifferences.of(X, **options)


def test_other_shapes_are_refused():
    limits = RealDifferences.of(random_series())
    with pytest.raises(
        ValueError, match=r"x_cf has shape \(1, 2, 9\); accepted here: \(n, 2, 30\)"
    ):
        limits.seam(torch.zeros(1, 2, 9), torch.zeros(1, 2, 30))
    with pytest.raises(ValueError, match="x has shape"):
        limits.kink(torch.zeros(1, 2, 30), torch.zeros(1, 1, 30))
