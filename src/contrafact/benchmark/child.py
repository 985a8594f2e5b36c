"""A process that runs one task after another, and can be ended when a task takes too long.

Not multiprocessing: workers of a cluster may be daemons, which may not have such children.
"""

from __future__ import annotations

import os
import pickle
import queue
import select
import struct
import subprocess
import sys
import threading
import time
import traceback
from typing import IO, Any

import cloudpickle  # type: ignore[import-untyped]

_LENGTH = struct.Struct("<Q")
_MAX_READ = 1 << 20


class Child:
    """Run tasks in one child process, started when it is needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, task: Any, time_limit: float | None) -> tuple[str, Any]:
        """Send a task and wait for the answer.

        Parameters
        ----------
        task : object
            Its method `run` is called in the child, without arguments.
        time_limit : float or None
            Seconds after which the child is ended; None for no limit.

        Returns
        -------
        status : {"done", "error", "timeout"}
            How the task ended.
        answer : object
            What `run` returned; otherwise the traceback or the reason, as text.
        """
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            _send(process.stdin, cloudpickle.dumps(task))
            answer = _receive(process.stdout, time_limit)
        except TimeoutError:
            self.close()
            return "timeout", f"ended after {time_limit:g} seconds"
        except (BrokenPipeError, EOFError):
            self.close()
            return "error", f"the process died with exit code {process.returncode}"
        status, value = pickle.loads(answer)
        return str(status), value

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None

    def _running(self) -> subprocess.Popen[bytes]:
        """Return the process; start it where there is none or it has ended."""
        if self._process is None or self._process.poll() is not None:
            environment = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                # One thread each, so that results do not depend on how many children there are.
                "OMP_NUM_THREADS": "1",
                "MKL_NUM_THREADS": "1",
                "NUMBA_NUM_THREADS": "1",
            }
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import main; main()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
            )
        return self._process


class ChildPool:
    """Lend child processes to threads; one that is free is used again before another is started."""

    def __init__(self) -> None:
        self._children: list[Child] = []
        self._free: queue.SimpleQueue[Child] = queue.SimpleQueue()

    def run(self, task: Any, time_limit: float | None) -> tuple[str, Any]:
        """Run a task in a child that is free; parameters and result are those of `Child.run`."""
        child = self._take()
        try:
            return child.run(task, time_limit)
        finally:
            self._free.put(child)

    def close(self) -> None:
        """End all children, whatever they are doing."""
        while self._children:
            self._children.pop().close()

    def _take(self) -> Child:
        """Return a child that is free, or a new one."""
        try:
            return self._free.get_nowait()
        except queue.Empty:
            child = Child()
            self._children.append(child)
            return child


def main() -> None:
    """Run tasks from standard input until it closes; then leave, even in the middle of a task."""
    # Tasks may print: their output goes to standard error, the answers have a pipe of their own.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    tasks: queue.Queue[bytes] = queue.Queue()
    listener = threading.Thread(target=_listen, args=(tasks,), daemon=True)
    listener.start()
    import torch

    torch.set_num_threads(1)
    while True:
        message = tasks.get()
        try:
            answer = "done", pickle.loads(message).run()
        except Exception:
            # One method must not stop a benchmark: its cell records what happened.
            answer = "error", traceback.format_exc()
        _send(answers, cloudpickle.dumps(answer))


def _listen(tasks: queue.Queue[bytes]) -> None:
    """Collect tasks; exit when the parent closes the pipe."""
    try:
        while True:
            tasks.put(_receive(sys.stdin.buffer))
    except EOFError:
        os._exit(0)


def _send(pipe: IO[bytes], message: bytes) -> None:
    """Write the length of a message, then the message."""
    pipe.write(_LENGTH.pack(len(message)) + message)
    pipe.flush()


def _receive(pipe: IO[bytes], time_limit: float | None = None) -> bytes:
    """Read one message; TimeoutError after `time_limit` seconds, EOFError where the pipe closed."""
    deadline = None
    if time_limit is not None:
        deadline = time.monotonic() + time_limit
    header = _read(pipe, _LENGTH.size, deadline)
    (length,) = _LENGTH.unpack(header)
    return _read(pipe, length, deadline)


def _read(
    pipe: IO[bytes],
    length: int,
    deadline: float | None,
) -> bytes:
    """Read that many bytes."""
    received = b""
    while len(received) < length:
        left = None
        if deadline is not None:
            left = max(0.0, deadline - time.monotonic())
        readable, _, _ = select.select([pipe], [], [], left)
        if not readable:
            raise TimeoutError
        missing = length - len(received)
        piece = os.read(pipe.fileno(), min(_MAX_READ, missing))
        if not piece:
            raise EOFError
        received += piece
    return received
