import numpy as np
import pytest
from ucr_files import NAN, X

from bad_inputs import bad_arrays, refuses
from contrafact.data import Dataset


def toy(**changes: object) -> Dataset:
    parts = {"X_train": X[:3], "y_train": ["a", "b", "a"], "X_test": X[3:], "y_test": ["c"]}
    return Dataset(**{"name": "toy", "modality": "series", **parts, **changes})


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


GOOD = {
    "name": "toy",
    "modality": "row",
    "X_train": [[0.0], [1.0]],
    "y_train": ["a", "b"],
    "X_test": [[0.5]],
    "y_test": ["b"],
    "names": ("size",),
}


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *((part, bad) for part in ("X_train", "X_test") for bad in bad_arrays([[0.0]]).values()),
        *(
            (part, bad)
            for part in ("y_train", "y_test")
            for bad in (None, 3, "ab", [["a"]], ["a"] * 9)
        ),
        ("name", 3),
        ("name", None),
        ("modality", []),
        ("modality", "rows"),
        ("names", "size"),
        ("names", (1,)),
        ("names", ("a", "b")),
    ],
)
def test_bad_arguments_are_named(name, bad):
    Dataset(**GOOD)
    refuses(name, Dataset, **GOOD | {name: bad})
