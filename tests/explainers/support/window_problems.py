"""Series whose class is decided in known windows, and a search for grafts of them."""

import numpy as np
import torch

from contrafact.explainers.support.donor_pool import WayToDonors
from contrafact.explainers.support.graft_predictions import LARGEST_LEAD
from contrafact.explainers.support.graft_search import GraftSearch
from contrafact.explainers.support.graft_tests import LooksReal
from contrafact.explainers.support.graft_trials import Effort
from contrafact.explainers.support.window_grafts import WindowGrafts, WindowGrid

LENGTH = 64
SINGLE_WINDOW = ((20, 28),)
TWO_WINDOWS = ((8, 14), (46, 52))


class WindowModel:
    """Class 1 where the mean is above 1/2 in all windows; keeps the rows that it was asked about.

    The log-odds are linear in the values of one window.
    """

    def __init__(self, *windows, steepness=6.0):
        self.windows = windows
        self.steepness = steepness
        self.rows = []

    def __call__(self, X):
        self.rows.extend(np.array(X))
        means = [X[:, 0, start:end].mean(1) for start, end in self.windows]
        p = 1 / (1 + np.exp(-self.steepness * (np.min(means, axis=0) - 0.5)))
        return np.stack([1 - p, p], 1)

    @property
    def asked(self):
        """Number of rows, and of different rows, that it was asked about."""
        rows = np.array(self.rows).reshape(len(self.rows), LENGTH)
        return len(rows), len(np.unique(rows, axis=0))

    def slope(self, length=LENGTH):
        """Return the true derivative of the log-odds where every window counts, (1, 1, 1, L)."""
        slope = torch.zeros(1, 1, 1, length, dtype=torch.float64)
        for start, end in self.windows:
            slope[..., start:end] = self.steepness / (end - start)
        return slope


def smooth_series(n, windows=(), *, channels=1, length=LENGTH, seed=0):
    """Draw slow waves around 0, with a plateau around 1 in each window."""
    random = np.random.default_rng(seed)
    time = np.arange(length)
    phase = random.uniform(0, 2 * np.pi, size=(3, n, channels, 1))
    height = random.uniform(0.05, 0.15, size=(3, n, channels, 1))
    X = sum(
        h * np.sin(2 * np.pi * (k + 1) * time / length + p)
        for k, (h, p) in enumerate(zip(height, phase, strict=True))
    )
    for start, end in windows:
        top = random.uniform(0.8, 1.4, size=(n, channels, 1))
        X = X + top / (1 + np.exp(start - time)) / (1 + np.exp(time - end + 1)) / 0.9
    return X


def graft_problem(open_tasks, windows, *, n=6, n_donors=5, n_cells=32, **options):
    """Return model, tasks from class 0 to class 1, their grafts, gains and the test on looks."""
    model = WindowModel(*windows)
    X = smooth_series(n, seed=1)
    tasks = open_tasks(model, X, [1] * n, modality="series", classes=[0, 1], **options)
    donors = torch.from_numpy(smooth_series(n * n_donors, windows, seed=2))
    donors = donors.view(n, n_donors, 1, LENGTH)
    reference = np.concatenate([smooth_series(100, seed=3), smooth_series(100, windows, seed=4)])
    looks_real = LooksReal.of(torch.from_numpy(reference))
    x = tasks.x.double()
    grid = WindowGrid.of(LENGTH, n_cells)
    one_channel = torch.tensor([[True]])
    grafts = WindowGrafts.of(x, donors, grid, one_channel, looks_real.limits)
    gains = grafts.gains(x, model.slope().expand_as(donors)).float()
    model.rows.clear()
    return model, tasks, grafts, gains, looks_real


def graft_search(problem, *, max_rows=250, noise=None, per_round=8):
    """Return a search on a problem."""
    _, tasks, grafts, gains, looks_real = problem
    effort = Effort(per_round, 0.002, max_rows)
    donor_lead = torch.full(gains.shape[:2], LARGEST_LEAD)
    return GraftSearch(tasks, grafts, gains, donor_lead, effort, looks_real, noise)


def way_to(slope):
    """Return slopes toward donors whose lead is the largest there is."""
    return WayToDonors(slope, torch.full(slope.shape[:2], LARGEST_LEAD, dtype=slope.dtype))
