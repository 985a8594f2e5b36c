"""Functions: what they answer through the adapter is what they answer themselves."""

import numpy as np
from scipy.special import softmax
from sklearn.datasets import load_iris

from contrafact.models import as_classifier

IRIS = load_iris().data


def test_a_function_that_works_in_place_changes_nothing_of_ours():
    X = IRIS.copy()

    def shifted(X):
        X -= X.mean(1, keepdims=True)
        return softmax(X, axis=1)

    expected = shifted(X.copy())
    np.testing.assert_allclose(as_classifier(shifted).predict_proba(X), expected)
    np.testing.assert_array_equal(X, IRIS)


def test_a_function_may_round_its_probabilities_or_fail_on_a_row():
    proba = np.array([[0.33, 0.33, 0.33], [np.nan, np.nan, np.nan], [0.2, 0.1, 0.7]])
    classifier = as_classifier(lambda X: proba)
    np.testing.assert_array_equal(classifier.predict_proba(np.zeros((3, 2))), proba)
