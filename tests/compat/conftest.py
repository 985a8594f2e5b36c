"""Tests with real libraries, run by `make compat` in environments of their own."""

import os

import pytest
from compat_checks import Ledger

if "CONTRAFACT_COMPAT" not in os.environ:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="module")
def ledger(request):
    """Collects what was tried with a library; written where CONTRAFACT_COMPAT says."""
    library = request.module.LIBRARY
    ledger = Ledger(library)
    yield ledger
    ledger.write(os.environ["CONTRAFACT_COMPAT"])
