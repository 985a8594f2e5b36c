"""Benchmark tables of one instance per block."""

from __future__ import annotations

import numpy as np
import pandas as pd


def table(scores, **columns):
    """One instance in each data set: scores (blocks, methods) of l2, methods a, b, c, …"""
    scores = np.asarray(scores, dtype=float)
    blocks, methods = scores.shape
    frame = pd.DataFrame(
        {
            "dataset": [f"toy{block:02d}" for block in range(blocks) for _ in range(methods)],
            "classifier": "net",
            "seed": 0,
            "instance": 0,
            "explainer": [chr(97 + j) for j in range(methods)] * blocks,
            "l2": scores.ravel(),
        }
    )
    return frame.assign(**{name: np.ravel(values) for name, values in columns.items()})
