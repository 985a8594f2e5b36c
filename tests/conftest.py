"""Shared by all tests: one thread per worker, since two workers share two cores."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """numba's thread pool, started by aeon, resets torch's number of threads: set it before every test."""
    torch.set_num_threads(1)
