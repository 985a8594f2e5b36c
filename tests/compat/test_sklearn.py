"""Every classifier of scikit-learn."""

import warnings

import pytest
from compat_checks import check_explained, rows_of_data, time_limit
from sklearn.linear_model import LogisticRegression
from sklearn.utils import all_estimators

LIBRARY = "scikit-learn"
#: what wrappers are made of
INNER = LogisticRegression(max_iter=500)
ARGUMENTS = {
    "BernoulliNB": {"binarize": 3.0},
    "ClassifierChain": {"estimator": INNER},
    "FixedThresholdClassifier": {"estimator": INNER},
    "MultiOutputClassifier": {"estimator": INNER},
    "OneVsOneClassifier": {"estimator": INNER},
    "OneVsRestClassifier": {"estimator": INNER},
    "OutputCodeClassifier": {"estimator": INNER, "random_state": 0},
    "RadiusNeighborsClassifier": {"radius": 2.0},
    "SelfTrainingClassifier": {"estimator": INNER},
    "StackingClassifier": {"estimators": [("a", INNER)]},
    "TunedThresholdClassifierCV": {"estimator": INNER},
    "VotingClassifier": {"estimators": [("a", INNER)], "voting": "soft"},
}
TWO_CLASSES = ("FixedThresholdClassifier", "TunedThresholdClassifierCV")
SEVERAL_OUTPUTS = ("ClassifierChain", "MultiOutputClassifier")


@pytest.mark.parametrize("name", [name for name, _ in all_estimators(type_filter="classifier")])
def test_classifier(name, ledger):
    X, y = rows_of_data()
    kind = dict(all_estimators(type_filter="classifier"))[name]
    if name in TWO_CLASSES:
        y = (y > 0).astype(int)
    if name in SEVERAL_OUTPUTS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = kind(**ARGUMENTS[name]).fit(X, (y[:, None] > [0, 1]).astype(int))
        with pytest.raises(ValueError, match="multi-"):
            check_explained(ledger, name, model, X, y)
        ledger.add(name, "refused", reason="several outputs")
        return
    with time_limit(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(**ARGUMENTS.get(name, {})).fit(X, y)
        check_explained(ledger, name, model, X, y)
