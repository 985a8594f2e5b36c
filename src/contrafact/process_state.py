"""Keep what libraries change for the whole process: threads of torch, random numbers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def keeping_threads() -> Iterator[None]:
    """Restore torch's number of threads after the block, or the function, if something changed it.

    numba does when its pool of threads starts: at the first parallel function, of aeon for example.

    Examples
    --------
    >>> import torch
    >>> before = torch.get_num_threads()
    >>> with keeping_threads():
    ...     torch.set_num_threads(before + 1)
    >>> torch.get_num_threads() == before
    True
    """
    import torch

    before = torch.get_num_threads()
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


@contextmanager
def keeping_random_numbers() -> Iterator[None]:
    """Restore the random numbers of Python, NumPy and torch after the block, or the function.

    For what may draw from them or seed them: training of estimators, models when they predict.

    Examples
    --------
    >>> import numpy as np
    >>> before = np.random.get_state()[1].copy()
    >>> with keeping_random_numbers():
    ...     np.random.seed(7)
    >>> bool((np.random.get_state()[1] == before).all())
    True
    """
    import numpy as np
    import torch

    of_python = random.getstate()
    of_numpy = np.random.get_state()
    of_torch = torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)
        torch.set_rng_state(of_torch)
