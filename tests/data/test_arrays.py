"""Arrays as users pass them: what is refused, by which words, and what is accepted unchanged."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis.extra import numpy as npst

from contrafact.data.arrays import as_real, finite_array, read_array


class Unreadable:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no values here")


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no words here")


def masked(values, mask):
    return np.ma.masked_array(values, mask=mask)


REFUSED = {
    "ragged list": ([[1.0, 2.0], [3.0]], "X has entries of unequal shape"),
    "ragged objects": (np.array([[1.0], [1.0, 2.0]], dtype=object), "entries of unequal shape"),
    "None": (None, "X must be an array, got None"),
    "None inside": ([[1.0, None]], r"X\[0, 1\] is None"),
    "a function": (len, "X must be an array, got <built-in function len>"),
    "a dictionary": ({"a": [1.0]}, r"X must be an array, got {'a': \[1.0\]}"),
    "a set": ({1.0, 2.0}, r"Pass list\(X\)"),
    "a generator": ((x for x in [1.0]), r"Pass list\(X\)"),
    "text": ("1, 2", "X must be an array, got '1, 2'"),
    "numbers as text": ([["1", "2"]], "dtype <U1.*real numbers"),
    "complex": (np.ones(2, complex), "dtype complex128"),
    "dates": (np.array(["2020-01-01"], dtype="datetime64[D]"), "dtype datetime64"),
    "records": (np.zeros(2, dtype=[("a", float)]), r"dtype \[\('a'"),
    "an unprintable object": ([Unprintable()], r"X\[0\] is <Unprintable instance"),
    "scipy sparse matrix": (scipy.sparse.eye(3).tocsr(), r"Densify it: X.toarray\(\)"),
    "scipy sparse array": (scipy.sparse.coo_array(np.eye(3)), r"Densify it: X.toarray\(\)"),
    "sparse tensor": (torch.eye(3).to_sparse(), r"Densify it: X.to_dense\(\)"),
    "meta tensor": (torch.ones(3, device="meta"), "holds no values"),
    "nested tensor": (
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        "nested tensor",
    ),
    "mask": (masked([1.0, 2.0], [False, True]), r"hides 1 of 2 values.*X.filled\(0.0\)"),
    "mask in a list": ([[1.0, 2.0], masked([1.0, 2.0], [0, 1])], r"X\[1\] is a masked array"),
    "repeated columns": (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than one.*'a'"),
    "column of text": (pd.DataFrame({"a": [1.0], "b": ["x"]}), "column 'b' of X"),
    "column of dates": (pd.DataFrame({"a": pd.to_datetime(["2020-01-01"])}), "column 'a' of X"),
    "column of objects": (
        pd.DataFrame({"a": [1.0], "b": [{}]}),
        "column 'b' of X has dtype object",
    ),
    "categories": (
        pd.DataFrame({"a": pd.Categorical(["x"])}),
        "column 'a' of X has dtype category",
    ),
    "huge numbers": ([10**40], "X has dtype object.*np.asarray"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_array_of_numbers_is_named(case):
    values, words = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        as_real(values, "X")
    assert len(str(caught.value)) < 300


def test_the_cause_is_chained():
    with pytest.raises(TypeError, match="X cannot be read as an array: RuntimeError: no val") as e:
        as_real(Unreadable(), "X")
    assert isinstance(e.value.__cause__, RuntimeError)


@pytest.mark.filterwarnings("ignore:.*quantized:UserWarning", "ignore::DeprecationWarning")
def test_quantized_tensors_are_named():
    quantized = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
    with pytest.raises(TypeError, match=r"X.dequantize\(\)"):
        as_real(quantized, "X")


ACCEPTED = {
    "requires a gradient": torch.ones(2, requires_grad=True),
    "bfloat16": torch.ones(2, dtype=torch.bfloat16),
    "half": torch.ones(2, dtype=torch.float16),
    "list of tensors": [torch.tensor(1.0, requires_grad=True), torch.tensor(1.0)],
    "negated view": torch.ones(2, dtype=torch.complex64).mul(-1j).conj().imag,
    "mask that hides nothing": masked([1.0, 1.0], [False, False]),
    "booleans": [True, True],
    "range": range(1, 2),
    "matrix": np.array([[1, 1]]),
    "longdouble": np.ones(2, np.longdouble),
    "big-endian": np.ones(2, ">f8"),
    "no dimension": 1.0,
    "many dimensions": np.ones((1,) * 64),
    "booleans next to numbers": pd.DataFrame({"a": [1.0], "b": [True]}),
    "nullable": pd.DataFrame({"a": pd.array([1], dtype="Int64"), "b": [1.0]}),
    "column": pd.Series([1.0, 1.0]),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_numbers_of_every_kind_are_read(case):
    array = as_real(ACCEPTED[case], "X")
    assert array.dtype.kind == "f" and array.dtype.itemsize <= 8
    assert (array == 1).all() and array.size


def test_missing_values_of_a_frame_become_nan():
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [1.0, 2.0]})
    assert np.isnan(as_real(frame, "X")).tolist() == [[False, False], [True, False]]


@given(npst.arrays(np.float64, npst.array_shapes(), elements={"allow_nan": False}))
def test_an_array_is_not_copied(values):
    assert as_real(values, "X") is values
    np.testing.assert_array_equal(as_real(values.tolist(), "X"), values)


def test_a_list_within_itself_ends():
    endless = [1.0]
    endless.append(endless)
    with pytest.raises((ValueError, TypeError), match=r"^X "):
        as_real(endless, "X")


def test_torch_is_not_imported_for_an_array(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch")
    assert as_real([1.0], "X").tolist() == [1.0]


def test_labels_are_read_as_they_are():
    assert read_array(["a", "b"], "y").tolist() == ["a", "b"]


def test_a_finite_array_has_the_shape_asked_for():
    assert finite_array([[1, 2]], "w", ("n", 2)).shape == (1, 2)
    for values, axes in [([1.0], ("n", 2)), ([[1.0]], ("n", 2)), (1.0, ("n",)), ([1.0], ())]:
        with pytest.raises(ValueError, match=r"^w has shape .*Accepted: \("):
            finite_array(values, "w", axes)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0.5, np.nan], r"w\[1\] is nan. Accepted: a number at least 0 and at most 1"),
        ([np.inf, 0.5], r"w\[0\] is inf"),
        ([0.5, -0.1], r"w\[1\] is -0.1"),
        ([1.1, -0.1], r"w\[0\] is 1.1"),
    ],
)
def test_a_finite_array_stays_within_its_bounds(values, words):
    with pytest.raises(ValueError, match=words):
        finite_array(values, "w", ("n",), at_least=0, at_most=1)
