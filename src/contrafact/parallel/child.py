"""A process that runs one task after another, and can be ended when a task takes too long.

Not multiprocessing: workers of a cluster may be daemons, which may not have such children.
"""

from __future__ import annotations

import os
import pickle
import queue
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

#: how often a task is given to a new process when the one that ran it died
ATTEMPTS = 4
#: how often a process that dies before it is ready is started again
STARTS = 10
#: seconds after which a process that is not ready is ended
START_LIMIT = 300.0
#: seconds between two looks at whether the other side still lives
LOOK = 0.5

#: after how many losses of each kind a task is given up
LIMITS = {"died": ATTEMPTS, "unstarted": STARTS}

_LENGTH = struct.Struct("<Q")
_MAX_PIECE = 1 << 20
# For Python 3.10, which does not know PYTHONSAFEPATH: modules are not sought in the current folder.
_PROGRAM = f"import sys; sys.path = [*filter(None, sys.path)]; from {__name__} import main; main()"


class Child:
    """Run tasks in one child process, started when it is needed.

    Parameters
    ----------
    is_stopped : function without arguments
        Whether waiting is to end, although the process lives.
    """

    def __init__(self, is_stopped: Callable[[], bool]) -> None:
        self._is_stopped = is_stopped
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, task: Any, time_limit: float | None) -> tuple[str, Any]:
        """Send a task and wait for the answer.

        Parameters
        ----------
        task : object
            Its method `run` is called in the child, without arguments.
        time_limit : float or None
            Seconds after which the child is ended; None for no limit. The time that a process
            needs to start does not count.

        Returns
        -------
        status : {"done", "error", "timeout", "died", "unstarted"}
            How the task ended.
        answer : object
            What `run` returned; otherwise the traceback or the reason, as text.
        """
        try:
            process = self._running()
        except (TimeoutError, EOFError):
            return "unstarted", f"no process could be started: exit code {self.close()}"
        try:
            self._send(process, cloudpickle.dumps(task), time_limit)
            answer = self._receive(process, time_limit)
        except TimeoutError:
            self.close()
            return "timeout", f"ended after {time_limit:g} seconds"
        except (BrokenPipeError, EOFError):
            return "died", f"the process died with exit code {self.close()}"
        status, value = pickle.loads(answer)
        return str(status), value

    def close(self) -> int | None:
        """End the process and those that it started, whatever they do; return its exit code."""
        process = self._process
        self._process = None
        if process is None:
            return None
        # It leads a group of its own, and was not waited for yet: the number is still its own.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        return process.returncode

    def _running(self) -> subprocess.Popen[bytes]:
        """Return the process; start it where there is none or it has ended."""
        if self._process is not None and _has_ended(self._process):
            self.close()
        if self._process is None:
            self._process = _start()
            self._receive(self._process, START_LIMIT)  # says that it is ready
        return self._process

    def _send(
        self,
        process: subprocess.Popen[bytes],
        message: bytes,
        time_limit: float | None,
    ) -> None:
        """Send a message to the process; errors are those of `_wait`."""
        assert process.stdin is not None
        _send(process.stdin.fileno(), message, time_limit, self._is_gone(process))

    def _receive(self, process: subprocess.Popen[bytes], time_limit: float | None) -> bytes:
        """Receive a message of the process; errors are those of `_wait`."""
        assert process.stdout is not None
        return _receive(process.stdout.fileno(), time_limit, self._is_gone(process))

    def _is_gone(self, process: subprocess.Popen[bytes]) -> Callable[[], bool]:
        """Return the test whether waiting for the process is in vain.

        The end of a pipe does not tell that it died: processes that a task started may hold it.
        """
        return lambda: self._is_stopped() or _has_ended(process)


class ChildPool:
    """Lend child processes to threads; one that is free is used again before another is started."""

    def __init__(self) -> None:
        self._free: queue.SimpleQueue[Child] = queue.SimpleQueue()
        self._is_closed = threading.Event()

    def run(self, task: Any, time_limit: float | None) -> tuple[str, Any]:
        """Run a task in a child that is free; one whose child dies is given to another.

        Parameters
        ----------
        task : object
            Its method `run` is called in the child, without arguments.
        time_limit : float or None
            Seconds for each attempt; None for no limit.

        Returns
        -------
        status : {"done", "error", "timeout"}
            How the task ended.
        answer : object
            What `run` returned; otherwise the traceback or the reason, as text.
        """
        lost: Counter[str] = Counter()
        while True:
            child = self._take()
            try:
                status, answer = child.run(task, time_limit)
            finally:
                self._free.put(child)
            if status not in LIMITS:
                return status, answer
            lost[status] += 1
            if self._is_closed.is_set() or lost[status] == LIMITS[status]:
                return "error", f"{answer}, in each of {lost[status]} attempts"

    def stop(self) -> None:
        """Make tasks that are running return soon, and run no more."""
        self._is_closed.set()

    def close(self) -> None:
        """End all children; no task may be running."""
        self.stop()
        while not self._free.empty():
            self._free.get().close()

    def _take(self) -> Child:
        """Return a child that is free, or a new one."""
        try:
            return self._free.get_nowait()
        except queue.Empty:
            return Child(self._is_closed.is_set)


def main() -> None:
    """Run tasks from standard input until it closes; then leave, even in the middle of a task."""
    # Tasks may print: their output goes to standard error, the answers have a pipe of their own.
    answers = os.dup(1)
    os.dup2(2, 1)
    tasks: queue.Queue[bytes] = queue.Queue()
    listener = threading.Thread(target=_listen, args=(tasks,), daemon=True)
    listener.start()
    import torch

    torch.set_num_threads(1)
    with suppress(BrokenPipeError):  # the parent has gone
        _send(answers, b"")
        while True:
            _send(answers, _answer(tasks.get()))


def _answer(message: bytes) -> bytes:
    """Run a task; return status and answer, pickled."""
    try:
        return bytes(cloudpickle.dumps(("done", pickle.loads(message).run())))
    except Exception:
        # One method must not stop a benchmark: its cell records what happened.
        return bytes(cloudpickle.dumps(("error", traceback.format_exc())))


def _listen(tasks: queue.Queue[bytes]) -> None:
    """Collect tasks; leave when the parent closes the pipe or dies."""
    parent = os.getppid()
    try:
        while True:
            tasks.put(_receive(0, is_gone=lambda: os.getppid() != parent))
    except EOFError:
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpid(), signal.SIGKILL)  # with the processes that a task started
        os._exit(0)


def _start() -> subprocess.Popen[bytes]:
    """Start a process that waits for tasks."""
    inherited = dict(os.environ)
    # Set by dask for its workers, whose children pay for it: large arrays are returned to the
    # system when they are freed, and asked for anew each time.
    inherited.pop("MALLOC_TRIM_THRESHOLD_", None)
    environment = {
        **inherited,
        "PYTHONPATH": os.pathsep.join(_module_folders()),
        "PYTHONSAFEPATH": "1",
        # One thread each, so that results do not depend on how many children there are.
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "1",
    }
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env=environment,
        start_new_session=True,
    )
    assert process.stdin is not None
    os.set_blocking(process.stdin.fileno(), False)  # a child that died does not read
    return process


def _module_folders() -> list[str]:
    """Return where this process finds modules; the current folder comes last.

    So a child finds the modules that this process finds, and a torch.py in the current folder
    never stands in for the library.
    """
    folders = [folder for folder in sys.path if folder]
    if "" in sys.path:
        folders.append(os.getcwd())  # noqa: PTH109 (a text)
    return folders


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process has ended; it is not waited for, so that its number stays taken."""
    if process.returncode is not None:
        return True
    look = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, look) is not None


def _send(
    pipe: int,
    message: bytes,
    time_limit: float | None = None,
    is_gone: Callable[[], bool] | None = None,
) -> None:
    """Write the length of a message, then the message; errors are those of `_wait`."""
    deadline = _deadline(time_limit)
    rest = memoryview(_LENGTH.pack(len(message)) + message)
    while rest:
        _wait(pipe, select.POLLOUT, deadline, is_gone)
        written = os.write(pipe, rest[:_MAX_PIECE])
        rest = rest[written:]


def _receive(
    pipe: int,
    time_limit: float | None = None,
    is_gone: Callable[[], bool] | None = None,
) -> bytes:
    """Read one message; EOFError where the pipe closed, other errors are those of `_wait`."""
    deadline = _deadline(time_limit)

    def read(length: int) -> bytes:
        received = bytearray()
        while len(received) < length:
            _wait(pipe, select.POLLIN, deadline, is_gone)
            piece = os.read(pipe, min(_MAX_PIECE, length - len(received)))
            if not piece:
                raise EOFError
            received += piece
        return bytes(received)

    (length,) = _LENGTH.unpack(read(_LENGTH.size))
    return read(length)


def _deadline(time_limit: float | None) -> float | None:
    """Return when the time is over, by the monotonic clock."""
    return None if time_limit is None else time.monotonic() + time_limit


def _wait(
    pipe: int,
    event: int,
    deadline: float | None,
    is_gone: Callable[[], bool] | None,
) -> None:
    """Wait until a pipe is ready; TimeoutError at the deadline, EOFError if the other is gone."""
    poller = select.poll()
    poller.register(pipe, event)
    while True:
        left = LOOK
        if deadline is not None:
            left = min(LOOK, deadline - time.monotonic())
        if left <= 0:
            raise TimeoutError
        if poller.poll(1000 * left):
            return
        if is_gone is not None and is_gone():
            raise EOFError
