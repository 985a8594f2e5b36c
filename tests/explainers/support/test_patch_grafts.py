"""Seamless patches of images: the join solves its equation, and only what fits is hidden."""

import numpy as np
import pytest
import torch

from contrafact.explainers.support.patch_grafts import (
    INVISIBLE,
    LARGEST_MISFIT,
    misfits,
    patch_grafts,
)
from contrafact.explainers.support.patch_joins import Intervals, harmonic_join

UNIT_RANGE = (torch.tensor(0.0), torch.tensor(1.0))
HEIGHT, WIDTH = 7, 9
#: inside, at a side, in a corner, over the full width, all but a column
RECTANGLES = [(2, 5, 3, 6), (0, 3, 2, 5), (4, 7, 6, 9), (2, 4, 0, 9), (0, 7, 0, 8)]


def images(*shape, seed=0):
    """Random images in [0, 1)."""
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def join(x, donor, rectangle):
    top, bottom, left, right = (torch.tensor([edge]) for edge in rectangle)
    rows = Intervals.of(top, bottom, x.shape[-2])
    columns = Intervals.of(left, right, x.shape[-1])
    return harmonic_join(x, donor, rows, columns)


def solve_densely(x, donor, rectangle):
    """Write the equation down pixel by pixel; one channel."""
    top, bottom, left, right = rectangle
    pixels = [(i, j) for i in range(top, bottom) for j in range(left, right)]
    A = np.zeros((len(pixels), len(pixels)))
    b = np.zeros(len(pixels))
    for p, (i, j) in enumerate(pixels):
        for q in [(i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)]:
            if not (0 <= q[0] < x.shape[0] and 0 <= q[1] < x.shape[1]):
                continue
            A[p, p] += 1
            if q in pixels:
                A[p, pixels.index(q)] -= 1
            else:
                b[p] += x[q] - donor[q]
    joined = x.copy()
    h = np.linalg.solve(A, b)
    for (i, j), lift in zip(pixels, h, strict=True):
        joined[i, j] = donor[i, j] + lift
    return joined


@pytest.mark.parametrize("rectangle", RECTANGLES)
def test_join_solves_the_equation_in_every_channel(rectangle):
    x, donor = images(2, 1, 3, HEIGHT, WIDTH)
    joined = join(x, donor, rectangle)
    for channel in range(3):
        dense = solve_densely(x[0, channel].numpy(), donor[0, channel].numpy(), rectangle)
        np.testing.assert_allclose(joined[0, channel].numpy(), dense, atol=1e-12)


@pytest.mark.parametrize("rectangle", RECTANGLES)
def test_donor_at_another_level_gives_the_image_back(rectangle):
    x = images(1, 1, HEIGHT, WIDTH)
    torch.testing.assert_close(join(x, x + 5, rectangle), x)


def test_whole_image_is_the_donor():
    x, donor = images(2, 1, 2, HEIGHT, WIDTH)
    torch.testing.assert_close(join(x, donor, (0, HEIGHT, 0, WIDTH)), donor)


def test_join_adds_no_more_than_the_image_differs_around():
    # the maximum principle: a harmonic function is largest on the border
    x, donor = images(2, 1, 1, HEIGHT, WIDTH, seed=3)
    top, bottom, left, right = RECTANGLES[0]
    h = join(x, donor, RECTANGLES[0]) - donor
    patch = h[..., top:bottom, left:right]
    around = (x - donor)[..., top - 1 : bottom + 1, left - 1 : right + 1]
    assert patch.max() <= around.max()
    assert patch.min() >= around.min()


# --- all grafts of some images


def build(n=3, donors=2, channels=2, n_cells=3, seed=0):
    x = images(n, channels, HEIGHT, WIDTH, seed=seed)
    donor = images(n, donors, channels, HEIGHT, WIDTH, seed=seed + 1)
    return x, donor, patch_grafts(x, donor, n_cells, UNIT_RANGE)


def rectangle_masks(grafts):
    """The pixels of every rectangle, (w, height, width)."""
    rows, columns = grafts.rows.holds(), grafts.columns.holds()
    return (rows[:, None, :, None] & columns[None, :, None, :]).flatten(0, 1)


def test_grid_has_no_narrow_cells():
    x = images(1, 1, 5, 1)
    grafts = patch_grafts(x, x[:, None] + 1, 8, UNIT_RANGE)
    assert sorted((grafts.rows.end - grafts.rows.start).tolist()) == [2, 3, 5]
    assert (grafts.columns.end - grafts.columns.start).tolist() == [1]


def test_grid_of_eight_cells_has_1296_rectangles():
    x = images(1, 1, 28, 28)
    assert patch_grafts(x, x[:, None], 8, UNIT_RANGE).hidden.shape == (1, 1, 1296)


def test_sizes_and_similarity_count_pixels():
    _, _, grafts = build()
    masks = rectangle_masks(grafts).double().flatten(1)
    torch.testing.assert_close(grafts.sizes(), masks.mean(1).expand(2, -1))
    shared = masks @ masks.T
    union = masks.sum(1)[:, None] + masks.sum(1) - shared
    cuts = torch.arange(len(masks)).view(1, -1)
    torch.testing.assert_close(grafts.similarity(cuts)[0], shared / union)


def test_only_the_patch_is_changed_and_values_stay_in_range():
    x, _, grafts = build()
    masks = rectangle_masks(grafts)
    cut = torch.arange(len(masks))
    made = grafts.make(x, torch.zeros_like(cut), torch.ones_like(cut), cut)
    outside = ~masks[:, None].expand_as(made)
    assert (made == x[0])[outside].all()
    assert made.min() >= 0
    assert made.max() <= 1


def test_changes_that_cannot_be_seen_are_left_out():
    x = images(1, 1, 8, 8)
    donor = x.clone()[:, None]
    donor[..., 2, 2] += 0.9 * INVISIBLE
    donor[..., 5, 5] += 0.2
    grafts = patch_grafts(x, donor, 1, UNIT_RANGE)
    zero = torch.zeros(1, dtype=torch.long)
    made = grafts.make(x, zero, zero, zero)
    assert (made != x).nonzero().tolist() == [[0, 0, 5, 5]]


def test_batch_equals_loop(monkeypatch):
    x, donor, grafts = build()
    task, variant = torch.tensor([0, 1, 2, 2]), torch.tensor([1, 0, 1, 0])
    cut = torch.tensor([4, 17, 30, 3])
    made = grafts.make(x, task, variant, cut)
    for i in range(4):
        own = patch_grafts(x[task[i], None], donor[task[i], None], 3, UNIT_RANGE)
        one = slice(i, i + 1)
        alone = own.make(x[task[i], None], torch.tensor([0]), variant[one], cut[one])
        torch.testing.assert_close(made[one], alone)
        assert (own.hidden[0] == grafts.hidden[task[i]]).all()
    monkeypatch.setattr("contrafact.explainers.support.patch_grafts.MAX_ELEMENTS", 1)
    torch.testing.assert_close(grafts.make(x, task, variant, cut), made)


# --- predictions


def test_gains_are_exact_where_the_level_around_is_even():
    x = images(1, 2, HEIGHT, WIDTH)
    donor = x[:, None] - torch.tensor([0.3, -0.2]).view(2, 1, 1)
    donor[..., 3:5, 4:6] += images(1, 1, 2, 2, 2, seed=5)
    slope = images(1, 1, 2, HEIGHT, WIDTH, seed=6) - 0.5
    wide_range = (torch.tensor(-10.0), torch.tensor(10.0))
    grafts = patch_grafts(x, donor, 3, wide_range)
    gains = grafts.gains(x, slope)[0, 0]
    checked = 0
    for w, mask in enumerate(rectangle_masks(grafts)):
        core = mask[2:6, 3:7]
        if core.any() and not core.all():
            continue
        row, column = grafts.split_cut(torch.tensor([w]))
        made = harmonic_join(x, donor[:, 0], grafts.rows.take(row), grafts.columns.take(column))
        torch.testing.assert_close(gains[w], (slope[:, 0] * (made - x)).sum())
        checked += 1
    assert checked >= 8


def test_gains_follow_the_true_first_order_effect():
    x, donor, grafts = build(n=1, donors=1, channels=1, n_cells=4)
    slope = images(1, 1, 1, HEIGHT, WIDTH, seed=8) - 0.5
    cut = torch.arange(grafts.hidden.shape[2])
    row, column = grafts.split_cut(cut)
    m = len(cut)
    made = harmonic_join(
        x.expand(m, -1, -1, -1),
        donor[0].expand(m, -1, -1, -1),
        grafts.rows.take(row),
        grafts.columns.take(column),
    )
    true = (slope[0, 0] * (made - x)).flatten(1).sum(1)
    gain = grafts.gains(x, slope)[0, 0]
    assert torch.corrcoef(torch.stack([true, gain]))[0, 1] > 0.95


# --- which joins are hidden


def test_misfit_is_what_the_equation_says():
    x, donor, grafts = build()
    misfit = misfits(x, donor, grafts.rows, grafts.columns)
    gap = (x[:, None] - donor)[1, 0]
    for w, mask in enumerate(rectangle_masks(grafts)):
        if mask.all():
            assert misfit[1, 0, w] == 0
            continue
        near = torch.zeros_like(mask)
        near[1:] |= mask[:-1]
        near[:-1] |= mask[1:]
        near[:, 1:] |= mask[:, :-1]
        near[:, :-1] |= mask[:, 1:]
        near &= ~mask
        h = gap[:, near].mean(1, keepdim=True)
        around = (gap[:, near] - h).square().mean()
        inside = (gap[:, mask] - h).square().mean()
        torch.testing.assert_close(misfit[1, 0, w], (around / inside).sqrt())


def test_patch_through_a_stroke_shows_and_one_around_it_does_not():
    x = torch.zeros(1, 1, 12, 12, dtype=torch.float64)
    donor = x.clone()[:, None]
    donor[..., 4:8, 4:8] = 1.0
    donor = torch.cat([donor] * 3, 1)
    # a stroke across the whole image cannot be cut anywhere
    donor[:, 2, :, :, 4:8] = 1.0
    grafts = patch_grafts(x, donor, 4, UNIT_RANGE)
    masks = rectangle_masks(grafts)
    around = masks[:, 3:9, 3:9].all((1, 2))
    through = masks[:, 4:8, 4:6].any((1, 2)) & ~masks[:, 4:8, 6:8].any((1, 2))
    assert grafts.hidden[0, 0, around].all()
    assert not grafts.hidden[0, 0, through].any()
    beside = ~masks[:, 4:8, 4:8].flatten(1).any(1)
    assert not grafts.hidden[0, 0, beside].any()  # they would change nothing


def test_best_fitting_grafts_are_kept_where_few_fit_well(monkeypatch):
    monkeypatch.setattr("contrafact.explainers.support.patch_grafts.LEAST_KEPT", 0.1)
    x, donor, grafts = build(n=2, donors=8, n_cells=4)
    misfit = misfits(x, donor, grafts.rows, grafts.columns)
    n_kept = misfit[0].numel() // 10
    assert ((misfit <= LARGEST_MISFIT).sum((1, 2)) < n_kept).all()
    for i in range(2):
        smallest = misfit[i].flatten().argsort()[:n_kept]
        assert grafts.hidden[i].flatten().nonzero().flatten().tolist() == sorted(smallest.tolist())
