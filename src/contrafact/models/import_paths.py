"""Objects named by "module:name": imported, also from the current folder."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

from ..process_state import keeping_random_numbers

IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def import_object(path: str) -> Any:
    """Import an object; its module may be in the current folder.

    Naming a module is consent to run it. A module of the current folder never takes the place of
    an installed one.

    Parameters
    ----------
    path : str
        "module:name"; the name may have dots.

    Returns
    -------
    object
        The object of that name.

    Raises
    ------
    ImportError
        If the module cannot be imported or has no such name.

    Examples
    --------
    >>> import_object("math:pi")
    3.141592653589793
    """
    module_name, _, attributes = path.partition(":")
    folder = nullcontext() if _is_installed(module_name) else current_folder()
    with folder, keeping_random_numbers():
        try:
            module = importlib.import_module(module_name)
        except ImportError as error:
            where = "" if error.name != module_name else f" It is looked for in {Path.cwd()} too."
            raise ImportError(f"{path!r} cannot be imported: {error}.{where}") from error
    found: Any = module
    for name in attributes.split("."):
        if not hasattr(found, name):
            raise ImportError(
                f"{path!r} cannot be imported: there is no {name!r} in it.{_public_names(found)}"
                f"{_shadowed_file(module)}"
            )
        found = getattr(found, name)
    return found


def _is_installed(module_name: str) -> bool:
    """Return whether a module is found without looking in the current folder."""
    package, _, _ = module_name.partition(".")
    return package in sys.modules or importlib.util.find_spec(package) is not None


def _shadowed_file(module: ModuleType) -> str:
    """Say that the current folder has a module of this name which was not taken, if so."""
    file = Path(f"{module.__name__}.py")
    taken = getattr(module, "__file__", None)
    if not file.exists() or (taken is not None and file.samefile(taken)):
        return ""
    return f" This is the installed module; rename {file} of the current folder to use that."


def _public_names(owner: Any) -> str:
    """List some names of a module or class, as the end of an error message."""
    names = [name for name in getattr(owner, "__dict__", {}) if not name.startswith("_")]
    if not names:
        return ""
    return f" It has {', '.join(names[:10])}."


@contextmanager
def current_folder() -> Iterator[None]:
    """Make modules of the current folder importable inside the block, after all installed ones."""
    here = str(Path.cwd())
    if here in sys.path:
        yield
        return
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.remove(here)
