"""Door: a public callable with right arguments to start from, and what is known of them."""

import inspect
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from result_checks import no_complaints


@dataclass(frozen=True)
class Door:
    """A public callable: right arguments, and which are arrays, labels or models.

    `call` takes the arguments by name; `signature` is what is looked up for annotations.
    """

    name: str
    call: Callable[..., Any]
    base: Callable[[], dict[str, Any]]
    signature: Any = None
    arrays: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()  # names of values that are right here, though odd elsewhere
    words: tuple[str, ...] = ()  # other words by which a message may name an argument
    check: Callable[[dict[str, Any], Any], list[str]] = no_complaints
    weight: float = 1.0
    ranges: dict[str, Any] = field(default_factory=dict)

    @property
    def package(self):
        return self.name.partition(".")[0]

    @cached_property
    def parameters(self):
        """Names of the arguments that are made strange, with their annotations."""
        found = {}
        for name, parameter in inspect.signature(self.signature or self.call).parameters.items():
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            if name not in ("self", "cls"):
                annotation = parameter.annotation
                found[name] = "" if annotation is parameter.empty else str(annotation)
                if parameter.default is None and "None" not in found[name]:
                    found[name] += " | None"
        return {name: kind for name, kind in found.items() if name not in self.fixed}


DOORS: dict[str, Door] = {}


def door(name, call, base=dict, **known):
    """Add a door."""
    DOORS[name] = Door(name, call, base, **known)


def in_own_folder(call):
    """Make a call in a folder of its own, where it may write."""

    def inside(**given):
        before = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                return call(**given)
            finally:
                os.chdir(before)

    return inside
