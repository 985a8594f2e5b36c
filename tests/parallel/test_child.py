"""A child process answers, reports errors, and is ended when a task takes too long."""

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from contrafact.parallel import child as child_module
from contrafact.parallel.child import Child, ChildPool


class Task:
    """Does as it is told."""

    def __init__(self, what):
        self.what = what

    def run(self):
        sys.stdout.write("noise on standard output\n")
        if self.what == "fail":
            raise ValueError("told to fail")
        if self.what == "sleep":
            time.sleep(1000)
        if self.what == "modules":
            import torch

            return sys.path, torch.__file__
        if self.what == "grandchild":
            # It holds both pipes open, and outlives the child.
            if os.fork() == 0:
                time.sleep(1000)
            os.kill(os.getpid(), signal.SIGKILL)
        return self.what


class DiesOnce:
    """Kills its process unless a file is there, which it makes."""

    def __init__(self, path, times=1):
        self.path = path
        self.times = times

    def run(self):
        attempts = len(list(self.path.iterdir()))
        if attempts < self.times:
            (self.path / str(attempts)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return attempts


@pytest.fixture
def child():
    child = Child(lambda: False)
    yield child
    child.close()


def test_answers_errors_and_timeouts(child):
    large = bytes(range(256)) * 2**14  # more than a pipe holds, and than one read takes
    assert child.run(Task(large), 120) == ("done", large)
    process = child._process
    status, message = child.run(Task("fail"), 120)
    assert status == "error" and "ValueError: told to fail" in message
    assert child._process is process  # an error does not end it
    assert child.run(Task("sleep"), 0.2) == ("timeout", "ended after 0.2 seconds")
    assert process.poll() is not None


def test_a_pool_starts_no_more_children_than_it_needs(monkeypatch):
    started = []
    busy = threading.Barrier(2, timeout=60)

    class Fake(Child):
        def __init__(self, is_stopped):
            started.append(self)
            self.is_closed = False

        def run(self, task, time_limit):
            if task == "together":
                busy.wait()
            if task == "broken":
                raise OSError("no such process")
            return "done", task

        def close(self):
            self.is_closed = True

    monkeypatch.setattr(child_module, "Child", Fake)
    pool = ChildPool()
    for task in range(3):  # one after another, in threads of their own
        with ThreadPoolExecutor(1) as thread:
            assert thread.submit(pool.run, task, None).result() == ("done", task)
    assert len(started) == 1
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(pool.run, ["together"] * 2, [None] * 2))
    assert len(started) == 2
    with pytest.raises(OSError, match="no such process"):
        pool.run("broken", None)
    assert pool.run("after", None) == ("done", "after") and len(started) == 2
    pool.close()
    assert all(child.is_closed for child in started)


def test_a_task_whose_process_dies_is_given_to_another(tmp_path, monkeypatch):
    monkeypatch.setitem(child_module.LIMITS, "died", 2)
    pool = ChildPool()
    try:
        assert pool.run(DiesOnce(tmp_path, 1), None) == ("done", 1)
        status, reason = pool.run(DiesOnce(tmp_path, 1000), None)
        assert status == "error"
        assert reason == "the process died with exit code -9, in each of 2 attempts"
    finally:
        pool.close()


def test_a_process_that_dies_is_noticed_although_others_hold_its_pipes(child):
    """Without a time limit: before, the answer was waited for until the last of them left."""
    start = time.monotonic()
    status, reason = child.run(Task("grandchild"), None)
    assert (status, reason) == ("died", "the process died with exit code -9")
    assert time.monotonic() - start < 60
    large = bytes(2**22)  # more than a pipe holds: sending blocks where nobody reads
    assert child.run(Task(large), 120) == ("done", large)


def test_a_pool_that_is_stopped_gives_tasks_up():
    pool = ChildPool()
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(pool.run, Task("sleep"), None)
        time.sleep(0.5)
        pool.stop()
        assert future.result(timeout=60)[0] == "error"
    pool.close()


def test_modules_of_the_current_folder_stand_in_for_no_library(child, tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise SystemExit('torch.py was imported')")
    (tmp_path / "my_own.py").write_text("class Mine: run = lambda self: 'mine'")
    monkeypatch.chdir(tmp_path)
    status, (path, torch_file) = child.run(Task("modules"), 120)
    assert status == "done" and str(tmp_path) not in torch_file
    assert "" not in path and str(tmp_path) not in path
    # Where this process looks there, so do children, but last.
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    folders = child_module._module_folders()
    assert "" not in folders and folders[-1] == str(tmp_path)
