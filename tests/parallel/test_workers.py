"""Workers of a cluster come and go; every task has one outcome."""

import pytest
from distributed import TimeoutError as ClusterTimeoutError
from distributed.scheduler import KilledWorker

from contrafact.parallel.child import ATTEMPTS
from contrafact.parallel.workers import AHEAD, ClusterWorkers


class Answer:
    """A future that is over."""

    def __init__(self, result):
        self.status = "error" if isinstance(result, Exception) else "finished"
        self._result = result

    def add_done_callback(self, call):
        call(self)

    def exception(self):
        return self._result

    def result(self, timeout):
        if isinstance(self._result, type):
            raise self._result
        return self._result

    def release(self):
        pass


class FakeClient:
    """A client of a cluster whose number of threads follows a list; tasks are functions."""

    def __init__(self, threads):
        self.threads = threads
        self.submitted = []

    def nthreads(self):
        number = self.threads.pop(0) if len(self.threads) > 1 else self.threads[0]
        return {"worker": number} if number else {}

    def submit(self, _function, task, _time_limit, pure):
        assert not pure
        self.submitted.append(task)
        return Answer(task())


def outcomes(client, tasks):
    """Run tasks on a fake cluster."""
    workers = ClusterWorkers("tcp://nowhere")
    workers.client = client
    return list(workers.run(tasks.items(), None))


def test_workers_that_are_lost_leave_more_tasks_than_room():
    """Before, the run ended with an error: tasks were asked for by a negative number."""
    tasks = {str(i): lambda i=i: ("done", i) for i in range(12)}
    client = FakeClient([4, 0, 0, 1, 0, 2])
    assert outcomes(client, tasks) == [(str(i), ("done", i)) for i in range(12)]
    assert len(client.submitted) == 12


def test_no_more_tasks_are_handed_out_than_fit():
    """They hold data and models, so each is made when its turn comes."""
    made = []

    def tasks():
        for i in range(10):
            made.append(i)
            yield str(i), lambda i=i: ("done", i)

    workers = ClusterWorkers("tcp://nowhere")
    workers.client = FakeClient([2])
    for count, _ in enumerate(workers.run(tasks(), None)):
        assert len(made) <= count + 2 * AHEAD
    assert len(made) == 10


@pytest.mark.parametrize("loss", [KilledWorker("task", None, 3), ClusterTimeoutError])
def test_a_task_that_is_lost_is_given_out_again(loss):
    losses = iter([loss, loss])
    tasks = {"a": lambda: next(losses, ("done", 1)), "b": lambda: ("done", 2)}
    client = FakeClient([1])
    assert sorted(outcomes(client, tasks)) == [("a", ("done", 1)), ("b", ("done", 2))]
    assert client.submitted.count(tasks["a"]) == 3


def test_a_task_that_is_lost_again_and_again_is_an_error():
    tasks = {"a": lambda: KilledWorker("task", None, 3)}
    client = FakeClient([1])
    reason = f"its worker was lost, {ATTEMPTS + 1} times"
    assert outcomes(client, tasks) == [("a", ("error", reason))]
    assert len(client.submitted) == ATTEMPTS + 1
