"""The payload: what the page draws is what the arrays hold."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest

from contrafact import Constraints
from contrafact.report import payload as room
from contrafact.report.payload import payload
from contrafact.report.sections import scores


def packed(results, reference=None, constraints=None):
    """The payload after a journey through strict JSON."""
    content = payload(
        results, {name: scores(r, None) for name, r in results.items()}, reference, constraints
    )
    return json.loads(json.dumps(content, allow_nan=False))


def bits(text, shape):
    raw = np.frombuffer(b64decode(text), np.uint8)
    return (
        np.unpackbits(raw, count=int(np.prod(shape)), bitorder="little").astype(bool).reshape(shape)
    )


def values(part, shape, mask=None):
    """Unpacked values, and half a step: the most by which they may be wrong."""
    kind = "<u2" if part["steps"] > 255 else "u1"
    whole = np.frombuffer(b64decode(part["data"]), kind)
    low, high = (np.array(part[name])[:, None] for name in ("low", "high"))
    step = np.broadcast_to(
        (high - low) / part["steps"], (shape[0], int(np.prod(shape[1:])))
    ).reshape(shape)
    low = np.broadcast_to(low, (shape[0], int(np.prod(shape[1:])))).reshape(shape)
    mask = np.ones(shape, bool) if mask is None else mask
    return low[mask] + step[mask] * whole, step[mask] / 2


@pytest.mark.parametrize("most", [room.MOST_CHARACTERS, 200])
@pytest.mark.parametrize(
    ("modality", "shape"), [("series", (30,)), ("series", (3, 20)), ("image", (3, 5, 7))]
)
def test_values_and_masks_survive(make, monkeypatch, modality, shape, most):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, *shape)) + 1e6
    X_cf = np.where(rng.random(X.shape) < 0.4, X + rng.normal(size=X.shape), X)
    result = make(X, X_cf, [[0.9, 0.1]] * 2, [[0.1, 0.9]] * 2, modality=modality)
    monkeypatch.setattr(room, "MOST_CHARACTERS", most)
    content = packed({"m": result})
    lifted = tuple(content["shape"])
    entry = content["instances"][0]
    answer = entry["answers"][0][0]
    x, x_cf = X[0].reshape(lifted), X_cf[0].reshape(lifted)
    mask = bits(answer["mask"], lifted)
    assert (mask == (x != x_cf)).all()
    for part, true in (
        (values(entry["x"], lifted), x.ravel()),
        (values(answer["x"], lifted, mask), x_cf[mask]),
    ):
        found, half = part
        assert (np.abs(found - true) <= half * (1 + 1e-6)).all()
        assert len(np.unique(found)) > len(found) // 2
    # Where two bytes a value would fill the page, one must do.
    assert entry["x"]["steps"] == (65535 if most > 200 else 255)


def test_constant_values_survive(make):
    X = np.full((1, 4), 7.0)
    entry = packed({"m": make(X, X, [[0.9, 0.1]], [[0.2, 0.8]])})["instances"][0]
    assert values(entry["x"], (1, 4))[0].tolist() == [7.0] * 4
    assert entry["answers"][0][0]["x"]["data"] == ""


def test_rows_are_exact(make):
    X = np.array([[123456.789, 1 / 3, -0.0]])
    entry = packed({"m": make(X, X + 1e-9, [[0.9, 0.1]], [[0.2, 0.8]], modality="row")})[
        "instances"
    ][0]
    assert entry["x"] == X[0].tolist()
    assert entry["answers"][0][0]["x"] == (X + 1e-9)[0].tolist()


def test_what_the_model_said(series):
    silent = replace(series, cf_proba=np.full((3, 2), np.nan), valid=np.zeros(3, bool))
    content = packed({"one": series, "two": silent})
    one, two = (content["instances"][1]["answers"][m][0] for m in (0, 1))
    assert content["classes"] == ["'gun'", "'point'"]
    assert one["before"] == two["before"] == {"label": 0, "proba": [0.75, 0.25]}
    assert (one["proba"], two["proba"]) == ([0.5625, 0.4375], [None, None])
    assert (one["target"], one["label"], one["valid"], one["status"]) == (1, 0, False, "infeasible")
    assert [entry["source"] for entry in content["instances"]] == [12, 14, 17]
    assert set(content["meaning"]) == set(one["scores"])


def test_alternatives_belong_to_their_instance(series):
    several = replace(series, X=series.X[[0, 0, 2]], source=np.array([4, 4, 9]))
    content = packed({"m": several})
    assert [(e["source"], len(e["answers"][0])) for e in content["instances"]] == [(4, 2), (9, 1)]


def test_guides_are_reference_rows_that_exist(series):
    reference = np.arange(3 * 40, dtype=float).reshape(3, 40)
    result = replace(series, info={"guide_index": np.array([2.0, np.nan, 99.0])})
    content = packed({"m": result}, reference)
    assert list(content["guides"]) == ["2"]
    found, half = values(content["guides"]["2"], (2, 20))
    assert (np.abs(found - reference[2]) <= half).all()
    assert [e["answers"][0][0]["guide"] for e in content["instances"]] == [2, -1, 99]


@pytest.mark.parametrize(
    ("key", "shape"), [("saliency", (2, 20)), ("saliency", (40,)), ("importance", (20,))]
)
def test_saliency(series, key, shape):
    weights = np.random.default_rng(0).normal(size=(3, *shape))
    weights[1] = np.nan
    first, second, _ = packed({"m": replace(series, info={key: weights})})["instances"]
    found, half = values(first["answers"][0][0]["saliency"], (2, 20))
    true = np.broadcast_to(np.abs(weights[0]).reshape(-1, 20), (2, 20)).ravel()
    assert (np.abs(found - true) <= half * (1 + 1e-6)).all()
    assert "saliency" not in second["answers"][0][0]


def test_limits_for_drawing_and_those_broken(series, make):
    frozen = np.arange(20) < 7
    limits = Constraints(lower=[-np.inf, -9.0], upper=1.0, frozen=frozen)
    content = packed({"m": series}, constraints=limits)
    assert content["limits"]["lower"] == [None] * 20 + [-9.0] * 20
    assert content["limits"]["upper"] == [1.0] * 40
    assert (bits(content["limits"]["frozen"], (2, 20)) == frozen).all()
    broken = [entry["answers"][0][0]["broken"] for entry in content["instances"]]
    assert "14 of 40 values frozen" in broken[0]
    assert broken[2] == []
    # Bounds are not drawn over images, whose pixels are many.
    X = np.zeros((1, 1, 4, 4))
    image = make(X, X + 1, [[0.9, 0.1]], [[0.1, 0.9]], modality="image")
    assert packed({"m": image}, constraints=Constraints(upper=1.0))["limits"] == {}


def test_what_does_not_fit_is_listed_without_a_picture(series, monkeypatch):
    sizes = [len(json.dumps(entry)) for entry in packed({"m": series})["instances"]]
    monkeypatch.setattr(room, "MOST_CHARACTERS", sum(sizes[:2]))
    entries = packed({"m": series})["instances"]
    assert [entry["x"] is None for entry in entries] == [False, False, True]
    assert "mask" not in entries[2]["answers"][0][0]
    assert entries[2]["answers"][0][0]["sentence"]


def test_guides_count_towards_what_fits(series, monkeypatch):
    guided = replace(series, info={"guide_index": np.zeros(3)})
    first = len(json.dumps(packed({"m": guided})["instances"][0]))
    monkeypatch.setattr(room, "MOST_CHARACTERS", first + 10)
    reference = np.random.default_rng(0).normal(size=(1, 40))
    drawn = [
        sum(entry["x"] is not None for entry in packed({"m": guided}, known)["instances"])
        for known in (None, reference)
    ]
    assert drawn == [2, 1]


def test_nothing_at_all(series):
    content = packed({"m": series[:0]}, np.zeros((3, 40)), Constraints(lower=0.0))
    assert (content["instances"], content["guides"], content["limits"]) == ([], {}, {})
