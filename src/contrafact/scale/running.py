"""Run the chunks of a job: in this process, in others of this machine, or on a cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import cloudpickle  # type: ignore[import-untyped]

from ..parallel.workers import ClusterWorkers, LocalWorkers, Outcome
from .jobs import ChunkTask, Finished, Job, Refused


def run_chunks(
    job: Job, numbers: Iterable[int], workers: int | None, scheduler: str | None
) -> Iterator[Finished]:
    """Explain chunks, and write their files.

    Parameters
    ----------
    job : Job
        The question.
    numbers : iterable of int
        The chunks.
    workers : int or None
        Processes on this machine; None: this one.
    scheduler : str or None
        Address of a scheduler of dask.distributed, whose workers are used instead.

    Yields
    ------
    Finished
        For every chunk whose file is there, as they come.

    Raises
    ------
    ValueError, TypeError
        If rows of a chunk are not accepted.
    RuntimeError
        If a chunk fails again and again, or the method or model raises in another process.
    """
    if workers is None and scheduler is None:
        for number in numbers:
            yield job.run(number)
        return
    content = _pickled(job)
    if scheduler is not None:
        with ClusterWorkers(scheduler, content) as cluster:
            for key, outcome in cluster.run(_tasks(job, numbers), None):
                yield _written(job, key, outcome)
        return
    with _own_file(content) as path, LocalWorkers(workers or 1) as children:
        for key, outcome in children.run(_tasks(job, numbers, path), None):
            yield _written(job, key, outcome)


def _pickled(job: Job) -> bytes:
    """Pickle a job for other processes; rows that they cannot read themselves are left out."""
    assert job.source is not None
    if not job.source.is_file:
        job = replace(job, source=None)
    try:
        return bytes(cloudpickle.dumps(job))
    # Whatever a model's own pickling raises, the answer is the same.
    except Exception as error:
        raise TypeError(
            f"The model or the method cannot be sent to other processes: {error} "
            "Without workers and scheduler all work is done in this one."
        ) from error


def _tasks(
    job: Job, numbers: Iterable[int], path: Path | None = None
) -> Iterator[tuple[str, ChunkTask]]:
    """Make the tasks, each when its turn comes, since it may hold rows."""
    assert job.source is not None
    for number in numbers:
        rows = None if job.source.is_file else job.source.read(*job.manifest.bounds(number))
        yield str(number), ChunkTask(number, path, rows)


def _written(job: Job, key: str, outcome: Outcome) -> Finished:
    """Return what became of a chunk, after writing its file where its process could not."""
    status, answer = outcome
    if status != "done":
        raise RuntimeError(f"Chunk {key} could not be explained: {answer}")
    if isinstance(answer, Refused):
        raise ValueError(answer.message)
    finished: Finished = answer
    if finished.content is not None:
        job.folder.write(finished.number, finished.content)
    return replace(finished, content=None)


@contextmanager
def _own_file(content: bytes) -> Iterator[Path]:
    """Write a file that no one else can read or replace, and remove it in the end."""
    with tempfile.TemporaryDirectory(prefix="contrafact-") as folder:
        path = Path(folder) / "job"
        path.write_bytes(content)
        yield path
