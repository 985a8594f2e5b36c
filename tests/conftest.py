"""Settings of all tests: one thread per worker, since two workers share two cores."""

import os
import random
import signal
import sys
import tempfile
import warnings

os.environ["OMP_NUM_THREADS"] = "1"
# Without it numba's thread pool, started by aeon, gives torch two threads in the middle of a test.
os.environ["NUMBA_NUM_THREADS"] = "1"
os.environ.setdefault("MPLBACKEND", "Agg")
# Benchmarks keep the secret of their signatures there.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="contrafact-tests-")

# A shell that runs tests in the background ignores Ctrl-C, and so would the commands under test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import numpy as np
import pytest
import torch

import task_building
from global_state import changes, snapshot

# Containers often set it; then every worker, and every process that a test starts, compiles all
# modules of the package and of the tests anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.fixture(autouse=True)
def global_state_is_kept():
    """Check that random numbers, settings and modes of the process are as before every test."""
    before = snapshot()
    yield
    found = changes(before, snapshot())
    assert not found, "The test, or what it calls, changed " + "; ".join(found)


@pytest.fixture
def own_random_numbers(global_state_is_kept):
    """Let a test draw from the global generators itself: seeded, and put back after it."""
    numbers = random.getstate(), np.random.get_state(), torch.get_rng_state()
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    yield
    random.setstate(numbers[0])
    np.random.set_state(numbers[1])
    torch.set_rng_state(numbers[2])


@pytest.fixture
def own_warning_filters(global_state_is_kept):
    """Put the filters of warnings back: searches in threads get in each other's way with them.

    `warnings.catch_warnings`, which scikit-learn uses when it predicts, is not made for threads.
    """
    before = list(warnings.filters)
    yield
    warnings.filters[:] = before


class Counting:
    """A plain function of an array, and how many rows it saw."""

    def __init__(self, function):
        self.function = function
        self.seen = 0

    def __call__(self, X):
        self.seen += len(X)
        return self.function(X)


def mean_model(X):
    """Two classes; the second is likelier the larger the mean of an instance."""
    p = 1 / (1 + np.exp(-4 * X.reshape(len(X), -1).mean(1)))
    return np.stack([1 - p, p], 1)


@pytest.fixture
def counting():
    """A counting model on instances of any shape: class 1 from a mean of 0 upward."""
    return Counting(mean_model)


@pytest.fixture
def open_tasks():
    """Open a request as the base class does; gives the tasks of all its instances."""
    return task_building.open_tasks


@pytest.fixture
def module_file(tmp_path, monkeypatch):
    """A module of the user's in the current folder."""
    code = "\n".join(
        [
            "import torch",
            "class Tiny(torch.nn.Linear):",
            "    def __init__(self, n=4): super().__init__(n, 2)",
            "def make(): return Tiny(3)",
            "def needs(size): return Tiny(size)",
            "def text(): return 'no module'",
            "trained = Tiny()",
            "class shelf: inner = trained",
        ]
    )
    (tmp_path / "my_models.py").write_text(code)
    (tmp_path / "my_broken.py").write_text("import not_there_at_all")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("my_models", None)
