"""Results of tables as frames and files: changes, before and after side by side."""

import sys

import numpy as np
import pandas as pd
import pytest

import contrafact as cf
from contrafact.data.writing import is_draft
from hospital import hospital_result, patients, risk


@pytest.fixture(scope="module")
def result():
    return hospital_result()


def polars_result():
    pl = pytest.importorskip("polars")
    before = pl.DataFrame({"bmi": [31.4, 38.0], "smokes": [True, True], "id": ["a", "b"]})
    after = before.with_columns(
        bmi=pl.Series([27.1, 25.0]), smokes=pl.Series([False, True]), id=before["id"]
    )
    schema = cf.Schema.infer(before.vstack(after)).edit("id", kind="fixed")

    def model(frame):
        high = (frame["bmi"].to_numpy() > 28).astype(float)
        return np.stack([high, 1 - high], axis=1)

    return cf.Counterfactuals.from_arrays(model, before, after, schema=schema)


def test_one_line_per_changed_value(result):
    told = result.changes()
    assert told.columns.tolist() == ["row", "option", "column", "before", "after"]
    lines = [" ".join(map(str, line)) for line in told.values.tolist()]
    assert lines[:4] == [
        "P-1000 0 bmi 31.4 27.1",
        "P-1000 0 smokes True False",
        "P-1000 1 bmi 31.4 24.0",
        "P-1000 1 ward C A",
    ]
    assert lines[4:] == [
        "P-1001 0 bmi 38.0 25.0",
        "P-1001 0 hba1c nan 6.1",
        "P-1001 0 smokes True False",
        "P-1001 0 activity some daily",
    ]


def test_options_that_failed_are_listed_if_asked(result):
    told = result.changes(only_valid=False)
    assert told.tail(2)[["row", "option", "column"]].values.tolist() == [
        ["P-1001", 1, "bmi"],
        ["P-1001", 1, "activity"],
    ]


def test_changes_have_the_values_of_the_frames(result):
    told = result.changes(only_valid=False)
    before = result.frame.reset_index(names="row")
    before["option"] = result.options
    after = result.frame_cf.reset_index(names="row")
    for line in told[told["column"] != "ward"].itertuples():
        mine = (before["row"] == line.row) & (before["option"] == line.option)
        assert line.after == after.loc[mine, line.column].item()
        assert line.before is before.loc[mine, line.column].item() or line.before != line.after


def test_rows_are_numbered_where_the_frame_has_no_labels():
    told = polars_result().changes()
    assert type(told).__module__.startswith("polars")
    # Booleans and numbers share a column, which has one type in polars.
    assert told.rows() == [
        (0, 0, "bmi", "31.4", "27.1"),
        (0, 0, "smokes", "True", "False"),
        (1, 0, "bmi", "38.0", "25.0"),
    ]


def test_numbers_stay_numbers_in_polars():
    told = polars_result()[1].changes()
    assert told["before"].to_list() == [38.0]


def test_nothing_changed_gives_no_lines(result):
    same = cf.Counterfactuals.from_arrays(risk, result.frame, result.frame, 0)
    assert len(same.changes(only_valid=False)) == 0


def test_arrays_have_no_changes_by_column():
    X = np.zeros((2, 3))
    result = cf.Counterfactuals.from_arrays(lambda X: np.tile([1.0, 0.0], (len(X), 1)), X, X + 1)
    with pytest.raises(ValueError, match="X was an array"):
        result.changes()
    with pytest.raises(ValueError, match="X was an array"):
        result.to_csv("never.csv")


def test_the_table_of_rows_counts_columns(result):
    told = result.to_frame()
    assert told["row"].tolist() == ["P-1000", "P-1000", "P-1001", "P-1001"]
    assert told["changed_columns"].tolist() == [2, 2, 4, 2]
    np.testing.assert_allclose(told["changed_fraction"], told["changed_columns"] / 9)


def test_the_result_says_how_many_columns(result):
    assert repr(result) == (
        "<Counterfactuals: 4 rows of 9 columns by Hand: 3 valid, 1 invalid, 2.67 columns changed>"
    )


def test_csv_has_before_beside_after(result, tmp_path):
    told = pd.read_csv(result.to_csv(tmp_path / "why.csv"))
    assert told["status"].tolist() == ["valid", "valid", "valid", "invalid"]
    assert told["option"].tolist() == [0, 1, 0, 1]
    columns = told.columns.tolist()
    assert columns.index("bmi (after)") == columns.index("bmi (before)") + 1
    assert told["bmi (before)"].tolist() == [31.4, 31.4, 38.0, 38.0]
    assert told["bmi (after)"].tolist() == [27.1, 24.0, 25.0, 36.5]
    np.testing.assert_allclose(told["p_after"], result.target_proba[:, 1])


def test_parquet_keeps_the_types(result, tmp_path):
    told = pd.read_parquet(result.to_parquet(tmp_path / "why.parquet"))
    for name, dtype in result.frame.dtypes.items():
        if name != "activity":  # whose order is kept, but not the type of its levels
            assert told[f"{name} (after)"].dtype == dtype
    assert told["activity (after)"].cat.categories.tolist() == ["none", "some", "daily"]


def test_polars_writes_its_own_files(tmp_path):
    pl = pytest.importorskip("polars")
    result = polars_result()
    told = pl.read_parquet(result.to_parquet(tmp_path / "why.parquet"))
    assert told["bmi (after)"].to_list() == [27.1, 25.0]
    assert pl.read_csv(result.to_csv(tmp_path / "why.csv"))["id (before)"].to_list() == ["a", "b"]


def test_a_missing_library_is_named(result, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"Parquet needs pyarrow, .*contrafact\[parquet\]"):
        result.to_parquet(tmp_path / "why.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_written_whole_or_not_at_all(result, tmp_path, monkeypatch):
    path = tmp_path / "why.csv"
    path.write_text("before")

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fail)
    with pytest.raises(OSError, match="disk full"):
        result.to_csv(path)
    assert path.read_text() == "before"
    assert not any(map(is_draft, tmp_path.iterdir()))


def test_labels_of_several_levels(tmp_path):
    frame = patients(12)
    frame.index = pd.MultiIndex.from_product([["A", "B"], range(6)], names=["site", "patient"])
    after = frame.copy()
    after["bmi"] = 20.0
    result = cf.Counterfactuals.from_arrays(risk, frame, after)
    assert result.changes(only_valid=False)["row"].iloc[7] == ("B", 1)
    told = pd.read_parquet(result.to_parquet(tmp_path / "why.parquet"))
    assert told["row"].iloc[7] == "B / 1"
