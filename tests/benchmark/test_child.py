"""A child process answers, reports errors, and is ended when a task takes too long."""

import sys
import time

import pytest

from contrafact.benchmark.child import Child


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
