"""ONNX files: recognized and searched for other files before onnxruntime opens them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
from typing_extensions import override

from ..data.archives import MAX_BYTES
from ..extras import require_extra

#: Protocol buffers, of which ONNX is made, cannot be larger.
MAX_FILE = 2**31
#: How deep messages may be nested, as in protocol buffers.
MAX_DEPTH = 100
#: How many fields are looked at in the search for files outside.
MAX_FIELDS = 10**7
VARINT, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5
#: Fields of a model, by number, and how each is written.
MODEL_FIELDS = {
    1: VARINT,  # version of the format
    **dict.fromkeys((2, 3, 4, 6, 7, 8, 14, 20, 25, 26), LENGTH),
    5: VARINT,
}
VERSION, GRAPH = 1, 7
#: Where tensors are: for each kind of message the fields that lead to them.
PARTS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse tensor"},
    "node": {5: "attribute"},
    "attribute": {
        5: "tensor",
        6: "graph",
        10: "tensor",
        11: "graph",
        22: "sparse tensor",
        23: "sparse tensor",
    },
    "sparse tensor": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
KEY, VALUE = 1, 2
#: The key of an entry that says in which file the numbers of a tensor are.
LOCATION = b"location"


def is_onnx(file: Path) -> bool:
    """Return whether a file is a message with the fields of a model, among them a graph."""
    with file.open("rb") as stream:
        begins_with_version = stream.read(1) == bytes([VERSION << 3 | VARINT])
    if not begins_with_version or file.stat().st_size > MAX_FILE:
        return False
    found = set()
    try:
        for number, wire, _ in _fields(memoryview(file.read_bytes())):
            if MODEL_FIELDS.get(number) != wire:
                return False
            found.add(number)
    except ValueError:
        return False
    return GRAPH in found


def read_onnx(file: Path) -> Any:
    """Open an ONNX file for onnxruntime, on the CPU, with as many threads as torch uses.

    Parameters
    ----------
    file : Path
        An ONNX file.

    Returns
    -------
    onnxruntime.InferenceSession
        The model.

    Raises
    ------
    ValueError
        If the file is damaged, names files outside of its folder, or uses operators that
        onnxruntime does not have.
    """
    require_extra("files", "An ONNX file")
    content = file.read_bytes()
    has_other_files = LOCATION in content and _check_other_files(file, content)
    try:
        # The bytes that were looked at; other files are found from the path only.
        return _open_session(str(file) if has_other_files else content)
    # The errors of onnxruntime derive from nothing narrower.
    except Exception as error:
        raise ValueError(f"{file} cannot be opened as ONNX: {runtime_reason(error)}.") from error


def _open_session(source: str | bytes) -> Any:
    """Open a session of a path or of the content of a file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what goes wrong is raised, and need not be printed too
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Else the content could pass for onnxruntime's own format, which was not looked at.
    options.add_session_config_entry("session.load_model_format", "ONNX")
    return _session_class()(source, options, providers=["CPUExecutionProvider"])


@cache
def _session_class() -> type[Any]:
    """Return sessions that can be sent to other processes, where they are opened again."""
    import onnxruntime

    class Session(onnxruntime.InferenceSession):  # type: ignore[misc]
        def __init__(self, source: str | bytes, *args: Any, **kwargs: Any) -> None:
            super().__init__(source, *args, **kwargs)
            self._source = source

        @override
        def __reduce__(self) -> tuple[Any, ...]:
            return _open_session, (self._source,)

    return Session


def runtime_reason(error: Exception) -> str:
    """Return what onnxruntime says, in one line and without its codes.

    Parameters
    ----------
    error : Exception
        An error of onnxruntime.

    Returns
    -------
    str
        At most 300 characters, without a period at the end.
    """
    text = " ".join(str(error).split())
    if text.startswith("[ONNXRuntimeError]"):
        text = text.split(" : ", 3)[-1]
    text = text if len(text) <= 300 else f"{text[:299]}…"
    return text.rstrip(".") or type(error).__name__


def _check_other_files(file: Path, content: bytes) -> bool:
    """Return whether tensors are in other files; refuse those outside of the model's folder."""
    try:
        names = _other_files(memoryview(content))
    except ValueError as error:
        raise ValueError(f"{file} cannot be opened as ONNX: {error}.") from error
    folder = file.resolve().parent
    total = 0
    for name in sorted(names):
        other = _file_in(folder, name)
        if other is None:
            raise ValueError(
                f"{file} cannot be opened as ONNX: it takes weights from {name!r}. Accepted: "
                "files in the folder of the model."
            )
        total += other.stat().st_size
    if total > MAX_BYTES:
        raise ValueError(
            f"{file} cannot be opened as ONNX: its weights take {total:,} bytes, more than the "
            f"{MAX_BYTES:,} allowed."
        )
    return len(names) > 0


def _file_in(folder: Path, name: str) -> Path | None:
    """Return a file of a folder by its name; None where there is none, or it is elsewhere."""
    try:
        file = (folder / name).resolve()
        return file if file.is_relative_to(folder) and file.is_file() else None
    except (OSError, ValueError, RuntimeError):  # too long, with a null byte, a circle of links
        return None


def _other_files(model: memoryview) -> set[str]:
    """Return the names of all files from which a model takes numbers."""
    names: set[str] = set()
    waiting = [("model", model, 0)]
    n_fields = 0
    while waiting:
        kind, message, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise ValueError("its parts are nested too deeply")
        parts = PARTS[kind]
        for number, wire, value in _fields(message):
            n_fields += 1
            if n_fields > MAX_FIELDS:
                raise ValueError(f"it has more than {MAX_FIELDS:,} parts")
            if wire != LENGTH or number not in parts:
                continue
            if parts[number] == "entry":
                names.update(_location(value))
            else:
                waiting.append((parts[number], value, depth + 1))
    return names


def _location(entry: memoryview) -> Iterator[str]:
    """Give the values of an entry whose key is "location"."""
    fields = [(number, bytes(value)) for number, wire, value in _fields(entry) if wire == LENGTH]
    if (KEY, LOCATION) in fields:
        for number, value in fields:
            if number == VALUE:
                yield value.decode()


def _fields(message: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Give number, kind of writing and content of each field of a message."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        if tag >= 2**32:  # other readers would cut it off, and see another field
            raise ValueError("it is damaged (a field of unknown kind)")
        number, wire = tag >> 3, tag & 7
        if wire == VARINT:
            _, end = _varint(message, place)
        elif wire == LENGTH:
            size, place = _varint(message, place)
            end = place + size
        elif wire == EIGHT_BYTES:
            end = place + 8
        elif wire == FOUR_BYTES:
            end = place + 4
        else:
            raise ValueError("it is damaged (a field of unknown kind)")
        if number == 0 or end > len(message):
            raise ValueError("it is damaged (a field goes beyond its end)")
        yield number, wire, message[place:end]
        place = end


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """Read a number of up to ten bytes with seven bits each; return it and the place behind it."""
    value = 0
    for index, byte in enumerate(message[place : place + 10]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, place + index + 1
    raise ValueError("it is damaged (a number does not end)")
