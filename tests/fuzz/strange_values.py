"""Strange values: each is made from the value that would be right, and known by a name."""

import datetime
import decimal
import enum
import fractions
import pathlib

import numpy as np
import pandas as pd
import torch
from scipy import sparse


class Raising:
    """Promises an array and does not give one."""

    def __array__(self, *args, **kwargs):
        raise OSError("no array today")


class Promising:
    """Gives an array when asked, as objects of many libraries do."""

    def __init__(self, values):
        self.values = values

    def __array__(self, *args, **kwargs):
        return np.array(self.values)


class OddNumber(float):
    """A number of a class of its own."""


class Color(enum.Enum):
    """Labels of an enumeration."""

    red = 0
    blue = 1


class Subclass(np.ndarray):
    """An array of a class of its own."""


#: Values that do not depend on what would be right.
SCALARS = {
    "None": lambda: None,
    "True": lambda: True,
    "False": lambda: False,
    "0": lambda: 0,
    "1": lambda: 1,
    "-1": lambda: -1,
    "-3": lambda: -3,
    "2": lambda: 2,
    "5": lambda: 5,
    "2.5": lambda: 2.5,
    "0.5": lambda: 0.5,
    "-0.5": lambda: -0.5,
    "1.0": lambda: 1.0,
    "-0.0": lambda: -0.0,
    "1e-320": lambda: 1e-320,
    "1e300": lambda: 1e300,
    "2**40": lambda: 2**40,
    "2**62": lambda: 2**62,
    "2**63": lambda: 2**63,
    "2**70": lambda: 2**70,
    "-2**70": lambda: -(2**70),
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: -float("inf"),
    "'3'": lambda: "3",
    "'0.1'": lambda: "0.1",
    "''": lambda: "",
    "'no'": lambda: "no",
    "'euclidian'": lambda: "euclidian",
    "'a\\0b'": lambda: "a\0b",
    "b'1'": lambda: b"1",
    "1j": lambda: 1j,
    "[]": list,
    "[1]": lambda: [1],
    "[None]": lambda: [None],
    "['a', 1]": lambda: ["a", 1],
    "[[1, 2], [3]]": lambda: [[1, 2], [3]],
    "()": tuple,
    "(0, 1)": lambda: (0, 1),
    "(1, 0)": lambda: (1, 0),
    "(0.2, nan)": lambda: (0.2, float("nan")),
    "('a', 'b')": lambda: ("a", "b"),
    "{}": dict,
    "{'a': 1}": lambda: {"a": 1},
    "{0: 1}": lambda: {0: 1},
    "{1, 2}": lambda: {1, 2},
    "object": object,
    "int": lambda: int,
    "...": lambda: ...,
    "slice": lambda: slice(0, 2),
    "range": lambda: range(3),
    "generator": lambda: (i for i in range(3)),
    "lambda": lambda: lambda *args: 0,
    "print": lambda: len,
    "Path": lambda: pathlib.Path("not-there.bin"),
    "Decimal": lambda: decimal.Decimal("0.5"),
    "Fraction": lambda: fractions.Fraction(1, 2),
    "date": lambda: datetime.date(2020, 1, 1),
    "enum": lambda: Color.red,
    "OddNumber": lambda: OddNumber(0.5),
    "np.float32(0.5)": lambda: np.float32(0.5),
    "np.int64(2)": lambda: np.int64(2),
    "np.bool_": lambda: np.True_,
    "np.str_": lambda: np.str_("a"),
    "np.array(2)": lambda: np.array(2),
    "np.array(0.5)": lambda: np.array(0.5),
    "np.array([1, 2])": lambda: np.array([1, 2]),
    "np.array([])": lambda: np.array([]),
    "np.datetime64": lambda: np.datetime64("2020-01-01"),
    "np.ma.masked": lambda: np.ma.masked,
    "pd.NA": lambda: pd.NA,
    "pd.NaT": lambda: pd.NaT,
    "torch.tensor(0.5)": lambda: torch.tensor(0.5),
    "torch.tensor([1, 2])": lambda: torch.tensor([1, 2]),
    "torch.nn.Identity": torch.nn.Identity,
    "Raising": Raising,
    "DataFrame": lambda: pd.DataFrame({"a": [1, 2]}),
    "empty DataFrame": pd.DataFrame,
}


def changed(array, position, value):
    """Return a copy in floats, with one value replaced."""
    copied = np.array(array, dtype=np.float64)
    copied.flat[position % max(1, copied.size)] = value
    return copied


def as_array(base):
    """Return a right value as a plain array of float64, for variants of it."""
    if isinstance(base, torch.Tensor):
        base = base.detach().numpy()
    return np.array(base, dtype=np.float64)


def masked(base):
    array = as_array(base)
    mask = np.zeros(array.shape, dtype=bool)
    mask.flat[:1] = True
    return np.ma.array(array, mask=mask)


def frozen(base):
    array = as_array(base)
    array.flags.writeable = False
    return array


def strided(base):
    array = as_array(base)
    wide = np.repeat(array, 2, axis=-1)
    return wide[..., ::2]


def flat(base):
    return as_array(base).reshape(len(base), -1)


def structured(base):
    return np.zeros(len(base), dtype=[("a", float), ("b", int)])


def object_array(base):
    return as_array(base).astype(object)


def with_object(base):
    array = object_array(base)
    array.flat[0] = "x"
    return array


def ragged(base):
    rows = flat(base).tolist()
    rows[-1] = rows[-1][:-1]
    return rows


def ragged_objects(base):
    rows = np.empty(len(base), dtype=object)
    for i, row in enumerate(flat(base)):
        rows[i] = row[: len(row) - i % 2]
    return rows


#: Variants of a right array; made from it.
ARRAYS = {
    "float16": lambda base: as_array(base).astype(np.float16),
    "float32": lambda base: as_array(base).astype(np.float32),
    "longdouble": lambda base: as_array(base).astype(np.longdouble),
    "integers": lambda base: (10 * as_array(base)).astype(int),
    "uint8": lambda base: (50 * np.abs(as_array(base))).astype(np.uint8),
    "booleans": lambda base: as_array(base) > 0,
    "complex": lambda base: as_array(base) + 1j,
    "objects": object_array,
    "objects with a text": with_object,
    "texts": lambda base: as_array(base).astype(str),
    "bytes": lambda base: as_array(base).astype("S"),
    "dates": lambda base: np.zeros(np.shape(base), dtype="datetime64[s]"),
    "structured": structured,
    "big-endian": lambda base: as_array(base).astype(">f8"),
    "one nan": lambda base: changed(base, 3, np.nan),
    "all nan": lambda base: np.full(np.shape(base), np.nan),
    "one inf": lambda base: changed(base, 5, np.inf),
    "one -inf": lambda base: changed(base, 5, -np.inf),
    "one huge": lambda base: changed(base, 5, 1e300),
    "all huge": lambda base: 1e200 * as_array(base),
    "all tiny": lambda base: 1e-300 * as_array(base),
    "constant": lambda base: np.full(np.shape(base), 0.3),
    "zeros": lambda base: np.zeros(np.shape(base)),
    "read-only": frozen,
    "strided": strided,
    "reversed": lambda base: as_array(base)[::-1],
    "Fortran": lambda base: np.asfortranarray(as_array(base)),
    "masked": masked,
    "masked, no mask": lambda base: np.ma.array(as_array(base)),
    "subclass": lambda base: as_array(base).view(Subclass),
    "matrix": lambda base: flat(base).view(np.matrix),
    "sparse": lambda base: sparse.csr_matrix(flat(base)),
    "sparse array": lambda base: sparse.coo_array(flat(base)),
    "list": lambda base: as_array(base).tolist(),
    "tuple": lambda base: tuple(map(tuple, flat(base))),
    "list of arrays": lambda base: list(as_array(base)),
    "ragged": ragged,
    "ragged objects": ragged_objects,
    "Promising": lambda base: Promising(as_array(base)),
    "data frame": lambda base: pd.DataFrame(flat(base)),
    "data frame of texts": lambda base: pd.DataFrame(flat(base).astype(str)),
    "series of pandas": lambda base: pd.Series(flat(base)[:, 0]),
    "no rows": lambda base: as_array(base)[:0],
    "one row": lambda base: as_array(base)[:1],
    "a row alone": lambda base: as_array(base)[0],
    "no columns": lambda base: as_array(base)[..., :0],
    "one column less": lambda base: as_array(base)[..., :-1],
    "one column more": lambda base: np.concatenate([as_array(base)] * 2, axis=-1),
    "one row less": lambda base: as_array(base)[:-1],
    "twice the rows": lambda base: np.concatenate([as_array(base)] * 2),
    "one dimension more": lambda base: as_array(base)[None],
    "trailing dimension": lambda base: as_array(base)[..., None],
    "flat": lambda base: as_array(base).reshape(-1),
    "six dimensions": lambda base: as_array(base).reshape(len(base), 1, 1, 1, 1, -1),
    "tensor float32": lambda base: torch.tensor(as_array(base), dtype=torch.float32),
    "tensor float64": lambda base: torch.tensor(as_array(base)),
    "tensor bfloat16": lambda base: torch.tensor(as_array(base), dtype=torch.bfloat16),
    "tensor of integers": lambda base: torch.tensor(10 * as_array(base)).long(),
    "tensor complex": lambda base: torch.tensor(as_array(base) + 1j),
    "tensor with gradient": lambda base: torch.tensor(as_array(base), requires_grad=True),
    "tensor with history": lambda base: torch.tensor(as_array(base), requires_grad=True) * 2,
    "tensor transposed": lambda base: torch.tensor(as_array(base).T.copy()).T,
    "tensor sparse": lambda base: torch.tensor(as_array(base)).to_sparse(),
    "tensor meta": lambda base: torch.tensor(as_array(base)).to("meta"),
    "tensor with nan": lambda base: torch.tensor(changed(base, 3, np.nan)),
    "tensor quantized": lambda base: torch.quantize_per_tensor(
        torch.tensor(as_array(base)).float(), 0.1, 0, torch.qint8
    ),
}


def labels(base):
    """Return right labels as an array of integers."""
    return np.asarray(base).astype(int)


#: Variants of right labels.
LABELS = {
    "labels as texts": lambda base: np.array([f"c{i}" for i in labels(base)]),
    "labels as bytes": lambda base: labels(base).astype("S"),
    "labels as floats": lambda base: labels(base) + 0.0,
    "labels as booleans": lambda base: labels(base) > 0,
    "labels as list": lambda base: labels(base).tolist(),
    "labels as tensor": lambda base: torch.tensor(labels(base)),
    "labels as float tensor": lambda base: torch.tensor(labels(base) + 0.5),
    "labels as categories": lambda base: pd.Categorical(labels(base)),
    "labels as series": lambda base: pd.Series(labels(base), index=np.arange(len(base)) + 7),
    "labels as objects": lambda base: labels(base).astype(object),
    "labels as column": lambda base: labels(base)[:, None],
    "labels one-hot": lambda base: np.eye(2)[labels(base) % 2],
    "labels as dates": lambda base: labels(base).astype("datetime64[D]"),
    "labels as enum": lambda base: [Color(i % 2) for i in labels(base)],
    "labels as dict": lambda base: dict(enumerate(labels(base))),
    "labels as set": lambda base: set(labels(base).tolist()),
    "labels negative": lambda base: -labels(base) - 1,
    "labels huge": lambda base: labels(base) * 2**60,
    "labels with None": lambda base: [None, *labels(base)[1:].tolist()],
    "labels with nan": lambda base: changed(labels(base), 0, np.nan),
    "labels mixed": lambda base: ["a", *labels(base)[1:].tolist()],
    "labels unhashable": lambda base: [[i] for i in labels(base)],
    "labels of one class": lambda base: np.zeros(len(base), dtype=int),
    "labels all different": lambda base: np.arange(len(base)),
    "labels of a third class": lambda base: np.r_[2, labels(base)[1:]],
    "labels too few": lambda base: labels(base)[:-1],
    "labels too many": lambda base: np.r_[labels(base), 0],
    "labels masked": lambda base: np.ma.array(labels(base), mask=labels(base) == 0),
    "no labels": lambda base: labels(base)[:0],
}

#: Names of variants that are no arrays of real, finite numbers, whatever is done with them.
NO_NUMBERS = {
    "complex",
    "objects with a text",
    "dates",
    "structured",
    "one nan",
    "all nan",
    "one inf",
    "one -inf",
    "masked",
    "ragged",
    "ragged objects",
    "tensor complex",
    "tensor meta",
    "tensor with nan",
    "Raising",
    "object",
    "lambda",
    "int",
    "...",
    "{}",
    "{'a': 1}",
    "'no'",
    "'euclidian'",
    "''",
    "nan",
    "1j",
    "[None]",
    "['a', 1]",
    "[[1, 2], [3]]",
    "pd.NA",
    "Path",
}
