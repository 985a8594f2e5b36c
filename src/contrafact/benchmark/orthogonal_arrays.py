"""Orthogonal arrays: few runs in which every pair of parameters meets at all of their levels."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ..models.classifier import Array

Design = Literal["L9", "L18", "L27"]
#: most parameters of each array; L18 takes one of two levels among them
CAPACITY: dict[Design, int] = {"L9": 4, "L18": 8, "L27": 13}

#: rows and columns differ, modulo 3, by each number equally often: the core of L18
_DIFFERENCES = np.array(
    [
        [0, 0, 0, 0, 0, 0],
        [0, 1, 2, 0, 1, 2],
        [0, 2, 1, 1, 0, 2],
        [0, 0, 2, 1, 2, 1],
        [0, 2, 0, 2, 1, 1],
        [0, 1, 1, 2, 2, 0],
    ]
)


def orthogonal_array(name: Design) -> Array:
    """Return an orthogonal array: levels (runs, columns), balanced in every pair of columns.

    Parameters
    ----------
    name : {"L9", "L18", "L27"}
        9 runs of 4 columns of three levels; 18 runs of one column of two levels and 7 of three;
        27 runs of 13 columns of three. The columns that interact least come first.

    Returns
    -------
    int array of shape (runs, columns)
        The level of each column in each run, from 0.

    Examples
    --------
    >>> orthogonal_array("L9").shape
    (9, 4)
    """
    if name == "L18":
        block, shift = np.divmod(np.arange(18), 3)
        core = (_DIFFERENCES[block] + shift[:, None]) % 3
        return np.column_stack([block % 2, block // 2, core])
    n = 2 if name == "L9" else 3
    runs = np.array(list(itertools.product(range(3), repeat=n)))
    # One vector of each line through 0, for its first number other than 0 is 1.
    vectors = [v for v in itertools.product(range(3), repeat=n) if any(v)]
    vectors = [v for v in vectors if next(number for number in v if number) == 1]
    # Axes first, then the vectors whose sums reach as few of the others as possible.
    vectors.sort(key=lambda v: (sum(map(bool, v)) != 1, -sum(map(bool, v)), v[::-1]))
    return np.asarray(runs @ np.array(vectors).T % 3)


def assign(levels: Mapping[str, Sequence[Any]], design: Design | Literal["auto"]) -> Array:
    """Return the level of each parameter in each run.

    Parameters
    ----------
    levels : mapping of str to sequence
        Two or three values of each parameter. Two values in a column of three: the first is taken
        twice as often.
    design : {"auto", "L9", "L18", "L27"}
        The array; "auto": the smallest that is large enough.

    Returns
    -------
    int array of shape (runs, parameters)
        Positions among the values of each parameter, in the order of the parameters.
    """
    n = len(levels)
    counts = [len(values) for values in levels.values()]
    if design == "auto":
        enough = [
            name
            for name, most in CAPACITY.items()
            if n <= most and not (name == "L18" and n == most and 2 not in counts)
        ]
        if not enough:
            raise ValueError(f"levels holds {n} parameters; at most 13 can be varied at once.")
        design = enough[0]
    if n > CAPACITY[design]:
        raise ValueError(f"levels holds {n} parameters; {design} takes at most {CAPACITY[design]}.")
    array = orthogonal_array(design)
    columns = list(range(array.shape[1]))
    chosen = []
    if design == "L18":
        pairs = [position for position, count in enumerate(counts) if count == 2]
        two_levels = columns.pop(0)
        if n == CAPACITY[design] and not pairs:
            raise ValueError("L18 takes 8 parameters only if one of them has two values.")
        first = pairs[0] if pairs else None
    for position in range(n):
        own = design == "L18" and position == first
        chosen.append(two_levels if own else columns.pop(0))
    return np.asarray(array[:, chosen] % np.array(counts))
