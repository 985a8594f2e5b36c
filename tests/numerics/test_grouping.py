"""Positions within groups."""

import numpy as np
import torch

from contrafact.numerics import occurrence


def test_occurrence_counts_earlier_equals():
    rows = torch.from_numpy(np.random.default_rng(0).integers(0, 5, 40))
    expected = [rows[:i].tolist().count(int(row)) for i, row in enumerate(rows)]
    assert occurrence(rows).tolist() == expected
