"""Loading by name and by path: what arrives, and what is refused with a reason."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys

import numpy as np
import pytest
from ucr_files import NAN, X, write_table, write_ts

from bad_inputs import refuses
from contrafact.data import load_dataset, pad


def test_unequal_lengths_are_named_and_padded():
    with pytest.raises(
        ValueError, match=r"JapaneseVowels .*20 different ones, from 7 to 29.*pad=True"
    ):
        load_dataset("JapaneseVowels")
    data = load_dataset("JapaneseVowels", pad=True)
    assert data.X_train.shape == (270, 12, 29)  # the longest is in the test part
    assert (data.X_train[..., 26:] == data.X_train[..., 25:26]).all()


def test_file_without_partner_is_split(tmp_path):
    write_table(tmp_path / "Alone.tsv", X, ["x", "y", "y", "x"], "\t")
    data = load_dataset(tmp_path / "Alone.tsv")
    assert (len(data.X_train), len(data.X_test), data.classes.tolist()) == (2, 2, ["x", "y"])
    write_table(tmp_path / "Alone.tsv", X, ["x", "y", "y", "z"], "\t")
    with pytest.raises(ValueError, match="single instance of class 'x'"):
        load_dataset(tmp_path / "Alone.tsv")


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


def test_import_is_light_and_docstrings_are_true():
    heavy = "{'aeon', 'torch', 'sklearn', 'pandas'}"
    code = f"import sys, contrafact.data; print({heavy} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"
    for name in ("cleaning", "dataset", "loaders"):
        tested = doctest.testmod(importlib.import_module(f"contrafact.data.{name}"))
        assert tested.attempted and not tested.failed


def test_loaded_series_can_be_padded_further():
    assert pad(load_dataset("UnitTest").X_train, length=30).shape == (20, 1, 30)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *(("name_or_path", bad) for bad in (None, 3, ["iris"], object())),
        *((name, bad) for name in ("pad", "fill") for bad in ("no", 1, None, np.zeros(2))),
        ("label", 3),
        ("modality", "rows"),
        ("modality", []),
        ("max_bytes", "1"),
    ],
)
def test_bad_arguments_are_named(name, bad):
    refuses(name, load_dataset, **{"name_or_path": "iris"} | {name: bad})
