"""Values that no option and no array argument accepts, and the errors that they must raise."""

import re
import traceback
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch

import contrafact

SOURCE = str(Path(contrafact.__file__).parent)


class Unreadable:
    """An object that NumPy takes for an array, and that then gives none."""

    def __array__(self, *arguments, **options):
        raise RuntimeError("no array here")


class Unprintable:
    """An object that cannot be shown in a message."""

    def __repr__(self):
        raise RuntimeError("no text here")


#: no option that is a number takes any of these
NOT_NUMBERS = {
    "text": "3",
    "bytes": b"3",
    "list": [1],
    "dictionary": {"a": 1},
    "nan": float("nan"),
    "minus inf": -float("inf"),
    "boolean": True,
    "complex": 1 + 2j,
    "array": np.zeros((2, 2)),
    "class": int,
    "unprintable": Unprintable(),
}


def bad_arrays(good):
    """Return values like a good array of numbers of shape (n, d), none of which can be used."""
    array = np.asarray(good, dtype=float)
    nan = array.copy()
    nan.flat[0] = np.nan
    infinite = array.copy()
    infinite.flat[0] = np.inf
    hidden = np.ma.masked_array(array, mask=np.arange(array.size).reshape(array.shape) == 0)
    return {
        "nan": nan,
        "inf": infinite,
        "complex": array + 1j,
        "text": array.astype(str),
        "dates": array.astype("M8[s]"),
        "objects": np.full(array.shape, None),
        "masked": hidden,
        "sparse": scipy.sparse.csr_matrix(array.reshape(len(array), -1)),
        "meta tensor": torch.as_tensor(array).to("meta"),
        "sparse tensor": torch.as_tensor(array).to_sparse(),
        "ragged": [[1.0, 2.0], [3.0]],
        "none": None,
        "word": "abc",
        "dictionary": {"a": 1},
        "number": 3.0,
        "unreadable": Unreadable(),
    }


def refuses(name, call, /, *arguments, **options):
    """Check that a call raises an error of contrafact's own that names the argument."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call(*arguments, **options)
    error = caught.value
    last = traceback.extract_tb(error.__traceback__)[-1]
    assert last.filename.startswith(SOURCE), f"raised in {last.filename}: {error}"
    assert re.search(rf"\b{name}\b", str(error)), f"does not name {name}: {error}"
