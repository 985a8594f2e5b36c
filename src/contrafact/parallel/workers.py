"""Workers that run tasks: processes here, or those of a cluster."""

from __future__ import annotations

import queue
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any
from uuid import uuid4

from joblib import effective_n_jobs

from .child import ATTEMPTS, ChildPool

#: status and answer of a task, as `ChildPool.run` returns them
Outcome = tuple[str, Any]
#: tasks by their keys; made when their turn comes, since each holds data and a model
Tasks = Iterable[tuple[str, Any]]

#: tasks handed out for each thread: one that runs and one that waits
AHEAD = 2
#: seconds that a cluster may be without workers, or without an answer to a question
PATIENCE = 60.0
#: seconds between two looks at a cluster that gives no results
LOOK = 2.0

#: children of this process where it is a worker of a cluster
_worker_children = ChildPool()


def run_in_worker(task: Any, time_limit: float | None) -> Outcome:
    """Run a task in a child of this process, which is a worker of a cluster.

    Parameters
    ----------
    task : object
        Its method `run` is called.
    time_limit : float or None
        Seconds after which the child is ended.

    Returns
    -------
    tuple of str and object
        Status and answer, as `ChildPool.run` returns them.
    """
    return _worker_children.run(task, time_limit)


class LocalWorkers:
    """Threads of this process, each with a child process.

    Parameters
    ----------
    n_jobs : int
        How many; −1 for as many as cores.
    """

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = effective_n_jobs(n_jobs)

    def __enter__(self) -> LocalWorkers:
        self.children = ChildPool()
        self.threads = ThreadPoolExecutor(self.n_jobs)
        return self

    def __exit__(self, *_: Any) -> None:
        self.children.stop()
        self.threads.shutdown(cancel_futures=True)
        self.children.close()

    def run(self, tasks: Tasks, time_limit: float | None) -> Iterator[tuple[str, Outcome]]:
        """Yield the outcome of every task by its key, as they come."""
        waiting = iter(tasks)
        key_of: dict[Future[Outcome], str] = {}
        while True:
            for key, task in islice(waiting, AHEAD * self.n_jobs - len(key_of)):
                future = self.threads.submit(self.children.run, task, time_limit)
                key_of[future] = key
            if not key_of:
                return
            done, _ = wait(key_of, return_when=FIRST_COMPLETED)
            for future in done:
                yield key_of.pop(future), future.result()


class ClusterWorkers:
    """Workers of a dask.distributed cluster; a task whose worker is lost is given to another.

    Parameters
    ----------
    scheduler : str
        Address of the scheduler.
    file : bytes, optional
        A file that every worker gets once; the method `with_file` of a task then returns the task
        to run for a path of it.
    """

    def __init__(self, scheduler: str, file: bytes | None = None) -> None:
        self.scheduler = scheduler
        self.file = file
        self.file_name = f"contrafact-{uuid4().hex}"

    def __enter__(self) -> ClusterWorkers:
        from distributed import Client

        self.client = Client(self.scheduler, set_as_default=False)
        if self.file is not None:
            from .shared_files import SharedFile

            self.client.register_plugin(SharedFile(self.file_name, self.file))
            self.file = b""  # it is with the scheduler now
        return self

    def __exit__(self, *_: Any) -> None:
        if self.file is not None:
            self.client.unregister_worker_plugin(self.file_name)
        self.client.close()

    def run(self, tasks: Tasks, time_limit: float | None) -> Iterator[tuple[str, Outcome]]:
        """Yield the outcome of every task by its key, as they come."""
        waiting = iter(tasks)
        running: dict[str, Any] = {}
        lost: Counter[str] = Counter()
        finished: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()

        def submit(key: str, task: Any) -> None:
            future = self._submit(task, time_limit)
            running[key] = task
            future.add_done_callback(lambda future: finished.put((key, future)))

        while True:
            room = self._room() - len(running)  # negative where workers were lost
            for key, task in islice(waiting, max(0, room)):
                submit(key, task)
            if not running:
                return
            key, future = self._next(finished)
            task = running.pop(key)
            outcome = _outcome(future)
            future.release()
            if outcome is None and lost[key] < ATTEMPTS:
                lost[key] += 1
                submit(key, task)
                continue
            yield key, outcome or ("error", f"its worker was lost, {ATTEMPTS + 1} times")

    def _submit(self, task: Any, time_limit: float | None) -> Any:
        """Hand out a task."""
        if self.file is None:
            return self.client.submit(run_in_worker, task, time_limit, pure=False)
        from .shared_files import run_with_file

        return self.client.submit(run_with_file, task, time_limit, self.file_name, pure=False)

    def _room(self) -> int:
        """Return how many tasks may be handed out."""
        threads: int = sum(self.client.nthreads().values())
        return AHEAD * max(1, threads)

    def _next(self, finished: queue.SimpleQueue[tuple[str, Any]]) -> tuple[str, Any]:
        """Wait for a task to finish; raise where there is no worker that could finish one."""
        last_seen = time.monotonic()
        while True:
            try:
                return finished.get(timeout=LOOK)
            except queue.Empty:
                pass
            if self.client.nthreads():
                last_seen = time.monotonic()
            if time.monotonic() - last_seen > PATIENCE:
                raise ConnectionError(
                    f"The cluster {self.scheduler} has had no workers for {PATIENCE:g} seconds. "
                    "What is finished is kept: start workers, and run again to go on."
                )


def _outcome(future: Any) -> Outcome | None:
    """Return the outcome of a task on a cluster; None where a worker was lost with it."""
    from distributed import TimeoutError
    from distributed.scheduler import KilledWorker

    if future.status == "error":
        error = future.exception()
        return None if isinstance(error, KilledWorker) else ("error", repr(error))
    try:
        outcome: Outcome = future.result(timeout=PATIENCE)
    except (KilledWorker, CancelledError, TimeoutError):
        return None
    return outcome


Workers = LocalWorkers | ClusterWorkers
