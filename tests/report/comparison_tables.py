"""A table of made-up methods, and checks that words in a picture are legible."""

from itertools import combinations

import numpy as np
import pandas as pd
from matplotlib.text import Text

MANY = [f"Method{j}(with a setting)" if j % 3 else f"M{j}" for j in range(14)]


def table(names, blocks=12, step=0.6):
    """Each method a little further, a little sparser than the one before."""
    rng = np.random.default_rng(0)
    k = len(names)
    return pd.DataFrame(
        {
            "dataset": [f"toy{block:02d}" for block in range(blocks) for _ in range(k)],
            "classifier": "net",
            "seed": 0,
            "instance": 0,
            "explainer": names * blocks,
            "l2": (rng.normal(size=(blocks, k)) + step * np.arange(k) + 5).ravel(),
            "sparsity": np.tile(np.linspace(0.9, 0.1, k), blocks),
            "valid": 1.0,
        }
    )


def boxes(figure, texts):
    figure.canvas.draw()
    return [Text.get_window_extent(text) for text in texts if text.get_text()]


def legible(figure):
    """All words lie inside the picture, and no two cover each other."""
    found = boxes(figure, [text for ax in figure.axes for text in ax.texts])
    inside = all(
        box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1
        for box in found
    )
    return inside and not any(a.overlaps(b) for a, b in combinations(found, 2))


def words(figure):
    return [text.get_text() for ax in figure.axes for text in ax.texts]
