"""The gate: merged questions, their limits, and searches that let predictions in between."""

import asyncio
import threading
import time

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.engine.instances import read_instances, wrap_model
from contrafact.web.model_gate import Busy, ModelFailure, ModelGate, NoAnswer

X = np.linspace(-1, 1, 24).reshape(12, 2)


def mean_model(X):
    """Two classes; the second is likelier the larger the mean of an instance."""
    p = 1 / (1 + np.exp(-4 * X.mean(1)))
    return np.stack([1 - p, p], 1)


@pytest.fixture
def open_gate():
    """Make gates that are closed after the test."""
    made = []

    def make(model, **options):
        made.append(ModelGate(cf.as_classifier(model), **options))
        return made[-1]

    yield make
    for gate in made:
        gate.close()


class Held:
    """A model that waits until it is let go, and notes the sizes of its batches."""

    def __init__(self):
        self.let_go = threading.Event()
        self.asked = threading.Event()
        self.sizes = []

    def __call__(self, X):
        self.sizes.append(len(X))
        self.asked.set()
        assert self.let_go.wait(10)
        return mean_model(X)


async def _ask_each(gate, rows):
    return await asyncio.gather(*(gate.predict(row[None]) for row in rows))


def test_answers_are_those_of_the_model(open_gate):
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    gate = open_gate(model)
    answers = asyncio.run(_ask_each(gate, X))
    proba = torch.cat([answer.proba for answer in answers]).numpy()
    np.testing.assert_allclose(proba, model.predict_proba(X), atol=1e-12)


def test_waiting_questions_are_asked_together(open_gate):
    model = Held()
    gate = open_gate(model)

    async def ask():
        first = asyncio.ensure_future(gate.predict(X[:1]))
        await asyncio.to_thread(model.asked.wait)
        others = asyncio.gather(*(gate.predict(row[None]) for row in X[1:]))
        while gate.waiting < len(X) - 1:
            await asyncio.sleep(0.001)
        model.let_go.set()
        return [await first, *await others]

    answers = asyncio.run(ask())
    assert model.sizes == [1, len(X) - 1]
    proba = torch.cat([answer.proba for answer in answers]).numpy()
    np.testing.assert_array_equal(proba, mean_model(X))


def test_questions_of_other_shapes_and_too_many_rows_are_asked_apart(open_gate):
    model = Held()
    seen = []
    gate = open_gate(model, max_rows=5, on_batch=lambda *counts: seen.append(counts))

    async def ask():
        first = asyncio.ensure_future(gate.predict(X[:1]))
        await asyncio.to_thread(model.asked.wait)
        questions = [X[:3], X[:3], X[:2], np.zeros((2, 7))]
        others = asyncio.gather(*(gate.predict(x) for x in questions))
        while gate.waiting < len(questions):
            await asyncio.sleep(0.001)
        model.let_go.set()
        return await first, await others

    _, answers = asyncio.run(ask())
    assert [len(answer.proba) for answer in answers] == [3, 3, 2, 2]
    assert seen == [(1, 1), (2, 5), (1, 3), (1, 2)]


def test_one_question_too_many_is_refused(open_gate):
    model = Held()
    gate = open_gate(model, max_waiting=2)

    async def ask():
        first = asyncio.ensure_future(gate.predict(X[:1]))
        await asyncio.to_thread(model.asked.wait)
        others = [asyncio.ensure_future(gate.predict(X[:1])) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Busy, match="2 questions wait"):
            await gate.predict(X[:1])
        model.let_go.set()
        await asyncio.gather(first, *others)

    asyncio.run(ask())


def test_model_that_hangs_gives_no_answer_and_later_questions_end_at_once(open_gate):
    model = Held()
    gate = open_gate(model, patience=0.5)

    async def ask():
        with pytest.raises(NoAnswer, match=r"within 0\.5 seconds"):
            await gate.predict(X[:1])
        waits = []
        for _ in range(3):
            start = time.perf_counter()
            with pytest.raises(NoAnswer):
                await gate.predict(X[:1])
            waits.append(time.perf_counter() - start)
        assert min(waits) < 0.4
        assert gate.busy_seconds > 0.5
        model.let_go.set()
        while gate.busy_seconds:
            await asyncio.sleep(0.001)
        return await gate.predict(X)  # and it recovers

    np.testing.assert_array_equal(asyncio.run(ask()).proba.numpy(), mean_model(X))


def test_failure_of_one_question_does_not_cost_the_others_their_answer(open_gate):
    held = Held()

    def model(X):
        if (X == 99).any():
            raise RuntimeError("99 is not for me")
        proba = held(X)
        proba[(X == 77).any(1)] = np.nan
        return proba

    gate = open_gate(model)

    async def ask():
        first = asyncio.ensure_future(gate.predict(X[:1]))
        await asyncio.to_thread(held.asked.wait)
        questions = [X[:3], np.full((1, 2), 99.0), np.vstack([X[:2], np.full((1, 2), 77.0)])]
        others = asyncio.gather(*(gate.predict(x) for x in questions), return_exceptions=True)
        while gate.waiting < len(questions):
            await asyncio.sleep(0.001)
        held.let_go.set()
        await first
        return await others

    good, raised, nan = asyncio.run(ask())
    np.testing.assert_array_equal(good.proba.numpy(), mean_model(X[:3]))
    assert isinstance(raised, ModelFailure)
    assert "RuntimeError: 99 is not for me" in str(raised)
    assert isinstance(nan, ModelFailure)
    assert "NaN as a probability of instance 2" in str(nan)


def test_prediction_gets_in_between_the_batches_of_a_search(open_gate):
    order = []

    def model(X):
        order.append(len(X))
        time.sleep(0.005)
        return mean_model(X)

    gate = open_gate(model)
    stop = threading.Event()

    def search():
        while not stop.is_set():
            gate.classifier.evaluate(X)

    searches = [threading.Thread(target=search) for _ in range(2)]
    for thread in searches:
        thread.start()

    async def ask():
        for _ in range(10):
            asked = len(order)
            await gate.predict(X[:1])
            # The batch that ran when the question came, and no other, goes first.
            assert order[asked : asked + 3].index(1) <= 2

    asyncio.run(ask())
    stop.set()
    for thread in searches:
        thread.join()


def test_model_is_asked_by_one_thread_at_a_time(open_gate):
    inside = []
    most = []

    def model(X):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.001)
        inside.pop()
        return mean_model(X)

    gate = open_gate(model)
    explainer = cf.LineSearch().fit(gate.classifier, X, X.mean(1) > 0)
    threads = [threading.Thread(target=explainer.explain, args=(X,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    asyncio.run(_ask_each(gate, X))
    for thread in threads:
        thread.join()
    assert max(most) == 1


@pytest.mark.parametrize("method", ["Graft", "CELS", "NativeGuide"])
def test_explanations_behind_the_gate_are_the_same(open_gate, gunpoint, method):
    model, X_train, y_train, X_test = gunpoint
    gate = open_gate(model)
    options = {"method": method, "reference": (X_train, y_train), "budget": cf.Budget(calls=400)}
    plain = cf.explain(model, X_test[:2], **options)
    gated = cf.explain(gate.classifier, X_test[:2], **options)
    np.testing.assert_array_equal(plain.X_cf, gated.X_cf)
    np.testing.assert_array_equal(plain.calls, gated.calls)


def test_rows_of_a_table_are_asked_by_their_codes(open_gate):
    import pandas as pd

    frame = pd.DataFrame({"a": np.arange(12.0), "b": ["x", "y"] * 6})

    def model(frame):
        return np.stack([frame.b == "x", frame.b == "y"], 1) * 1.0

    instances = read_instances(frame, "X", "row")
    gate = ModelGate(wrap_model(model, instances))
    answer = asyncio.run(gate.predict(instances.table.codes))
    gate.close()
    assert answer.label.tolist() == [0, 1] * 6


def test_closed_gate_refuses(open_gate):
    gate = open_gate(mean_model)
    gate.close()
    with pytest.raises(NoAnswer, match="closing"):
        asyncio.run(gate.predict(X))
