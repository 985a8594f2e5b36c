"""Reader of .npz files: named members only, sizes checked before anything is unpacked."""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format

from .cleaning import Array

npy: Any = npy_format  # has no types of its own

#: How many bytes the arrays of a file may take, unless the caller allows more.
MAX_BYTES = 4 * 2**30
#: Deflate cannot shrink data further than about 1032 to 1; what claims more is damaged or a trap.
MAX_RATIO = 1100
ENCRYPTED = 0x1
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

#: What a damaged archive or array makes the standard library and NumPy raise.
DAMAGE = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    SyntaxError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
)


def read_npz(
    path: Path,
    wanted: Callable[[str], bool],
    max_bytes: int = MAX_BYTES,
) -> dict[str, Array]:
    """Read some arrays of an .npz file, without executing code from it.

    Parameters
    ----------
    path : Path
        The file.
    wanted : function of a name
        Says which members to read; others are not looked at.
    max_bytes : int
        How many bytes these may take together.

    Returns
    -------
    dict of str to array
        The arrays by name, in native byte order.

    Raises
    ------
    ValueError
        If the file is damaged, too large, or holds anything but plain arrays under these names.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(archive, wanted, max_bytes, path.stat().st_size)
            return {name: _read_array(archive, info) for name, info in members.items()}
    except OSError as error:
        # A file that ends too early may lead the reader to a place that does not exist; a real
        # error of the system, such as a missing permission, names the file.
        if error.filename is not None:
            raise
        raise _damaged(path, error) from error
    except DAMAGE as error:
        raise _damaged(path, error) from error


def entry_names(path: Path) -> list[str]:
    """Return the names of all arrays of an .npz file that `read_npz` could open."""
    with zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def _damaged(path: Path, error: Exception) -> ValueError:
    """Make the error of a file that cannot be read, in one line."""
    reason = " ".join(str(error).split()) or type(error).__name__
    return ValueError(
        f"{path} cannot be read as .npz: {reason.rstrip('.')}. "
        "Accepted: plain arrays, with labels as text or numbers."
    )


def _members(
    archive: zipfile.ZipFile,
    wanted: Callable[[str], bool],
    max_bytes: int,
    file_size: int,
) -> dict[str, zipfile.ZipInfo]:
    """Find the members to read by name, and check what the directory says of them."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if not wanted(name):
            continue
        if name in members:
            raise ValueError(f"it has two entries {name!r}")
        members[name] = info
        check_member(info, name, file_size)
    total = sum(info.file_size for info in members.values())
    if total > max_bytes:
        raise ValueError(
            f"its arrays take {total:,} bytes, more than the {max_bytes:,} allowed; "
            "max_bytes raises the limit"
        )
    return members


def check_member(info: zipfile.ZipInfo, name: str, file_size: int) -> None:
    """Check that a member can be what the directory says.

    Parameters
    ----------
    info : ZipInfo
        The entry of the directory.
    name : str
        What error messages call it.
    file_size : int
        Size of the archive in bytes.

    Raises
    ------
    ValueError
        If the entry is encrypted, compressed by another method than deflate, longer than the
        archive, or claims to unpack to more than compression can explain.
    """
    if info.flag_bits & ENCRYPTED:
        raise ValueError(f"its entry {name!r} is encrypted")
    if info.compress_type not in METHODS:
        raise ValueError(f"its entry {name!r} is compressed by another method than deflate")
    if info.compress_size > file_size:
        raise ValueError(f"its entry {name!r} is longer than the file")
    if info.file_size > MAX_RATIO * (info.compress_size + 1):
        raise ValueError(
            f"its entry {name!r} claims {info.file_size:,} bytes "
            f"from {info.compress_size:,} compressed ones"
        )


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    """Read one array, after its header was compared with the size of the member."""
    name = info.filename.removesuffix(".npy")
    with archive.open(info) as member:
        shape, in_columns, dtype = _read_header(member)
        if dtype.hasobject or dtype.kind not in "biufcUS":
            raise ValueError(f"its entry {name!r} has dtype {dtype}")
        expected = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or not dtype.itemsize:
            raise ValueError(f"its entry {name!r} has shape {shape} and dtype {dtype}")
        if member.tell() + expected != info.file_size:
            raise ValueError(
                f"its entry {name!r} claims shape {shape} of {dtype}, which is not its size"
            )
        content = member.read()
    flat = np.frombuffer(content, dtype=dtype)
    array = flat.reshape(shape, order="F" if in_columns else "C")
    return array.astype(dtype.newbyteorder("="), order="C")


def _read_header(member: IO[bytes]) -> Any:
    """Read shape, order and dtype from the head of an array."""
    version = npy.read_magic(member)
    if version == (1, 0):
        return npy.read_array_header_1_0(member)
    if version == (2, 0):
        return npy.read_array_header_2_0(member)
    raise ValueError(f"an array has version {version} of the format")
