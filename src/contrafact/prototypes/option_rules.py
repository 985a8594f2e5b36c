"""Rules for options that several prototype models and guides share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..validation import Integer, Nothing, OneOf, Real, Rule, Satisfies, check_parameters


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


def _is_weight_per_label(value: Any) -> bool:
    """Return whether the value maps labels to numbers above 0."""
    if not isinstance(value, Mapping):
        return False
    weight = Real(above=0)
    return all(weight.accepts(number) for number in value.values())


def _are_callbacks(value: Any) -> bool:
    """Return whether the value is a sequence of functions."""
    return isinstance(value, (tuple, list)) and all(callable(callback) for callback in value)


def is_named(value: Any) -> bool:
    """Return whether the value is a dictionary whose keys are texts."""
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


#: arguments by name, of which each is checked where it is known what takes them
NAMED = Satisfies(is_named, "a dictionary from argument to value") | Nothing()
#: number of prototypes per class
COUNTS = Integer(at_least=1, at_most=10**6) | Satisfies(
    _is_count_per_label,
    "a dictionary from label to such a number",
)
#: passes over the data
EPOCHS = Integer(at_least=1, at_most=10**6)
#: weight of the rows of a class
CLASS_WEIGHT = (
    OneOf("balanced")
    | Satisfies(_is_weight_per_label, "a dictionary from label to a weight above 0")
    | Nothing()
)
#: functions that are told the curves
CALLBACKS = Satisfies(_are_callbacks, "a tuple of functions")
#: seed of a random generator
SEED = Satisfies(_is_seed, "None, a whole number at least 0 or a numpy RandomState")
#: Sakoe-Chiba band, as a fraction of the length
BAND = Real(at_least=0, at_most=1) | Nothing()


def read_options(
    name: str,
    given: Mapping[str, Any],
    accepted: Mapping[str, Rule],
    taker: str,
) -> None:
    """Check arguments that are given by name.

    Parameters
    ----------
    name : str
        The option that holds them, for messages.
    given : mapping of str to object
        The arguments.
    accepted : mapping of str to Rule
        What may be given.
    taker : str
        What takes them, for messages.
    """
    unknown = sorted(set(given) - set(accepted))
    if unknown:
        known = ", ".join(map(repr, accepted)) or "no arguments"
        raise ValueError(f"{name} holds {unknown[0]!r}; {taker} takes {known}.")
    check_parameters(name, accepted, given)
