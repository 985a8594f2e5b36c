"""Interruption: the first signal ends searches, the second raises, and the handler comes back."""

import signal
import threading

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.engine.deadline import Deadline
from contrafact.engine.interruption import Interruption, heeding, interruptible


def test_deadlines_within_the_context_expire():
    before = signal.getsignal(signal.SIGINT)
    outside = Deadline()
    with interruptible() as interruption:
        deadline = Deadline()
        assert not deadline.expired and not interruption.requested
        signal.raise_signal(signal.SIGINT)
        assert interruption.requested and deadline.expired
        assert deadline.reason == "the search was interrupted"
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert not outside.expired and not Deadline().expired
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_are_left_alone():
    before = signal.getsignal(signal.SIGINT)

    def work():
        with interruptible() as interruption:
            assert not interruption.requested
            assert signal.getsignal(signal.SIGINT) is before

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_another_thread_can_interrupt_what_heeds_it():
    interruption = Interruption()
    begun, requested, seen = threading.Event(), threading.Event(), []

    def work():
        with heeding(interruption):
            deadline = Deadline()
            seen.append(deadline.expired)
            begun.set()
            requested.wait(5)
            seen.append(deadline.expired)
        seen.append(Deadline().expired)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait(5)
    interruption.requested = True
    requested.set()
    thread.join()
    assert seen == [False, True, False]
    assert not Deadline().expired  # this thread heeds nothing


def test_rows_that_were_not_reached_say_so():
    X = np.random.default_rng(0).normal(size=(60, 8))
    y = (X.sum(1) > 0).astype(int)
    inner = LogisticRegression().fit(X, y)
    asked = []

    def model(rows):
        asked.append(len(rows))
        if len(asked) == 12:
            signal.raise_signal(signal.SIGINT)
        return inner.predict_proba(rows[:, 0])

    explainer = cf.TSEvo().fit(model, X[:, None], y)
    asked.clear()
    with interruptible() as interruption:
        result = explainer.explain(X[:10, None])
    assert interruption.requested
    unfinished = result.status == "budget"
    assert all("interrupted" in message for message in result.message[unfinished])
    assert len(asked) < 20
    assert (result.valid == (inner.predict(result.X_cf[:, 0]) == result.target)).all()
