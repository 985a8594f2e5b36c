"""Saved results of tables: all of the frame comes back, and altered files are refused."""

import json
from importlib import util

import numpy as np
import pandas as pd
import pytest

import contrafact as cf
from contrafact.tables import plain_types
from hospital import hospital_result, patients, risk


@pytest.fixture(scope="module")
def result():
    return hospital_result()


@pytest.fixture(scope="module")
def saved(result, tmp_path_factory):
    return result.save(tmp_path_factory.mktemp("saved") / "result.npz")


def test_the_frames_come_back(result, saved):
    again = cf.Counterfactuals.load(saved)
    pd.testing.assert_frame_equal(again.frame, result.frame)
    pd.testing.assert_frame_equal(again.frame_cf, result.frame_cf)
    assert again.table.schema == result.table.schema
    assert again.table.form == result.table.form
    pd.testing.assert_frame_equal(again.changes(), result.changes())
    assert again.provenance == result.provenance


def test_nothing_is_pickled(saved):
    with np.load(saved, allow_pickle=False) as arrays:
        assert {values.dtype.kind for values in arrays.values()} <= set("biufU")


def test_the_file_knows_only_its_own_rows(result, tmp_path):
    """Identifiers and dates of the reference rows are those of other people."""
    frame = patients(40).assign(id=[f"secret-{i}" for i in range(40)])
    schema = cf.Schema.infer(frame)
    labels = np.array(["high risk", "low risk"])[risk(frame).argmax(1)]
    explainer = cf.NearestUnlike().fit(risk, frame, labels, schema=schema)
    answer = explainer.explain(frame[3:4])
    assert len(answer.table.fixed.values["id"]) == 40
    again = cf.Counterfactuals.load(answer.save(tmp_path / "one"))
    assert again.table.fixed.values["id"] == ["secret-3"]
    assert again.frame_cf["id"].tolist() == ["secret-3"]
    assert b"secret-1" not in str(np.load(tmp_path / "one.npz")["table"]).encode()


FRAMES = {
    "nullable": {
        "a": pd.array([1, None, 3], dtype="Int64"),
        "b": pd.array([1.5, 2, None], "Float64"),
    },
    "booleans": {"a": pd.array([True, None, False], dtype="boolean"), "b": [1, 2, 3]},
    "categories of numbers": {
        "a": pd.Categorical([3, 1, 3], [1, 2, 3], ordered=True),
        "b": [1, 2, 3],
    },
    "intervals": {"a": pd.cut([1.0, 5.0, 9.0], [0, 4, 8, 12]), "b": [1, 2, 3]},
    "single": {"a": np.array([0.1, 0.2, 0.3], np.float32), "b": np.array([1, 2, 3], np.int8)},
    "dates": {"a": pd.to_datetime(["2026-01-01", None, "2026-02-01"]), "b": [1, 2, 3]},
    "zones": {
        "a": pd.to_datetime(["2026-01-01", None, "2026-02-01"]).tz_localize("Europe/Berlin"),
        "b": [1, 2, 3],
    },
    "texts": {"a": pd.array(["x", None, "y"], dtype="string"), "b": [1, 2, 3]},
    "objects": {"a": pd.Series(["x", None, 3], dtype=object), "b": [1, 2, 3]},
}
INDEXES = {
    "numbers": [5, 6, 7],
    "texts": pd.Index(["x", "y", "z"], name="patient"),
    "dates": pd.date_range("2026-01-01", periods=3, tz="Europe/Berlin"),
    "levels": pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["site", None]),
}


def first_column_rises(frame, index=None):
    """A result whose second column is changed."""
    before = pd.DataFrame(frame, index=index)
    after = before.copy()
    after["b"] = before["b"].to_numpy()[::-1]
    model = lambda X: np.tile([0.0, 1.0], (len(X), 1))  # noqa: E731
    return cf.Counterfactuals.from_arrays(model, before, after)


@pytest.mark.parametrize("kind", FRAMES)
def test_types_come_back(kind, tmp_path):
    result = first_column_rises(FRAMES[kind])
    again = cf.Counterfactuals.load(result.save(tmp_path / "result"))
    pd.testing.assert_frame_equal(again.frame, result.frame)
    pd.testing.assert_frame_equal(again.frame_cf, result.frame_cf)


@pytest.mark.parametrize("kind", INDEXES)
def test_labels_come_back(kind, tmp_path):
    result = first_column_rises({"a": [1, 2, 3], "b": [4, 5, 6]}, INDEXES[kind])
    again = cf.Counterfactuals.load(result.save(tmp_path / "result"))
    pd.testing.assert_index_equal(again.frame.index, result.frame.index)


def test_polars_comes_back(tmp_path):
    pl = pytest.importorskip("polars")
    before = pl.DataFrame(
        {
            "a": [1, None, 3],
            "b": pl.Series([0.5, 1.5, 2.5], dtype=pl.Float32),
            "c": pl.Series(["x", "y", "x"], dtype=pl.Enum(["y", "x"])),
            "d": pl.Series(["x", "y", None], dtype=pl.Categorical),
            "e": [True, False, True],
        }
    )
    after = before.with_columns(b=before["b"].reverse())
    model = lambda X: np.tile([0.0, 1.0], (len(X), 1))  # noqa: E731
    result = cf.Counterfactuals.from_arrays(model, before, after)
    again = cf.Counterfactuals.load(result.save(tmp_path / "result"))
    assert again.frame.equals(result.frame)
    assert again.frame.schema == result.frame.schema
    assert again.frame_cf.equals(result.frame_cf)


def test_a_library_that_is_not_installed_is_named(tmp_path, monkeypatch):
    pl = pytest.importorskip("polars")
    before = pl.DataFrame({"a": [1, 2]})
    model = lambda X: np.tile([0.0, 1.0], (len(X), 1))  # noqa: E731
    path = cf.Counterfactuals.from_arrays(model, before, before).save(tmp_path / "result")
    found = util.find_spec
    monkeypatch.setattr(
        plain_types, "find_spec", lambda name: None if name == "polars" else found(name)
    )
    with pytest.raises(ImportError, match=r"result.npz cannot be used: .*polars, which is not"):
        cf.Counterfactuals.load(path)


def test_what_cannot_be_saved_is_named(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    dtype = pd.ArrowDtype(pyarrow.dictionary(pyarrow.int32(), pyarrow.string()))
    frame = pd.DataFrame({"a": pd.Series(["x", "y"], dtype=dtype), "b": [1, 2]})
    with pytest.raises(ValueError, match=r"column 'a': dtype .* cannot be saved"):
        plain_types.form_to_plain(cf.tables.frame_forms.FrameForm.of(frame))


def altered(saved, folder, change):
    """A copy of a file whose arrays or table were changed."""
    with np.load(saved) as archive:
        arrays = dict(archive)
    table = json.loads(str(arrays["table"]))
    replaced = change(arrays, table)
    arrays["table"] = np.array(json.dumps(table if replaced is None else replaced))
    path = folder / "altered.npz"
    np.savez(path, **arrays)
    return path


def set_code(column, value):
    def change(arrays, table):
        position = [entry["name"] for entry in table["schema"]["columns"]].index(column)
        arrays["X"] = arrays["X"].copy()
        arrays["X"][1, position] = value
        arrays["X_cf"][1, position] = value

    return change


def in_table(*path, value):
    def change(arrays, table):
        place = table
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


ALTERATIONS = {
    "a level too high": (set_code("sex", 2), r"X\[1\] is not among the values of column 'sex'"),
    "half a level": (set_code("smokes", 0.5), "not among the values of column 'smokes'"),
    "a negative level": (set_code("activity", -3), "not among the values of column 'activity'"),
    "no such fixed value": (set_code("admitted", 9), "not among the values of column 'admitted'"),
    "missing where it may not be": (
        set_code("bmi", np.nan),
        "is missing, which the schema forbids, in column 'bmi'",
    ),
    "a number beyond all whole ones": (set_code("age", 1e300), "table cannot be read"),
    "half a whole number": (set_code("creatinine", 60.5), "types"),
    "no table": (lambda arrays, table: [], "table cannot be read"),
    "another library": (in_table("form", "library", value="os"), "'pandas' or 'polars'"),
    "another type": (in_table("form", "dtypes", 0, value={"kind": "named", "name": "O:x"}), "read"),
    "another label": (in_table("form", "labels", 0, value="years"), "same columns"),
    "a label too few": (in_table("form", "labels", value=["age"]), "labels"),
    "rows without labels": (in_table("index", 0, "values", value=["P"]), "labels for 4 rows"),
    "another kind": (in_table("schema", "columns", 0, "kind", value="code"), "kind"),
    "one level": (in_table("schema", "columns", 6, "levels", value=["male"]), "column 'sex'"),
    "levels that repeat": (in_table("schema", "columns", 6, "levels", value=["m", "m"]), "differ"),
    "a word for a value": (in_table("fixed", "admitted", value=[["run", "x"]]), "not a value"),
    "a value twice": (in_table("fixed", "admitted", value=["a", "a"]), "repeated"),
    "unknown names": (lambda arrays, table: arrays.update(names=arrays["names"][::-1]), "names"),
}


@pytest.mark.parametrize("kind", ALTERATIONS)
def test_an_altered_file_is_refused_in_one_line(kind, saved, tmp_path):
    change, reason = ALTERATIONS[kind]
    path = altered(saved, tmp_path, change)
    with pytest.raises(ValueError, match=reason) as refusal:
        cf.Counterfactuals.load(path)
    message = str(refusal.value)
    assert message.startswith(f"{path} cannot be used. ")
    assert "\n" not in message
    assert len(message) < 400 + len(str(path))


def test_an_unaltered_copy_is_read(saved, result, tmp_path):
    path = altered(saved, tmp_path, lambda arrays, table: None)
    assert cf.Counterfactuals.load(path).changes().equals(result.changes())
