"""Every classifier of aeon, with the settings of aeon's own tests."""

import warnings

import pytest
from aeon.utils.discovery import all_estimators
from compat_checks import TooLong, check_explained, series_data, time_limit

LIBRARY = "aeon"


def seeded(model):
    """Set the seed: some break ties at random when they predict."""
    if "random_state" in model.get_params(deep=False):
        model.set_params(random_state=0)
    return model


@pytest.mark.parametrize("name", [name for name, _ in all_estimators("classifier")])
def test_classifier(name, ledger):
    kind = dict(all_estimators("classifier"))[name]
    X, y = series_data()
    if kind.get_class_tag("capability:univariate") is False:
        X, y = series_data(channels=3)
    y = (y == "fast").astype(int)  # ordinal ones take numbers only
    try:
        with time_limit(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = seeded(kind._create_test_instance()).fit(X, y)
    except (TooLong, ModuleNotFoundError, ImportError) as error:
        ledger.add(name, "not fitted", reason=str(error).partition("\n")[0][:120])
        pytest.skip(str(error)[:120])
    with time_limit():
        check_explained(ledger, name, model, X, y)
