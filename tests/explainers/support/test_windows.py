"""Random windows lie within the positions, in one piece, and short ones are as frequent as long."""

from __future__ import annotations

import pytest
import torch

from contrafact.explainers.support.windows import make_windows


def uniform(n=4000, seed=0):
    return torch.rand(2, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(("size", "longest"), [(24, 24), (24, 6), (24, 1), (1, 1)])
def test_windows_are_in_one_piece_and_not_too_long(size, longest):
    start, width = uniform()
    window = make_windows(start, width, size, longest)
    length = window.sum(1)
    first = window.int().argmax(1)
    end = size - window.flip(1).int().argmax(1)
    assert window.shape == (4000, size)
    assert (end - first == length).all()
    assert set(length.tolist()) == set(range(1, longest + 1))
    assert window.any(0).all()


def test_lengths_are_log_uniform():
    """As many windows of 1 as of 2 and 3 together, and of 4 to 7."""
    start, width = uniform(20000)
    length = make_windows(start, width, 7, 7).sum(1)
    shares = [((length >= low) & (length < 2 * low)).double().mean() for low in (1, 2, 4)]
    assert [float(share) for share in shares] == pytest.approx([1 / 3] * 3, abs=0.02)


def test_all_places_are_alike():
    start, _ = uniform(20000)
    window = make_windows(start, torch.zeros_like(start), 5, 5)
    assert window.double().mean(0).tolist() == pytest.approx([0.2] * 5, abs=0.02)
