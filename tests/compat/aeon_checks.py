"""Train and explain a classifier of aeon, with the settings of aeon's own tests."""

import warnings

import pytest
from aeon.utils.discovery import all_estimators
from compat_checks import TooLong, check_explained, series_data, time_limit

CLASSIFIERS = dict(all_estimators("classifier"))
#: what their packages need
OLDER_VERSIONS = {
    "MrSEQLClassifier": "pandas before 3",
    "MrSQMClassifier": "scikit-learn before 1.8",
}
#: The seed, since some break ties at random when they predict. Networks: the steps of aeon's own
#: tests are too few to tell the two classes apart.
SETTINGS = {"random_state": 0, "n_epochs": 300}


def check_classifier(ledger, name, label=None):
    """Explain a classifier, named `label` in the ledger; skip where it cannot be trained."""
    kind = CLASSIFIERS[name]
    multivariate_only = kind.get_class_tag("capability:univariate") is False
    X, y = series_data(channels=3 if multivariate_only else 1)
    y = (y == "fast").astype(int)  # ordinal ones take numbers only
    try:
        with time_limit(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = with_settings(kind._create_test_instance()).fit(X, y)
    except (TooLong, ImportError) as error:
        reason = str(error).partition("\n")[0][:120]
        ledger.add(name, "not fitted", reason=reason)
        pytest.skip(reason)
    with time_limit():
        check_explained(ledger, label or name, model, X, y)


def with_settings(model):
    """Change the settings that the model has."""
    known = model.get_params(deep=False)
    return model.set_params(**{name: SETTINGS[name] for name in SETTINGS if name in known})
