"""Files of every format: what is read, and what is refused with a reason."""

import numpy as np
import pytest
from ucr_files import X, write_table, write_ts

from contrafact.data import load_dataset


@pytest.mark.parametrize("given", ["folder", "train", "test", "text path"])
def test_ts_round_trip(tmp_path, given):
    series = np.concatenate([X, -X], axis=1)
    write_ts(tmp_path / "Mine_TRAIN.ts", series[:3], ["up", "down", "up"])
    write_ts(tmp_path / "Mine_TEST.ts", series[3:], ["down"])
    path = {"train": tmp_path / "Mine_TRAIN.ts", "test": tmp_path / "Mine_TEST.ts"}.get(
        given, tmp_path
    )
    data = load_dataset(str(path) if given == "text path" else path)
    np.testing.assert_array_equal(data.X_train, series[:3])
    np.testing.assert_array_equal(data.X_test, series[3:])
    assert (data.name, data.y_train.tolist(), data.y_test.tolist()) == (
        "Mine",
        ["up", "down", "up"],
        ["down"],
    )


@pytest.mark.parametrize(("suffix", "between"), [(".tsv", "\t"), (".txt", "  ")])
@pytest.mark.parametrize("label", ["{}", "{}.0000000e+00"])
def test_table_round_trip(tmp_path, suffix, between, label):
    write_table(
        tmp_path / f"T_TRAIN{suffix}", X[:3], [label.format(k) for k in (1, -1, 1)], between
    )
    write_table(tmp_path / f"T_TEST{suffix}", X[3:], [label.format(-1)], between)
    data = load_dataset(tmp_path)
    np.testing.assert_array_equal(data.X_train, X[:3])
    assert data.X_train.dtype == np.float64
    assert (data.y_train.tolist(), data.y_train.dtype.kind) == ([1, -1, 1], "i")


@pytest.mark.parametrize(
    ("shape", "declared", "modality", "loaded"),
    [
        ((6, 5), None, "row", (5,)),
        ((6, 5), "series", "series", (1, 5)),
        ((6, 2, 5), None, "series", (2, 5)),
        ((6, 4, 5), "image", "image", (1, 4, 5)),
        ((6, 3, 4, 5), None, "image", (3, 4, 5)),
    ],
)
def test_npz_round_trip(tmp_path, shape, declared, modality, loaded):
    pixels = np.random.default_rng(0).integers(0, 255, shape).astype(np.uint8)
    y = np.array([True, False, True, True, False, False])
    entries = {} if declared is None else {"modality": declared}
    np.savez(
        tmp_path / "pair.npz",
        X_train=pixels[:4],
        y_train=y[:4],
        X_test=pixels[4:],
        y_test=y[4:],
        **entries,
    )
    np.savez(tmp_path / "whole.npz", X=pixels, y=y, **entries)
    data = load_dataset(tmp_path / "pair.npz")
    assert (data.modality, data.X_train.shape, data.X_train.dtype) == (
        modality,
        (4, *loaded),
        np.float32,
    )
    np.testing.assert_array_equal(data.X_test.reshape(-1), pixels[4:].reshape(-1))
    assert data.y_test.tolist() == [False, False]
    whole = load_dataset(tmp_path / "whole.npz")
    assert (whole.X_train.shape, whole.X_test.shape) == ((4, *loaded), (2, *loaded))


def test_bad_files_are_explained(tmp_path):
    write_ts(tmp_path / "a.ts", [X[0], X[1][:, :2]], ["a", "b"])
    with pytest.raises(
        ValueError, match=r"a\.ts cannot be read as \.ts: .*different number of observations"
    ):
        load_dataset(tmp_path / "a.ts")
    write_ts(tmp_path / "a.ts", [X[0], X[1][:, :2]], ["a", "b"], "@equalLength false\n")
    with pytest.raises(ValueError, match=r"unequal lengths: 2, 3"):
        load_dataset(tmp_path / "a.ts")
    (tmp_path / "stamps.ts").write_text(
        "@timeStamps true\n@classLabel true 1\n@data\n(0,-1.5),(1,2.5):1\n"
    )
    with pytest.raises(ValueError, match="time stamps"):
        load_dataset(tmp_path / "stamps.ts")
    (tmp_path / "regression.ts").write_text("@targetLabel true\n@data\n1,2:0.5\n")
    with pytest.raises(ValueError, match="no class labels"):
        load_dataset(tmp_path / "regression.ts")
    for entries, reason in [
        ({"X": X, "labels": [1]}, r"no entry 'y'; it has 'X', 'labels'"),
        ({"X": X, "y": [1, 2]}, r"y has shape \(2,\).*\(4,\)"),
        ({"X": X, "y": np.array(["a", None, 1, 2.0])}, r"cannot be read as \.npz"),
        (
            {"X": X, "y": [1, 1, 2, 2], "modality": "sound"},
            r"'sound' is unknown.*'series', 'image', 'row'",
        ),
        (
            {"X": X[0, 0], "y": [1, 1, 2], "modality": "series"},
            r"X has shape \(3,\).*\(n, channels, length\)",
        ),
    ]:
        np.savez(tmp_path / "bad.npz", **entries)
        with pytest.raises(ValueError, match=reason):
            load_dataset(tmp_path / "bad.npz")


TS = (
    "@problemName x\n@timeStamps false\n@univariate true\n@equalLength true\n@seriesLength 3\n"
    "@classLabel true a b\n@data\n" + "1,2,3:a\n4,5,6:b\n" * 8
).encode()
TSV = b"1\t1.0\t2.0\n2\t3.0\t4.0\n" * 8
CSV = b"x,label\n" + b"1,0\n2,1\n" * 8


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.ts", b"", "no series after a line @data"),
        ("a.ts", b"1,2,3:a\n4,5,6:b\n", "no series after a line @data"),
        ("a.ts", TS[:-4], "cannot be read as .ts"),
        ("a.ts", TS.replace(b"5", b"\0"), "NUL bytes"),
        ("a.ts", TS.replace(b"b\n", b"\xe4\n"), "cannot be read as .ts"),
        ("a.ts", TS.replace(b"5", b"five"), "could not convert"),
        ("a.tsv", b"", "cannot be read as .tsv"),
        ("a.tsv", TSV.replace(b"3", b"\0"), "NUL bytes"),
        ("a.tsv", TSV + b"1\t2\n", "contains NaN"),
        ("a.txt", b"", "no instances"),
        ("a.txt", b"1 2 3\n1 2\n", "cannot be read as .txt"),
        ("a.csv", b"", "it is empty"),
        ("a.csv", CSV.decode().encode("utf-16"), "NUL bytes"),
        ("a.csv", CSV.replace(b"x,", b"\xe4,"), "not UTF-8"),
        ("a.csv", CSV + b"1,2,3\n", "Expected 2 fields"),
        ("a.csv", CSV.replace(b"1,0", b'"1,0', 1), "EOF inside string"),
        ("a.csv", CSV + b"1" * 400_000 + b",0\n", "not a number|inf"),
    ],
)
def test_damaged_text_ends_in_one_line_that_names_the_file(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as refusal:
        load_dataset(path)
    assert str(path) in str(refusal.value) and "\n" not in str(refusal.value)


def test_a_byte_order_mark_is_no_part_of_the_data(tmp_path):
    for name, content in (("a.ts", TS), ("a.csv", CSV)):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + content)
        assert len(load_dataset(tmp_path / name).X_train) > 0
