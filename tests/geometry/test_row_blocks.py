import pytest
import torch

from contrafact.geometry import row_blocks
from contrafact.geometry.row_blocks import blocks, compute_in_blocks


@pytest.mark.parametrize("n", [1, 4, 5, 9])
def test_blocks_cover_every_row_once(n, monkeypatch):
    monkeypatch.setattr(row_blocks, "_BLOCK", 12)
    first = torch.arange(3.0 * n).reshape(n, 3)
    column, one, number = first[:, :1], torch.ones(1, 3), torch.tensor(2.0)
    parts = list(blocks(first, column, one, number))
    assert max(len(block) for block, *_ in parts) <= 4
    assert torch.equal(torch.cat([block for block, *_ in parts]), first)
    assert torch.equal(torch.cat([block for _, block, *_ in parts]), column)
    if n > 1:  # with a single row, a row for all is the row itself
        assert all(torch.equal(other, one) for _, _, other, _ in parts)
    assert all(other is number for *_, other in parts)
    assert list(blocks(first[:0], number)) == []


def test_blocks_share_their_memory_and_all_rows_are_computed(monkeypatch):
    monkeypatch.setattr(row_blocks, "_BLOCK", 12)
    seen = []

    def add(out, memory, first, other):
        seen.append((memory.shape, memory.data_ptr()))
        (total,) = memory.unbind()
        out.copy_(total.copy_(first).add_(other))

    first = torch.arange(27.0).reshape(9, 3)
    ones = torch.ones(9, 1)
    computed = compute_in_blocks(add, first, ones, n_buffers=1, dtype=torch.float64)
    assert torch.equal(computed, first + 1)
    assert [shape for shape, _ in seen] == [(1, 4, 3), (1, 4, 3), (1, 1, 3)]
    assert len({place for _, place in seen}) == 1
    assert not computed.is_inference()
