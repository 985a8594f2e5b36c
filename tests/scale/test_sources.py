"""Sources of every format give the rows that were written, and read no more than is asked for."""

import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import zarr
from scale_samples import channels, check_same

import contrafact as cf
from contrafact.scale.opening import open_source

X = np.random.default_rng(0).normal(size=(40, 3, 10))
Y = np.array(["a", "b"] * 20)
IDS = np.arange(40) + 500


def lists(values, size=None):
    """Make a column of lists, of fixed size where one is given."""
    return pa.array(values.tolist(), pa.list_(pa.float64(), size) if size else None)


def write_npy(path):
    np.save(path / "x.npy", X)
    return path / "x.npy"


def write_fortran(path):
    np.save(path / "x.npy", np.asfortranarray(X))
    return path / "x.npy"


def write_npz(path):
    np.savez(path / "x.npz", y=Y, X=X, id=IDS)
    return path / "x.npz"


def write_compressed(path):
    np.savez_compressed(path / "x.npz", X_test=X, y_test=Y, id=IDS, X_train=X[:2])
    return path / "x.npz"


def write_channels(path):
    columns = {f"c{i}": lists(X[:, i], 10 if i else None) for i in range(3)}
    columns = {"label": Y, **columns, "id": IDS}
    pq.write_table(pa.table(columns), path / "x.parquet", row_group_size=7)
    return path / "x.parquet"


def write_nested(path):
    pq.write_table(pa.table({"x": pa.array(X.tolist()), "y": Y, "id": IDS}), path / "x.parquet")
    return path / "x.parquet"


def write_folder(path):
    for start in (0, 15, 30):
        table = pa.table({"x": pa.array(X[start : start + 15].tolist())})
        (path / "d" / f"day={start}").mkdir(parents=True)
        pq.write_table(table, path / "d" / f"day={start}" / "x.parquet", row_group_size=4)
    (path / "d" / "_SUCCESS.parquet").write_text("")
    return path / "d"


def write_zarr(path):
    zarr.save_array(str(path / "x.zarr"), X)
    return path / "x.zarr"


def write_group(path):
    group = zarr.open_group(str(path / "g"), mode="w")
    for name, values in {"X": X, "y": (Y == "b").astype(int), "id": IDS}.items():
        group.create_array(name, data=values)
    return path / "g"


WRITERS = [
    write_npy,
    write_fortran,
    write_npz,
    write_compressed,
    write_channels,
    write_nested,
    write_folder,
    write_zarr,
    write_group,
    lambda path: X,
    lambda path: torch.from_numpy(X),
    lambda path: X.tolist(),
    lambda path: zarr.open(str(write_zarr(path)), mode="r"),
]


@pytest.mark.parametrize("write", WRITERS)
def test_rows_are_those_that_were_written_in_any_order(tmp_path, write):
    source = open_source(write(tmp_path))
    assert len(source) == 40
    for start, stop in [(0, 5), (5, 17), (30, 40), (20, 31), (0, 40), (39, 40)]:
        rows = source.read(start, stop)
        np.testing.assert_array_equal(rows.X, X[start:stop])
        if rows.ids is not None:
            assert rows.ids.tolist() == IDS[start:stop].tolist()
        if rows.y is not None:
            assert rows.y[0] in (Y[start], int(Y[start] == "b"))
    both = [write_npz, write_compressed, write_channels, write_nested, write_group]
    assert (rows.ids is not None and rows.y is not None) == (write in both)


@pytest.mark.parametrize("write", [write_compressed, write_channels, write_group])
def test_a_source_gives_the_results_of_its_array(tmp_path, write):
    data, y, model = channels()
    options = {"reference": (data, y), "method": "CoMTE"}
    found = cf.explain_dataset(model, write(tmp_path), tmp_path / "out", chunk=11, **options)
    check_same(cf.explain(model, X, **options), found[:])
    assert found.to_frame()["id"].tolist() == IDS.tolist()
    assert found[3].source.tolist() == [3]


def test_an_npy_file_is_not_read_whole(tmp_path):
    """The file claims 64 GiB, of which the disk holds nothing."""
    path = tmp_path / "x.npy"
    shape = (2**32, 4)
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 4 * int(np.prod(shape)))
    source = open_source(path)
    assert len(source) == 2**32
    assert source.read(2**32 - 3, 2**32).X.tolist() == [[0.0] * 4] * 3
    assert source.fingerprint()["shape"] == [2**32, 4]


def test_row_groups_that_are_not_asked_for_are_not_read(tmp_path):
    path = write_channels(tmp_path)
    content = bytearray(path.read_bytes())
    first = pq.read_metadata(path).row_group(0).column(1)
    begin = first.data_page_offset
    content[begin : begin + first.total_compressed_size] = bytes(first.total_compressed_size)
    path.write_bytes(content)
    np.testing.assert_array_equal(open_source(path).read(7, 40).X, X[7:])
    with pytest.raises(OSError):
        open_source(path).read(0, 7)


def test_steps_in_plain_columns_are_series(tmp_path):
    columns = {f"t{i}": X[:, 0, i] for i in range(10)}
    pd.DataFrame({**columns, "label": Y}).to_parquet(tmp_path / "x.parquet")
    model = lambda X: np.stack([1 - (X.mean((1, 2)) > 0), X.mean((1, 2)) > 0], 1).astype(float)  # noqa: E731
    found = cf.explain_dataset(
        model,
        tmp_path / "x.parquet",
        tmp_path / "out",
        reference=X[:, :1],
        method="NearestUnlike",
    )
    np.testing.assert_array_equal(found[:].X, X[:, :1])


def test_what_cannot_be_used_is_named(tmp_path):
    np.save(tmp_path / "o.npy", np.zeros(4))
    (tmp_path / "t.txt").write_text("")
    (tmp_path / "e").mkdir()
    pq.write_table(pa.table({"x": pa.array([[1.0], [1.0, 2.0]])}), tmp_path / "r.parquet")
    pq.write_table(pa.table({"x": pa.array([[1.0]]), "a": [1]}), tmp_path / "m.parquet")
    (tmp_path / "b.parquet").write_text("no parquet file at all")
    (tmp_path / "b.npz").write_text("no archive")
    cut = write_npy(tmp_path)
    cut.write_bytes(cut.read_bytes()[:-8])
    for name, words in {
        "nowhere.npy": "does not exist",
        "o.npy": r"shape \(4,\)",
        "t.txt": r"suffix '.txt'. Accepted: an array",
        "e": "no .parquet files",
        "b.parquet": "cannot be read as .parquet",
        "b.npz": "cannot be read as .npz",
        "x.npy": "is damaged",
    }.items():
        with pytest.raises((ValueError, FileNotFoundError), match=f"source .*{words}"):
            open_source(tmp_path / name)
    with pytest.raises(ValueError, match=r"'x' holds lists of 1 and, in row 1, of 2 entries"):
        open_source(tmp_path / "r.parquet").read(0, 2)
    with pytest.raises(ValueError, match="mixes list columns and plain ones"):
        open_source(tmp_path / "m.parquet", columns=["x", "a"])
    with pytest.raises(ValueError, match=r"has no column 'z'"):
        open_source(tmp_path / "m.parquet", columns=["z"])
    with pytest.raises(ValueError, match=r"no column 'z' \(ids\)"):
        open_source(tmp_path / "m.parquet", ids="z")


def test_fingerprints_follow_the_content(tmp_path):
    for write in (write_npy, write_npz, write_channels, write_zarr):
        folder = tmp_path / write.__name__
        folder.mkdir()
        path = write(folder)
        before = open_source(path).fingerprint()
        assert open_source(path).fingerprint() == before
        if path.is_dir():
            shutil.rmtree(path)
        write(folder)
        assert open_source(path).fingerprint() != before  # written anew, at another time
    changed = X.copy()
    changed[39, 2, 9] += 1
    assert open_source(X).fingerprint() == open_source(X.copy()).fingerprint()
    assert open_source(X).fingerprint() != open_source(changed).fingerprint()
    frame = pd.DataFrame(X[:, 0])
    assert open_source(frame).fingerprint() == open_source(frame.copy()).fingerprint()
    assert open_source(frame).fingerprint() != open_source(frame + 1).fingerprint()
