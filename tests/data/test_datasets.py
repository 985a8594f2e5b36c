"""Loading by name and by path: what arrives, and what is refused with a reason."""

from __future__ import annotations

import doctest
import importlib
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from contrafact.data import Dataset, list_datasets, load_dataset, pad

X = np.array([[[0.5, -1.25, 3.0]], [[2.0, 4.0, 8.0]], [[1.0, 1.0, -7.5]], [[0.0, 9.0, 2.0]]])
NAN = float("nan")


def write_ts(path: Path, series: list[np.ndarray], labels: list[str], header: str = "") -> None:
    lines = [":".join(",".join(map(str, channel)) for channel in x) for x in series]
    declared = (
        f"@univariate false\n{header}@classLabel true {' '.join(sorted(set(labels)))}\n@data\n"
    )
    rows = "".join(f"{line}:{label}\n" for line, label in zip(lines, labels, strict=True))
    path.write_text(declared + rows.replace("nan", "?"))


def write_table(path: Path, series: np.ndarray, labels: list[str], between: str) -> None:
    rows = ([label, *map(str, x[0])] for x, label in zip(series, labels, strict=True))
    path.write_text("\n".join(between.join(row) for row in rows))


def toy(**changes: object) -> Dataset:
    parts = {"X_train": X[:3], "y_train": ["a", "b", "a"], "X_test": X[3:], "y_test": ["c"]}
    return Dataset(**{"name": "toy", "modality": "series", **parts, **changes})


@pytest.mark.parametrize(
    "row", list(list_datasets().itertuples(index=False)), ids=lambda row: row.name
)
def test_bundled_sets_are_as_listed_and_need_no_network(row, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    unequal = None in row.shape
    data = load_dataset(row.name.upper(), pad=unequal)
    assert (data.name, data.modality) == (row.name, row.modality)
    assert (len(data.X_train), len(data.X_test), len(data.classes)) == (
        row.train,
        row.test,
        row.classes,
    )
    assert data.X_train.dtype == np.float64
    shape = data.X_train.shape[1:]
    assert (shape[0], None) == row.shape if unequal else shape == row.shape


def test_known_values():
    gun = load_dataset("GunPoint")
    assert gun.classes.tolist() == ["1", "2"]
    assert gun.X_train[0, 0, 0] == pytest.approx(-0.6478854)
    assert load_dataset("basicmotions").classes.tolist() == [
        "badminton",
        "running",
        "standing",
        "walking",
    ]
    assert load_dataset("iris").classes.tolist() == ["setosa", "versicolor", "virginica"]
    digits = load_dataset("digits")
    assert (digits.X_train.min(), digits.X_train.max(), digits.classes.tolist()) == (
        0,
        16,
        list(range(10)),
    )
    assert repr(digits) == (
        "Dataset('digits', image, train (1258, 1, 8, 8), test (539, 1, 8, 8), "
        "classes 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)"
    )


def test_split_is_stratified_repeatable_complete_and_shuffled():
    from sklearn.datasets import load_wine

    data, again = load_dataset("wine"), load_dataset("wine")
    np.testing.assert_array_equal(data.X_test, again.X_test)
    together = np.concatenate([data.X_train, data.X_test])
    np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(load_wine().data, axis=0))
    assert [int((data.y_test == c).sum()) for c in data.classes] == [18, 21, 14]
    assert len(set(data.y_test[:8])) > 1  # scikit-learn's own order has the classes in blocks


def test_unequal_lengths_are_named_and_padded():
    with pytest.raises(
        ValueError, match=r"JapaneseVowels .*20 different ones, from 7 to 29.*pad=True"
    ):
        load_dataset("JapaneseVowels")
    data = load_dataset("JapaneseVowels", pad=True)
    assert data.X_train.shape == (270, 12, 29)  # the longest is in the test part
    assert (data.X_train[..., 26:] == data.X_train[..., 25:26]).all()


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


def test_file_without_partner_is_split(tmp_path):
    write_table(tmp_path / "Alone.tsv", X, ["x", "y", "y", "x"], "\t")
    data = load_dataset(tmp_path / "Alone.tsv")
    assert (len(data.X_train), len(data.X_test), data.classes.tolist()) == (2, 2, ["x", "y"])
    write_table(tmp_path / "Alone.tsv", X, ["x", "y", "y", "z"], "\t")
    with pytest.raises(ValueError, match="single instance of class 'x'"):
        load_dataset(tmp_path / "Alone.tsv")


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


def test_missing_values_are_located_or_filled(tmp_path):
    series = X.copy()
    series[2, 0, 1] = NAN
    write_ts(tmp_path / "Gap_TRAIN.ts", series[:3], ["a", "b", "a"])
    write_ts(tmp_path / "Gap_TEST.ts", series[3:], ["b"])
    message = (
        r"X_train\[2\] contains NaN at channel 0, time 1\. "
        r"Impute it, e\.g\. load_dataset\(\.\.\., fill=True\), --fill on the command line, "
        r"or contrafact\.data\.fill_missing\(X\)\."
    )
    with pytest.raises(ValueError, match=message):
        load_dataset(tmp_path)
    assert load_dataset(tmp_path, fill=True).X_train[2, 0].tolist() == [1.0, (1.0 - 7.5) / 2, -7.5]


def test_rows_are_filled_from_training_only(tmp_path):
    train, test = np.array([[1.0, NAN], [3.0, 8.0]]), np.array([[NAN, NAN], [100.0, 1.0]])
    np.savez(tmp_path / "r.npz", X_train=train, y_train=[0, 1], X_test=test, y_test=[0, 1])
    data = load_dataset(tmp_path / "r.npz", fill=True)
    assert data.X_train.tolist() == [[1, 8], [3, 8]]
    assert data.X_test.tolist() == [[2, 8], [100, 1]]


def test_unknown_names_and_paths_are_explained(tmp_path):
    with pytest.raises(ValueError, match=r"'gunpont' .*Did you mean 'GunPoint'.*give a path"):
        load_dataset("gunpont")
    with pytest.raises(ValueError, match=r"Bundled: 'ACSF1'.*'wine'"):
        load_dataset("mnist")
    with pytest.raises(FileNotFoundError, match=r"nowhere\.npz' does not exist"):
        load_dataset("nowhere.npz")
    with pytest.raises(ValueError, match=r"holds no pair of files.*\.ts, \.tsv, \.txt"):
        load_dataset(tmp_path)
    (tmp_path / "data.xlsx").write_text("1,2")
    with pytest.raises(ValueError, match=r"suffix '\.xlsx'.*\.csv, \.npz"):
        load_dataset(tmp_path / "data.xlsx")


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


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"y_train": ["a", "b"]}, r"y_train has shape \(2,\).*\(3,\)"),
        ({"X_test": X[3:, :, :2]}, r"X_test has instances of shape \(1, 2\), X_train of \(1, 3\)"),
        ({"X_test": X[3:] + np.inf}, r"X_test\[0\] contains inf at channel 0, time 0"),
        ({"X_train": X[:3, 0]}, r"X_train has shape \(3, 3\).*\(n, channels, length\)"),
        ({"y_test": [1]}, r"both text, or both numbers"),
        ({"y_train": [0.0, NAN, 1.0], "y_test": [1]}, r"y_train\[1\] is not finite"),
        ({"X_train": X[:3].astype(str)}, r"X_train has dtype <U\d+.*real numbers"),
    ],
)
def test_dataset_refuses_what_does_not_fit(changes, reason):
    with pytest.raises(ValueError, match=reason):
        toy(**changes)


def test_dataset_keeps_its_promises():
    data = toy(X_train=X[:3].astype(np.int16), X_test=X[3:])
    assert (data.X_train.dtype, data.X_test.dtype) == (np.float32, np.float64)
    assert data.classes.tolist() == ["a", "b", "c"]  # "c" occurs in the test part only
    with pytest.raises(AttributeError):
        data.name = "other"


def test_import_is_light_and_docstrings_are_true():
    code = "import sys, contrafact.data; print({'aeon', 'torch', 'sklearn', 'pandas'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"
    for name in ("cleaning", "dataset", "loaders"):
        tested = doctest.testmod(importlib.import_module(f"contrafact.data.{name}"))
        assert tested.attempted and not tested.failed


def test_loaded_series_can_be_padded_further():
    assert pad(load_dataset("UnitTest").X_train, length=30).shape == (20, 1, 30)
