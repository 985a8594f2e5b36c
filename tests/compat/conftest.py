"""Tests with real libraries, run by `make compat` in environments of their own."""

import os

import pytest
from compat_checks import Ledger

from contrafact.process_state import keeping_random_numbers

if "CONTRAFACT_COMPAT" not in os.environ:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True)
def global_state_is_kept():
    """Put random numbers back, from which other libraries draw when they are imported and fit.

    What contrafact itself does to the state of the process is checked by `check_explained`.
    """
    with keeping_random_numbers():
        yield


@pytest.fixture(scope="module")
def ledger(request):
    """Collects what was tried with a library; written where CONTRAFACT_COMPAT says."""
    library = request.module.LIBRARY
    ledger = Ledger(library)
    yield ledger
    ledger.write(os.environ["CONTRAFACT_COMPAT"])
