import math

import numpy as np
import pytest
import torch

from bad_inputs import NOT_NUMBERS, bad_arrays, refuses
from contrafact.geometry import duality_gap, lmo, project
from contrafact.geometry.arguments import as_box, as_mask, as_norm, as_radius, as_rows


def test_large_finite_numbers_are_not_mistaken_for_infinite_ones():
    w = torch.full((1, 4), 3e38)
    assert w.sum().isinf()
    assert torch.allclose(lmo(w, torch.zeros(1, 4), 1.0, 2.0), torch.full((1, 4), 0.5))


def test_rows_are_flat_and_read_only_arrays_are_taken():
    value = np.arange(12.0).reshape(2, 2, 3)[::-1]
    value.flags.writeable = False
    rows = as_rows(value, "x")
    assert rows.tolist() == [[6, 7, 8, 9, 10, 11], [0, 1, 2, 3, 4, 5]]


@pytest.mark.parametrize("eps", [2, 2.0, np.float64(2.0), torch.tensor(2.0)])
def test_one_radius_for_all(eps):
    radius = as_radius(eps, torch.zeros(3, 4))
    assert radius.shape == () and radius.dtype == torch.float64 and radius.item() == 2


def test_a_radius_per_row_is_a_column():
    assert as_radius(np.array([1, 2, 3]), torch.zeros(3, 4)).tolist() == [[1], [2], [3]]
    assert as_radius(torch.zeros(0), torch.zeros(0, 4)).shape == (0, 1)


def test_norms():
    assert as_norm(math.inf) == math.inf and isinstance(as_norm(1), float)
    with pytest.raises(ValueError, match="p must be 1 or 2, got inf"):
        as_norm(math.inf, (1, 2))


def test_a_bound_per_channel_repeats_over_the_channel():
    rows = torch.zeros(5, 6)
    lo, hi = as_box((0, [1.0, 2.0]), (5, 2, 3), rows)
    assert lo.shape == () and hi.tolist() == [[1, 1, 1, 2, 2, 2]]
    _, hi = as_box((0, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), (5, 6), rows)
    assert hi.tolist() == [[1, 2, 3, 4, 5, 6]]
    with pytest.raises(ValueError, match=r"bounds\[1\] of shape \(3,\) does not fit .*\(2, 3\)"):
        as_box((0, torch.ones(3)), (5, 2, 3), rows)


def test_masks_broadcast_against_the_batch():
    mask = as_mask([[True], [False]], (3, 2, 2), torch.zeros(3, 4))
    assert mask.tolist() == [[True, True, False, False]] * 3


#: the functions, with arguments that they take
CALLS = {
    "lmo": (lmo, ("w", "x")),
    "duality_gap": (duality_gap, ("w", "x", "delta")),
    "project": (project, ("x", "center")),
}
BAD_OPTIONS = [
    *(("eps", NOT_NUMBERS[kind]) for kind in NOT_NUMBERS),
    *(("p", NOT_NUMBERS[kind]) for kind in NOT_NUMBERS),
    ("eps", None),
    ("eps", 10**400),
    ("eps", ["a", "b"]),
    ("p", None),
    ("p", 0.5),
    ("bounds", None),
    ("bounds", 1),
    ("bounds", (0, 1, 2)),
    ("bounds", (math.nan, 1)),
    ("bounds", ("a", 1)),
    ("bounds", (None, 1)),
    ("bounds", (True, False)),
    ("bounds", ([math.nan, 0], 1)),
]


def good(call):
    function, names = CALLS[call]
    return function, dict.fromkeys(names, np.full((2, 2), 0.5)) | {"eps": 1.0, "p": 2}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kind_in_is_kind_out(call, dtype):
    function, arguments = good(call)
    arrays = {k: v.astype(dtype) if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
    tensors = {k: torch.as_tensor(v) if isinstance(v, np.ndarray) else v for k, v in arrays.items()}
    from_arrays = function(**arrays)
    from_tensors = function(**tensors)
    assert isinstance(from_arrays, np.ndarray) and isinstance(from_tensors, torch.Tensor)
    np.testing.assert_array_equal(from_arrays, from_tensors.numpy())


@pytest.mark.parametrize("bad", bad_arrays(np.zeros((2, 2))))
@pytest.mark.parametrize("call", CALLS)
def test_bad_arrays_are_named(call, bad):
    function, arguments = good(call)
    for name in CALLS[call][1]:
        refuses(name, function, **arguments | {name: bad_arrays(np.full((2, 2), 0.5))[bad]})


@pytest.mark.parametrize(("name", "value"), BAD_OPTIONS)
@pytest.mark.parametrize("call", CALLS)
def test_bad_options_are_named(call, name, value):
    function, arguments = good(call)
    refuses(name, function, **arguments | {name: value})


@pytest.mark.parametrize("mask", [3, "abc", np.ones((2, 2)), np.ones((2, 3), bool), [True, None]])
def test_bad_masks_are_named(mask):
    function, arguments = good("lmo")
    refuses("mask", function, **arguments, mask=mask)
