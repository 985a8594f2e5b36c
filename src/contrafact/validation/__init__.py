"""Declarative checks of parameters: one rule per name, one form of message for all.

A class lists its rules once and the base class checks them before any work:

    rules = {"learning_rate": Real(above=0), "max_iter": Integer(at_least=1)}

Rules combine with "|": `Integer(at_least=1) | Nothing()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .descriptions import brief
from .rules import (
    Boolean,
    Either,
    FilePath,
    Function,
    Instance,
    Integer,
    ListOf,
    Nothing,
    OneOf,
    Real,
    Rule,
    Satisfies,
)

__all__ = [
    "Boolean",
    "Either",
    "FilePath",
    "Function",
    "Instance",
    "Integer",
    "ListOf",
    "Nothing",
    "OneOf",
    "Real",
    "Rule",
    "Satisfies",
    "brief",
    "check_parameters",
]


def check_parameters(owner: str, rules: Mapping[str, Rule], values: Mapping[str, Any]) -> None:
    """Check values against the rules of their names.

    Parameters
    ----------
    owner : str
        What the parameters belong to; starts the message.
    rules : mapping of str to Rule
        The rule of each name; a rule without a value is skipped.
    values : mapping of str to object
        The values given; values without a rule are accepted.

    Raises
    ------
    ValueError, TypeError
        For the first value that its rule does not accept; TypeError where only objects of a
        certain class are accepted.

    Examples
    --------
    >>> check_parameters("CELS", {"max_iter": Integer(at_least=1)}, {"max_iter": 0})
    Traceback (most recent call last):
    ValueError: CELS: max_iter must be a whole number at least 1, got 0.
    """
    for name, rule in rules.items():
        if name not in values:
            continue
        value = values[name]
        if not rule.accepts(value):
            raise rule.error(f"{owner}: {name} must be {rule}, got {brief(value)}.")
