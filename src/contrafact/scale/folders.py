"""The folder of a run: what was asked, and one file for every chunk that is finished."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ..data.fingerprints import digest
from ..data.writing import complete_file
from ..models.classifier import Array
from .chunk_files import FORMAT, read_about

MANIFEST = "_manifest.json"
#: how far probabilities of the same model may lie apart on another machine
SAME_ANSWER = 1e-3
#: libraries whose versions are noted
LIBRARIES = ("numpy", "torch", "pyarrow")


@dataclass(frozen=True)
class Manifest:
    """Say what a run was asked, so that it can be gone on with, and nothing else mixed in.

    Attributes
    ----------
    rows : int
        Instances of the source.
    chunk : int
        Instances of each file; the last may have fewer.
    request : dict
        What the counterfactuals depend on besides the model, as plain values.
    classes : list
        The model's classes, as text.
    answers : list of list of float
        The model's probabilities for some rows of the reference, by which it is known again.
    provenance : dict
        Method, parameters, version, seed and options, as results have them.
    made_with : dict
        Versions of Python and libraries, for the reader.
    """

    rows: int
    chunk: int
    request: dict[str, Any]
    classes: list[str]
    answers: list[list[float]]
    provenance: dict[str, Any]
    made_with: dict[str, str]

    @property
    def key(self) -> str:
        """A name made of the content, which every file of the run has."""
        return digest([FORMAT, self.rows, self.chunk, self.request, self.classes])

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return -(-self.rows // self.chunk)

    @property
    def k(self) -> int:
        """Counterfactuals asked for each instance."""
        return int(self.provenance["options"]["k"])

    def bounds(self, number: int) -> tuple[int, int]:
        """Return the first row of a chunk, and the one after its last."""
        start = number * self.chunk
        return start, min(start + self.chunk, self.rows)

    def differences(self, other: Manifest) -> list[str]:
        """Say what differs from another manifest."""
        found = []
        for name in ("rows", "chunk"):
            then, now = getattr(self, name), getattr(other, name)
            if then != now:
                found.append(f"{name}: {then} then, {now} now")
        for name in sorted({*self.request, *other.request}):
            then, now = self.request.get(name), other.request.get(name)
            if then != now:
                found.append(_difference(name, then, now))
        if not self._same_model(other):
            found.append("the model answers otherwise")
        return found

    def _same_model(self, other: Manifest) -> bool:
        """Return whether the models have the same classes and give the same answers."""
        then, now = np.array(self.answers), np.array(other.answers)
        if self.classes != other.classes or then.shape != now.shape:
            return False
        return bool(np.allclose(then, now, rtol=0, atol=SAME_ANSWER, equal_nan=True))

    def write(self, folder: Path) -> None:
        """Write the manifest into its folder."""
        content = {"format": FORMAT, "key": self.key, **vars(self)}
        with complete_file(folder / MANIFEST) as draft:
            draft.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of a folder.

        Raises
        ------
        FileNotFoundError
            If there is none.
        ValueError
            If it cannot be used.
        """
        path = folder / MANIFEST
        if not path.is_file():
            raise FileNotFoundError(
                f"{folder} holds no results of explain_dataset: there is no {MANIFEST} in it."
            )
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            known = {name: content[name] for name in cls.__dataclass_fields__}
            manifest = cls(**known)
            if content["format"] != FORMAT or content["key"] != manifest.key:
                raise ValueError("its key does not belong to its content")
            if manifest.rows < 1 or manifest.chunk < 1 or manifest.k < 1:
                raise ValueError("rows, chunk and k must be at least 1")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"{path} is damaged or of another version: {error}.") from error
        return manifest


class ResultFolder:
    """A folder with a manifest and the files of finished chunks.

    Parameters
    ----------
    path : Path
        The folder.
    manifest : Manifest
        What it is for.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest

    def chunk_path(self, number: int) -> Path:
        """Return the file of a chunk."""
        return self.path / f"part-{number:08d}.parquet"

    def mark(self, number: int) -> dict[str, Any]:
        """Return what the file of a chunk has to say of itself."""
        start, stop = self.manifest.bounds(number)
        mark = {"format": FORMAT, "key": self.manifest.key, "number": number}
        return {**mark, "start": start, "stop": stop}

    def write(self, number: int, content: bytes) -> None:
        """Write the file of a chunk; it has its name when it is complete."""
        with complete_file(self.chunk_path(number)) as draft:
            draft.write_bytes(content)

    def present(self) -> list[int]:
        """Return the numbers of the chunks whose files are there, in order."""
        names = {path.name for path in self.path.glob("part-*.parquet")}
        numbers = range(self.manifest.chunks)
        return [number for number in numbers if self.chunk_path(number).name in names]

    def due(self) -> Iterator[int]:
        """Yield the chunks that are missing, or whose file is cut off or of another run."""
        present = set(self.present())
        for number in range(self.manifest.chunks):
            if number not in present or not self._is_good(number):
                yield number

    def _is_good(self, number: int) -> bool:
        """Return whether the end of a file says that it is complete and belongs here."""
        try:
            about = read_about(self.chunk_path(number))
        except ValueError:
            return False
        return {**about, **self.mark(number)} == about


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that results depend on."""
    from .. import __version__

    found = {name: version(name) for name in LIBRARIES}
    return {"python": platform.python_version(), "contrafact": __version__, **found}


def reference_rows(n: int, most: int = 32) -> Array:
    """Return the numbers of up to `most` rows of n, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def _difference(name: str, then: Any, now: Any) -> str:
    """Say how one thing differs, in full where it is short."""
    if name in ("source", "reference"):
        return f"another {name}, or it was changed"
    texts = [json.dumps(value, ensure_ascii=False) for value in (then, now)]
    if max(map(len, texts)) > 80:
        return f"other {name}"
    return f"{name}: {texts[0]} then, {texts[1]} now"
