"""Renamed names: the old ones work for one more version, with a DeprecationWarning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def warn_renamed(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn that a name was changed.

    Parameters
    ----------
    old, new : str
        The name before and after, with its owner, as in "CELS(lr=...)".
    stacklevel : int, default=3
        Which caller the warning points to, counted as in `warnings.warn`: 2 is the caller of this
        function, 3 the caller of that.
    """
    warnings.warn(
        f"{old} is now {new}; the old name will be removed in version 0.3.",
        DeprecationWarning,
        stacklevel=stacklevel,
    )


def renamed_parameters(**new_names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function accept parameters by their old names as well.

    Parameters
    ----------
    **new_names : str
        The new name of each old one.

    Returns
    -------
    callable
        A decorator. The decorated function keeps its signature, and raises a TypeError if it is
        given both names of a parameter.

    Examples
    --------
    >>> @renamed_parameters(lr="learning_rate")
    ... def step(learning_rate=0.1):
    ...     return learning_rate
    >>> with warnings.catch_warnings(record=True):
    ...     warnings.simplefilter("always")
    ...     step(lr=0.5)
    0.5
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        owner = function.__qualname__.removesuffix(".__init__")

        @wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            for old, new in new_names.items():
                if old not in kwargs:
                    continue
                if new in kwargs:
                    raise TypeError(f"{owner} got both {new} and its old name {old}.")
                warn_renamed(f"{owner}({old}=...)", f"{new}=...")
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return wrapper

    return decorate


def renamed_value(parameter: str, value: Any, new_values: Mapping[str, str]) -> Any:
    """Translate the old name of an option's value.

    To be called by the function that the user calls: the warning points to the caller of that.

    Parameters
    ----------
    parameter : str
        Name of the option, for the warning.
    value : object
        The value given.
    new_values : mapping of str to str
        The new name of each old one.

    Returns
    -------
    object
        The new name, or `value` itself if it is not an old one.

    Examples
    --------
    >>> renamed_value("color", "gray", {"grey": "gray"})
    'gray'
    """
    if isinstance(value, str) and value in new_values:
        new = new_values[value]
        warn_renamed(f"{parameter}={value!r}", f"{parameter}={new!r}", stacklevel=4)
        return new
    return value


def renamed_attributes(module: str, new_names: Mapping[str, str]) -> Callable[[str], Any]:
    """Make a module-level `__getattr__` that resolves old names.

    Parameters
    ----------
    module : str
        The module, as in `__name__`.
    new_names : mapping of str to str
        For each old name the full path of the object, as in "contrafact.nn.FCN".

    Returns
    -------
    callable
        To be assigned to `__getattr__` of the module.

    Examples
    --------
    >>> __getattr__ = renamed_attributes("contrafact.old", {"tau": "math.tau"})
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     round(__getattr__("tau"), 2)
    6.28
    """

    def getattr_(name: str) -> Any:
        if name not in new_names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        path = new_names[name]
        warn_renamed(f"{module}.{name}", path)
        package, _, attribute = path.rpartition(".")
        return getattr(import_module(package), attribute)

    return getattr_
