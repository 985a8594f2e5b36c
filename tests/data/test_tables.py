"""Tables: what a .csv may look like, and what is said of one that cannot be read."""

import numpy as np
import pandas as pd
import pytest

from contrafact.data import Dataset, load_dataset
from contrafact.data.loaders import read_parts
from contrafact.data.table_columns import ColumnChoice
from contrafact.data.tables import read_table

FRAME = pd.DataFrame(
    {
        "age": [31, 48, 52, 27],
        "glucose": [4.5, 9.25, 8.0, 5.5],
        "class": ["well", "ill", "ill", "well"],
    }
)


def written(tmp_path, text: str, encoding: str = "utf-8"):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding=encoding)
    return path


def test_rows_names_and_labels(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv")  # with pandas' index, as people do
    data = load_dataset(tmp_path / "t.csv")
    assert (data.name, data.modality, data.names) == ("t", "row", ("age", "glucose"))
    assert (len(data.X_train), len(data.X_test), data.classes.tolist()) == (2, 2, ["ill", "well"])
    whole = read_parts(tmp_path / "t.csv")
    np.testing.assert_array_equal(whole.parts[0][0], FRAME[["age", "glucose"]])
    np.testing.assert_array_equal(whole.parts[0][1], FRAME["class"])


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("a,b,Label\n1.5,2,x\n-3,4e2,y\n", "utf-8"),
        ("a;b;Label\n1,5;2;x\n-3;4e2;y\n", "utf-8"),
        ("a\tb\tLabel\n1,5\t2\tx\n-3\t400\ty\n", "utf-8-sig"),
        ('"a","b","Label"\r\n"1.5","2","x"\r\n\r\n"-3","400","y"\r\n', "utf-8-sig"),
    ],
    ids=["comma", "semicolon and decimal comma", "tab and BOM", "quoted, CRLF, empty line"],
)
def test_dialects(tmp_path, text, encoding):
    source = read_parts(written(tmp_path, text, encoding))
    assert source.names == ("a", "b")
    assert source.parts[0][0].tolist() == [[1.5, 2], [-3, 400]]
    assert source.parts[0][1].tolist() == ["x", "y"]


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["1", "2"], [1, 2]),
        (["1.0", "-1.0"], [1, -1]),
        (["0.5", "1"], [0.5, 1.0]),
        (["True", "False"], [True, False]),
        (["NA", "None"], ["NA", "None"]),
        (["<b>", "👍 [red]"], ["<b>", "👍 [red]"]),
    ],
)
def test_labels_of_any_type(tmp_path, cells, labels):
    path = written(tmp_path, "a,y\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells)))
    y = read_parts(path).parts[0][1]
    assert y.tolist() == labels and type(y.tolist()[0]) is type(labels[0])


def test_label_column_by_name_or_absent(tmp_path):
    path = written(tmp_path, "a,kind,b\n1,u,2\n3,v,4\n")
    assert read_parts(path, label="kind").names == ("a", "b")
    with pytest.raises(
        ValueError, match=r"column 'kind' holds 'u' in line 2, which is not a number"
    ):
        read_parts(path)
    with pytest.raises(ValueError, match=r"no column 'sort' \(label\); it has 'a', 'kind', 'b'"):
        load_dataset(path, label="sort")
    path = written(tmp_path, "a,b\n1,2\n")
    assert read_parts(path).parts[0][1] is None
    with pytest.raises(
        ValueError, match=r"no column called label, class, target or y; it has 'a', 'b'"
    ):
        load_dataset(path)
    with pytest.raises(
        ValueError, match=r"several columns that may hold the labels: 'y', 'Target'"
    ):
        read_parts(written(tmp_path, "y,Target\n1,2\n"))


def test_wanted_columns_come_in_their_order_and_others_may_hold_text(tmp_path):
    path = written(tmp_path, "id,b,a,label\nAnn,2,1,x\nBo,4,3,y\n")
    source = read_parts(path, columns=["a", "b"])
    assert source.names == ("a", "b") and source.parts[0][0].tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match=r"no column 'c', which the model was trained on"):
        read_parts(path, columns=["a", "c"])


def test_series_are_wide(tmp_path):
    path = written(tmp_path, "label,0,1,2\nu,1,2,3\nv,4,5,6\n")
    source = read_parts(path, modality="series")
    assert source.parts[0][0].tolist() == [[[1, 2, 3]], [[4, 5, 6]]] and source.names is None
    assert read_parts(written(tmp_path, "0,1,2\n4,5,6\n"), modality="series").parts[0][0].shape == (
        1,
        1,
        3,
    )
    # Steps count, wherever their column stands, and 10 comes after 9.
    path = written(tmp_path, "x_9,y_9,x_10,y_10,label\n1,2,3,4,u\n")
    source = read_parts(path, modality="series")
    assert source.parts[0][0].tolist() == [[[1, 3], [2, 4]]] and source.names == ("x", "y")
    with pytest.raises(ValueError, match=r"different steps \('x' 2, 'y' 1\)"):
        read_parts(written(tmp_path, "x_0,x_1,y_0\n1,2,3\n"), modality="series")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", r"is empty"),
        ("a,b,y\n", r"a header and nothing after it"),
        ("5.1,3.5,1\n4.9,3.0,0\n", r"no header: its first line holds numbers only \(5\.1, 3\.5, 1"),
        ("a,b,y\n1,2,u\n1,2,3,v\n", r"cannot be read as \.csv: .*line 3"),
        ("a,b,y\n1,2,3,v\n1,2,3,v\n", r"cannot be read as \.csv"),
        ("a,y\n1,\n", r"line 2 has no label in column 'y'"),
        ("a,y\n1,u\n?,v\n", r"X\[1\] contains NaN at feature 0"),
        (
            'a,y\n1,u\n"2,5",v\n',
            r"column 'a' holds '2,5' in line 3, which is not a number\. Decimal commas",
        ),
        ("y\nu\n", r"no columns besides the label"),
    ],
)
def test_bad_tables_are_explained(tmp_path, text, reason):
    with pytest.raises(ValueError, match=reason):
        read_parts(written(tmp_path, text))


def test_other_encodings_and_misplaced_options_are_explained(tmp_path):
    with pytest.raises(ValueError, match="not UTF-8 text"):
        read_parts(written(tmp_path, "Größe,y\n1,u\n", "latin-1"))
    np.savez(tmp_path / "a.npz", X=np.ones((2, 3)), y=[0, 1])
    with pytest.raises(ValueError, match=r"label 'y' names a column of a \.csv"):
        load_dataset(tmp_path / "a.npz", label="y")
    with pytest.raises(ValueError, match="iris holds row data, not 'series'"):
        load_dataset("iris", modality="series")


def test_gaps_are_filled(tmp_path):
    path = written(tmp_path, "a,b\n1,2\n,4\n3,NA\n")
    assert read_parts(path, fill=True).parts[0][0].tolist() == [[1, 2], [2, 4], [3, 3]]


def test_unlabeled_files_can_be_read_but_not_loaded(tmp_path):
    np.savez(tmp_path / "x.npz", X=np.ones((2, 3)))
    source = read_parts(tmp_path / "x.npz", modality="series")
    assert source.parts[0][0].shape == (2, 1, 3) and source.parts[0][1] is None
    with pytest.raises(ValueError, match="no entry 'y'"):
        load_dataset(tmp_path / "x.npz")
    (tmp_path / "x.ts").write_text("@univariate true\n@classLabel false\n@data\n1,2,3\n4,5,6\n")
    assert read_parts(tmp_path / "x.ts").parts[0][1] is None


def test_names_are_known_and_checked():
    assert load_dataset("wine").names[:2] == ("alcohol", "malic_acid")
    assert load_dataset("digits").names is None
    with pytest.raises(ValueError, match=r"names has 1 entries, X_train has shape \(2, 2\)"):
        Dataset("t", "row", np.eye(2), [0, 1], np.eye(2), [0, 1], names=("a",))


def test_identifiers_too_long_for_a_number_are_named(tmp_path):
    """They ended in an IndexError; as numbers they would all become the same."""
    path = tmp_path / "ids.csv"
    rows = [f"{10**23 + i},{i % 2},{i}" for i in range(20)]
    path.write_text("\n".join(["id,label,x", *rows]))
    with pytest.raises(ValueError, match=r"ids\.csv: column 'id' holds '1000.* more digits"):
        read_table(path, ColumnChoice())
    rows = [f"{10**23 + i % 2},{i}" for i in range(20)]
    path.write_text("\n".join(["label,x", *rows]))
    assert set(read_table(path, ColumnChoice()).y) == {str(10**23), str(10**23 + 1)}


def test_a_table_with_too_many_columns_is_refused_at_once(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(",".join(["label", *(f"t{i}" for i in range(100_000))]) + "\n")
    with pytest.raises(ValueError, match=r"100,001 columns.* up to 20,000 .*\.npz"):
        read_table(path, ColumnChoice())


def test_a_label_may_be_called_na_and_numbers_may_be_missing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("label,x\nNA,1\nb,NA\nNA,2\n")
    table = read_table(path, ColumnChoice())
    assert table.y.tolist() == ["NA", "b", "NA"]
    assert np.isnan(table.X[:, 0]).tolist() == [False, True, False]
