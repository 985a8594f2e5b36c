"""Rules for options that several prototype models and guides share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..validation import Integer, Nothing, Real, Satisfies


def _is_count_per_label(value: Any) -> bool:
    """Return whether the value maps labels to whole numbers of at least 1."""
    if not isinstance(value, Mapping):
        return False
    count = Integer(at_least=1, at_most=10**6)
    return all(count.accepts(number) for number in value.values())


def _is_seed(value: Any) -> bool:
    """Return whether scikit-learn's `check_random_state` takes the value."""
    if value is None or value is np.random:
        return True
    whole = Integer(at_least=0, at_most=2**32 - 1)
    return isinstance(value, np.random.RandomState) or whole.accepts(value)


#: number of prototypes per class
COUNTS = Integer(at_least=1, at_most=10**6) | Satisfies(
    _is_count_per_label,
    "a dictionary from label to such a number",
)
#: passes over the data
EPOCHS = Integer(at_least=1, at_most=10**6)
#: seed of a random generator
SEED = Satisfies(_is_seed, "None, a whole number at least 0 or a numpy RandomState")
#: Sakoe-Chiba band, as a fraction of the length
BAND = Real(at_least=0, at_most=1) | Nothing()
