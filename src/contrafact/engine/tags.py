"""Tags: what a method can do."""

from __future__ import annotations

from dataclasses import dataclass

from .constraints import KINDS


@dataclass(frozen=True)
class Tags:
    """What a method can do; the base refuses the rest with a clear error.

    modalities : kinds of data it takes.
    multivariate : takes more than one channel.
    gradient : needs gradients (exact, by a twin, or zeroth-order).
    reference : needs reference data of at least two classes.
    constraints : kinds of constraint it can keep.
    prototype_model : takes prototype models only.
    """

    modalities: tuple[str, ...] = ("series", "image", "row")
    multivariate: bool = True
    gradient: bool = False
    reference: bool = True
    constraints: frozenset[str] = KINDS
    prototype_model: bool = False
