"""Checks that bad input gets a clear error and a bad row does not spoil the others."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..explainers.support.explainer import Explainer
from ..models.classifier import Array, Classifier
from .cases import Case


def refuses(work: Callable[[], Any], *words: str) -> None:
    """`work` must raise a ValueError or TypeError whose message contains the words."""
    try:
        work()
    except (ValueError, TypeError) as error:
        missing = [word for word in words if word not in str(error)]
        assert not missing, f"the error does not mention {missing}: {error}"
        return
    raise AssertionError(f"no error, though one that mentions {words} was due")


def check_unfitted_refused(explainer: Explainer, case: Case) -> None:
    refuses(lambda: explainer.explain(case.X), "fit")


def check_nan_refused(explainer: Explainer, case: Case) -> None:
    case.fitted(explainer)
    X = case.X.copy()
    X.reshape(len(X), -1)[2, 1] = np.nan
    refuses(lambda: explainer.explain(X), "X[2]", "NaN")
    refuses(
        lambda: explainer.fit(
            case.classifier(), X, case.labels[np.arange(len(X)) % 3], modality=case.modality
        ),
        "NaN",
    )


def check_inf_refused(explainer: Explainer, case: Case) -> None:
    case.fitted(explainer)
    X = case.X.copy()
    X.reshape(len(X), -1)[1, 0] = -np.inf
    refuses(lambda: explainer.explain(X), "X[1]", "inf")


def check_wrong_shape_refused(explainer: Explainer, case: Case) -> None:
    case.fitted(explainer)
    refuses(lambda: explainer.explain(case.X[..., :-1]), "shape")
    refuses(lambda: explainer.explain(np.zeros(())), "shape")
    refuses(lambda: explainer.fit(case.classifier(), case.X_reference, case.y_reference[:-1]), "y")


def check_unknown_target_refused(explainer: Explainer, case: Case) -> None:
    case.fitted(explainer)
    refuses(lambda: explainer.explain(case.X, target="nowhere"), "nowhere", "'a'")
    refuses(lambda: explainer.explain(case.X, target=case.labels[:2]), "target", "2")


def check_one_class_reference_refused(explainer: Explainer, case: Case) -> None:
    if not explainer.tags.reference:
        return
    one = case.y_reference == case.labels[0]
    refuses(
        lambda: explainer.fit(
            case.classifier(), case.X_reference[one], case.y_reference[one], modality=case.modality
        ),
        "one class",
    )


def check_bad_options_refused(explainer: Explainer, case: Case) -> None:
    case.fitted(explainer)
    refuses(lambda: explainer.explain(case.X, k=0), "k", "0")
    refuses(lambda: explainer.explain(case.X, confidence=1.5), "confidence", "1.5")
    refuses(lambda: explainer.explain(case.X, budget=10), "budget")  # type: ignore[arg-type]
    refuses(lambda: explainer.explain(case.X, constraints={"lower": 0}), "constraints")  # type: ignore[arg-type]


def check_failed_fit_keeps_the_old_one(explainer: Explainer, case: Case) -> None:
    case.fitted(explainer)
    before = case.answer(explainer)
    refuses(lambda: explainer.fit(case.classifier(), case.X_reference, case.y_reference[:-1]), "y")
    np.testing.assert_array_equal(explainer.explain(case.X).X_cf, before.X_cf)


class Moody:
    """A model that breaks down on instances near one of them: raises, or answers NaN."""

    def __init__(self, classifier: Classifier, hated: Array, raises: bool) -> None:
        self.classifier, self.hated, self.raises = classifier, hated, raises

    def __call__(self, X: Array) -> Array:
        proba = self.classifier.predict_proba(X)
        bad = np.abs(X - self.hated).reshape(len(X), -1).max(1) < 1e-6
        if bad.any() and self.raises:
            raise RuntimeError("sensor offline")
        proba[bad] = np.nan
        return proba


def check_bad_row_does_not_spoil_others(explainer: Explainer, case: Case) -> None:
    good = np.arange(len(case.X)) != 3
    alone = None
    for raises in (True, False):
        model = Moody(case.classifier(), case.X[3], raises)
        moody = replace(case, model=model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            case.fitted(explainer, moody.classifier())
            result = explainer.explain(case.X, random_state=0)
            if alone is None:  # of the good rows, both models say the same
                alone = explainer.explain(case.X[good], random_state=0)
        assert result.status[3] == "error" and result.message[3], (
            "the bad row is not told as an error"
        )
        assert not result.valid[3]
        assert np.array_equal(result.status[good], alone.status), (
            "other rows suffered from the bad one"
        )
        np.testing.assert_allclose(result.X_cf[good], alone.X_cf, atol=2e-3)
