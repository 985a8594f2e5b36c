"""The payload: what the page draws is what the arrays hold."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest

from contrafact import Constraints
from contrafact.metrics import Reference
from contrafact.report import payload as module
from contrafact.report.page_metrics import page_scores
from contrafact.report.payload import payload
from contrafact.report.words import class_probability, number_text, percent_text


def packed(results, reference=None, constraints=None):
    """The payload after a journey through strict JSON."""
    scores = {name: page_scores(result, None) for name, result in results.items()}
    known = None if reference is None else Reference(reference)
    content = payload(results, scores, known, constraints)
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


@pytest.mark.parametrize("most", [module.MOST_CHARACTERS, 200])
@pytest.mark.parametrize(
    ("modality", "shape"), [("series", (30,)), ("series", (3, 20)), ("image", (3, 5, 7))]
)
def test_values_and_masks_survive(make, monkeypatch, modality, shape, most):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, *shape)) + 1e6
    X_cf = np.where(rng.random(X.shape) < 0.4, X + rng.normal(size=X.shape), X)
    result = make(X, X_cf, [[0.9, 0.1]] * 2, [[0.1, 0.9]] * 2, modality=modality)
    monkeypatch.setattr(module, "MOST_CHARACTERS", most)
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


def test_rows_are_texts_that_tell_before_from_after(make):
    X = np.array([[123456.789, 1 / 3, 2.0, 7.0, -0.0]])
    X_cf = np.array([[123456.789, 1 / 3 + 1e-6, -2.0, 7.0, 1.0]])
    result = make(X, X_cf, [[0.9, 0.1]], [[0.2, 0.8]], modality="row")
    entry = packed({"m": result})["instances"][0]
    assert entry["x"] == [number_text(value) for value in X[0]]
    assert entry["x"] == ["123457", "0.3333", "2", "7", "0"]
    assert entry["answers"][0][0]["features"] == [
        {"feature": 2, "before": "2", "after": "-2", "change": "−4", "share": 1.0},
        {"feature": 4, "before": "0", "after": "1", "change": "+1", "share": 1.0},
        {
            "feature": 1,
            "before": "0.333333",
            "after": "0.333334",
            "change": "+1e-6",
            "share": 0.0,
        },
    ]


def test_what_the_model_said(series, silent):
    content = packed({"one": series, "two": silent})
    one, two = (content["instances"][1]["answers"][m][0] for m in (0, 1))
    assert content["classes"] == ["'gun'", "'point'"]
    assert one["probabilities"] == [
        {"class": 0, "before": 0.75, "before_text": "0.75", "after": 0.5625, "after_text": "0.56"},
        {"class": 1, "before": 0.25, "before_text": "0.25", "after": 0.4375, "after_text": "0.44"},
    ]
    silent_bars = [(bar["after"], bar["after_text"]) for bar in two["probabilities"]]
    assert silent_bars == [(0, "unknown")] * 2
    assert (one["target"], one["label"], one["valid"]) == (1, 0, False)
    assert [e["answers"][0][0]["outcome"] for e in content["instances"]] == [
        "reached",
        "not reached",
        "already",
    ]
    assert [entry["source"] for entry in content["instances"]] == [12, 14, 17]
    assert len(content["metrics"]) == len(one["scores"])


def test_one_value_has_one_text(series):
    """The same quantity reads the same in the list, among the metrics and in the definitions."""
    content = packed({"m": series})
    labels = [metric["label"] for metric in content["metrics"]]
    assert labels[:2] == ["changed", "stretches changed"]
    assert content["metrics"][0]["meaning"].startswith("sparsity: ")
    for i, entry in enumerate(content["instances"]):
        answer = entry["answers"][0][0]
        assert answer["changed_text"] == percent_text(series.changed_fraction[i])
        assert answer["scores"][0] == answer["changed_text"]
        for bar in answer["probabilities"]:
            assert bar["after_text"] == class_probability(series.cf_proba[i], bar["class"])


def test_a_page_holds_no_number_with_more_digits_than_are_shown(series):
    """Texts are finished in Python: nothing is left for the script to round."""
    content = packed({"m": series})
    answer = content["instances"][0]["answers"][0][0]
    shown = [answer["changed_text"], *answer["scores"], answer["sentence"], answer["headline"]]
    assert all(isinstance(text, str) for text in shown)
    assert not re.search(r"\d\.\d{5}", " ".join(shown))


def test_many_classes_are_counted(make):
    classes = [f"c{k}" for k in range(9)]
    p = np.full((1, 9), 0.05)
    p[0, 0] = 0.6
    result = make(np.zeros((1, 5)), np.ones((1, 5)), p, p[:, ::-1], classes=classes)
    answer = packed({"m": result})["instances"][0]["answers"][0][0]
    assert len(answer["probabilities"]) == 6
    assert answer["more_classes"] == "3 more classes are not shown."


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
    assert "Constraint broken: 14 of 40 values frozen." in broken[0]
    assert broken[2] == []
    # Bounds are not drawn over images, whose pixels are many.
    X = np.zeros((1, 1, 4, 4))
    image = make(X, X + 1, [[0.9, 0.1]], [[0.1, 0.9]], modality="image")
    assert packed({"m": image}, constraints=Constraints(upper=1.0))["limits"] == {}


def test_what_does_not_fit_is_listed_without_a_picture(series, monkeypatch):
    sizes = [len(json.dumps(entry)) for entry in packed({"m": series})["instances"]]
    monkeypatch.setattr(module, "MOST_CHARACTERS", sum(sizes[:2]))
    entries = packed({"m": series})["instances"]
    assert [entry["x"] is None for entry in entries] == [False, False, True]
    assert "mask" not in entries[2]["answers"][0][0]
    assert entries[2]["answers"][0][0]["sentence"]


def test_sentences_compare_joins_with_the_reference(series):
    rng = np.random.default_rng(0)
    calm = series.X[0].ravel() + 0.001 * rng.normal(size=(20, 40))
    reached, failed, already = packed({"m": series}, calm)["instances"]
    told = reached["answers"][0][0]["sentence"]
    assert re.search(r"The change leaves a jump at t\u00a0=\u00a0\d+ of channel \d that real", told)
    for entry in (failed, already):
        assert "real series" not in entry["answers"][0][0]["sentence"]


def test_guides_count_towards_what_fits(series, monkeypatch):
    guided = replace(series, info={"guide_index": np.zeros(3)})
    first = len(json.dumps(packed({"m": guided})["instances"][0]))
    monkeypatch.setattr(module, "MOST_CHARACTERS", first + 10)
    reference = np.random.default_rng(0).normal(size=(1, 40))
    drawn = [
        sum(entry["x"] is not None for entry in packed({"m": guided}, known)["instances"])
        for known in (None, reference)
    ]
    assert drawn == [2, 1]


def test_nothing_at_all(series):
    content = packed({"m": series[:0]}, np.zeros((3, 40)), Constraints(lower=0.0))
    assert (content["instances"], content["guides"], content["limits"]) == ([], {}, {})
