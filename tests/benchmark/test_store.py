"""The store: what was written can be read, by later versions too."""

import json
import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_grid import comparable, small

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
    store = Store(OLD, trust=True)
    grid = store.grid().benchmark()
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
    grid = Store(folder, trust=True).grid().benchmark()
    frame = grid.run(folder, progress=False, trust=True)
    assert frame.groupby("explainer").size().to_dict() == {"line": 3, "absent": 3}
    assert list(frame.columns) == list(grid.results(OLD).columns)
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())
    assert len(list(folder.glob("cells/*"))) == 4


def test_half_written_files_have_no_name(tmp_path):
    store = Store(tmp_path)
    cell = Cell("d", "c", "e", 0, "key", "model")

    class Unwritable:
        def to_parquet(self, path, **options):
            path.write_bytes(b"half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        store.write(cell, Unwritable(), {"X": np.zeros(2)})
    assert store.state(cell).state == "missing"
    assert [path.name for path in (tmp_path / "cells").iterdir()] == ["key.npz"]
    with pytest.raises(FileNotFoundError, match=r"no grid\.json"):
        store.grid()


class Payload:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


LR = "sklearn.linear_model:LogisticRegression"


def data_grid(**options):
    """A grid that is data."""
    return Benchmark(
        ["ItalyPowerDemand"], {"LR": LR}, {"line": "LineSearch"}, seeds=range(2), **options
    )


def test_looking_at_a_folder_creates_nothing(tmp_path):
    store = Store(tmp_path / "none")
    assert store.state(small().cells()[0]).state == "missing"
    assert small().results(tmp_path / "none").empty
    with pytest.raises(FileNotFoundError, match=r"folder .*none does not exist"):
        store.grid()
    assert not any(tmp_path.iterdir())


def test_a_grid_is_kept_as_data(tmp_path):
    grid = data_grid(metrics=["l2"], instances=3)
    store = Store(tmp_path)
    store.write_grid(grid)
    stored = store.grid()
    assert stored.cells == grid.cells() == stored.benchmark().cells()
    assert stored.metrics == ["l2"] and stored.benchmark().seeds == [0, 1]


def test_a_grid_of_objects_has_its_cells_and_says_how_to_resume(tmp_path):
    store = Store(tmp_path)
    store.write_grid(small())
    assert store.grid().cells == small().cells()
    message = r"classifiers.LR: LogisticRegression.*call run\(grid, folder\) again"
    with pytest.raises(ValueError, match=message):
        store.grid().benchmark()


def test_nothing_in_a_folder_is_unpickled_without_trust(tmp_path):
    proof = tmp_path / "proof"
    payload = pickle.dumps(Payload(proof))
    (tmp_path / "grid.pkl").write_bytes(payload)
    store = Store(tmp_path)
    with pytest.raises(ValueError, match=r"a pickle: opening it runs any code.*--trust"):
        store.grid()
    store.write_grid(data_grid())
    store.grid().benchmark()
    store.write_model("key", b"model")
    assert store.has_model("key") and store.model("key") == b"model"
    path = tmp_path / "models" / "key.pkl"
    path.write_bytes(payload)
    assert not store.has_model("key") and store.has_foreign_model("key")
    with pytest.raises(ValueError, match=r"did not write, or that was altered.*trust=True"):
        store.model("key")
    with pytest.raises(ValueError, match="trust must be True or False"):
        Store(tmp_path, trust="no").model("key")
    assert Store(tmp_path, trust=True).model("key") == payload
    assert not proof.exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["grid"]["explainers"].update(line="subprocess:Popen"),
        lambda content: content["grid"]["classifiers"].update(LR="subprocess:Popen"),
        lambda content: content["cells"][0].update(key="../../../etc/passwd"),
        lambda content: content["cells"][0].update(more=1),
        lambda content: content.pop("cells"),
    ],
)
def test_an_altered_grid_is_refused(change, tmp_path):
    store = Store(tmp_path)
    store.write_grid(data_grid())
    path = tmp_path / "grid.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"would be imported|is damaged or of another version"):
        store.grid().benchmark()


def test_one_run_at_a_time_and_drafts_of_killed_runs_go(tmp_path):
    store = Store(tmp_path)
    with store.alone():
        other = Store(tmp_path).alone()
        with pytest.raises(BlockingIOError, match="Another process runs a benchmark"):
            other.__enter__()
    drafts = [tmp_path / ".contrafact-draft-1-a.json"]
    for part in ("cells", "models"):
        (tmp_path / part).mkdir()
        drafts.append(tmp_path / part / ".contrafact-draft-2-b.npz")
    for draft in drafts:
        draft.touch()
    with store.alone():
        assert not any(draft.exists() for draft in drafts)


def damage(path, how):
    content = path.read_bytes()
    if how == "flipped":
        middle = len(content) // 8
        content = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    path.write_bytes({"cut": content[:100], "empty": b"", "flipped": content}[how])


@pytest.mark.parametrize("how", ["cut", "empty", "flipped"])
def test_a_damaged_cell_is_named_and_left_out(how, whole, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(whole[0], folder)
    store = Store(folder)
    cells = small().cells()
    path = folder / "cells" / f"{cells[0].key}.parquet"
    damage(path, how)
    state = store.state(cells[0])
    assert state.state == "damaged" and state.path == path and state.reason
    assert progress_of(small(), store)["missing"].tolist() == [1, 0]
    with pytest.warns(UserWarning, match=rf"Left out: 1 damaged cell: .*{cells[0].key}"):
        frame = small().results(folder)
    assert len(frame) == len(whole[1]) - 6
    damage(path.with_suffix(".npz"), "cut")
    with pytest.raises(ValueError, match=r"npz is damaged .*run the grid again"):
        store.arrays(cells[0])


def test_damaged_cells_and_foreign_classifiers_are_made_again(whole, tmp_path):
    """The table is the same as before, and nothing else was run again."""
    folder = tmp_path / "copy"
    shutil.copytree(whole[0], folder)
    proof = tmp_path / "proof"
    cells = small().cells()
    first, other = cells[0], next(cell for cell in cells if cell.dataset == "b")
    damage(folder / "cells" / f"{first.key}.parquet", "cut")
    (folder / "cells" / f"{other.key}.parquet").unlink()
    (folder / "models" / f"{other.model_key}.pkl").write_bytes(pickle.dumps(Payload(proof)))
    before = {path: path.stat().st_mtime_ns for path in folder.glob("cells/*.parquet")}
    with pytest.warns(UserWarning) as told:
        frame = small().run(folder, progress=False)
    texts = [str(warning.message) for warning in told]
    assert any(text.startswith("Run again: 1 damaged cell") for text in texts)
    assert any("1 classifiers in" in text and "trained again" in text for text in texts)
    pd.testing.assert_frame_equal(comparable(frame), comparable(whole[1]))
    changed = {path.stem for path, at in before.items() if path.stat().st_mtime_ns != at}
    assert changed == {first.key} and not proof.exists()
    assert Store(folder).has_model(other.model_key)


def test_a_part_that_is_called_otherwise_is_not_run_again(whole):
    cell = replace(small().cells()[0], explainer="straight")
    assert set(Store(whole[0]).frame([cell])["explainer"]) == {"straight"}
