"""Column: what one column of a table holds, and which values are allowed there."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

from ..validation import Boolean, Instance, Integer, Nothing, OneOf, Real, brief, check_parameters

Kind = Literal["continuous", "integer", "step", "ordered", "categorical", "boolean", "fixed"]
KINDS = ("continuous", "integer", "step", "ordered", "categorical", "boolean", "fixed")
#: kinds whose values are numbers on a line
NUMERIC_KINDS = ("continuous", "integer", "step")
#: kinds that have levels, in this order
LEVEL_KINDS = ("ordered", "categorical", "boolean")

_RULES = {
    "name": Instance(str, "a text"),
    "kind": OneOf(*KINDS),
    "lower": Real(finite=False),
    "upper": Real(finite=False),
    "step": Nothing() | Real(above=0),
    "decimals": Nothing() | Integer(at_least=0, at_most=15),
    "scale": Real(above=0),
    "center": Real(),
    "cost": Real(above=0),
    "missing": Boolean(),
    "group": Nothing() | Instance(str, "a text"),
}


@dataclass(frozen=True)
class Column:
    """Describe one column of a table.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : {"continuous", "integer", "step", "ordered", "categorical", "boolean", "fixed"}
        What it holds: numbers; whole numbers; numbers on a grid of width `step`; levels in an
        order; levels without one; False or True; or values that are carried along and never
        changed, such as dates, identifiers and free text.
    levels : tuple, default=()
        The categories that are allowed, in their order where they have one.
    lower, upper : float, default=-inf, inf
        Range of the numbers. Counterfactuals stay within it where they change the column.
    step : float, optional
        Width of the grid of a "step" column, which starts at `center`.
    decimals : int, optional
        Decimal places to which changed numbers are rounded.
    scale : float, default=1
        Unit of distances in this column, such as the median absolute deviation.
    center : float, default=0
        A usual value, such as the median; a value of the grid for "integer" and "step".
    cost : float, default=1
        Factor of distances in this column: 2 makes its changes twice as dear.
    missing : bool, default=False
        Whether a value may be missing.
    group : str, optional
        Name of the one-hot group that the column belongs to: of its columns exactly one is 1.

    Examples
    --------
    >>> Column("smokes", "boolean").levels
    (False, True)
    """

    name: str
    kind: Kind
    levels: tuple[Hashable, ...] = ()
    lower: float = -math.inf
    upper: float = math.inf
    step: float | None = None
    decimals: int | None = None
    scale: float = 1.0
    center: float = 0.0
    cost: float = 1.0
    missing: bool = False
    group: str | None = None

    def __post_init__(self) -> None:
        owner = f"column {self.name!r}" if isinstance(self.name, str) else "Column"
        check_parameters(owner, _RULES, vars(self))
        if self.kind == "boolean" and not self.levels:
            object.__setattr__(self, "levels", (False, True))
        if self.kind == "integer" and self.step is None:
            object.__setattr__(self, "step", 1.0)
        if self.kind == "integer":
            object.__setattr__(self, "center", float(round(self.center)))
        if self.kind == "step" and self.step is None:
            raise ValueError(f"{owner}: kind 'step' needs step, the width of the grid.")
        if not self.lower <= self.upper:
            raise ValueError(f"{owner}: lower {self.lower:g} is above upper {self.upper:g}.")
        self._check_levels(owner)
        if self.group is not None and (self.kind != "integer" or self.missing):
            raise ValueError(
                f"{owner}: a column of the one-hot group {self.group!r} must be 'integer' and "
                "never missing."
            )

    def _check_levels(self, owner: str) -> None:
        """Check that the levels are distinct, and there where the kind has some."""
        if not isinstance(self.levels, tuple):
            raise TypeError(f"{owner}: levels must be a tuple, got {brief(self.levels)}.")
        if (self.kind in LEVEL_KINDS) != bool(self.levels):
            needed = "needs levels" if self.kind in LEVEL_KINDS else "has no levels"
            raise ValueError(f"{owner}: kind {self.kind!r} {needed}, got {brief(self.levels)}.")
        if self.kind == "boolean" and len(self.levels) != 2:
            raise ValueError(f"{owner}: kind 'boolean' has two levels, got {brief(self.levels)}.")
        if len(set(self.levels)) < len(self.levels):
            raise ValueError(f"{owner}: levels must differ, got {brief(self.levels)}.")

    @property
    def is_numeric(self) -> bool:
        """Whether its values are numbers on a line."""
        return self.kind in NUMERIC_KINDS

    def describe(self) -> str:
        """Return what it holds, in a few words."""
        words: list[str] = [self.kind]
        if self.kind == "step":
            words.append(f"of {self.step:g}")
        if self.is_numeric and self.group is None and math.isfinite(self.upper - self.lower):
            words.append(f"from {self.lower:g} to {self.upper:g}")
        if self.kind in ("ordered", "categorical"):
            words.append(_listed(self.levels))
        if self.group is not None:
            words = [f"one-hot, {self.group}"]
        if self.missing:
            words.append("(may be missing)")
        return " ".join(words)


def _listed(levels: tuple[Any, ...], most: int = 5) -> str:
    """List the first few levels."""
    shown = ", ".join(str(level) for level in levels[:most])
    return shown if len(levels) <= most else f"{shown}, … ({len(levels)})"
