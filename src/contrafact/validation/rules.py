"""Rules: what the value of a parameter may be, one class per kind of value."""

from __future__ import annotations

import inspect
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from typing_extensions import override

from .descriptions import MOST_BITS


class Rule(ABC):
    """Condition on the value of one parameter."""

    #: what a value that is not accepted raises
    error: type[Exception] = ValueError

    @abstractmethod
    def accepts(self, value: Any) -> bool:
        """Return whether the value satisfies the rule."""

    @abstractmethod
    def __str__(self) -> str:
        """Describe the accepted values, to follow "must be"."""

    def __or__(self, other: Rule) -> Rule:
        """Combine two rules: values that satisfy either are accepted."""
        return Either(self, other)


class Either(Rule):
    """Accept what one of two rules accepts.

    Parameters
    ----------
    first, second : Rule
        The rules; described in this order.
    """

    def __init__(self, first: Rule, second: Rule) -> None:
        self.first = first
        self.second = second
        objects = isinstance(second, Instance) and isinstance(first, (Instance, Nothing))
        self.error = TypeError if objects else ValueError

    @override
    def accepts(self, value: Any) -> bool:
        return self.first.accepts(value) or self.second.accepts(value)

    @override
    def __str__(self) -> str:
        first = str(self.first).replace(" or ", ", ")
        return f"{first} or {self.second}"


class Real(Rule):
    """Accept a real number within an interval; NaN is never accepted.

    Nor are whole numbers of more than 64 bits, since torch cannot compute with them.

    Parameters
    ----------
    above, at_least : float, optional
        Lower bound, exclusive or inclusive.
    below, at_most : float, optional
        Upper bound, exclusive or inclusive.
    finite : bool, default=True
        Refuse infinite values.
    """

    kind: Any = (int, float, np.integer, np.floating)
    noun = "a number"

    def __init__(
        self,
        *,
        above: float | None = None,
        at_least: float | None = None,
        below: float | None = None,
        at_most: float | None = None,
        finite: bool = True,
    ) -> None:
        self.above = above
        self.at_least = at_least
        self.below = below
        self.at_most = at_most
        self.finite = finite

    @override
    def accepts(self, value: Any) -> bool:
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, self.kind):
            return False
        return self._accepts_special(value) and self._accepts_size(value)

    def _accepts_special(self, value: Any) -> bool:
        """Return whether the value is finite, or infinite where that is accepted."""
        if isinstance(value, (int, np.integer)):
            return int(value).bit_length() < MOST_BITS
        if math.isnan(value):
            return False
        return not (self.finite and math.isinf(value))

    def _accepts_size(self, value: Any) -> bool:
        """Return whether the value is within the bounds."""
        return (
            (self.above is None or value > self.above)
            and (self.at_least is None or value >= self.at_least)
            and (self.below is None or value < self.below)
            and (self.at_most is None or value <= self.at_most)
        )

    @override
    def __str__(self) -> str:
        limits = {
            "above": self.above,
            "at least": self.at_least,
            "below": self.below,
            "at most": self.at_most,
        }
        words = [f"{word} {_as_text(limit)}" for word, limit in limits.items() if limit is not None]
        if not words:
            return self.noun
        return f"{self.noun} {' and '.join(words)}"


def _as_text(number: float) -> str:
    """Write a number in short form where that is exact."""
    short = f"{number:g}"
    if float(short) == number:
        return short
    return str(number)


class Integer(Real):
    """Accept a whole number within an interval; booleans are refused.

    Parameters
    ----------
    above, at_least : float, optional
        Lower bound, exclusive or inclusive.
    below, at_most : float, optional
        Upper bound, exclusive or inclusive.
    finite : bool, default=True
        Has no effect: whole numbers are finite.
    """

    kind = (int, np.integer)
    noun = "a whole number"

    @override
    def _accepts_special(self, value: Any) -> bool:
        return True


class OneOf(Rule):
    """Accept one of the listed values; 1, 1.0 and True are different values.

    Parameters
    ----------
    *values : object
        The accepted values, at least one.
    """

    def __init__(self, *values: Any) -> None:
        self.values = values

    @override
    def accepts(self, value: Any) -> bool:
        return any(type(value) is type(known) and value == known for known in self.values)

    @override
    def __str__(self) -> str:
        *most, last = [repr(value) for value in self.values]
        if not most:
            return last
        return f"{', '.join(most)} or {last}"


class Boolean(Rule):
    """Accept True or False."""

    @override
    def accepts(self, value: Any) -> bool:
        return isinstance(value, (bool, np.bool_))

    @override
    def __str__(self) -> str:
        return "True or False"


class Nothing(Rule):
    """Accept None."""

    @override
    def accepts(self, value: Any) -> bool:
        return value is None

    @override
    def __str__(self) -> str:
        return "None"


class Instance(Rule):
    """Accept an object of a class.

    Parameters
    ----------
    kind : type
        The class.
    noun : str, optional
        How to name such objects in the message; default: the name of the class.
    """

    error = TypeError

    def __init__(self, kind: type, noun: str | None = None) -> None:
        self.kind = kind
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        self.noun = noun or f"{article} {kind.__name__} object"

    @override
    def accepts(self, value: Any) -> bool:
        return isinstance(value, self.kind)

    @override
    def __str__(self) -> str:
        return self.noun


class Function(Rule):
    """Accept anything that can be called with some arguments, other than a class.

    Parameters
    ----------
    *arguments : str
        What the function is called with, in words; default: anything.
    """

    def __init__(self, *arguments: str) -> None:
        self.arguments = arguments

    @override
    def accepts(self, value: Any) -> bool:
        if not callable(value) or isinstance(value, type):
            return False
        return not self.arguments or self._fits(value)

    def _fits(self, function: Callable[..., Any]) -> bool:
        """Return whether the function takes so many arguments, as far as it tells."""
        try:
            signature = inspect.signature(function)
        except ValueError:  # compiled functions may have none
            return True
        try:
            signature.bind(*self.arguments)
        except TypeError:
            return False
        return True

    @override
    def __str__(self) -> str:
        if not self.arguments:
            return "a function"
        return f"a function of {' and '.join(self.arguments)}"


class FilePath(Rule):
    """Accept the name of a file or folder: a text or a path, not empty."""

    error = TypeError

    @override
    def accepts(self, value: Any) -> bool:
        if not isinstance(value, (str, os.PathLike)):
            return False
        name = os.fspath(value)
        return isinstance(name, str) and name != "" and "\0" not in name

    @override
    def __str__(self) -> str:
        return "a path, or its text"


class ListOf(Rule):
    """Accept a list or tuple whose every entry satisfies a rule.

    Parameters
    ----------
    entry : Rule
        The rule of an entry.
    noun : str
        The accepted entries in words, to follow "a list of".
    """

    def __init__(self, entry: Rule, noun: str) -> None:
        self.entry = entry
        self.noun = noun

    @override
    def accepts(self, value: Any) -> bool:
        return isinstance(value, (list, tuple)) and all(self.entry.accepts(one) for one in value)

    @override
    def __str__(self) -> str:
        return f"a list of {self.noun}"


class Satisfies(Rule):
    """Accept what a predicate accepts.

    Parameters
    ----------
    predicate : function of one value
        Returns whether the value is accepted.
    noun : str
        The accepted values in words, to follow "must be".
    """

    def __init__(self, predicate: Callable[[Any], bool], noun: str) -> None:
        self.predicate = predicate
        self.noun = noun

    @override
    def accepts(self, value: Any) -> bool:
        return bool(self.predicate(value))

    @override
    def __str__(self) -> str:
        return self.noun
