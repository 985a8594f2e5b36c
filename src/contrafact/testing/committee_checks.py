"""Check that the committee of a request is honored and truthfully reported."""

from __future__ import annotations

import numpy as np

from ..explainers.support.explainer import Explainer
from ..models.classifier import Array, Classifier
from ..models.committee import Committee
from .cases import Case
from .checks import check

#: probability from which on the stricter model of these checks decides as the model itself does
STRICT = 0.7


class StricterModel:
    """Decide as a model does where it is sure, else for its runner-up.

    Parameters
    ----------
    classifier : Classifier
        The model.
    """

    def __init__(self, classifier: Classifier) -> None:
        self.classifier = classifier

    def __call__(self, X: Array) -> Array:
        """Return probabilities, with those of the first two classes swapped where it is unsure."""
        proba = self.classifier.predict_proba(X)
        rows = np.flatnonzero(proba.max(1) < STRICT)
        order = np.argsort(proba[rows], axis=1)
        best, second = order[:, -1], order[:, -2]
        strict = proba.copy()
        strict[rows, best] = proba[rows, second]
        strict[rows, second] = proba[rows, best]
        return strict


@check("one_model")
def check_committee_is_honored(explainer: Explainer, case: Case) -> None:
    """Check that valid rows convince every member of a committee, or say how many they do not."""
    classifier = case.classifier()
    stricter = StricterModel(classifier)
    plain = case.explain(explainer)
    result = case.fit(explainer).explain(case.X, committee=Committee([classifier, stricter]))
    strict = _decides(stricter, result.X_cf, case.labels) == result.target
    votes = result.valid.astype(int) + strict
    told = result.info["committee_votes"]
    assert np.array_equal(told, votes), f"committee_votes are {told}, the members say {votes}"
    said = np.array(["of the committee agree" in text for text in result.message])
    short = (result.status == "valid") & (votes < 2)
    assert np.array_equal(said, short), "messages do not say on which rows the committee disagrees"
    convinced = (_decides(stricter, plain.X_cf, case.labels) == plain.target) & plain.valid
    assert (result.valid & strict).sum() >= convinced.sum(), "the committee made fewer rows agree"


def _decides(model: StricterModel, X: Array, labels: Array) -> Array:
    """Return the labels that a model decides for."""
    return np.asarray(labels[model(X).argmax(1)])
