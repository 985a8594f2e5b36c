"""Tags: what a method can do."""

from __future__ import annotations

from dataclasses import dataclass

from ..validation import Boolean, ListOf, OneOf, Rule, Satisfies, check_parameters
from .constraints import KINDS

_RULES: dict[str, Rule] = {
    "modalities": ListOf(OneOf("series", "image", "row"), "'series', 'image' or 'row'"),
    "multivariate": Boolean(),
    "gradient": Boolean(),
    "reference": Boolean(),
    "constraints": Satisfies(
        lambda kinds: isinstance(kinds, (set, frozenset)) and kinds <= KINDS,
        f"a set of {', '.join(map(repr, sorted(KINDS)))}",
    ),
    "prototype_model": Boolean(),
}


@dataclass(frozen=True)
class Tags:
    """Declare what a method can do; the base class refuses the rest with a clear error.

    Parameters
    ----------
    modalities : tuple of str
        Kinds of data it takes: "series", "image", "row".
    multivariate : bool, default=True
        Whether it takes more than one channel.
    gradient : bool, default=False
        Whether it uses gradients (exact, by a twin, or by finite differences).
    reference : bool, default=True
        Whether it needs reference data of at least two classes.
    constraints : frozenset of str
        Kinds of constraint it can keep: "bounds", "frozen", "max_step".
    prototype_model : bool, default=False
        Whether it takes prototype models only.
    """

    modalities: tuple[str, ...] = ("series", "image", "row")
    multivariate: bool = True
    gradient: bool = False
    reference: bool = True
    constraints: frozenset[str] = KINDS
    prototype_model: bool = False

    def __post_init__(self) -> None:
        check_parameters("Tags", _RULES, vars(self))
