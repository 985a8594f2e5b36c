"""What comes in: every kind of array and label that makes sense, and a clear word about the
rest."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from contrafact.engine.instances import read_instances
from contrafact.models.class_labels import read_targets

ALL = ("series", "image", "row")


@pytest.mark.parametrize(
    ("shape", "modality", "modalities", "expected", "inside"),
    [
        ((3, 8), None, ALL, "row", (8,)),
        ((3, 8), None, ("series", "image"), "series", (1, 8)),
        ((3, 8), "series", ALL, "series", (1, 8)),
        ((3, 2, 8), None, ALL, "series", (2, 8)),
        ((3, 1, 4, 8), None, ALL, "image", (1, 4, 8)),
        ((0, 2, 8), None, ALL, "series", (2, 8)),
    ],
)
def test_shape_and_modality(shape, modality, modalities, expected, inside):
    X = np.arange(np.prod(shape), dtype=float).reshape(shape)
    instances = read_instances(X, "X", modality, modalities)
    assert (instances.modality, instances.shape) == (expected, inside)
    np.testing.assert_array_equal(instances.restore(instances.values), X)


@pytest.mark.parametrize(
    ("shape", "modality", "modalities", "words"),
    [
        ((8,), None, ALL, r"X has shape \(8,\).*x\[None\]"),
        ((2, 2, 2, 2, 2), None, ALL, r"\(2, 2, 2, 2, 2\)"),
        ((3, 8), None, ("image",), "holds series data.*accepted here: image"),
        ((3, 1, 4, 4), None, ("series", "row"), "holds image data"),
        ((3, 1, 4, 4), "series", ALL, "not series data"),
        ((3, 2, 8), "row", ALL, "not row data"),
        ((3, 8), "video", ALL, "'video' is unknown; accepted: 'series', 'image', 'row'"),
        ((3, 0, 8), None, ALL, r"\(3, 0, 8\): its instances are empty"),
    ],
)
def test_unfit_shapes_are_named(shape, modality, modalities, words):
    with pytest.raises(ValueError, match=words):
        read_instances(np.zeros(shape), "X", modality, modalities)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.uint8, np.float32),
        (bool, np.float32),
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.int64, np.float64),
        (np.longdouble, np.float64),
        (">f4", np.float32),
        (">f8", np.float64),
    ],
)
def test_every_kind_of_number_is_held_without_loss(dtype, expected):
    X = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    values = read_instances(X, "X", None, ALL).values
    assert values.dtype == expected and values.dtype.isnative
    np.testing.assert_array_equal(values, X.astype(np.float64))


def test_large_whole_numbers_survive():
    assert read_instances([[2**40 + 1, 0]], "X", None, ALL).values[0, 0] == 2**40 + 1


@pytest.mark.parametrize("kind", [list, torch.tensor, lambda X: X[::-1].copy()[::-1]])
def test_containers(kind):
    X = np.arange(6.0).reshape(2, 3)
    instances = read_instances(kind(X.tolist() if kind is list else X), "X", None, ALL)
    np.testing.assert_array_equal(instances.values, X)
    assert torch.from_numpy(instances.values).shape == (2, 3)  # torch takes it: no reversed axes


def test_a_frame_of_rows_is_a_table():
    frame = pd.DataFrame({"a": [1.0, 3.0], "b": ["x", "y"]})
    instances = read_instances(frame, "X", None, ALL)
    assert instances.table.codes.tolist() == [[1.0, 0.0], [3.0, 1.0]]
    assert instances.values.shape == (2, 3)  # one coordinate for the number, two for the levels
    assert instances.names.tolist() == ["a", "b"]
    series = read_instances(frame[["a"]], "X", "series", ALL)
    assert series.table is None and series.values.tolist() == [[[1.0]], [[3.0]]]


def test_a_frame_is_an_array_with_names_where_no_table_is_wanted():
    X = np.arange(6.0).reshape(2, 3)
    instances = read_instances(pd.DataFrame(X), "X", None, ALL, tables=False)
    np.testing.assert_array_equal(instances.values, X)
    assert instances.table is None and instances.names.tolist() == ["0", "1", "2"]
    with pytest.raises(ValueError, match="column 'b' of X has dtype"):
        read_instances(pd.DataFrame({"b": ["text"]}), "X", None, ALL, tables=False)


@pytest.mark.usefixtures("own_random_numbers")
def test_torch_comes_back_as_torch_of_its_own_number_of_dimensions():
    X = torch.randn(3, 8, requires_grad=True)
    back = read_instances(X, "X", "series", ALL)
    assert torch.equal(back.restore(back.values), X.detach())


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.array([["a", "b"]]), "X has dtype <U1"),
        (pd.DataFrame({"a": [1.0], "b": [["text"]]}), r"column 'b' of X holds \['text'\]"),
        (pd.DataFrame({"a": [1.0], "b": [np.inf]}), "column 'b' of X is inf in row 0"),
        (np.array([[1j, 2]]), "complex"),
        ([[1.0, 2.0], [1.0]], "unequal"),
        (np.array([[1.0, 2.0], [np.nan, 0.0]]), r"X\[1\] contains NaN at feature 0"),
        (np.array([[[1.0, -np.inf]]]), r"X\[0\] contains inf at channel 0, time 1"),
    ],
)
def test_what_is_not_finite_numbers_is_named(X, words):
    with pytest.raises(ValueError, match=words):
        read_instances(X, "X", None, ALL)


STRINGS, INTS, BOOLS = np.array(["no", "yes"]), np.array([0, 1, 7]), np.array([False, True])


@pytest.mark.parametrize(
    ("target", "classes", "expected"),
    [
        ("yes", STRINGS, [1, 1, 1]),
        (np.str_("no"), STRINGS, [0, 0, 0]),
        (["no", "yes", "no"], STRINGS, [0, 1, 0]),
        (pd.Series(["no", "yes", "no"], index=[5, 6, 7]), STRINGS, [0, 1, 0]),
        (0, INTS, [0, 0, 0]),
        (7, INTS, [2, 2, 2]),
        (np.int32(7), INTS, [2, 2, 2]),
        (torch.tensor(7), INTS, [2, 2, 2]),
        (torch.tensor([7, 0, 1]), INTS, [2, 0, 1]),
        ((0, 0, 1), INTS, [0, 0, 1]),
        (False, BOOLS, [0, 0, 0]),
        (np.array([True, False, True]), BOOLS, [1, 0, 1]),
    ],
)
def test_targets_become_columns(target, classes, expected):
    columns = read_targets(target, classes, 3)
    assert columns.tolist() == expected


def test_no_target_leaves_the_choice_to_the_method():
    assert read_targets(None, INTS, 3) is None


@pytest.mark.parametrize(
    ("target", "classes", "words"),
    [
        ("pont", STRINGS, "target 'pont' is not a class of this model. Classes: 'no', 'yes'."),
        ("1", INTS, "target '1' is not a class.*0, 1, 7"),
        (1, STRINGS, "target 1 is not a class"),
        ([0, 1, 2], INTS, "target 2 is not"),
        ([0, 1], INTS, "target has 2 labels for 3 instances"),
        ([], INTS, "target has 0 labels for 3 instances"),
        ([[0], [1], [7]], INTS, r"target has shape \(3, 1\)"),
    ],
)
def test_impossible_targets_are_named(target, classes, words):
    with pytest.raises(ValueError, match=words):
        read_targets(target, classes, 3)


def test_half_precision_tensors_are_read_as_float32():
    for dtype in (torch.bfloat16, torch.float16):
        values = read_instances(torch.ones(2, 3, dtype=dtype), "X", None, ("row",)).values
        assert values.dtype == np.float32 and (values == 1).all()
