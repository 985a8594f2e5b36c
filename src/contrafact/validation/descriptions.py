"""Short descriptions of any value, for error messages."""

from __future__ import annotations

import math
import reprlib
from typing import Any

from typing_extensions import override

#: length of what an error message says of a value
MOST_LETTERS = 200
#: size of a whole number, with its sign; torch computes with no larger ones
MOST_BITS = 64
#: libraries whose objects with many entries are described by their shape
_ARRAY_LIBRARIES = ("numpy", "pandas", "scipy", "torch")


class _BriefRepr(reprlib.Repr):
    """Describe any value in one short line, also one whose own `__repr__` is long or raises."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = 80
        self.maxother = 120

    @override
    def repr1(self, x: Any, level: int) -> str:
        if type(x).__module__.partition(".")[0] in _ARRAY_LIBRARIES:
            shape = tuple(getattr(x, "shape", ()))
            if math.prod(shape) > self.maxlist:
                return f"{type(x).__name__} of shape {shape}"
        return " ".join(super().repr1(x, level).split())

    @override
    def repr_int(self, x: int, level: int) -> str:
        # Python refuses to write out numbers of more than 4300 digits.
        if x.bit_length() > 128:
            return f"a whole number of {x.bit_length()} bits"
        if x.bit_length() >= MOST_BITS:
            return f"{x!r}, more than an integer of {MOST_BITS} bits holds"
        return repr(x)


def brief(value: Any) -> str:
    """Describe a value that was given, for an error message.

    Parameters
    ----------
    value : object
        Anything, also a large array, or an object whose `__repr__` raises.

    Returns
    -------
    str
        Its `repr` where that is short, else the beginning of it or its kind and shape; one line.

    Examples
    --------
    >>> import numpy as np
    >>> brief(0.5), brief(np.zeros((1000, 3)))
    ('0.5', 'ndarray of shape (1000, 3)')
    """
    words = _BriefRepr().repr(value)
    return words if len(words) <= MOST_LETTERS else f"{words[:MOST_LETTERS]}..."
