"""Explanations in the background: progress, cancellation, and models that misbehave."""

import threading
import time

import httpx
import numpy as np
import pytest
from explorer_client import Client, italy, wait_until_idle

import contrafact as cf

#: an instance that strange models do not take as others
STRANGE = 7.25


class Strange:
    """The model of electricity demand; what it does with the strange instance can be chosen."""

    def __init__(self, habit):
        self.model, _ = italy()
        self.habit = habit
        self.released = threading.Event()

    def __call__(self, X):
        proba = self.model.predict_proba(X[:, 0])
        is_strange = (X == STRANGE).any((1, 2))
        if is_strange.any():
            proba[is_strange] = self.habit(self, proba[is_strange])
        return proba


def raises(model, proba):
    raise OSError("cannot open /home/someone/secret/model.bin")


def gives_nan(model, proba):
    return np.full_like(proba, np.nan)


def hangs(model, proba):
    model.released.wait(20)
    return proba


def is_slow(model, proba):
    time.sleep(0.05)
    return proba


@pytest.fixture
def opened(monkeypatch):
    """Explore a strange model; the first instance is the strange one."""
    _, data = italy()
    X = data.X_test[:40].copy()
    X[0, 0, 0] = STRANGE
    closing = []
    monkeypatch.setattr("contrafact.web.workspace.PATIENCE", 0.3)

    def start(habit):
        model = Strange(habit)
        explorer = cf.explore(model, X[1:] if habit is hangs else X, reference=data)
        client = Client(explorer.url)
        closing.extend([client.close, model.released.set, explorer.stop])
        return client, X, model

    yield start
    for close in closing:
        close()


@pytest.mark.parametrize(
    ("habit", "status", "word"), [(raises, 502, "OSError"), (gives_nan, 502, "NaN")]
)
def test_a_model_that_fails_is_told_and_the_server_lives_on(opened, habit, status, word):
    client, X, _ = opened(habit)
    overview = client.read("api/overview")
    assert overview["instances"]["label"][0] == -1
    assert min(overview["instances"]["label"][1:]) >= 0
    for answer in (
        client.get("api/instances/0"),
        client.post("api/predict", json={"values": X[0].tolist()}),
        client.post("api/explain", json={"instance": 0}),
    ):
        assert answer.status_code == status
        assert word in answer.json()["error"]
        assert "/home" not in answer.text
    assert client.explained(instance=1)["state"] == "done"


def test_a_model_that_fails_in_the_search_ends_the_job():
    model, data = italy()
    known = {x.tobytes() for part in (data.X_train, data.X_test) for x in part}

    def asked(X):
        if any(x.tobytes() not in known for x in X):
            raise OSError("cannot open /home/someone/secret/model.bin")
        return model.predict_proba(X[:, 0])

    with cf.explore(asked, data) as explorer, Client(explorer.url) as client:
        view = client.explained(instance=1)
        assert view["state"] == "failed"
        assert "OSError" in view["message"] and "model.bin" in view["message"]
        assert "/home" not in view["message"]
        assert client.read("api/instances/2")["label"] >= 0


def test_a_model_that_hangs_is_told_and_others_are_answered_after_it(opened):
    client, X, model = opened(hangs)
    client.read("api/overview")
    start = time.perf_counter()
    answer = client.post("api/predict", json={"values": X[0].tolist()})
    assert answer.status_code == 503 and "not answered" in answer.json()["error"]
    assert time.perf_counter() - start < 5
    assert client.post("api/predict", json={"values": X[1].tolist()}).status_code == 503
    assert client.get("api/health").status_code == 200
    model.released.set()
    deadline = time.perf_counter() + 5
    while client.post("api/predict", json={"values": X[1].tolist()}).status_code != 200:
        assert time.perf_counter() < deadline


@pytest.fixture
def slow():
    """Explore a model that takes its time for every batch."""
    model, data = italy()

    def asked(X):
        time.sleep(0.03)
        return model.predict_proba(X[:, 0])

    with (
        cf.explore(asked, data.X_test[:8], reference=data) as explorer,
        Client(explorer.url) as client,
    ):
        client.read("api/overview")
        yield client


LONG = {"method": "TSEvo", "calls": 20_000, "k": 4}


def test_progress_is_told_and_a_job_can_be_cancelled(slow):
    slow.explained(instance=0)
    job = slow.start(instance=1, **LONG)
    view = slow.read(f"api/jobs/{job}")
    asked = []
    while len(asked) < 3:
        assert view["state"] == "running"
        view = slow.read(f"api/jobs/{job}", params={"after": view["version"]})
        if view["asked"] > 0:
            asked.append(view["asked"])
    assert asked == sorted(set(asked))
    assert view["allowed"] == 20_000
    assert slow.request("DELETE", f"api/jobs/{job}").json() == {"state": "cancelled"}
    assert slow.finished(job)["state"] == "cancelled"
    # The search ends at its next batch: the place is free again soon.
    deadline = time.perf_counter() + 10
    while slow.post("api/explain", json={"instance": 0, "calls": 50}).status_code != 200:
        assert time.perf_counter() < deadline
        time.sleep(0.1)


def test_two_jobs_run_at_once_and_a_third_is_refused(slow):
    _, data = italy()
    jobs = [slow.start(instance=i, **LONG) for i in (1, 2)]
    refused = slow.post("api/explain", json={"instance": 3})
    assert refused.status_code == 429
    assert "running" in refused.json()["error"]
    start = time.perf_counter()
    live = slow.ask("api/predict", values=data.X_test[3].tolist())
    assert len(live["probabilities"]) == 2
    assert time.perf_counter() - start < 2  # between the batches of the searches
    for job in jobs:
        slow.request("DELETE", f"api/jobs/{job}")


def test_two_jobs_at_once_answer_as_one_after_the_other():
    model, data = italy()
    with cf.explore(model, data) as explorer, Client(explorer.url) as client:
        jobs = [client.start(instance=i, target=0, k=2) for i in (3, 4)]
        views = [client.finished(job) for job in jobs]
        wait_until_idle(explorer)
        for i, view in zip((3, 4), views, strict=True):
            alone = cf.explain(model, data.X_test[i : i + 1], "1", reference=data, k=2)
            found = sorted(each["values"] for each in view["alternatives"])
            assert found == sorted(alone.X_cf.tolist())


def test_unknown_jobs_are_told():
    model, data = italy()
    with cf.explore(model, data.X_test[:9], reference=data) as explorer:
        for path in ("", "/report", "/recipe"):
            answer = httpx.get(f"{explorer.url}api/jobs/none{path}", trust_env=False)
            assert answer.status_code == 404
            assert "no such explanation" in answer.json()["error"]
