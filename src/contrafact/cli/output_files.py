"""Check paths that a command will write to, before the work starts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def check_output(
    option: str, path: Path | None, suffixes: Sequence[str], inputs: Sequence[str]
) -> None:
    """Check that a file can be written and would not overwrite an input.

    Parameters
    ----------
    option : str
        The option that named the file, for the message.
    path : Path or None
        The file; None is accepted and means that nothing is written.
    suffixes : sequence of str
        Accepted endings of the name.
    inputs : sequence of str
        Files that are read.

    Raises
    ------
    ValueError
        If the suffix is wrong, the file cannot be written, or it is one of the inputs.
    FileNotFoundError
        If the folder does not exist.
    """
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        accepted = ", ".join(suffixes)
        raise ValueError(f"{option} {path} has suffix {path.suffix!r}. Accepted: {accepted}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{option} {path}: the folder {path.parent} does not exist.")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise ValueError(f"{option} {path} cannot be written.")
    for name in inputs:
        if path.exists() and Path(name).exists() and path.samefile(name):
            raise ValueError(f"{option} {path} would overwrite an input. Give another name.")


def paths_by_method(path: Path | None, methods: Sequence[str]) -> list[Path | None]:
    """Return one path per method; with several methods, each has the method in its name.

    Parameters
    ----------
    path : Path or None
        The path given; None means that nothing is written.
    methods : sequence of str
        Names of the methods; none stands for one method that is still to be chosen.

    Returns
    -------
    list of Path or None
        As many as there are methods, at least one.

    Examples
    --------
    >>> [path.name for path in paths_by_method(Path("out.npz"), ["CELS", "SETS"])]
    ['out-CELS.npz', 'out-SETS.npz']
    """
    if path is None or len(methods) < 2:
        return [path] * max(1, len(methods))
    return [path.with_name(f"{path.stem}-{method}{path.suffix}") for method in methods]
