"""Finished benchmarks that several tests look at; none changes them."""

from __future__ import annotations

import numpy as np
import pytest
from score_table import table
from sklearn.linear_model import LogisticRegression
from small_grid import METRICS, Blank, Crasher, Dier, Hanger, Liar, small, toy

import contrafact as cf
from contrafact.benchmark import Benchmark, planted_images, planted_series
from contrafact.parallel.child import LIMITS

CASES = {
    "linear": lambda: planted_series(40, 48, width=8),
    "several places": lambda: planted_series(40, 48, width=7, places=3, channels=2),
    "smooth": lambda: planted_series(
        40, 48, width=8, places=2, background="smooth", random_state=4
    ),
    "image": lambda: planted_images(40, 12, width=4, places=3),
}


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """A folder with the finished small grid, and its table."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, small().run(folder, progress=False)


@pytest.fixture(scope="session")
def rogues(tmp_path_factory):
    """A grid of explainers that misbehave, its folder and its table."""
    explainers = {
        "honest": cf.NearestUnlike(),
        "liar": Liar(),
        "crasher": Crasher(),
        "dier": Dier(),
        "blank": Blank(),
    }
    grid = Benchmark(
        {"a": toy(0)},
        {"LR": LogisticRegression()},
        explainers,
        instances=6,
        metrics=METRICS,
    )
    folder = tmp_path_factory.mktemp("rogues")
    with pytest.MonkeyPatch.context() as patch:
        # Every process that the dier ends takes three seconds to start again.
        patch.setitem(LIMITS, "died", 2)
        return grid, folder, grid.run(folder, n_jobs=2, progress=False)


@pytest.fixture(scope="session")
def hanger(rogues):
    """An explainer that never ends, in a grid with a time limit, its folder and its table."""
    grid, folder, _ = rogues
    # The classifier is trained already, so that the limit is that of the explainer alone.
    settings = {**vars(grid), "explainers": {"hanger": Hanger()}, "time_limit": 4, "_read": {}}
    slow = Benchmark(**settings)
    return slow, folder, slow.run(folder, progress=False)


@pytest.fixture
def random_table():
    """Three metrics of five methods in twelve blocks."""
    rng = np.random.default_rng(3)
    shape = (12, 5)
    l2 = rng.normal(size=shape) + 0.7 * np.arange(5)
    return table(l2, sparsity=rng.random(shape), target_confidence=rng.random(shape))


@pytest.fixture(scope="session", params=CASES)
def planted(request):
    """Planted data of several kinds."""
    return CASES[request.param]()
