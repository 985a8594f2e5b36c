"""Counterfactuals: the same after saving, whole after choosing rows, honest in words and tables."""

from __future__ import annotations

import pickle
from dataclasses import fields

import numpy as np
import pytest
import torch

import contrafact as cf
from contrafact.engine.result import Counterfactuals

LABELS = {
    "text": np.array(["ja", "nö, né"]),
    "int": np.array([-1, 4]),
    "bool": np.array([False, True]),
}


@pytest.fixture
def make(counting):
    """A result of 6 instances with 2 counterfactuals each, the last instance already in its
    target."""

    def build(labels="text", kind="numpy", modality="series", **options):
        rng = np.random.default_rng(0)
        shape = {"series": (2, 5), "row": (4,), "image": (1, 3, 3)}[modality]
        X = rng.normal(size=(30, *shape))
        X[:6] -= np.abs(X[:6].reshape(6, -1).mean(1)).reshape(-1, *[1] * len(shape)) * 3
        X[5] += 9.0
        classes = LABELS[labels]
        explainer = cf.RandomMask(n_segments=5).fit(cf.as_classifier(counting, classes=classes), X)
        chosen = torch.from_numpy(X[:6]) if kind == "torch" else X[:6]
        return explainer.explain(chosen, target=classes[1], **{"k": 2, **options})

    return build


def same(one, other):
    for field in fields(Counterfactuals):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name == "info":
            assert a.keys() == b.keys()
            assert all(np.array_equal(a[key], b[key], equal_nan=True) for key in a)
        elif isinstance(a, (np.ndarray, torch.Tensor)):
            assert type(a) is type(b) and a.dtype == b.dtype, field.name
            assert np.array_equal(np.asarray(a), np.asarray(b)), field.name
        else:
            assert a == b, field.name


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("modality", ["series", "row"])
def test_saved_and_loaded_is_the_same(make, tmp_path, kind, labels, modality):
    result = make(labels, kind, modality, budget=cf.Budget(calls=1000, seconds=60.0))
    same(Counterfactuals.load(result.save(tmp_path / "r.npz")), result)


def test_file_holds_no_pickle(make, tmp_path):
    path = make().save(tmp_path / "plain")
    assert path.name == "plain.npz"
    with np.load(path, allow_pickle=False) as stored:
        assert all(stored[name].dtype.kind in "biufU" for name in stored.files)
    same(Counterfactuals.load(tmp_path / "plain"), Counterfactuals.load(path))


def test_empty_result_survives(make, tmp_path):
    empty = make()[[]]
    loaded = Counterfactuals.load(empty.save(tmp_path / "e.npz"))
    assert len(loaded) == 0 and loaded.X.shape == (0, 2, 5) and "empty" in repr(loaded)


@pytest.mark.parametrize("kind", ["text", "npy", "npz", "pickle"])
def test_other_files_are_named_as_such(tmp_path, kind):
    path = tmp_path / "other.npz"
    with path.open("wb") as file:
        if kind == "text":
            file.write(b"hello")
        elif kind == "npy":
            np.save(file, np.zeros(3))
        elif kind == "npz":
            np.savez(file, X=np.zeros(3))
        else:
            pickle.dump({"X": 1}, file)
    with pytest.raises(ValueError, match=r"other\.npz is not a saved Counterfactuals"):
        Counterfactuals.load(path)
    with pytest.raises(FileNotFoundError):
        Counterfactuals.load(tmp_path / "nowhere")


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize(
    "rows",
    [2, -1, slice(1, 9, 3), [4, 0, 4], [], "mask", np.array([5, 1])],
    ids=lambda rows: str(rows),
)
def test_choosing_rows_keeps_every_field_together(make, kind, rows):
    result = make(kind=kind)
    rows = result.valid if isinstance(rows, str) else rows
    positions = np.arange(len(result))[rows].reshape(-1)
    part = result[rows]
    assert len(part) == len(positions) and type(part.X) is type(result.X)
    for name in ("X", "X_cf", "source", "labels", "target", "cf_proba", "status", "calls"):
        expected = np.asarray(getattr(result, name))[positions]
        np.testing.assert_array_equal(np.asarray(getattr(part, name)), expected)
    np.testing.assert_array_equal(part.info["guide_index"], result.info["guide_index"][positions])
    assert part.provenance == result.provenance


def test_rows_without_a_candidate_have_blank_info(make):
    result = make()
    last = result[result.source == 5]
    assert last.status.tolist() == ["already_target"] and last.info["guide_index"].tolist() == [-1]


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_delta_and_changed(make, kind):
    result = make(kind=kind)
    X, X_cf = np.asarray(result.X), np.asarray(result.X_cf)
    np.testing.assert_array_equal(np.asarray(result.delta), X_cf - X)
    np.testing.assert_array_equal(np.asarray(result.changed), X_cf != X)
    np.testing.assert_allclose(result.changed_fraction, (X_cf != X).reshape(len(X), -1).mean(1))
    assert 0 < result.changed_fraction[:-1].min() < 1 and result.changed_fraction[-1] == 0


def test_table_has_one_line_each(make):
    result = make("bool")
    frame = result.to_frame()
    expected = (
        "source label target cf_label valid status p_before p_after changed_fraction seconds calls "
        "message"
    )
    assert list(frame.columns) == expected.split()
    assert frame["source"].tolist() == result.source.tolist() and frame["target"].all()
    np.testing.assert_allclose(frame["p_after"], result.cf_proba[:, 1])
    np.testing.assert_allclose(frame["p_before"], result.proba[:, 1])
    assert (frame["p_after"] > 0.5).all() and (frame["p_before"][:-1] < 0.5).all()


def test_target_probability_goes_by_the_order_of_the_classes(counting):
    X = np.random.default_rng(0).normal(size=(20, 1, 4))
    classifier = cf.as_classifier(counting, classes=["z", "a"])
    result = cf.LineSearch().fit(classifier, X).explain(X[:5])
    column = np.where(result.target == "a", 1, 0)
    np.testing.assert_allclose(result.target_proba[:, 1], result.cf_proba[np.arange(5), column])


def test_repr_says_how_many_of_what_came_of_it(make):
    result = make()
    fraction = result.changed_fraction[result.status == "valid"].mean()
    counts = f"10 valid, 1 already_target, {fraction:.0%} changed"
    assert repr(result) == f"<Counterfactuals: 11 series of 2 × 5 by RandomMask: {counts}>"
    assert repr(result[[]]) == "<Counterfactuals: 0 series of 2 × 5 by RandomMask: empty>"


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_updated_replaces_rows_and_adds_their_cost(make, kind):
    result = make(kind=kind)
    rows = np.array([4, 1])
    stubborn = cf.as_classifier(lambda X: np.tile([0.9, 0.1], (len(X), 1)), classes=LABELS["text"])
    new = cf.Counterfactuals.from_arrays(
        stubborn, result.X[rows], result.X[rows], target=LABELS["text"][1]
    )
    updated = result.updated(rows, new)
    others = np.setdiff1d(np.arange(len(result)), rows)
    np.testing.assert_array_equal(np.asarray(updated.X_cf)[rows], np.asarray(result.X)[rows])
    assert updated.status[rows].tolist() == ["invalid"] * 2 and not updated.valid[rows].any()
    assert (
        updated.message[4] == "not reached; best P('nö, né') = 0.10"
    )  # longer than what stood there
    np.testing.assert_array_equal(updated.calls[rows], result.calls[rows] + new.calls)
    for name in ("X_cf", "status", "message", "cf_labels", "calls", "seconds"):
        before, after = (np.asarray(getattr(one, name))[others] for one in (result, updated))
        np.testing.assert_array_equal(before, after)
    assert result.valid.all()  # the old one is untouched


def test_given_arrays_are_what_the_model_says_of_them(counting):
    X = np.stack([np.full((1, 4), v) for v in (-1.0, -1.0, 1.0)])
    X_cf = np.stack([np.full((1, 4), v) for v in (1.0, -0.5, 1.0)])
    given = cf.Counterfactuals.from_arrays(counting, X, X_cf, target=1)
    assert given.status.tolist() == ["valid", "invalid", "already_target"]
    assert given.valid.tolist() == [True, False, True]


def test_without_a_target_the_claim_is_another_class_than_before(counting):
    """A change that does not change the decision is no counterfactual, however small it is."""
    X = np.stack([np.full((1, 4), v) for v in (-1.0, -1.0, 1.0)])
    X_cf = np.stack([np.full((1, 4), v) for v in (1.0, -0.999, 1.0)])
    classifier = cf.as_classifier(counting, classes=[0, 1])
    seen = counting.seen
    given = cf.Counterfactuals.from_arrays(classifier, X, X_cf)
    assert given.target.tolist() == [1, 1, 0] and given.valid.tolist() == [True, False, False]
    assert given.status.tolist() == ["valid", "invalid", "invalid"]
    assert given.calls.sum() == counting.seen - seen
    with pytest.warns(DeprecationWarning, match="from_arrays"):
        old = cf.Counterfactuals.judge(classifier, X, X_cf)
    assert np.array_equal(old.valid, given.valid)


def test_given_arrays_must_have_one_shape(counting):
    X = np.zeros((3, 1, 4))
    with pytest.raises(ValueError, match=r"X_cf has shape \(2, 1, 4\), X \(3, 1, 4\)"):
        cf.Counterfactuals.from_arrays(counting, X, X[:2])


def test_in_the_target_class_before_and_not_after_is_invalid(counting):
    X = np.full((1, 1, 4), 1.0)
    given = cf.Counterfactuals.from_arrays(counting, X, -X, target=1)
    assert given.status.tolist() == ["invalid"] and not given.valid[0]


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_rounding_does_not_count_as_changed(kind):
    """Noise of 1e-9 that another library leaves everywhere is no edit; a millionth is the limit."""
    X = np.ones((4, 2, 3), dtype=np.float64)
    X_cf = X + 1e-9
    X_cf[0, 0, 1] += 0.5
    X_cf[1, 1] += [1.0, 2e-6, 0.5e-6]
    X_cf[2] = X[2]
    expected = np.zeros(X.shape, dtype=bool)
    expected[0, 0, 1] = True
    expected[1, 1, :2] = True
    expected[3] = True  # nothing moved further, so this is the edit
    as_kind = torch.from_numpy if kind == "torch" else np.asarray
    model = cf.as_classifier(lambda X: np.tile([0.9, 0.1], (len(X), 1)), classes=["a", "b"])
    result = cf.Counterfactuals.from_arrays(model, as_kind(X), as_kind(X_cf), "b")
    assert type(result.changed) is type(result.X) and result.changed.shape == result.X.shape
    np.testing.assert_array_equal(np.asarray(result.changed), expected)
    np.testing.assert_allclose(result.changed_fraction, [1 / 6, 2 / 6, 0, 1])
    assert result[:0].changed.shape == (0, 2, 3) and result[:0].changed_fraction.shape == (0,)


def test_changes_of_float32_are_compared_in_float64(counting):
    X = np.full((1, 1, 4), 16777216.0, dtype=np.float32)
    X_cf = X.copy()
    X_cf[0, 0, 0] += 2
    result = cf.Counterfactuals.from_arrays(cf.as_classifier(counting, classes=["z", "a"]), X, X_cf)
    assert result.changed.tolist() == [[[True, False, False, False]]]


def test_features_of_a_row_have_units_of_their_own():
    """A rate that rises a little has changed, however many dollars the income changed by."""
    X = np.array([[52_000.0, 0.25, 0.0, 7.0]])
    X_cf = np.array([[48_000.0, 0.2503, 1e-7, 7.0 * (1 + 1e-7)]])
    model = cf.as_classifier(lambda X: np.tile([0.9, 0.1], (len(X), 1)), classes=["a", "b"])
    result = cf.Counterfactuals.from_arrays(model, X, X_cf, "b")
    assert result.modality == "row" and result.changed.tolist() == [[True, True, False, False]]
