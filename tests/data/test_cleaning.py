"""Padding and imputation against hand-computed values and their invariants."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from bad_inputs import refuses
from contrafact.data import fill_missing, pad
from contrafact.data.cleaning import describe_nonfinite

NAN = float("nan")
finite = st.floats(-1e6, 1e6)


def test_pad_by_hand():
    series = [np.array([[1, 2, 3], [4, 5, 6]]), np.array([[7.0], [8.0]])]
    assert pad(series)[1].tolist() == [[7, 7, 7], [8, 8, 8]]
    assert pad(series, length=4, value=-1.0)[0].tolist() == [[1, 2, 3, -1], [4, 5, 6, -1]]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (([[1.0, 2.0]], 1), "length 1 would cut a series of length 2"),
        (([[1.0]], None, "zero"), "value must be 'edge' or a number, got 'zero'"),
        (([[1.0]], None, None), "value must be 'edge' or a number, got None"),
        (([np.ones((2, 3)), np.ones((1, 3))],), r"X\[1\] has 1 channels but X\[0\] has 2"),
        (([[1.0], []],), r"X\[1\] has shape \(0,\)"),
        (([],), "X is empty"),
    ],
)
def test_pad_refuses(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        pad(*arguments)


@given(
    st.data(),
    st.integers(1, 3),
    st.lists(st.integers(1, 9), min_size=1, max_size=6),
    st.integers(0, 3),
)
def test_pad_keeps_what_was_there(data, channels, lengths, extra):
    series = [
        data.draw(npst.arrays(float, (channels, length), elements=finite)) for length in lengths
    ]
    for x in series:
        x.setflags(write=False)
    length = max(lengths) + extra
    padded = pad(series, length=length)
    assert padded.shape == (len(series), channels, length)
    for row, x in zip(padded, series, strict=True):
        np.testing.assert_array_equal(row[:, : x.shape[1]], x)
        assert (row[:, x.shape[1] :] == x[:, -1:]).all()


def test_fill_by_hand():
    series = np.array([[[NAN, 1.0, NAN, NAN, 7.0, NAN], [2.0, NAN, 4.0, NAN, NAN, 6.0]]])
    assert fill_missing(series)[0, 0].tolist() == [1, 1, 3, 5, 7, 7]
    np.testing.assert_allclose(fill_missing(series)[0, 1], [2, 3, 4, 14 / 3, 16 / 3, 6])
    assert fill_missing(series, "mean")[0].tolist() == [[4, 1, 4, 4, 7, 4], [2, 4, 4, 4, 4, 6]]
    assert fill_missing(series, 0)[0, 0].tolist() == [0, 1, 0, 0, 7, 0]
    assert fill_missing([[1.0, NAN], [NAN, 2.0], [5.0, 4.0]], "mean").tolist() == [
        [1, 3],
        [3, 2],
        [5, 4],
    ]
    assert fill_missing([[[[1.0, NAN], [2.0, 6.0]]]], "mean").tolist() == [[[[1, 3], [2, 6]]]]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (([[1.0, NAN]],), r"'linear' needs a time axis.*rows.*X\[:, None\]"),
        (
            ([[[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [NAN, NAN]]],),
            r"X\[1\] is entirely NaN in channel 1",
        ),
        (([[1.0, NAN], [2.0, NAN]], "mean"), "X is entirely NaN in feature 1"),
        (([[[1.0, NAN]]], "median"), "how must be 'linear', 'mean' or a number, got 'median'"),
        (([[[1.0, NAN]]], NAN), "how must be .*, got nan"),
        (([[[-np.inf, NAN, 1.0]]],), r"X\[0\] contains inf at channel 0, time 0"),
        (([[[1.0, 2.0]], [[1.0]]],), r"unequal shape.*contrafact\.data\.pad"),
    ],
)
def test_fill_refuses(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        fill_missing(*arguments)


@st.composite
def gappy_series(draw):
    shape = draw(npst.array_shapes(min_dims=3, max_dims=3, max_side=8))
    X = draw(
        npst.arrays(
            draw(st.sampled_from([np.float32, np.float64])),
            shape,
            elements=st.floats(-1e6, 1e6, width=32),
        )
    )
    holes = draw(npst.arrays(bool, shape))
    holes[..., draw(st.integers(0, shape[2] - 1))] = False  # something is left to go by
    X[holes] = NAN
    X.setflags(write=False)
    return X


@settings(max_examples=60)
@given(gappy_series(), st.sampled_from(["linear", "mean", 2.5]))
def test_fill_changes_nan_only(X, how):
    before, seen = X.copy(), ~np.isnan(X)
    filled = fill_missing(X, how)
    assert (filled.shape, filled.dtype) == (X.shape, X.dtype)
    np.testing.assert_array_equal(filled[seen], X[seen])
    np.testing.assert_array_equal(X, before)
    assert np.isfinite(filled).all() and not np.shares_memory(filled, X)
    if (
        how == "linear"
    ):  # the independent reference: NumPy's own interpolation, one channel at a time
        time = np.arange(X.shape[2])
        for line, out, ok in zip(
            *(a.reshape(-1, X.shape[2]) for a in (X, filled, seen)), strict=True
        ):
            tolerance = 1e-6 * np.abs(line[ok]).max()
            np.testing.assert_allclose(
                out, np.interp(time, time[ok], line[ok]), rtol=0, atol=tolerance
            )


@pytest.mark.parametrize(
    ("shape", "at", "value", "said"),
    [
        ((3, 2, 5), (1, 0, 4), NAN, "X[1] contains NaN at channel 0, time 4."),
        ((3, 2, 5), (2, 1, 0), -np.inf, "X[2] contains inf at channel 1, time 0."),
        ((3, 2, 5, 4), (0, 1, 2, 3), NAN, "X[0] contains NaN at channel 1, row 2, column 3."),
        ((3, 4), (2, 3), np.inf, "X[2] contains inf at feature 3."),
    ],
)
def test_first_nonfinite_is_described(shape, at, value, said):
    X = np.zeros(shape)
    assert describe_nonfinite(X, "X") is None
    X[at] = value
    X[(-1,) * len(shape)] = X[(-1,) * len(shape)] or np.inf  # a later one is not what is reported
    assert describe_nonfinite(X, "X").startswith(said)


@pytest.mark.parametrize(
    ("function", "name", "bad"),
    [
        *((pad, "length", bad) for bad in ("5", 2.5, True, [5], 0, 10**30)),
        *((pad, "value", bad) for bad in ("zero", None, [0], np.nan, True)),
        *((pad, "X", bad) for bad in (None, 3, "ab", {"a": 1}, object())),
        *((fill_missing, "how", bad) for bad in ("median", None, [0], np.nan, np.inf, True)),
    ],
)
def test_bad_arguments_are_named(function, name, bad):
    refuses(name, function, **{"X": np.ones((2, 1, 4))} | {name: bad})
