"""Sources of large data: arrays and files that are read some rows at a time."""

from __future__ import annotations

import hashlib
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..data.archives import entry_names, npy, read_npz
from ..data.arrays import read_array
from ..extras import require_extra
from ..models.classifier import Array
from ..tables import is_frame

#: rows that are hashed at a time
HASHED_ROWS = 65_536
#: names under which archives and groups keep instances, and what goes with them
INSTANCES = ("X_test", "X")
LABELS = {"X": "y", "X_test": "y_test"}
IDS = "id"


@dataclass(frozen=True)
class Rows:
    """Consecutive rows of a source: instances, and what the source says of them.

    Attributes
    ----------
    X : array of shape (m, ...) or DataFrame
        The instances.
    ids : array of shape (m,) or None
        How the source calls them.
    y : array of shape (m,) or None
        Their labels.
    """

    X: Any
    ids: Array | None = None
    y: Array | None = None


class Source(ABC):
    """Instances that are read some rows at a time, and never all at once.

    Attributes
    ----------
    name : str
        What messages call it.
    is_file : bool
        Whether another process can read it by its path.
    """

    name: str = "source"
    is_file: ClassVar[bool] = True

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of instances."""

    @abstractmethod
    def read(self, start: int, stop: int) -> Rows:
        """Read rows `start` to `stop - 1`."""

    @abstractmethod
    def fingerprint(self) -> dict[str, Any]:
        """Describe the content by plain values that change when it does."""


class ArraySource(Source):
    """An array in memory, or an object that is sliced like one.

    Parameters
    ----------
    values : array, tensor or DataFrame
        The instances.
    """

    is_file = False

    def __init__(self, values: Any) -> None:
        self._values = values

    def __len__(self) -> int:
        return int(self._values.shape[0])  # zarr arrays have no length

    def read(self, start: int, stop: int) -> Rows:
        """Read rows `start` to `stop - 1`."""
        if is_frame(self._values):
            rows = getattr(self._values, "iloc", self._values)
            return Rows(rows[start:stop])
        return Rows(read_array(self._values[start:stop], "source"))

    def fingerprint(self) -> dict[str, Any]:
        """Describe the content by its size and a hash."""
        content = hashlib.sha256()
        for start in range(0, len(self), HASHED_ROWS):
            content.update(_bytes_of(self.read(start, start + HASHED_ROWS).X))
        shape = list(self._values.shape)
        return {"kind": "array", "shape": shape, "content": content.hexdigest()[:32]}


class NpySource(Source):
    """An array in an .npy file, or one that an .npz file holds uncompressed.

    The file is mapped anew for every read, so that what was read does not stay in memory.

    Parameters
    ----------
    path : Path
        The file.
    dtype, shape, order, offset
        What the file holds, and where it begins.
    """

    def __init__(self, path: Path, dtype: Any, shape: tuple[int, ...], order: str, offset: int):
        self.path = path
        self.name = str(path)
        self.dtype = dtype
        self.shape = shape
        self.order = order
        self.offset = offset
        self.ids: Array | None = None
        self.y: Array | None = None

    @classmethod
    def open(cls, path: Path) -> NpySource:
        """Read the head of an .npy file."""
        try:
            with path.open("rb") as file:
                version = npy.read_magic(file)
                read_header = {1: npy.read_array_header_1_0, 2: npy.read_array_header_2_0}
                shape, in_columns, dtype = read_header[version[0]](file)
                offset = file.tell()
        except (ValueError, KeyError) as error:
            raise ValueError(f"source {path} cannot be read as .npy: {error}") from error
        source = cls(path, dtype, shape, "F" if in_columns else "C", offset)
        source._check(path.stat().st_size)
        return source

    @classmethod
    def within(cls, path: Path, entry: str) -> NpySource | None:
        """Find an array that an .npz file holds uncompressed; None where it is compressed."""
        with zipfile.ZipFile(path) as archive:
            member = archive.getinfo(f"{entry}.npy")
            if member.compress_type != zipfile.ZIP_STORED:
                return None
            with archive.open(member) as file:
                version = npy.read_magic(file)
                if version != (1, 0):
                    return None
                shape, in_columns, dtype = npy.read_array_header_1_0(file)
                head = file.tell()
        with path.open("rb") as file:
            file.seek(member.header_offset + 26)
            name, extra = np.frombuffer(file.read(4), "<u2").tolist()
        offset = member.header_offset + 30 + name + extra + head
        source = cls(path, dtype, shape, "F" if in_columns else "C", offset)
        source._check(path.stat().st_size)
        return source

    def _check(self, size: int) -> None:
        """Refuse what is no array of numbers, or is longer than the file."""
        if self.dtype.kind not in "biuf" or len(self.shape) < 2:
            raise ValueError(
                f"source {self.path} holds an array of shape {self.shape} and dtype {self.dtype}. "
                "Accepted: numbers of shape (n, ...)."
            )
        expected = self.offset + int(np.prod(self.shape)) * self.dtype.itemsize
        if size < expected:
            raise ValueError(
                f"source {self.path} is damaged: it has {size:,} bytes, its head says {expected:,}."
            )

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, start: int, stop: int) -> Rows:
        """Read rows `start` to `stop - 1`."""
        mapped = np.memmap(self.path, self.dtype, "r", self.offset, self.shape, self.order)  # type: ignore[call-overload]
        X = np.array(mapped[start:stop])
        return Rows(X, _part(self.ids, start, stop), _part(self.y, start, stop))

    def fingerprint(self) -> dict[str, Any]:
        """Describe the content by the file's size and time."""
        return {"kind": "npy", "shape": list(self.shape), "files": stamps([self.path])}


class NpzSource(Source):
    """A compressed .npz file, which has to be unpacked whole.

    Parameters
    ----------
    path : Path
        The file.
    entry : str
        The array of instances in it.
    """

    def __init__(self, path: Path, entry: str) -> None:
        self.path = path
        self.name = str(path)
        self.entry = entry
        names = (entry, LABELS[entry], IDS)
        self._arrays: dict[str, Array] | None = read_npz(path, names.__contains__)

    @property
    def arrays(self) -> dict[str, Array]:
        """The arrays, unpacked when they are needed."""
        if self._arrays is None:
            self.__init__(self.path, self.entry)  # type: ignore[misc]
        assert self._arrays is not None
        return self._arrays

    def __getstate__(self) -> dict[str, Any]:
        # Other processes read the file themselves.
        return {**self.__dict__, "_arrays": None}

    def __len__(self) -> int:
        return len(self.arrays[self.entry])

    def read(self, start: int, stop: int) -> Rows:
        """Read rows `start` to `stop - 1`."""
        X, y, ids = (self.arrays.get(name) for name in (self.entry, LABELS[self.entry], IDS))
        assert X is not None
        return Rows(X[start:stop], _part(ids, start, stop), _part(y, start, stop))

    def fingerprint(self) -> dict[str, Any]:
        """Describe the content by the file's size and time."""
        shape = list(self.arrays[self.entry].shape)
        return {"kind": "npz", "shape": shape, "files": stamps([self.path])}


class ZarrSource(Source):
    """A zarr array, or a group with arrays X and, where there are any, y and id.

    Parameters
    ----------
    path : Path
        The folder.
    """

    def __init__(self, path: Path) -> None:
        require_extra("scale", "A zarr source")
        self.path = path
        self.name = str(path)
        self._arrays: dict[str, Any] | None = None
        X = self.arrays["X"]
        if len(X.shape) < 2 or X.dtype.kind not in "biuf":
            raise ValueError(
                f"source {path} holds an array of shape {X.shape} and dtype {X.dtype}. "
                "Accepted: numbers of shape (n, ...)."
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_arrays": None}

    @property
    def arrays(self) -> dict[str, Any]:
        """The arrays by name, opened when they are needed."""
        if self._arrays is None:
            import zarr

            opened: Any = zarr.open(str(self.path), mode="r")
            if hasattr(opened, "shape"):
                self._arrays = {"X": opened}
            else:
                entry = next((name for name in INSTANCES if name in opened), None)
                if entry is None:
                    names = ", ".join(sorted(opened.keys())) or "nothing"
                    raise ValueError(f"source {self.path} has no array X; it has {names}.")
                found = {"X": entry, "y": LABELS[entry], "id": IDS}
                self._arrays = {
                    name: opened[stored] for name, stored in found.items() if stored in opened
                }
        return self._arrays

    def __len__(self) -> int:
        return int(self.arrays["X"].shape[0])

    def read(self, start: int, stop: int) -> Rows:
        """Read rows `start` to `stop - 1`."""
        X, ids, y = (self.arrays.get(name) for name in ("X", "id", "y"))
        assert X is not None
        return Rows(np.asarray(X[start:stop]), _part(ids, start, stop), _part(y, start, stop))

    def fingerprint(self) -> dict[str, Any]:
        """Describe the content by sizes and times of the files."""
        files = [path for path in self.path.rglob("*") if path.is_file()]
        listed = repr(stamps(files, self.path)).encode()
        shape = list(self.arrays["X"].shape)
        return {"kind": "zarr", "shape": shape, "files": hashlib.sha256(listed).hexdigest()[:32]}


def open_npz(path: Path) -> Source:
    """Open the instances of an .npz file, mapped where they are stored uncompressed.

    Parameters
    ----------
    path : Path
        A file with X, or X_test; and y or y_test, and id, where there are any.

    Returns
    -------
    Source
        The instances.
    """
    try:
        names = entry_names(path)
    except zipfile.BadZipFile as error:
        raise ValueError(f"source {path} cannot be read as .npz: {error}.") from error
    entry = next((name for name in INSTANCES if name in names), None)
    if entry is None:
        known = ", ".join(names[:20]) or "nothing"
        raise ValueError(f"source {path} has no array X or X_test; it has {known}.")
    mapped = NpySource.within(path, entry)
    if mapped is None:
        return NpzSource(path, entry)
    others = read_npz(path, (LABELS[entry], IDS).__contains__)
    mapped.y = others.get(LABELS[entry])
    mapped.ids = others.get(IDS)
    return mapped


def _part(values: Any, start: int, stop: int) -> Array | None:
    """Return some entries, where there are any."""
    return None if values is None else np.asarray(values[start:stop])


def stamps(paths: Iterable[Path], root: Path | None = None) -> list[list[Any]]:
    """Return name, size and time of change of every file.

    Parameters
    ----------
    paths : iterable of Path
        The files.
    root : Path, optional
        Names are relative to it; default: without their folders.

    Returns
    -------
    list of [name, bytes, nanoseconds]
        Sorted by path.
    """
    found = []
    for path in sorted(paths):
        state = path.stat()
        name = path.name if root is None else str(path.relative_to(root))
        found.append([name, state.st_size, state.st_mtime_ns])
    return found


def _bytes_of(values: Any) -> bytes:
    """Return bytes that are equal for equal rows."""
    if not is_frame(values):
        return np.ascontiguousarray(values).tobytes()
    from pandas.util import hash_pandas_object

    frame = values if hasattr(values, "iloc") else values.to_pandas()
    names = repr([str(name) for name in frame.columns]).encode()
    return names + hash_pandas_object(frame).to_numpy().tobytes()
