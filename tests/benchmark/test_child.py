"""A child process answers, reports errors, and is ended when a task takes too long."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from contrafact.benchmark import child as child_module
from contrafact.benchmark.child import Child, ChildPool


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
        return self.what


@pytest.fixture
def child():
    child = Child()
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
        def __init__(self):
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
