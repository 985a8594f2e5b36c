"""Dissimilarities of the swap search: blocks, cache and threads."""

import pytest
from swap_cases import OBJECTIVES, first_of_each, make_data, search

from contrafact.prototypes import swap_columns
from contrafact.prototypes.swap_columns import EuclideanColumns


@pytest.mark.parametrize("name", OBJECTIVES)
def test_blocks_cache_and_threads_change_nothing(name, monkeypatch):
    X, y = make_data(300, 3, 5, seed=4)
    start = first_of_each(y, 2)
    indices, history = search(EuclideanColumns(X), y, name, start)
    for block, cache, threads in [(7, 0, 1), (64, 0, 3), (31, 10**9, 2), (1000, 0, 2)]:
        monkeypatch.setattr(swap_columns, "BLOCK", block)
        monkeypatch.setattr(swap_columns, "CACHE_BYTES", cache)
        monkeypatch.setattr(swap_columns.numba.config, "NUMBA_NUM_THREADS", threads)
        columns = EuclideanColumns(X)
        assert (columns.cache is None) == (cache == 0)
        again, costs = search(columns, y, name, start)
        assert again.tolist() == indices.tolist()
        assert costs == history
