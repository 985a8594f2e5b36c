"""Errors of damaged model files, in one line each."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from pickle import UnpicklingError

#: What a damaged file makes torch, pickle and zipfile raise, besides errors of missing code.
DAMAGE = (
    UnpicklingError,
    RuntimeError,
    ValueError,
    TypeError,
    LookupError,
    AssertionError,
    ArithmeticError,
    EOFError,
    MemoryError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
)


def damaged(file: Path, kind: str, error: Exception) -> ValueError:
    """Make the error of a file that cannot be opened, in one line."""
    reason = str(error).strip().partition("\n")[0]
    if isinstance(error, EOFError):
        reason = "it ends too early"
    name = type(error).__name__
    return ValueError(f"{file} cannot be opened as {kind}: it is damaged ({reason or name}).")
