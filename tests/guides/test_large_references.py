"""References on disk: searched without a copy, exactly, and the model is asked about them once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import contrafact as cf
from contrafact.data.arrays import for_torch
from contrafact.guides import NearestUnlikeNeighbor, proposals

X = np.random.default_rng(0).normal(size=(3000, 1, 20)).astype(np.float32)


class Counting:
    """A function that counts the rows it is asked about."""

    def __init__(self, weight=1.0):
        self.rows = 0
        self.weight = weight

    def __call__(self, rows):
        self.rows += len(rows)
        p = 1 / (1 + np.exp(-self.weight * rows.reshape(len(rows), -1).sum(1)))
        return np.column_stack([1 - p, p])


@pytest.fixture
def on_disk(tmp_path):
    path = tmp_path / "reference.npy"
    np.save(path, X)
    return path


def plain_nearest(guide, queries, target):
    """Return the nearest row of the class by plain differences in float64."""
    members = (guide.candidate_class_ == target).nonzero().flatten().numpy()
    rows = X[members].astype(np.float64).reshape(len(members), -1)
    flat = queries.astype(np.float64).reshape(len(queries), -1)
    squared = ((flat[:, None] - rows) ** 2).sum(2)
    return members[squared.argmin(1)]


@pytest.mark.parametrize("block", [300, 2**21])
def test_search_is_exact_in_blocks_of_any_size(block, on_disk, monkeypatch):
    monkeypatch.setattr(proposals, "MAX_SCORES", block)
    guide = NearestUnlikeNeighbor().fit(Counting(), np.load(on_disk, mmap_mode="r"))
    queries = X[:40] + 0.01
    for target in (0, 1):
        _, index = guide.guide(queries, target)
        assert index[:, 0].tolist() == plain_nearest(guide, queries, target).tolist()


def test_equal_rows_in_later_blocks_do_not_displace_the_first(monkeypatch):
    monkeypatch.setattr(proposals, "MAX_SCORES", 200)
    rows = np.tile(X[:50], (4, 1, 1))
    guide = NearestUnlikeNeighbor().fit(Counting(), rows)
    own = guide.candidate_class_[:50]
    for target in (0, 1):
        which = np.flatnonzero(own.numpy() == target)
        _, index = guide.guide(rows[which], target)
        assert index[:, 0].tolist() == which.tolist()


def test_file_mapped_for_reading_is_not_copied(on_disk):
    mapped = np.load(on_disk, mmap_mode="r")
    same = for_torch(np.asarray(mapped))
    assert isinstance(same, np.memmap) and same.flags.writeable
    same[0] = 7  # does not reach the file
    assert np.array_equal(np.load(on_disk), X)
    assert not isinstance(for_torch(mapped[5:9]), np.memmap)
    assert np.array_equal(for_torch(mapped[5:9]), X[5:9])


def test_explaining_with_a_mapped_reference_is_the_same(on_disk):
    mapped = np.load(on_disk, mmap_mode="r")
    there = cf.NativeGuide().fit(Counting(), mapped).explain(X[:5])
    here = cf.NativeGuide().fit(Counting(), X).explain(X[:5])
    assert np.array_equal(there.X_cf, here.X_cf)


def test_model_is_asked_about_the_reference_once(tmp_path):
    path = tmp_path / "answers.npz"
    first, again, other = Counting(), Counting(), Counting(weight=-1.0)
    explainer = cf.NativeGuide(guide=NearestUnlikeNeighbor(answers=path))
    explainer.fit(first, X)
    assert path.exists() and first.rows >= len(X)
    before = explainer.explain(X[:4]).X_cf
    explainer.fit(again, X)
    assert again.rows < len(X) / 2
    assert np.array_equal(explainer.explain(X[:4]).X_cf, before)
    explainer.fit(other, X)
    assert other.rows >= len(X)
    assert torch.equal(
        explainer.guide_.candidate_class_, NearestUnlikeNeighbor().fit(other, X).candidate_class_
    )


def test_other_rows_are_asked_about_anew(tmp_path):
    path = tmp_path / "answers"  # the suffix is added
    NearestUnlikeNeighbor(answers=path).fit(Counting(), X)
    changed = X.copy()
    changed[1234, 0, 3] += 1e-3
    model = Counting()
    NearestUnlikeNeighbor(answers=path).fit(model, changed)
    assert model.rows >= len(X)


def test_file_with_something_else_is_left_alone(tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, X=X[:5])
    content = path.read_bytes()
    with pytest.raises(ValueError, match=r"answers: .* holds something else"):
        NearestUnlikeNeighbor(answers=path).fit(Counting(), X)
    assert path.read_bytes() == content
