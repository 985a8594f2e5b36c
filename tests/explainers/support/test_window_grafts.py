"""All grafts of some series: windows, variants, sizes, first-order gains."""

import pytest
import torch

from contrafact.explainers.support.joins import RAMPS
from contrafact.explainers.support.window_grafts import (
    N_JOINS,
    SHORTEST_WINDOW,
    WindowGrafts,
    WindowGrid,
)
from contrafact.numerics import RealDifferences

N, DONORS, CHANNELS, LENGTH = 3, 4, 2, 14
SUBSETS = torch.tensor([[True, True], [True, False], [False, True]])
N_VARIANTS = DONORS * len(SUBSETS) * N_JOINS


def walks(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).cumsum(-1)


@pytest.fixture
def series():
    return walks(N, CHANNELS, LENGTH)


@pytest.fixture
def donors():
    return walks(N, DONORS, CHANNELS, LENGTH, seed=1)


def grafts_of(x, donor, *, looseness=1.0, n_cells=9, subsets=SUBSETS):
    limits = RealDifferences.of(looseness * walks(200, x.shape[1], x.shape[2], seed=2))
    grid = WindowGrid.of(x.shape[2], n_cells)
    return WindowGrafts.of(x, donor, grid, subsets, limits), limits


def every(grafts):
    """Numbers of series, variant and window of every graft."""
    n, variants, windows = grafts.hidden.shape
    return torch.cartesian_prod(torch.arange(n), torch.arange(variants), torch.arange(windows)).T


# --- the grid -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "n_cells"), [(3, 32), (14, 9), (24, 32), (150, 32)])
def test_grid_holds_every_window_between_its_points_once(length, n_cells):
    grid = WindowGrid.of(length, n_cells)
    assert grid.edges[0] == 0
    assert grid.edges[-1] == length
    assert (grid.edges.diff() >= 1).all()
    assert len(grid.edges) == min(length, n_cells) + 1
    windows = set(zip(grid.start.tolist(), grid.end.tolist(), strict=True))
    edges = grid.edges.tolist()
    assert windows == {(s, e) for s in edges for e in edges if e - s >= SHORTEST_WINDOW}
    assert len(windows) == len(grid.start)
    assert (int(grid.start[grid.whole]), int(grid.end[grid.whole])) == (0, length)


def test_similarity_is_shared_steps_over_all_steps():
    grid = WindowGrid.of(14, 9)
    which = torch.tensor([[0, 5], [7, 11]])
    similarity = grid.similarity(which)
    assert similarity.shape == (2, 2, len(grid.start))
    sets = [set(range(s, e)) for s, e in zip(grid.start.tolist(), grid.end.tolist(), strict=True)]
    for place in ((0, 0), (0, 1), (1, 0), (1, 1)):
        own = sets[which[place]]
        expected = [len(own & other) / len(own | other) for other in sets]
        torch.testing.assert_close(similarity[place].double(), torch.tensor(expected).double())


# --- variants -------------------------------------------------------------------------------------


def test_variants_number_donors_sets_of_channels_and_joins(series, donors):
    grafts, _ = grafts_of(series, donors)
    assert grafts.hidden.shape == (N, N_VARIANTS, len(grafts.grid.start))
    donor, subset, tilted = grafts.split_variant(torch.arange(N_VARIANTS))
    triples = set(zip(donor.tolist(), subset.tolist(), tilted.tolist(), strict=True))
    assert len(triples) == N_VARIANTS
    assert {triple[0] for triple in triples} == set(range(DONORS))
    assert {triple[1] for triple in triples} == set(range(len(SUBSETS)))
    back = (donor * len(SUBSETS) + subset) * N_JOINS + (~tilted).long()
    assert torch.equal(back, torch.arange(N_VARIANTS))


def test_kinship_is_closest_for_the_same_donor_and_channels(series, donors):
    grafts, _ = grafts_of(series, donors)
    kinship = grafts.kinship()
    assert kinship.shape == (N_VARIANTS, N_VARIANTS)
    assert torch.equal(kinship, kinship.T)
    assert (kinship.diagonal() == 1).all()
    assert ((kinship > 0) & (kinship <= 1)).all()
    donor, subset, _ = grafts.split_variant(torch.arange(N_VARIANTS))
    same_donor = donor[:, None] == donor
    same_subset = subset[:, None] == subset
    other_join = same_donor & same_subset & (kinship < 1)
    assert other_join.sum() == N_VARIANTS
    closest = kinship[other_join].min()
    assert closest > kinship[~same_donor & same_subset].max()
    assert kinship[same_donor & same_subset].min() > kinship[same_donor & ~same_subset].max()
    assert kinship[~same_donor & same_subset].min() > kinship[~same_donor & ~same_subset].max()


def test_sizes_are_the_share_of_values_replaced(series, donors):
    grafts, _ = grafts_of(series, donors)
    sizes = grafts.sizes()
    number, variant, window = every(grafts)
    mask = grafts.describe(number, variant, window).window(LENGTH)
    share = mask.flatten(1).double().mean(1)
    torch.testing.assert_close(sizes[variant, window], share)


def test_only_the_window_and_the_channels_of_the_set_change(series, donors):
    grafts, _ = grafts_of(series, donors)
    number, variant, window = every(grafts)
    x_cf = grafts.make(series, number, variant, window)
    mask = grafts.describe(number, variant, window).window(LENGTH)
    assert torch.equal(x_cf[~mask], series[number][~mask])
    _, subset, _ = grafts.split_variant(variant)
    changed_channels = (x_cf != series[number]).any(2)
    assert (changed_channels <= SUBSETS[subset]).all()


def test_a_graft_comes_from_the_donor_of_its_variant(series, donors):
    grafts, _ = grafts_of(series, donors)
    number, variant, window = every(grafts)
    donor, subset, _ = grafts.split_variant(variant)
    whole = (window == grafts.grid.whole) & (subset == 0)
    x_cf = grafts.make(series, number, variant, window)
    assert torch.equal(x_cf[whole], donors[number, donor][whole])


# --- joins that do not show -----------------------------------------------------------------------


@pytest.mark.parametrize("looseness", [0.3, 0.5, 1.0])
def test_hidden_tilts_are_those_without_seam_or_kink(series, donors, looseness):
    grafts, limits = grafts_of(series, donors, looseness=looseness)
    number, variant, window = every(grafts)
    _, _, tilted = grafts.split_variant(variant)
    x_cf = grafts.make(series, number, variant, window)
    worst = torch.maximum(limits.seam(x_cf, series[number]), limits.kink(x_cf, series[number]))
    hidden = grafts.hidden[number, variant, window]
    clear = tilted & ((worst - 1).abs() > 1e-6)
    assert torch.equal(hidden[clear], (worst <= 1)[clear])
    assert 0 < hidden[clear].float().mean() < 1


@pytest.mark.parametrize("looseness", [0.5, 1.0, 2.0])
def test_hidden_fades_whose_ramps_do_not_meet_have_no_seam_or_kink(series, donors, looseness):
    one_channel = torch.tensor([[True]])
    for channel in range(CHANNELS):
        x = series[:, [channel]]
        grafts, limits = grafts_of(
            x, donors[:, :, [channel]], looseness=looseness, n_cells=LENGTH, subsets=one_channel
        )
        number, variant, window = every(grafts)
        _, _, tilted = grafts.split_variant(variant)
        hidden = grafts.hidden[number, variant, window] & ~tilted
        number, variant, window = number[hidden], variant[hidden], window[hidden]
        how = grafts.describe(number, variant, window)
        apart = how.end - how.start >= how.ramp_in + how.ramp_out + 2
        assert apart.sum() > 100
        number, variant, window = number[apart], variant[apart], window[apart]
        x_cf = grafts.make(x, number, variant, window)
        assert (limits.seam(x_cf, x[number]) <= 1 + 1e-6).all()
        assert (limits.kink(x_cf, x[number]) <= 1 + 1e-6).all()


def test_ramps_at_the_end_mirror_those_at_the_start(series, donors):
    grafts, limits = grafts_of(series, donors, looseness=0.5)
    backward = RealDifferences(limits.first.flip(-1), limits.second.flip(-1))
    grid = WindowGrid((LENGTH - grafts.grid.edges).flip(0), grafts.grid.first, grafts.grid.last)
    mirrored = WindowGrafts.of(series.flip(-1), donors.flip(-1), grid, SUBSETS, backward)
    assert torch.equal(mirrored.ramp_in.flip(-1), grafts.ramp_out)
    assert torch.equal(mirrored.ramp_out.flip(-1), grafts.ramp_in)
    assert len(grafts.ramp_in.unique()) > 2
    assert set(grafts.ramp_in.unique().tolist()) <= {-1, *RAMPS}


# --- gains ----------------------------------------------------------------------------------------


def test_gains_are_first_order_by_brute_force(series, donors):
    grafts, _ = grafts_of(series, donors, looseness=0.5)
    slope = walks(N, DONORS, CHANNELS, LENGTH, seed=3)
    gains = grafts.gains(series, slope)
    assert gains.shape == grafts.hidden.shape
    number, variant, window = every(grafts)
    donor, _, tilted = grafts.split_variant(variant)
    how = grafts.describe(number, variant, window)
    x_cf = grafts.make(series, number, variant, window)
    change = x_cf - series[number]
    first_order = (slope[number, donor] * change).flatten(1).sum(1)
    no_ramp = tilted | ((how.ramp_in <= 0) & (how.ramp_out <= 0))
    assert (no_ramp & ~tilted).sum() > 100
    torch.testing.assert_close(
        gains[number, variant, window][no_ramp], first_order[no_ramp], atol=1e-4, rtol=0
    )


def test_gains_of_channels_add_up(series, donors):
    grafts, _ = grafts_of(series, donors)
    gains = grafts.gains(series, walks(N, DONORS, CHANNELS, LENGTH, seed=3))
    by_subset = gains.view(N, DONORS, len(SUBSETS), N_JOINS, -1)
    torch.testing.assert_close(by_subset[:, :, 0], by_subset[:, :, 1] + by_subset[:, :, 2])
