"""The store: what was written can be read, by later versions too."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from small_grid import small

from contrafact.benchmark import Benchmark, Cell, Store, progress_of
from contrafact.metrics import aggregate

#: written by version 0.1.0 before its modules were moved; the cell of one explainer is missing
OLD = Path(__file__).parent / "store_0_1_0"


def test_arrays_are_kept(whole):
    folder, frame = whole
    cell = small().cells()[0]
    arrays = Store(folder).arrays(cell)
    own = frame[
        (frame[["dataset", "explainer"]] == [cell.dataset, cell.explainer]).all(axis=1)
        & (frame["seed"] == 0)
    ]
    distance = np.linalg.norm((arrays["X_cf"] - arrays["X"]).reshape(len(own), -1), axis=1)
    np.testing.assert_allclose(distance, own["l2"])


def keep_version(monkeypatch):
    """Keys of cells depend on the version that ran them."""
    monkeypatch.setattr("contrafact.benchmark.grid.__version__", "0.1.0")


def test_a_store_of_the_first_version_opens(monkeypatch):
    keep_version(monkeypatch)
    store = Store(OLD)
    grid = store.settings()
    assert isinstance(grid, Benchmark) and grid.instances == 3
    states = progress_of(grid, store).set_index("explainer")
    assert states.loc["line"].tolist() == [1, 0, 0]
    assert states.loc["absent"].tolist() == [0, 0, 1]
    frame = grid.results(OLD)
    assert len(frame) == 3 and frame["valid"].all()
    table = aggregate(frame, "explainer", request=["dataset", "seed", "source"])
    assert table.loc[("line", "l2"), "mean"] == pytest.approx(frame["l2"].mean())
    arrays = store.arrays(grid.cells()[0])
    distance = np.linalg.norm((arrays["X_cf"] - arrays["X"]).reshape(3, -1), axis=1)
    np.testing.assert_allclose(distance, frame["l2"])


def test_a_run_of_the_first_version_goes_on(monkeypatch, tmp_path):
    """Only the cell that is missing runs, with the classifier that was trained then."""
    keep_version(monkeypatch)
    folder = tmp_path / "store"
    shutil.copytree(OLD, folder)
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*/*")}
    grid = Store(folder).settings()
    frame = grid.run(folder, progress=False)
    assert frame.groupby("explainer").size().to_dict() == {"line": 3, "absent": 3}
    assert list(frame.columns) == list(grid.results(OLD).columns)
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())
    assert len(list(folder.glob("cells/*"))) == 4


def test_half_written_files_have_no_name(tmp_path):
    store = Store(tmp_path)
    cell = Cell("d", "c", "e", 0, "key", "model")

    class Unwritable:
        def to_parquet(self, path, index):
            path.write_bytes(b"half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        store.write(cell, Unwritable(), {"X": np.zeros(2)})
    assert not store.has(cell)
    assert [path.name for path in (tmp_path / "cells").iterdir()] == ["key.npz"]
    with pytest.raises(FileNotFoundError, match=r"no grid\.pkl"):
        store.settings()
