"""Settings of all tests: one thread per worker, since two workers share two cores."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
# Without it numba's thread pool, started by aeon, gives torch two threads in the middle of a test.
os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Set torch's number of threads before every test, whatever a library set it to."""
    torch.set_num_threads(1)
