"""What evaluations of counterfactuals get wrong, each trap by its name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import contrafact as cf
from contrafact.engine import Tags
from contrafact.explainers.support.explainer import Explainer
from contrafact.metrics import Metric, aggregate, evaluate
from contrafact.metrics.evaluation import METRICS


def test_failures_are_not_dropped(changes):
    """A method that fails on the far half must not look nearer than one that reaches all."""
    X = np.zeros((4, 1))
    honest, model = changes(lambda x: x[:, 0] >= 1, X, [[1.0], [1.0], [3.0], [3.0]])
    lazy, _ = changes(lambda x: x[:, 0] >= 1, X, [[1.0], [1.0], [0.5], [0.0]])
    table = aggregate(evaluate(lazy, ["valid", "l1", "redundancy"], model=model))
    assert table.loc["valid", ["mean", "n"]].tolist() == [0.5, 4]
    assert table.loc["l1", "mean"] == (1 + 1 + 0.5 + 0) / 4
    assert table.loc["redundancy", ["mean", "coverage"]].tolist() == [1 / 3, 3 / 4]
    assert aggregate(evaluate(honest, "valid")).loc["valid", "mean"] == 1


def test_validity_is_not_soft(make):
    """Pushed deeper into its own class: neither valid, nor a gain."""
    result = make(np.zeros((1, 2)), np.ones((1, 2)), [[0.6, 0.4]], [[0.99, 0.01]], modality="row")
    frame = evaluate(result, ["valid", "flipped", "target_confidence", "confidence_gain"])
    np.testing.assert_allclose(frame.iloc[0, 2:].astype(float), [0, 0, 0.01, -0.39])


def test_direction_is_declared_not_guessed():
    for name, kind in METRICS.items():
        assert kind.direction in ("min", "max"), name
        assert kind.name == name
    better = {name: kind.direction for name, kind in METRICS.items()}
    less = {
        "l1",
        "dtw",
        "sparsity",
        "lof",
        "lof_increase",
        "prototype_energy",
        "redundancy",
        "lipschitz",
    }
    more = {
        "valid",
        "unchanged_fraction",
        "dtw_lof_inlier",
        "ynn",
        "diversity",
        "transfer_validity",
        "gini",
    }
    assert {better[name] for name in less} == {"min"}
    assert {better[name] for name in more} == {"max"}


def test_unchanged_is_not_contiguous(make):
    p = [[1.0, 0.0]] * 3
    X_cf = np.array([[0.0] * 6, [0, 1, 1, 1, 0, 0], [1, 0, 1, 0, 1, 0]])
    frame = evaluate(
        make(np.zeros((3, 6)), X_cf, p, p), ["contiguity", "segment_length", "gini", "hoyer"]
    )
    np.testing.assert_array_equal(frame["contiguity"], [np.nan, 1, 0])
    assert frame.iloc[0, 2:].isna().all()
    assert aggregate(frame).loc["contiguity", "coverage"] == 2 / 3


def test_no_key_is_overwritten(three):
    names = ["l1", "l2", "linf", "mae", "rmse"]
    frame = evaluate(three, names)
    assert list(frame.columns) == ["source", "status", *names]
    assert frame.loc[0, names].nunique() == len(names)


def test_no_two_definitions_share_a_word():
    def every(kind):
        return [kind, *(deeper for child in kind.__subclasses__() for deeper in every(child))]

    kinds = {
        k for k in every(Metric) if k.__module__.startswith("contrafact.") and hasattr(k, "name")
    }
    assert {kind.name: kind for kind in kinds} == METRICS and len(kinds) == len(METRICS)


@pytest.mark.parametrize(
    "classes", [["1", "01"], ["1.0", "1"], [False, True], [1.0, 2.0], [-1, 1]], ids=str
)
def test_labels_are_not_coerced(classes):
    """Names that fall together, or change, when read as whole numbers: the scores are the same."""
    names = [
        "valid",
        "transfer_validity",
        "ynn",
        "connectedness",
        "controllability",
        "relative_distance",
    ]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))

    def scores(classes):
        y = np.array(classes)[(X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)]
        model = LogisticRegression().fit(X, y)
        result = cf.NearestUnlike().fit(model, X, y).explain(X[:10])
        return result.evaluate(names, (X, y), model=model, other_model=model)

    expected = scores(["a", "b"])
    assert (expected[["valid", "transfer_validity"]] == 1).all(axis=None)
    assert expected["controllability"].mean() > 0 and expected["ynn"].nunique() > 1
    pd.testing.assert_frame_equal(scores(classes), expected)


def test_probabilities_are_those_of_the_users_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) * [1, 100, 0.01] + [5, -300, 0]
    y = np.where(X[:, 1] > -300, "high", "low")
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    result = cf.NearestUnlike().fit(model, X, y).explain(X[:12])
    column = np.searchsorted(model.classes_, result.target)
    expected = model.predict_proba(result.X_cf)[np.arange(12), column]
    before = model.predict_proba(X[:12])[np.arange(12), column]
    frame = evaluate(result, ["target_confidence", "confidence_gain"])
    np.testing.assert_allclose(frame["target_confidence"], expected, rtol=1e-12)
    np.testing.assert_allclose(frame["confidence_gain"], expected - before, rtol=1e-9)


def test_identical_counterfactuals_are_no_nan(make):
    X_cf = np.ones((3, 4))
    p = [[0.0, 1.0]] * 3
    result = make(np.zeros((3, 4)), X_cf, p, p, modality="row", source=np.zeros(3, int))
    frame = evaluate(
        result,
        reference=(np.ones((4, 4)), ["a", "b"] * 2),
        model=lambda x: np.tile([0.0, 1.0], (len(x), 1)),
    )
    assert np.isfinite(frame["diversity"]).all()
    assert not frame.isna().any(axis=None)


class Liar(Explainer):
    """Returns its input and says that it worked."""

    tags = Tags(reference=False)

    def _explain(self, tasks):
        return tasks.candidates(tasks.x.clone())


def test_a_liar_is_scored_as_a_failure():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] > 0, "b", "a")
    model = LogisticRegression().fit(X, y)
    explainer = Liar().fit(model, X, y)
    table = aggregate(
        evaluate(explainer.explain(X[:8]), reference=(X, y), explainer=explainer, other_model=model)
    )
    for name in (
        "valid",
        "flipped",
        "coverage",
        "controllability",
        "transfer_validity",
        "confidence_gain",
    ):
        assert table.loc[name, "mean"] == 0, name
    assert table.loc["redundancy", "coverage"] == 0
    assert table.loc["lof_increase", "mean"] == 0


def test_rounding_is_no_edit(make):
    """A method that leaves 1e-10 everywhere has not changed everything."""
    X, X_cf = np.zeros((2, 4)), np.array([[1.0, 1e-10, -1e-10, 0.5], [0.0, 0.0, 0.0, 1e-10]])
    proba = [[0.9, 0.1]] * 2
    result = make(X, X_cf, proba, [[0.1, 0.9]] * 2, modality="row")
    frame = evaluate(result, ["sparsity", "unchanged_fraction", "segments"])
    np.testing.assert_allclose(frame.iloc[:, 2:].astype(float), [[0.5, 0.5, 2], [0.25, 0.75, 1]])
