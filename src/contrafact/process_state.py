"""Keep what libraries change for the whole process: threads of torch, random numbers."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


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
def using_threads(n: int) -> Iterator[None]:
    """Let torch, BLAS, OpenMP and numba compute with n threads inside the block.

    numba's pool has a size from the start; it uses no more than that.

    Parameters
    ----------
    n : int
        Number of threads.

    Examples
    --------
    >>> import torch
    >>> before = torch.get_num_threads()
    >>> with using_threads(1):
    ...     torch.get_num_threads()
    1
    >>> torch.get_num_threads() == before
    True
    """
    import torch

    numba = sys.modules.get("numba")
    of_numba = None if numba is None else numba.get_num_threads()
    with keeping_threads(), _thread_pools().limit(limits=n):
        torch.set_num_threads(n)
        if numba is not None:
            numba.set_num_threads(min(n, numba.config.NUMBA_NUM_THREADS))
        try:
            yield
        finally:
            if numba is not None:
                numba.set_num_threads(of_numba)


@cache
def _thread_pools() -> Any:
    """Find the libraries of this process that have pools of threads; it takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


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
