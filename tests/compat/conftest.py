"""Tests with real libraries, run by `make compat` in environments of their own."""

import os
import random

import numpy as np
import pytest
import torch
from compat_checks import Ledger

from contrafact.process_state import keeping_random_numbers

if "CONTRAFACT_COMPAT" not in os.environ:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True)
def global_state_is_kept():
    """Seed the random numbers, from which other libraries draw, and put them back.

    What contrafact itself does to the state of the process is checked by `check_explained`.
    """
    with keeping_random_numbers():
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002 - the global generator is meant
        torch.manual_seed(0)
        yield


@pytest.fixture(scope="module")
def ledger(request):
    """Collects what was tried with a library; written where CONTRAFACT_COMPAT says."""
    ledger = Ledger(request.module.LIBRARY, getattr(request.module, "BESIDE", ()))
    yield ledger
    ledger.write(os.environ["CONTRAFACT_COMPAT"])
