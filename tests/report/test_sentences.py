"""Sentences: every wording, on arrays small enough to see that it is true."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import contrafact as cf
from contrafact.metrics import Reference
from contrafact.prototypes import GLVQ, LGMLVQ
from contrafact.report.firmness import with_radius
from contrafact.report.sentences import outcome, sentence

REACHED = {"proba": [[0.9, 0.1]], "cf_proba": [[0.2, 0.8]]}


@pytest.fixture
def told(make):
    """The sentence of one instance that became another."""

    def tell(x, x_cf, **other):
        return sentence(make(np.array([x], float), np.array([x_cf], float), **REACHED, **other), 0)

    return tell


def wave(changes=(), length=50):
    """A slow wave, with some values set."""
    x = np.sin(np.arange(length) / 2)
    for where, value in changes:
        x[where] = value
    return x


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((slice(10, 20), 0.0), "stay flat between t = 10 and 19"),
        ((slice(10, 20), wave()[10:20] + 1), "be higher between t = 10 and 19"),
        ((slice(10, 20), wave()[10:20] - 1), "be lower between t = 10 and 19"),
        ((slice(10, 20), wave()[10:20][::-1]), "run differently between t = 10 and 19"),
        ((7, 3.0), "be higher at t = 7"),
        ((slice(None), wave() - 2), "be lower from beginning to end"),
    ],
)
def test_what_a_series_would_have_to_do(told, change, words):
    assert (
        told(wave(), wave([change]))
        == f"To be called 'b' instead of 'a', this series would have to {words}."
    )


def test_stretches_come_in_reading_order_and_the_small_ones_are_counted(told):
    x_cf = wave([(40, 9.0), (5, 8.0), (20, -8.0), (30, 1.5), (12, 1.2)])
    assert told(wave(), x_cf) == (
        "To be called 'b' instead of 'a', this series would have to be higher at t = 5, "
        "be lower at t = 20 and be higher at t = 40 (2 smaller changes not named)."
    )


def test_stretches_that_almost_touch_are_one(told):
    assert told(wave(), wave([([10, 12, 14], 3.0)])).endswith("be higher between t = 10 and 14.")
    assert told(wave(), wave([([10, 13], 3.0)])).endswith(
        "be higher at t = 10 and be higher at t = 13."
    )


def test_channels_go_by_their_names(told):
    x, x_cf = np.zeros((2, 30)), np.zeros((2, 30))
    x_cf[1, 3] = 1
    assert told(x, x_cf).endswith("be higher at t = 3 in channel 1.")
    assert told(x, x_cf, names=np.array(["left", "right"])).endswith("be higher at t = 3 in right.")


@pytest.mark.parametrize(
    ("pixel", "words"),
    [
        ((0, 0), "at the upper left"),
        ((0, 4), "at the top"),
        ((8, 8), "at the lower right"),
        ((4, 4), "in the center"),
        ((4, 0), "at the left"),
    ],
)
def test_images_by_ninths(told, pixel, words):
    x, x_cf = np.zeros((3, 9, 9)), np.zeros((3, 9, 9))
    x_cf[1][pixel] = 1
    assert told(x, x_cf, modality="image").endswith(
        f"this image would have to be brighter {words}."
    )
    assert told(x_cf, x, modality="image").endswith(f"would have to be darker {words}.")
    x_cf[2][pixel] = -1
    assert told(x, x_cf, modality="image").endswith(f"would have to be different {words}.")


def test_images_by_what_can_be_seen(told):
    x = np.zeros((1, 9, 9))
    x[0, 4, 4] = 1
    x_cf = x + 1e-3
    x_cf[0, 8, 8] = 0.5
    assert told(x, x_cf, modality="image").endswith("have to be brighter at the lower right.")
    assert told(x, x + 1e-3, modality="image").endswith("brighter all over.")


def test_images_all_over_and_tiny(told):
    x = np.zeros((1, 1, 1))
    assert told(x, x + 1, modality="image").endswith("would have to be brighter all over.")
    x = np.zeros((1, 8, 8))
    x_cf = x.copy()
    x_cf[0, 2, 5] = 1  # the third column from the right: a mirror image of the third from the left
    assert told(x, x_cf, modality="image").endswith("brighter at the upper right.")


def test_rows_name_the_values(told):
    names = np.array(["age", "income", "rate", "kept"])
    words = told([40, 52000, 0.25, 3], [41, 48123.4, 0.2501, 3], modality="row", names=names)
    assert words == (
        "To be called 'b' instead of 'a', this row would need age 41 instead of 40, "
        "income 48123 instead of 52000 and rate 0.2501 instead of 0.25."
    )
    assert told([0], [1], modality="row").endswith("this row would need feature 0 1 instead of 0.")


def test_failures_and_those_already_there(series):
    assert sentence(series, 1) == (
        "No change that makes the model say 'point' was found; the best has P('point') = 0.44."
    )
    hopeless = replace(series, cf_proba=np.array([[0.999, 0.001]] * 3))
    assert sentence(hopeless, 1).endswith("the best has P('point') < 0.01.")
    assert (
        sentence(series, 2) == "The model calls this series 'point' already; nothing was changed."
    )


def test_a_valid_row_that_did_not_change(told):
    assert (
        told(wave(), wave()) == "The model says 'b' of this series as it is; nothing was changed."
    )


def test_outcome_counts(series):
    assert outcome(series) == [
        "1 of 2 now get the class that was asked for.",
        "1 had it already and was left as it is.",
        "Typical change: 12 % of the values, in 3 stretches "
        "(median over 1 instance, not already in the target class).",
    ]
    assert outcome(series[[2, 2]]) == [
        "2 had the class that was asked for already and were left as they are."
    ]
    assert outcome(series[:0]) == ["Nothing was asked."]
    assert outcome(series[[0, 0]])[0] == "2 of 2 alternatives now get the class that was asked for."


def test_outcome_says_where_changes_gather(make):
    X = np.zeros((3, 20))
    X_cf = X.copy()
    X_cf[:, 4:8] = 1
    X_cf[0, 15] = 1
    both = {"proba": [[0.9, 0.1]] * 3, "cf_proba": [[0.1, 0.9]] * 3}
    assert outcome(make(X, X_cf, **both))[-1] == "Half of all changes fall between t = 4 and 6."
    assert outcome(make(X, X_cf, modality="row", **both))[-1] == (
        "Changed most often: feature 4 (in 3 of 3), feature 5 (in 3 of 3) "
        "and feature 6 (in 3 of 3)."
    )
    assert outcome(make(X, X, **both)) == ["3 of 3 now get the class that was asked for."]


@pytest.mark.parametrize("modality", ["series", "image", "row"])
@pytest.mark.parametrize("seed", range(8))
def test_any_result_can_be_told(make, modality, seed):
    rng = np.random.default_rng(seed)
    n, sizes = 6, rng.integers(1, 7, size=3)
    shape = {
        "series": tuple(sizes[: rng.integers(1, 3)]),
        "image": tuple(sizes),
        "row": tuple(sizes[:1]),
    }[modality]
    X = rng.normal(size=(n, *shape)) * 10.0 ** rng.integers(-9, 9)
    X_cf = np.where(rng.random(X.shape) < rng.random(), X, X + rng.normal(size=X.shape))
    proba, cf_proba = rng.dirichlet([1, 1], size=(2, n))
    cf_proba[0] = np.nan
    result = make(X, X_cf, proba, cf_proba, modality=modality)
    told = [sentence(result, i) for i in range(n)] + outcome(result)
    assert all(
        text.endswith((".", ").")) and "  " not in text and " ." not in text for text in told
    )


JOINS = "The change joins without a jump or kink that real series do not show."
RISING = np.arange(12) + np.linspace(-1, 1, 30)[:, None]  # thirty series that rise by 1 a step


def last_sentences(text):
    """What is said after the change itself."""
    return text.partition(". ")[2]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({5: 9.0}, "The change leaves a jump at t = 5 that real series do not show."),
        ({5: 5.8, 6: 6.9}, "The change leaves a jump at t = 5 that real series do not show."),
        ({5: 4.9}, JOINS),
        ({t: 30.0 - t for t in range(12)}, ""),
    ],
)
def test_joins_are_compared_with_real_series(make, edit, words):
    rng = np.random.default_rng(0)
    known = Reference(RISING + 0.1 * rng.normal(size=RISING.shape))
    x_cf = np.arange(12.0)
    x_cf[list(edit)] = list(edit.values())
    result = make(np.arange(12.0)[None], x_cf[None], **REACHED)
    assert last_sentences(sentence(result, 0, known)) == words
    assert last_sentences(sentence(result, 0)) == ""


def test_a_kink_is_told_with_its_channel(make):
    # In both channels real series change by up to 1 a step, up or down, in long straight lines.
    lines = np.concatenate([RISING, -RISING])
    known = Reference(np.stack([lines, lines], axis=1))
    X = np.stack([np.arange(12.0)] * 2)[None]
    X_cf = X.copy()
    X_cf[0, 1, 6:] = 5 - np.arange(1, 7) * 0.9
    result = make(X, X_cf, **REACHED, names=np.array(["left", "right"]))
    words = "The change leaves a kink at t = 5 of right that real series do not show."
    assert last_sentences(sentence(result, 0, known)) == words


@pytest.mark.parametrize(
    ("info", "words"),
    [
        ({"seam": [0.5], "kink": [0.9]}, JOINS),
        ({"seam": [1.5], "kink": [9.0]}, "The change leaves a jump that real series do not show."),
        ({"seam": [1.0], "kink": [1.1]}, "The change leaves a kink that real series do not show."),
        ({"seam": [0.0], "kink": [0.0]}, ""),
        ({"seam": [0.5]}, ""),
        ({"committee_votes": [3], "committee_size": [3]}, "3 of 3 retrained models agree."),
        ({"committee_votes": [1], "committee_size": [1]}, "1 of 1 retrained model agrees."),
        ({"committee_votes": [0], "committee_size": [0]}, ""),
        (
            {"seam": [0.5], "kink": [0.5], "committee_votes": [2], "committee_size": [3]},
            f"{JOINS} 2 of 3 retrained models agree.",
        ),
    ],
)
def test_what_a_method_found_out_is_told(make, info, words):
    info = {name: np.array(values) for name, values in info.items()}
    result = make(np.zeros((1, 9)), np.eye(9)[:1], **REACHED, info=info)
    assert last_sentences(sentence(result, 0)) == words
    unchanged = replace(result, X_cf=result.X)
    failed = replace(
        result,
        valid=np.array([False]),
        status=np.array(["invalid"]),
        cf_labels=result.labels,
    )
    for nothing_found in (unchanged, failed):
        text = sentence(nothing_found, 0)
        assert "real series" not in text and "retrained" not in text


def test_votes_are_told_of_rows_too(make):
    info = {"committee_votes": np.array([2]), "committee_size": np.array([3])}
    row = make(np.zeros((1, 4)), np.eye(4)[:1], **REACHED, modality="row", info=info)
    told = sentence(row, 0, Reference(np.zeros((3, 4))))
    assert told.endswith(". 2 of 3 retrained models agree.")


@pytest.mark.parametrize(
    ("committee", "words"),
    [
        ("Committee(2 x FCN, 1 x RandomForestClassifier, trained on bootstraps, ...)", "retrained"),
        ("Committee(3 x FCN, given)", "further"),
        ("Committee(2 x Pipeline, surrogates fitted to the model's answers)", "further"),
    ],
)
def test_members_are_called_retrained_only_if_they_are(make, committee, words):
    info = {"committee_votes": np.array([2]), "committee_size": np.array([3])}
    result = make(np.zeros((1, 4)), np.eye(4)[:1], **REACHED, modality="row", info=info)
    result = replace(result, provenance={"options": {"committee": committee}})
    assert sentence(result, 0).endswith(f" 2 of 3 {words} models agree.")


def test_a_prototype_model_says_how_far_other_decisions_are():
    """Rounded down, so that what is said is true of the number that was proved."""
    X, y = load_iris(return_X_y=True)
    model = GLVQ(2, random_state=0).fit(X, y)
    result = cf.PrototypeCounterfactual().fit(model, X, y).explain(X[::20])
    for i in range(len(result)):
        words = sentence(result, i)
        told = re.search(r"No change shorter than ([\d.e-]+) \(Euclidean\)", words)
        radius = float(result.info["robustness_radius"][i])
        assert 0.998 * radius < float(told[1]) <= radius


@pytest.mark.parametrize("scaled", [False, True])
def test_the_page_says_it_of_other_methods_too_given_the_model(scaled, tmp_path):
    X, y = load_iris(return_X_y=True)
    prototypes = LGMLVQ(1, max_iter=20, random_state=0)
    model = make_pipeline(StandardScaler(), prototypes) if scaled else prototypes
    model.fit(X, y)
    line = cf.LineSearch().fit(model, X, y).explain(X[::30])
    exact = cf.PrototypeCounterfactual().fit(model, X, y).explain(X[::30])
    told = with_radius(line, model)
    radius = told.info["robustness_radius"]
    np.testing.assert_allclose(radius, exact.info["robustness_radius"], rtol=1e-9)
    for i in range(len(told)):
        words = sentence(told, i)
        said = re.search(r"this one has length ([\d.]+), ([\d.]+) times that", words)
        length = np.linalg.norm(line.X_cf[i] - line.X[i])
        assert float(said[1]) == pytest.approx(length, rel=1e-3)
        assert float(said[2]) == pytest.approx(length / radius[i], rel=1e-3, abs=0.006)
    page = line.report(tmp_path / "with.html", model=model).read_text("utf-8")
    assert "No change shorter than" in page
    assert "No change shorter than" not in line.report(tmp_path / "not.html").read_text("utf-8")


def test_no_radius_is_said_where_the_model_proves_none():
    X, y = load_iris(return_X_y=True)
    other = LogisticRegression(max_iter=1000).fit(X, y)
    result = cf.LineSearch().fit(other, X, y).explain(X[::50])
    assert with_radius(result, other) is result
    known = replace(result, info={**result.info, "robustness_radius": np.ones(len(result))})
    assert with_radius(known, GLVQ(random_state=0).fit(X, y)) is known
