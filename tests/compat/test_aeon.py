"""Every classifier of aeon but those that need older packages."""

import pytest
from aeon_checks import CLASSIFIERS, OLDER_VERSIONS, check_classifier

LIBRARY = "aeon"
BESIDE = ("roughpy", "statsmodels", "tensorflow", "tsfresh")


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name not in OLDER_VERSIONS])
def test_classifier(name, ledger):
    check_classifier(ledger, name)
