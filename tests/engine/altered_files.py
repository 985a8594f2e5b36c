"""Copies of a saved result that were altered: arrays, contradictions, and the file itself."""

import io
import json
import zipfile

import numpy as np

#: what may be done to any array of a file, by name
CHANGES = {
    "dropped": lambda array: None,
    "first row off": lambda array: array[1:],
    "last row off": lambda array: array[:-1],
    "one row more": lambda array: np.concatenate([array, array[:1]]),
    "no rows": lambda array: array[:0],
    "flat": lambda array: array.reshape(-1),
    "transposed": lambda array: array.T,
    "one axis more": lambda array: array[None],
    "trailing axis": lambda array: array[..., None],
    "one value": lambda array: array.reshape(-1)[0],
    "no axes": lambda array: np.array(0.5),
    "reversed": lambda array: array[::-1],
    "column order": np.asfortranarray,
    "float16": lambda array: array.astype(np.float16),
    "float32": lambda array: array.astype(np.float32),
    "float64": lambda array: array.astype(np.float64),
    "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "int8": lambda array: array.astype(np.int8),
    "uint64": lambda array: array.astype(np.uint64),
    "booleans": lambda array: array.astype(bool),
    "complex": lambda array: array.astype(complex),
    "text": lambda array: array.astype(str),
    "bytes": lambda array: array.astype("S"),
    "dates": lambda array: np.zeros(array.shape, "datetime64[s]"),
    "objects": lambda array: array.astype(object),
    "records": lambda array: np.zeros(array.shape, [("a", float), ("b", int)]),
    "zeros": np.zeros_like,
    "negative": lambda array: -1 - array,
    "NaN": lambda array: with_first(array.astype(float), np.nan),
    "inf": lambda array: with_first(array.astype(float), np.inf),
    "huge": lambda array: with_first(array.astype(float), 1e300),
    "other text": lambda array: with_first(array.astype("U20"), "no such thing"),
}
#: names that a file may have besides
EXTRA = {
    "unknown": np.zeros(3),
    "info/more": np.zeros(7),
    "info/": np.zeros(5),
    "names": np.array(["a", "b"]),
    "kind": np.array("jax"),
    "exceptions": np.array(["boom"]),
    "../X": np.zeros(3),
    "X.npy": np.zeros(3),
}


def with_first(array, value):
    """Return a copy with another first value."""
    copied = np.array(array)
    copied.reshape(-1)[:1] = value
    return copied


def read(content):
    """Return the arrays of a file."""
    with np.load(io.BytesIO(content)) as stored:
        return dict(stored)


def packed(arrays):
    """Return arrays as the content of a file; objects are pickled."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(array), allow_pickle=True)
            archive.writestr(f"{name}.npy", member.getvalue())
    return file.getvalue()


def altered_arrays(content):
    """Yield copies with one array altered, each with what was done."""
    arrays = read(content)
    for name, array in arrays.items():
        for what, change in CHANGES.items():
            try:
                new = change(array)
            except (ValueError, TypeError, IndexError, np.exceptions.AxisError):
                continue  # there is no such variant of this array
            others = {other: values for other, values in arrays.items() if other != name}
            yield f"{name}: {what}", packed(others if new is None else {**arrays, name: new})
    for name, array in EXTRA.items():
        yield f"{name}: added", packed({**arrays, name: array})


def altered_rows(content, statuses):
    """Yield copies in which one row contradicts itself, or a few rows do."""
    arrays = read(content)
    n = len(arrays["status"])
    for row in range(n):
        for status in statuses:
            new = arrays["status"].astype("U20")
            new[row] = status
            yield f"status[{row}] = {status}", packed({**arrays, "status": new})
        yield f"valid[{row}]", packed({**arrays, "valid": arrays["valid"] ^ (np.arange(n) == row)})
        for name in ("labels", "cf_labels", "target"):
            labels = arrays[name].copy()
            labels[row] = next(label for label in arrays["classes"] if label != labels[row])
            yield f"{name}[{row}] swapped", packed({**arrays, name: labels})
        for name in ("proba", "cf_proba"):
            columns = arrays[name].copy()
            columns[row] = columns[row][::-1]
            yield f"{name}[{row}] swapped", packed({**arrays, name: columns})
            columns[row] = 0.9
            yield f"{name}[{row}] above 1", packed({**arrays, name: columns})
        moved = arrays["X_cf"].copy()
        moved[row] += 1
        yield f"X_cf[{row}] moved", packed({**arrays, "X_cf": moved})
    yield "classes reversed", packed({**arrays, "classes": arrays["classes"][::-1]})
    yield "classes equal", packed({**arrays, "classes": arrays["classes"][[0, 0]]})
    for text in altered_provenances(str(arrays["provenance"])):
        yield f"provenance {text[:300]}", packed({**arrays, "provenance": np.array(text)})


def altered_provenances(text):
    """Yield texts that are no JSON, or in which an entry has another type."""
    yield from ("", "{", "[]", "5", "null", "NaN", "{'a': 1}", "[" * 100_000)
    provenance = json.loads(text)
    for value in (5, -1.5, "text", [1], {"a": 1}, None, True):
        for key in provenance:
            yield json.dumps({**provenance, key: value})
        for key in provenance["options"]:
            options = {**provenance["options"], key: value}
            yield json.dumps({**provenance, "options": options})


def damaged_files(content, rng):
    """Yield copies of the file itself that were cut, overwritten or forged."""
    size = len(content)
    for share in np.linspace(0, 1, 30, endpoint=False):
        yield f"cut at {share:.2f}", content[: int(share * size)]
    for place in rng.integers(0, size, 60).tolist():
        byte = content[place] ^ 0xFF
        yield f"byte {place}", content[:place] + bytes([byte]) + content[place + 1 :]
    yield "junk before", b"junk" + content
    yield "junk after", content + b"junk" * 100
    yield "twice", content + content
    for name, header in {
        "huge shape": {"descr": "<f8", "fortran_order": False, "shape": (10**15,)},
        "negative shape": {"descr": "<f8", "fortran_order": False, "shape": (-3, 4)},
        "shape of text": {"descr": "<f8", "fortran_order": False, "shape": ("a",)},
        "no width": {"descr": "<U0", "fortran_order": False, "shape": (3,)},
        "unknown dtype": {"descr": "<q7", "fortran_order": False, "shape": (3,)},
    }.items():
        member = b"\x93NUMPY\x01\x00"
        text = repr(header).encode()
        text += b" " * (117 - len(text)) + b"\n"
        member += len(text).to_bytes(2, "little") + text + bytes(96)
        yield f"header with {name}", forged(content, "X", member)
    yield "a bomb", forged(content, "info/zeros", bytes(20_000_000))
    yield "an unknown bomb", forged(content, "bomb", bytes(20_000_000))
    yield "no array", forged(content, "X", b"hello")
    yield "twice the same name", forged(content, "X", None)


def forged(content, name, member):
    """Replace or add a member of the file; None: add the one that is there once more."""
    source = zipfile.ZipFile(io.BytesIO(content))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for info in source.infolist():
            if info.filename != f"{name}.npy" or member is None:
                archive.writestr(info.filename, source.read(info))
        archive.writestr(f"{name}.npy", source.read(f"{name}.npy") if member is None else member)
    return file.getvalue()
