import numpy as np
import pytest
import torch

from bad_inputs import NOT_NUMBERS, Unreadable, bad_arrays, refuses
from contrafact.numerics import (
    broadcast_rows,
    ceil_div,
    fold_in,
    occurrence,
    quantile_near,
    row_normal,
    row_seeds,
    row_uniform,
)
from contrafact.numerics.tensors import as_kind, read_integers, read_tensor


def test_a_float_tensor_stays_as_it_is():
    given = torch.ones(2, 3, requires_grad=True)
    assert read_tensor(given, "x", ("n", 3)) is given


def test_whole_numbers_become_floats_and_read_only_arrays_are_taken():
    array = np.arange(4).reshape(2, 2)
    array.flags.writeable = False
    assert read_tensor(array, "x").tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert read_tensor(torch.tensor([1, 2]), "x").is_floating_point()


@pytest.mark.parametrize("bad", bad_arrays(np.ones((3, 2))))
def test_bad_arrays_are_named(bad):
    refuses("x", read_tensor, bad_arrays(np.ones((3, 2)))[bad], "x", (3, 2))


def test_missing_values_are_taken_where_they_may_be():
    assert read_tensor([np.nan, 1.0], "x", ("n",), finite=False).isnan().tolist() == [True, False]


def test_accepted_shapes():
    assert read_tensor(np.ones((2, 3, 4)), "x", ("n", "...")).shape == (2, 3, 4)
    message = r"A has shape \(2,\). Accepted beside x of shape \(1, 1\): \(3, m\) or \(n, 4, ...\)."
    with pytest.raises(ValueError, match=message):
        read_tensor([1, 2], "A", (3, "m"), ("n", 4, "..."), beside="x of shape (1, 1)")


@pytest.mark.parametrize("bad", [[0.5], ["a"], [True], None, "a", [[1]], [2**70], Unreadable()])
def test_what_is_no_whole_number_is_named(bad):
    refuses("labels", read_integers, bad, "labels", ("n",))


def test_kinds():
    tensor = torch.ones(2, requires_grad=True)
    assert as_kind(tensor, tensor) is tensor
    assert as_kind(tensor, [1, 2]).tolist() == [1, 1]


GOOD = {
    row_uniform: {"seeds": [1, 2], "size": 3, "stream": 0},
    row_normal: {"seeds": [1, 2], "size": 3, "stream": 0},
    fold_in: {"seeds": [1, 2], "data": [3, 4]},
    row_seeds: {"X": np.ones((2, 3)), "seed": 0, "extra": [0, 1]},
    occurrence: {"groups": torch.tensor([1, 2])},
    broadcast_rows: {"values": torch.ones(2), "like": torch.ones(2, 3)},
    ceil_div: {"a": 3, "b": 2},
    quantile_near: {"values": torch.ones(2, 1, 4), "quantile": 0.5, "reach": 1},
}
CASES = [(function, name) for function, arguments in GOOD.items() for name in arguments]


@pytest.mark.parametrize(
    ("function", "name"), CASES, ids=lambda part: getattr(part, "__name__", part)
)
def test_every_argument_is_checked(function, name):
    function(**GOOD[function])
    bad = {**NOT_NUMBERS, "object": object(), "unreadable": Unreadable(), "fraction": 0.5}
    if name == "quantile":
        del bad["fraction"]
    for value in bad.values():
        if (function, name) == (row_seeds, "X") and isinstance(value, list | np.ndarray):
            continue  # rows of any shape
        if isinstance(value, list) and name in ("seeds", "data", "extra", "groups"):
            continue
        refuses(name, function, **GOOD[function] | {name: value})


@pytest.mark.parametrize(
    ("function", "change"),
    [
        (row_uniform, {"size": -1}),
        (row_uniform, {"size": 10**30}),
        (row_seeds, {"seed": 10**30}),
        (row_seeds, {"extra": [1, 2, 3]}),
        (fold_in, {"data": [1, 2, 3]}),
        (ceil_div, {"b": 0}),
        (quantile_near, {"quantile": 1.5}),
        (quantile_near, {"reach": -1}),
        (quantile_near, {"values": torch.ones(0, 1, 4)}),
    ],
)
def test_ranges_and_shapes(function, change):
    refuses(next(iter(change)), function, **GOOD[function] | change)
