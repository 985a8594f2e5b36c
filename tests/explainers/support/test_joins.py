"""Joins of two series: the equations of both kinds, and which of them do not show."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from contrafact.explainers.support.joins import (
    NO_RAMP,
    RAMPS,
    Graft1D,
    make_grafts,
    shortest_ramps,
    smooth_step,
    tilt_slopes,
    tilts_are_hidden,
)
from contrafact.numerics import RealDifferences

LENGTH = 12


def walks(n, channels=1, length=LENGTH, seed=0):
    """Random walks, (n, channels, length)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, channels, length, generator=generator, dtype=torch.float64).cumsum(-1)


def graft(start, end, *, tilted=True, ramp_in=0, ramp_out=0, channels=(True,)):
    """One graft."""
    numbers = (torch.tensor([number]) for number in (start, end, tilted, ramp_in, ramp_out))
    return Graft1D(*numbers, torch.tensor([channels]))


def all_windows(length=LENGTH, shortest=1):
    """Starts and ends of all windows."""
    start, end = torch.triu_indices(length + 1, length + 1, offset=shortest)
    return start, end


def every(start, end, *, tilted, ramp_in=0, ramp_out=0, channels=1):
    """The same kind of graft in many windows."""
    of_all = torch.ones_like(start)
    return Graft1D(
        start,
        end,
        of_all.bool() & tilted,
        of_all * ramp_in,
        of_all * ramp_out,
        torch.ones(len(start), channels, dtype=torch.bool),
    )


def spread(x, donor, n):
    """The same series and donor for n grafts."""
    return x.expand(n, -1, -1), donor.expand(n, -1, -1)


# --- tilted ---------------------------------------------------------------------------------------


def test_a_tilted_window_is_the_donor_and_a_straight_line():
    x, donor = walks(2)[:, None]
    for start, end in [(1, 2), (1, LENGTH - 1), (3, 8), (5, 7)]:
        x_cf = make_grafts(x, donor, graft(start, end))[0, 0]
        line = x_cf - donor[0, 0]
        # the line goes through x − d just outside the window
        around = torch.cat([(x - donor)[0, 0, start - 1 : start], line[start:end]])
        around = torch.cat([around, (x - donor)[0, 0, end : end + 1]])
        torch.testing.assert_close(around.diff().diff(), 0 * line[start:end], atol=1e-6, rtol=0)
        assert torch.equal(x_cf[:start], x[0, 0, :start])
        assert torch.equal(x_cf[end:], x[0, 0, end:])


def test_tilted_seams_are_steps_of_the_donor_and_the_slope():
    x, donor = walks(2, seed=1)[:, None]
    start, end = 4, 9
    gap = (x - donor)[0, 0]
    slope = (gap[end] - gap[start - 1]) / (end - start + 1)
    x_cf = make_grafts(x, donor, graft(start, end))[0, 0]
    steps = slice(start - 1, end)
    torch.testing.assert_close(x_cf.diff()[steps], donor[0, 0].diff()[steps] + slope)
    bends = slice(start - 1, end - 1)
    torch.testing.assert_close(x_cf.diff().diff()[bends], donor[0, 0].diff().diff()[bends])
    by_window = tilt_slopes(x - donor, torch.tensor([start]), torch.tensor([end]))
    torch.testing.assert_close(by_window, slope.view(1, 1, 1))


@pytest.mark.parametrize(("start", "end", "inner"), [(0, 5, 5), (7, LENGTH, 6)])
def test_a_window_at_the_border_is_level_with_its_inner_end(start, end, inner):
    x, donor = walks(2, seed=2)[:, None]
    x_cf = make_grafts(x, donor, graft(start, end))
    lift = (x - donor)[..., inner : inner + 1]
    torch.testing.assert_close(x_cf[..., start:end], (donor + lift)[..., start:end])
    assert float(tilt_slopes(x - donor, torch.tensor([start]), torch.tensor([end]))) == 0


@pytest.mark.parametrize("tilted", [True, False])
def test_the_whole_series_is_the_donor(tilted):
    x, donor = walks(2, seed=3)[:, None]
    x_cf = make_grafts(x, donor, graft(0, LENGTH, tilted=tilted, ramp_in=2, ramp_out=1))
    assert torch.equal(x_cf, donor)


def test_level_and_trend_of_the_donor_do_not_matter():
    x, donor = walks(2, seed=4)[:, None]
    start, end = all_windows()
    inner = (start > 0) & (end < LENGTH)
    x_many, donor_many = spread(x, donor, len(start))
    grafts = every(start, end, tilted=True)
    expected = make_grafts(x_many, donor_many, grafts)
    level = make_grafts(x_many, donor_many + 100, grafts)
    not_whole = (end - start) < LENGTH
    torch.testing.assert_close(level[not_whole], expected[not_whole], atol=1e-6, rtol=0)
    trend = make_grafts(x_many, donor_many + torch.arange(LENGTH), grafts)
    torch.testing.assert_close(trend[inner], expected[inner], atol=1e-5, rtol=0)


# --- faded ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ramp_in", RAMPS)
@pytest.mark.parametrize("ramp_out", RAMPS)
def test_a_faded_window_rises_to_the_donor_and_falls_back(ramp_in, ramp_out):
    zeros = torch.zeros(1, 1, 20, dtype=torch.float64)
    how = graft(4, 15, tilted=False, ramp_in=ramp_in, ramp_out=ramp_out)
    weight = make_grafts(zeros, zeros + 1, how)[0, 0]
    assert (weight[:4] == 0).all()
    assert (weight[15:] == 0).all()
    assert (weight[4 + ramp_in : 15 - ramp_out] == 1).all()
    rising = weight[3 : 5 + ramp_in].diff()
    falling = weight[14 - ramp_out : 16].diff()
    assert (rising[: ramp_in + 1] > 0).all()
    assert (falling[-ramp_out - 1 :] < 0).all()
    share = torch.arange(1, ramp_in + 2) / (ramp_in + 1)
    torch.testing.assert_close(weight[4 : 5 + ramp_in], 3 * share.double() ** 2 - 2 * share**3)


def test_a_faded_window_lies_between_the_two():
    x, donor = walks(2, seed=5)[:, None]
    start, end = all_windows()
    x_many, donor_many = spread(x, donor, len(start))
    for ramp in RAMPS:
        grafts = every(start, end, tilted=False, ramp_in=ramp, ramp_out=ramp)
        x_cf = make_grafts(x_many, donor_many, grafts)
        low = torch.minimum(x, donor) - 1e-12
        high = torch.maximum(x, donor) + 1e-12
        assert ((x_cf >= low) & (x_cf <= high)).all()
        outside = ~grafts.window(LENGTH)
        assert torch.equal(x_cf[outside], x_many[outside])


def test_without_ramps_a_faded_window_is_pasted():
    x, donor = walks(2, seed=6)[:, None]
    x_cf = make_grafts(x, donor, graft(3, 7, tilted=False))
    assert torch.equal(x_cf[..., 3:7], donor[..., 3:7])


@pytest.mark.parametrize(("start", "end"), [(0, 6), (6, LENGTH)])
def test_nothing_fades_at_the_border(start, end):
    x, donor = walks(2, seed=7)[:, None]
    how = graft(start, end, tilted=False, ramp_in=2, ramp_out=2)
    x_cf = make_grafts(x, donor, how)
    border = 0 if start == 0 else LENGTH - 1
    assert torch.equal(x_cf[..., border], donor[..., border])


def test_smooth_step_is_flat_at_both_ends():
    share = torch.linspace(-0.5, 1.5, 201, dtype=torch.float64)
    weight = smooth_step(share)
    assert (weight[share <= 0] == 0).all()
    assert (weight[share >= 1] == 1).all()
    assert (weight.diff() >= 0).all()
    torch.testing.assert_close(weight + smooth_step(1 - share), torch.ones_like(weight))
    eps = torch.tensor(1e-4, dtype=torch.float64)
    assert float(smooth_step(eps) / eps) < 1e-3


# --- channels -------------------------------------------------------------------------------------


@pytest.mark.parametrize("tilted", [True, False])
def test_only_the_channels_of_the_set_change(tilted):
    x, donor = walks(2, channels=3, seed=8)[:, None]
    how = graft(2, 9, tilted=tilted, channels=(True, False, True))
    x_cf = make_grafts(x, donor, how)
    assert torch.equal(x_cf[:, 1], x[:, 1])
    for channel in (0, 2):
        own = slice(channel, channel + 1)
        alone = make_grafts(x[:, own], donor[:, own], graft(2, 9, tilted=tilted))
        assert torch.equal(x_cf[:, own], alone)
        assert (x_cf[:, own] != x[:, own])[..., 2:9].all()


# --- which joins do not show ----------------------------------------------------------------------


def seam_and_kink_are_real(x, donor, grafts, limits):
    """Make grafts of one donor in one series, and look at their edges."""
    x_many, donor_many = spread(x, donor, len(grafts.start))
    x_cf = make_grafts(x_many, donor_many, grafts)
    worst = torch.maximum(limits.seam(x_cf, x_many), limits.kink(x_cf, x_many))
    return worst, x_cf


@st.composite
def problems(draw):
    """A series, a donor and limits that some joins keep and others do not."""
    length = draw(st.integers(3, 11))
    channels = draw(st.integers(1, 2))
    seed = draw(st.integers(0, 10**6))
    series = walks(2, channels, length, seed)
    tightness = draw(st.sampled_from([0.3, 1.0, 2.0, 4.0]))
    generator = torch.Generator().manual_seed(seed)
    first, second = (
        tightness * (0.5 + torch.rand(channels, size, generator=generator, dtype=torch.float64))
        for size in (length - 1, length - 2)
    )
    return series[:1], series[1:], RealDifferences(first, 1.5 * second)


@settings(deadline=None, max_examples=40)
@given(problems())
def test_tilts_are_hidden_where_seam_and_kink_are_real(problem):
    x, donor, limits = problem
    channels, length = x.shape[1:]
    start, end = all_windows(length)
    hidden = tilts_are_hidden(x[:, None], donor[:, None], start, end, limits)[0, 0]
    for channel in range(channels):
        own = slice(channel, channel + 1)
        of_channel = RealDifferences(limits.first[own], limits.second[own])
        grafts = every(start, end, tilted=True)
        worst, _ = seam_and_kink_are_real(x[:, own], donor[:, own], grafts, of_channel)
        clear = (worst - 1).abs() > 1e-6
        assert torch.equal(hidden[channel][clear], (worst <= 1)[clear])


@settings(deadline=None, max_examples=40)
@given(problems())
def test_a_ramp_that_is_found_hides_the_start(problem):
    x, donor, limits = problem
    channels, length = x.shape[1:]
    edges = torch.arange(length + 1)
    ramps = shortest_ramps(x[:, None], donor[:, None], edges, limits)[0, 0]
    for channel in range(channels):
        own = slice(channel, channel + 1)
        of_channel = RealDifferences(limits.first[own], limits.second[own])
        found = ramps[channel]
        assert found[0] == 0
        usable = (found != NO_RAMP) & (edges < length)
        start = edges[usable]
        # the window goes on to the end of the series: only its start is joined
        end = torch.full_like(start, length)
        grafts = every(start, end, tilted=False, ramp_in=found[usable])
        worst, x_cf = seam_and_kink_are_real(x[:, own], donor[:, own], grafts, of_channel)
        assert (worst <= 1 + 1e-6).all()
        bends = x_cf[:, 0].diff().diff().abs() / of_channel.second
        place = torch.arange(length - 2)
        on_ramp = (place >= start[:, None] - 2) & (place < (start + found[usable])[:, None])
        on_ramp &= start[:, None] > 0
        assert (bends[on_ramp] <= 1 + 1e-6).all()


@settings(deadline=None, max_examples=40)
@given(problems())
def test_no_shorter_ramp_hides_the_start(problem):
    x, donor, limits = problem
    x, donor = x[:, :1], donor[:, :1]
    limits = RealDifferences(limits.first[:1], limits.second[:1])
    length = x.shape[-1]
    edges = torch.arange(1, length - 1)
    found = shortest_ramps(x[:, None], donor[:, None], edges, limits)[0, 0, 0]
    for ramp in RAMPS:
        fits = edges + ramp <= length - 2
        shorter = fits & ((found == NO_RAMP) | (ramp < found))
        start = edges[shorter]
        end = torch.full_like(start, length)
        grafts = every(start, end, tilted=False, ramp_in=ramp)
        _, x_cf = seam_and_kink_are_real(x, donor, grafts, limits)
        step = x_cf[:, 0].diff().abs() / limits.first
        bend = x_cf[:, 0].diff().diff().abs() / limits.second
        place = torch.arange(length - 2)
        on_ramp = (place >= start[:, None] - 2) & (place < start[:, None] + ramp)
        worst = torch.where(on_ramp, bend, 0.0).amax(1)
        worst = torch.maximum(worst, step.gather(1, start[:, None] - 1)[:, 0])
        assert (worst >= 1 - 1e-6).all()


def test_the_same_series_needs_no_ramp():
    x = walks(1, seed=9)
    limits = RealDifferences.of(1.001 * x, quantile=1.0)
    edges = torch.arange(LENGTH)
    ramps = shortest_ramps(x[:, None], x[:, None], edges, limits)
    assert (ramps[..., : LENGTH - 1] == 0).all()
    start, end = all_windows()
    assert tilts_are_hidden(x[:, None], x[:, None], start, end, limits).all()
