"""The blocked search proposes what a full search finds."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from contrafact.guides import proposals
from contrafact.guides.proposals import Leaders, Proposals


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 5),
    st.integers(1, 400),
    st.integers(1, 6),
    st.integers(1, 97),
    st.integers(0, 2**31),
)
def test_leaders_are_the_largest_whatever_the_blocks(queries, m, n, block, seed):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(0, 50, (queries, m), generator=generator).float()
    found = Leaders(queries, min(n, m), scores.device)
    for positions in torch.arange(m).split(block):
        found.add(scores[:, positions], positions)
    expected = scores.sort(1, descending=True).values[:, : min(n, m)]
    assert torch.equal(found.score, expected)
    assert torch.equal(scores.gather(1, found.position), expected)
    assert all(len(set(row)) == len(row) for row in found.position.tolist())


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_proposals_hold_the_nearest(monkeypatch, offset, dtype):
    monkeypatch.setattr(proposals, "MAX_SCORES", 4096)
    generator = torch.Generator().manual_seed(0)
    rows = (torch.randn(3000, 20, generator=generator) + offset).to(dtype)
    queries = (torch.randn(17, 20, generator=generator) + offset).to(dtype)
    pool = torch.arange(0, 3000, 2)
    prepared = Proposals.of(rows)
    standardized = prepared.standardize(queries)
    score, position = prepared.leaders(standardized, pool, 8)
    squared = (queries[:, None].double() - rows[pool].double()).square().sum(2)
    nearest = pool[squared.topk(4, largest=False).indices]
    for wanted, given_ in zip(nearest.tolist(), position.tolist(), strict=True):
        assert set(wanted) <= set(given_)
    # The score is the one of the formula, so that it can be compared with a distance.
    found = (queries[:, None].double() - rows[position].double()).square().sum(2)
    scale = prepared.scale.double() ** 2
    formula = (standardized.square().sum(1, keepdim=True) - found / scale) / 2
    tolerance = 1e-4 * formula.abs().max()
    assert torch.allclose(score.sort(1).values, formula.sort(1).values, atol=float(tolerance))


def test_large_float32_candidates_are_not_copied():
    rows = torch.randn(50, 8, generator=torch.Generator().manual_seed(0))
    assert Proposals.of(rows).rows is rows
    assert Proposals.of(rows + 1e4).rows is not rows
    assert Proposals.of(rows.double()).rows.dtype == torch.float32
