"""Data and models of scale.py: many series of 24 steps, many windows of six sensors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.lib.format import open_memmap
from torch import nn

import contrafact as cf
from _common import Array

#: rows that are drawn at a time, each block from its own seed
BLOCK = 10_000
#: share of the reference in what models learn from
REFERENCE = 500


class Case(NamedTuple):
    """Rows to explain: how they are drawn, and what the model learns from."""

    name: str
    shape: tuple[int, int]
    draw: Callable[[int, np.random.Generator], tuple[Array, Array]]


def draw_demand(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw days of ItalyPowerDemand, with noise of a tenth of their spread."""
    data = cf.load_dataset("ItalyPowerDemand")
    rows = rng.integers(0, len(data.X_test), n)
    X = data.X_test[rows] + rng.normal(0, 0.1, (n, 1, 24))
    return X.astype(np.float32), data.y_test[rows]


def draw_windows(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw windows of six sensors; in faulty ones a sensor oscillates for a tenth of the time."""
    t = np.arange(500)
    phase = rng.uniform(0, 2 * np.pi, (n, 6, 1))
    X = np.sin(2 * np.pi * t / 100 + phase) + rng.normal(0, 0.3, (n, 6, 500))
    y = rng.integers(0, 2, n)
    start, sensor = rng.integers(0, 450, n), rng.integers(0, 6, n)
    burst = 2.0 * np.sin(2 * np.pi * np.arange(50) / 5)
    for row in np.flatnonzero(y):
        X[row, sensor[row], start[row] : start[row] + 50] += burst
    return X.astype(np.float32), y


CASES = {
    "24 steps": Case("24 steps", (1, 24), draw_demand),
    "6 x 500": Case("6 x 500", (6, 500), draw_windows),
}


def write_rows(case: Case, n: int, folder: Path) -> Path:
    """Write n rows to an .npy file, block by block; rows of smaller files are those of larger."""
    path = folder / f"{case.name.replace(' ', '')}-{n}.npy"
    if path.exists():
        return path
    draft = path.with_suffix(".draft")
    rows = open_memmap(draft, "w+", np.float32, (n, *case.shape))
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        rows[start:stop] = case.draw(stop - start, np.random.default_rng([1, start]))[0]
    rows.flush()
    del rows
    draft.rename(path)
    return path


def make_model(case: Case) -> tuple[cf.Classifier, Array, Array]:
    """Train a small network; return it with the reference rows and their labels."""
    channels, length = case.shape
    X, y = case.draw(REFERENCE, np.random.default_rng(0))
    stride = max(1, length // 100)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Sequential(
            nn.Conv1d(channels, 16, 7, stride, padding=3),
            nn.ReLU(),
            nn.AdaptiveMaxPool1d(4),
            nn.Flatten(),
            nn.Linear(64, 2),
        )
    model = cf.fit_classifier(network, X, y, max_epochs=40, random_state=0)
    return model, X, y
