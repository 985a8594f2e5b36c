"""Classifiers of aeon that need older versions of other packages."""

from importlib.metadata import version

import pytest
from aeon_checks import OLDER_VERSIONS, check_classifier

LIBRARY = "aeon"


@pytest.mark.parametrize("name", OLDER_VERSIONS)
def test_classifier(name, ledger):
    versions = f"pandas {version('pandas')} and scikit-learn {version('scikit-learn')}"
    check_classifier(ledger, name, f"{name}, with {versions}")
