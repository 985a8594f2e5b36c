"""Files that every worker of a dask.distributed cluster gets once, for the tasks that use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distributed import Worker, WorkerPlugin
from typing_extensions import override

from .workers import Outcome, run_in_worker

#: files that this process was sent, by name
_files: dict[str, Path] = {}


class SharedFile(WorkerPlugin):
    """Write a file into the folder of every worker, also of those that come later.

    Parameters
    ----------
    name : str
        Name of the file.
    content : bytes
        What is in it.
    """

    def __init__(self, name: str, content: bytes) -> None:
        self.name = name
        self.content = content

    @override
    def setup(self, worker: Worker) -> None:
        path = Path(worker.local_directory) / self.name
        path.write_bytes(self.content)
        self.content = b""
        _files[self.name] = path

    @override
    def teardown(self, worker: Worker) -> None:
        path = _files.pop(self.name, None)
        if path is not None:
            path.unlink(missing_ok=True)


def run_with_file(task: Any, time_limit: float | None, name: str) -> Outcome:
    """Run a task that uses a shared file, in a child of this worker.

    Parameters
    ----------
    task : object
        Its method `with_file` returns the task to run for the path of the file here.
    time_limit : float or None
        Seconds after which the child is ended.
    name : str
        Name of the file.

    Returns
    -------
    tuple of str and object
        Status and answer, as `ChildPool.run` returns them.
    """
    return run_in_worker(task.with_file(_files[name]), time_limit)
