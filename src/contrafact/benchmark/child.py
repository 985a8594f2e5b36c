"""A process that does one task after another, and can be ended when a task takes too long.

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


class Child:
    """One child process; `do` sends it a task and waits for the answer."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def do(self, task: Any, time_limit: float | None) -> tuple[str, Any]:
        """("done", answer), ("error", traceback) or ("timeout", reason), whatever the task does."""
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
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
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            # One thread each: so results do not depend on how many work at once.
            quiet = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import main; main()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **quiet, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        return self._process


def _send(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(_LENGTH.pack(len(message)) + message)
    pipe.flush()


def _receive(pipe: IO[bytes], time_limit: float | None = None) -> bytes:
    """One message; TimeoutError after `time_limit` seconds, EOFError where the other side is gone."""
    until = None if time_limit is None else time.monotonic() + time_limit
    wanted, got = _LENGTH.size, b""
    header = True
    while True:
        while len(got) < wanted:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([pipe], [], [], left)[0]:
                raise TimeoutError
            piece = os.read(pipe.fileno(), min(1 << 20, wanted - len(got)))
            if not piece:
                raise EOFError
            got += piece
        if not header:
            return got
        header, wanted, got = False, _LENGTH.unpack(got)[0], b""


def main() -> None:
    """Do tasks from standard input until it closes, whatever the task at hand is up to by then."""
    # Tasks may print: their output goes to standard error, the answers have a pipe of their own.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    tasks: queue.Queue[bytes] = queue.Queue()

    def listen() -> None:
        try:
            while True:
                tasks.put(_receive(sys.stdin.buffer))
        except EOFError:
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    import torch

    torch.set_num_threads(1)
    while True:
        message = tasks.get()
        try:
            answer = "done", pickle.loads(message).do()
        except Exception:
            # A benchmark goes on whatever one method does: what happened is recorded in its cell.
            answer = "error", traceback.format_exc()
        _send(answers, cloudpickle.dumps(answer))
