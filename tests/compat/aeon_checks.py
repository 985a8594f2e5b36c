"""Train and explain a classifier of aeon, with the settings of aeon's own tests."""

import warnings

import pytest
from aeon.utils.discovery import all_estimators
from compat_checks import check_explained, series_data, time_limit

CLASSIFIERS = dict(all_estimators("classifier"))
#: what their packages need
OLDER_VERSIONS = {
    "MrSEQLClassifier": "pandas before 3",
    "MrSQMClassifier": "scikit-learn before 1.8",
}
#: epochs of networks: those of aeon's own tests are too few to tell the two classes apart
EPOCHS = 30
#: and of those that learn more slowly
MORE_EPOCHS = {
    "IndividualInceptionClassifier": 300,
    "LITETimeClassifier": 300,
    "TimeCNNClassifier": 300,
}


def check_classifier(ledger, name, label=None):
    """Explain a classifier, named `label` in the ledger; skip where it cannot be trained."""
    kind = CLASSIFIERS[name]
    multivariate_only = kind.get_class_tag("capability:univariate") is False
    X, y = series_data(channels=3 if multivariate_only else 1)
    y = (y == "fast").astype(int)  # ordinal ones take numbers only
    try:
        with time_limit(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = with_settings(name, kind._create_test_instance()).fit(X, y)
    # What a library raises when it trains its own model is its reason, whatever it is.
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:120]}"
        ledger.add(label or name, "not fitted", reason=reason)
        pytest.skip(reason)
    with time_limit():
        check_explained(ledger, label or name, model, X, y)


def with_settings(name, model):
    """Set the seed, since some break ties at random when they predict, and the epochs."""
    settings = {"random_state": 0, "n_epochs": MORE_EPOCHS.get(name, EPOCHS)}
    known = model.get_params(deep=False)
    return model.set_params(**{key: settings[key] for key in settings if key in known})
