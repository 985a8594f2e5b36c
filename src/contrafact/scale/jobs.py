"""The job of a run: everything that explaining a chunk takes, for this process or for others."""

from __future__ import annotations

import math
import pickle
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..engine import Budget, Constraints, Counterfactuals
from ..explainers.support.explainer import Explainer
from ..models.classifier import Array
from .chunk_files import chunk_bytes
from .folders import Manifest, ResultFolder
from .sources import Rows, Source


@dataclass(frozen=True)
class Finished:
    """Tell of a chunk that is finished.

    Attributes
    ----------
    number : int
        The chunk.
    rows : int
        Its instances.
    statuses : dict of str to int
        How many counterfactuals have which status.
    seconds : float
        Time that it took, reading and writing included.
    content : bytes or None
        The file, where the process could not write it itself.
    """

    number: int
    rows: int
    statuses: dict[str, int]
    seconds: float
    content: bytes | None = None


@dataclass(frozen=True)
class Refused:
    """Tell why a chunk could not be explained: something in it is not accepted."""

    message: str


@dataclass(frozen=True)
class Job:
    """Hold a fitted method, the question and the source.

    Parameters
    ----------
    explainer : Explainer
        Fitted.
    source : Source or None
        The instances; None where other processes are sent the rows.
    target : label, array of shape (n,), or None
        The classes wanted.
    options : dict
        Of `Explainer.explain`; the budget is that of all rows.
    folder : ResultFolder
        Where the files go.
    """

    explainer: Explainer
    source: Source | None
    target: Any
    options: dict[str, Any]
    folder: ResultFolder

    @property
    def manifest(self) -> Manifest:
        """What the run was asked."""
        return self.folder.manifest

    def run(self, number: int, rows: Rows | None = None) -> Finished:
        """Explain a chunk, and write its file where the folder is this run's.

        Parameters
        ----------
        number : int
            The chunk.
        rows : Rows, optional
            Its rows; default: read from the source.

        Returns
        -------
        Finished
            With the content of the file where the folder cannot be seen from here.

        Raises
        ------
        ValueError, TypeError
            If rows of the chunk are not accepted; the message says which rows these are.
        """
        began = time.perf_counter()
        start, stop = self.manifest.bounds(number)
        if rows is None:
            assert self.source is not None
            rows = self.source.read(start, stop)
        result = self._explain(rows, start, stop)
        content: bytes | None = chunk_bytes(result, rows, self.folder.mark(number))
        if self._sees_folder():
            assert content is not None
            self.folder.write(number, content)
            content = None
        statuses = dict(Counter(result.status.tolist()))
        seconds = time.perf_counter() - began
        return Finished(number, stop - start, statuses, seconds, content)

    def _explain(self, rows: Rows, start: int, stop: int) -> Counterfactuals:
        """Explain rows with their share of the budget; they get their numbers in the source."""
        options = {**self.options}
        options["budget"] = part_of_budget(options["budget"], stop - start, self.manifest.rows)
        options["constraints"] = part_of_constraints(
            options["constraints"], start, stop, self.manifest.rows
        )
        target = self.target
        if isinstance(target, np.ndarray):
            target = target[start:stop]
        try:
            result = self.explainer.explain(self._in_form(rows.X), target, **options)
        except (ValueError, TypeError) as error:
            raise type(error)(f"source, rows {start} to {stop - 1}: {error}") from error
        return replace(result, source=result.source + start)

    def _in_form(self, X: Any) -> Any:
        """Return rows of a table in the library of the frame that the method was fitted to."""
        space = self.explainer.space_
        if space is None or space.table.form.library != "polars" or not hasattr(X, "iloc"):
            return X
        import polars

        return polars.from_pandas(X)

    def _sees_folder(self) -> bool:
        """Return whether the folder of the run is there, and still this run's."""
        try:
            return Manifest.read(self.folder.path).key == self.manifest.key
        except (OSError, ValueError):
            return False


@dataclass(frozen=True)
class ChunkTask:
    """Explain one chunk in another process, which keeps the job for the next one.

    Parameters
    ----------
    number : int
        The chunk.
    job : Path or None
        File of the pickled job; None where the worker knows it.
    rows : Rows, optional
        The rows, where the process cannot read them itself.
    """

    number: int
    job: Path | None = None
    rows: Rows | None = None

    def with_file(self, path: Path) -> ChunkTask:
        """Return the task for a process that finds the job under a path."""
        return replace(self, job=path)

    def run(self) -> Finished | Refused:
        """Explain the chunk."""
        assert self.job is not None
        try:
            return _load(self.job).run(self.number, self.rows)
        except (ValueError, TypeError, OSError) as error:
            return Refused(str(error))


@lru_cache(maxsize=1)
def _load(path: Path) -> Job:
    """Read a job; the next chunk of it finds it in memory."""
    with path.open("rb") as file:
        job: Job = pickle.load(file)
    return job


def part_of_budget(budget: Budget | None, rows: int, all_rows: int) -> Budget | None:
    """Return the budget of some rows: each has the share that it has of the whole.

    Parameters
    ----------
    budget : Budget or None
        For all rows.
    rows, all_rows : int
        How many of them, of how many.

    Returns
    -------
    Budget or None
        For these rows.

    Examples
    --------
    >>> part_of_budget(Budget(calls=1000, seconds=60.0), 10, 100)
    Budget(calls=100, seconds=6.0)
    """
    if budget is None:
        return None
    calls = budget.calls
    if calls is not None and not math.isinf(calls):
        calls = int(calls) // all_rows * rows
    seconds = None if budget.seconds is None else budget.seconds * rows / all_rows
    return Budget(calls, seconds)


def part_of_constraints(
    constraints: Constraints | None, start: int, stop: int, all_rows: int
) -> Constraints | None:
    """Return the constraints of some rows: bounds of columns may have one entry per row.

    Parameters
    ----------
    constraints : Constraints or None
        For all rows.
    start, stop : int
        The rows.
    all_rows : int
        How many there are.

    Returns
    -------
    Constraints or None
        For these rows.
    """
    if constraints is None or constraints.bounds is None:
        return constraints

    def part(limit: Any) -> Any:
        values: Array = np.asarray(limit)
        return values[start:stop] if values.shape == (all_rows,) else limit

    bounds = {name: (part(low), part(high)) for name, (low, high) in constraints.bounds.items()}
    return replace(constraints, bounds=bounds)
