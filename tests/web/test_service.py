"""The service on loopback: its answers are those of Python, merged, within limits, and truthful."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from serving import running
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import contrafact as cf
from contrafact.web import ServiceError, ServiceLimits

ROWS = np.linspace(-2, 2, 60).reshape(30, 2)


@pytest.fixture(scope="module")
def gun(gunpoint):
    """A service for GunPoint."""
    model, X_train, y_train, _ = gunpoint
    with running(model, (X_train, y_train), name="gun") as found:
        yield found


@pytest.fixture(scope="module")
def iris():
    """A quick model of rows."""
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    return LogisticRegression(max_iter=500).fit(X, y), X, y


def two_classes(X):
    p = 1 / (1 + np.exp(-4 * X.reshape(len(X), -1).mean(1)))
    return np.stack([1 - p, p], 1)


def test_predictions_are_those_of_the_model(gun, gunpoint):
    model, _, _, X = gunpoint
    answer = gun.client().predict(X[:5])
    np.testing.assert_allclose(answer["probabilities"], model.predict_proba(X[:5]), atol=1e-6)
    assert answer["labels"].tolist() == model.predict(X[:5]).tolist()
    assert answer["classes"].tolist() == model.classes.tolist()


@pytest.mark.parametrize(
    ("sent", "given"),
    [
        ({}, {}),
        ({"target": "1", "k": 2, "seed": 7}, {"target": "1", "k": 2, "random_state": 7}),
        ({"target": ["2", "1", "2"]}, {"target": ["2", "1", "2"]}),
        ({"calls": 900, "confidence": 0.6}, {"budget": cf.Budget(calls=900), "confidence": 0.6}),
        (
            {"method": "LineSearch", "refine": "minimal", "limits": {"upper": 1.5}},
            {
                "method": "LineSearch",
                "refine": "minimal",
                "constraints": cf.Constraints(upper=1.5),
            },
        ),
        (
            {"limits": {"frozen": [[True] * 60 + [False] * 90], "max_step": [1.0]}},
            {
                "constraints": cf.Constraints(
                    frozen=np.array([[True] * 60 + [False] * 90]), max_step=1.0
                )
            },
        ),
        ({"level": "smallest"}, {"method": cf.Graft(level="smallest")}),
    ],
)
def test_explanations_are_those_of_python(gun, gunpoint, sent, given):
    model, X_train, y_train, X = gunpoint
    got = gun.client().explain(X[:3], **sent)
    target = given.pop("target", None) if "target" in given else None
    want = cf.explain(model, X[:3], target, reference=(X_train, y_train), **given)
    np.testing.assert_array_equal(got["X_cf"], want.X_cf)
    np.testing.assert_allclose(got["cf_proba"], want.cf_proba)
    for name in ("source", "valid", "status", "message", "labels", "cf_labels", "target", "calls"):
        assert got[name].tolist() == getattr(want, name).tolist(), name


def test_merged_requests_cost_fewer_model_calls_and_give_the_same_answers(iris):
    model, X, y = iris
    batches = []

    def counted(rows):
        batches.append(len(rows))
        return model.predict_proba(rows)

    options = {"classes": [0, 1, 2]}
    plain = cf.as_classifier(model.predict_proba, **options)
    asked = X[::10]
    targets = [int(label) for label in (model.predict(asked) + 1) % 3]
    with running(cf.as_classifier(counted, **options), (X, y)) as served:
        client = served.client()

        def explain(row):
            return client.explain(asked[row : row + 1], targets[row], calls=300)

        batches.clear()
        alone = [explain(row) for row in range(len(asked))]
        calls_alone = len(batches)
        batches.clear()
        with ThreadPoolExecutor(len(asked)) as pool:
            together = list(pool.map(explain, range(len(asked))))
        calls_together = len(batches)
    assert calls_together < calls_alone / 2
    for row, (one, merged) in enumerate(zip(alone, together, strict=True)):
        want = cf.explain(
            plain,
            asked[row : row + 1],
            targets[row],
            reference=(X, y),
            budget=cf.Budget(calls=300),
        )
        np.testing.assert_array_equal(one["X_cf"], want.X_cf)
        np.testing.assert_array_equal(merged["X_cf"], want.X_cf)
        assert merged["calls"].tolist() == want.calls.tolist()


def test_requests_with_other_options_are_not_merged(iris):
    model, X, y = iris
    with running(model, (X, y)) as served:
        client = served.client()
        settings = [{"k": 1}, {"k": 2}, {"seed": 3}, {"limits": {"upper": 8.0}}] * 3
        with ThreadPoolExecutor(len(settings)) as pool:
            got = list(pool.map(lambda options: client.explain(X[:2], 1, **options), settings))
    for options, answer in zip(settings, got, strict=True):
        k = options.get("k", 1)
        limits = {"constraints": cf.Constraints(upper=8.0)} if "limits" in options else {}
        want = cf.explain(
            model, X[:2], 1, reference=(X, y), k=k, random_state=options.get("seed"), **limits
        )
        np.testing.assert_array_equal(answer["X_cf"], want.X_cf)


def test_rows_of_a_table_travel_as_objects():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 70, 80),
            "ward": rng.choice(["A", "B", "C"], 80),
            "dose": rng.uniform(0, 1, 80).round(2),
        }
    )
    y = np.where(frame.age + 30 * (frame.ward == "B") + 20 * frame.dose > 60, "high", "low")
    encode = make_column_transformer((OneHotEncoder(), ["ward"]), remainder="passthrough")
    model = make_pipeline(encode, LogisticRegression(max_iter=2000)).fit(frame, y)
    with running(model, (frame, y)) as served:
        client = served.client()
        assert client.predict(frame[:9])["labels"].tolist() == model.predict(frame[:9]).tolist()
        got = client.explain(frame[:4], limits={"frozen": ["ward"], "increasing": ["age"]})
        limits = cf.Constraints(frozen=["ward"], increasing=["age"])
        want = cf.explain(model, frame[:4], reference=(frame, y), constraints=limits)
        assert pd.DataFrame(got["X_cf"]).equals(want.frame_cf.reset_index(drop=True))
        status, _, answer = served.ask(
            "POST", "/v1/predict", {"instances": [{"age": 30, "ward": "Z", "dose": 0.5}]}
        )
        assert status == 422
        assert "'ward'" in answer["error"]
        tensors = [
            {"name": "age", "datatype": "INT64", "shape": [2], "data": [30, 60]},
            {"name": "ward", "datatype": "BYTES", "shape": [2], "data": ["A", "B"]},
            {"name": "dose", "datatype": "FP64", "shape": [2], "data": [0.5, 0.1]},
        ]
        _, _, answer = served.ask("POST", "/v2/models/model/infer", {"inputs": tensors})
        rows = pd.DataFrame({each["name"]: each["data"] for each in tensors})
        label = next(each for each in answer["outputs"] if each["name"] == "label")
        assert label["data"] == model.predict(rows).tolist()
        _, _, answer = served.ask("POST", "/v2/models/model-explain/infer", {"inputs": tensors})
        names = [each["name"] for each in answer["outputs"]]
        assert names[:3] == ["age", "ward", "dose"]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "JSON"),
        ({"instances": []}, 422, "shape"),
        ({"instances": [[1, 2]]}, 422, "(n, 1, 150)"),
        ({"instances": [[["a"] * 150]]}, 422, "numbers"),
        ({"instances": [[[1e400] * 150]]}, 422, "finite"),
        ({"instances": [[[10**400] * 150]]}, 422, "numbers"),
        (b'{"instances": [[[NaN' + b", NaN" * 149 + b"]]]}", 422, "finite"),
        ({"instances": [[[0.0] * 150]], "k": 0}, 422, "k"),
        ({"instances": [[[0.0] * 150]], "k": 10**6}, 422, "k"),
        ({"instances": [[[0.0] * 150]], "target": "pont"}, 422, "'pont'"),
        ({"instances": [[[0.0] * 150]], "target": ["1", "2"]}, 422, "2 labels for 1"),
        ({"instances": [[[0.0] * 150]], "method": "os.system"}, 422, "method"),
        ({"instances": [[[0.0] * 150]], "method": "NICE"}, 422, "row"),
        ({"instances": [[[0.0] * 150]], "calls": 1}, 422, "too small"),
        ({"instances": [[[0.0] * 150]], "seconds": 1e9}, 422, "seconds"),
        ({"instances": [[[0.0] * 150]], "limits": {"lower": "x"}}, 422, "limits"),
        ({"instances": [[[0.0] * 150]], "limits": {"lower": [[1, 2, 3]]}}, 422, "lower"),
        ({"instances": [[[0.0] * 150]], "limits": {"frozen": [[1, 2]]}}, 422, "frozen"),
        ({"instances": [[[0.0] * 150]], "limits": {"increasing": ["a"]}}, 422, "increasing"),
        ({"instances": [[[0.0] * 150]], "unknown": 1}, 422, "unknown"),
        ({"instances": [[[0.0] * 150]] * 257}, 413, "256"),
    ],
)
def test_requests_that_cannot_be_used_are_refused_in_one_sentence(gun, body, status, words):
    got, _, answer = gun.ask("POST", "/v1/explain", body)
    assert got == status
    assert list(answer) == ["error"]
    assert words in answer["error"]


def test_tensors_of_the_v2_protocol(gun, gunpoint):
    model, X_train, y_train, X = gunpoint
    tensor = {"name": "instances", "shape": [2, 1, 150], "datatype": "FP32"}
    flat = {**tensor, "data": X[:2].ravel().tolist()}
    status, _, answer = gun.ask("POST", "/v2/models/gun/infer", {"id": "7", "inputs": [flat]})
    outputs = {each["name"]: each for each in answer["outputs"]}
    assert (status, answer["id"], answer["model_name"]) == (200, "7", "gun")
    assert outputs["probabilities"]["shape"] == [2, 2]
    proba = np.reshape(outputs["probabilities"]["data"], (2, 2))
    np.testing.assert_allclose(proba, model.predict_proba(X[:2]), atol=1e-6)
    assert outputs["label"]["data"] == model.predict(X[:2]).tolist()

    nested = {**tensor, "data": X[:2].tolist()}
    body = {
        "inputs": [nested],
        "outputs": [{"name": "counterfactuals"}, {"name": "valid"}],
        "parameters": {"k": 2, "target": "1"},
    }
    _, _, answer = gun.ask("POST", "/v2/models/gun-explain/infer", body)
    want = cf.explain(model, X[:2], "1", reference=(X_train, y_train), k=2)
    found, valid = answer["outputs"]
    np.testing.assert_array_equal(np.reshape(found["data"], found["shape"]), want.X_cf)
    assert valid == {
        "name": "valid",
        "datatype": "BOOL",
        "shape": [len(want)],
        "data": want.valid.tolist(),
    }
    for path in ("/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/gun/ready"):
        assert gun.ask("GET", path)[0] == 200
    assert gun.ask("GET", "/v2/models/gun")[2]["inputs"][0]["shape"] == [-1, 1, 150]
    assert gun.ask("GET", "/v2/models/other")[0] == 404
    short = {**tensor, "data": [1.0]}
    assert gun.ask("POST", "/v2/models/gun/infer", {"inputs": [short]})[0] == 422


def test_metadata_and_metrics(gun, gunpoint):
    _, _, _, X = gunpoint
    about = gun.client().metadata()
    assert about["shape"] == [1, 150]
    assert about["default_method"] == "Graft"
    assert "NICE" not in about["methods"]  # for rows only
    gun.client().predict(X[:1])
    gun.ask("GET", "/nowhere/at/all")
    _, headers, text = gun.ask("GET", "/metrics")
    assert headers["content-type"].startswith("text/plain")
    lines = dict(line.rsplit(" ", 1) for line in text.decode().splitlines() if line[0] != "#")
    assert float(lines['contrafact_requests_total{route="/v1/predict",status="200"}']) >= 1
    assert float(lines['contrafact_requests_total{route="none",status="404"}']) >= 1
    assert float(lines['contrafact_merged_requests_count{kind="predict"}']) >= 1
    assert float(lines["contrafact_model_rows_total"]) > len(X) / 2
    assert lines['contrafact_waiting{kind="explain"}'] == "0.0"


def test_past_the_queue_the_answer_is_429():
    let_go = threading.Event()
    limits = ServiceLimits(max_waiting=2)
    held = threading.Event()
    asked = threading.Event()

    def model(X):
        if held.is_set():
            asked.set()
            assert let_go.wait(10)
        return two_classes(X)

    with running(model, ROWS, limits=limits) as served, ThreadPoolExecutor(8) as pool:
        held.set()
        body = {"instances": ROWS[:1].tolist()}
        answers = [pool.submit(served.ask, "POST", "/v1/predict", body)]
        assert asked.wait(10)
        answers += [pool.submit(served.ask, "POST", "/v1/predict", body) for _ in range(5)]
        while sum(answer.done() for answer in answers) < 3:
            time.sleep(0.005)
        let_go.set()
        found = [answer.result() for answer in answers]
    assert sorted(status for status, _, _ in found) == [200, 200, 200, 429, 429, 429]
    refused = [(headers, answer) for status, headers, answer in found if status == 429]
    assert all(headers["retry-after"] == "1" for headers, _ in refused)
    assert all("wait already" in answer["error"] for _, answer in refused)


def test_deadline_ends_a_search_and_predictions_are_not_held_up():
    def model(X):
        time.sleep(0.02)
        return two_classes(X)

    with running(model, ROWS) as served, ThreadPoolExecutor(1) as pool:
        body = {"method": "Wachter", "seconds": 1.0, "calls": 200_000}
        slow = pool.submit(served.client().explain, ROWS[:8], **body, confidence=0.999)
        time.sleep(0.2)
        waits = []
        while not slow.done():
            before = time.perf_counter()
            served.client().predict(ROWS[:1])
            waits.append(time.perf_counter() - before)
        messages = slow.result()["message"].tolist()
    assert set(messages) == {"the budget ran out"}
    assert len(waits) >= 5
    assert np.median(waits) < 0.5


@pytest.mark.parametrize("failure", ["raises", "NaN"])
def test_model_that_fails_is_told_and_the_service_lives_on(failure):
    broken = threading.Event()

    def model(X):
        if broken.is_set() and failure == "raises":
            raise RuntimeError("the GPU is gone")
        return np.full((len(X), 2), np.nan) if broken.is_set() else two_classes(X)

    with running(model, ROWS) as served:
        broken.set()
        for path in ("/v1/predict", "/v1/explain"):
            status, _, answer = served.ask("POST", path, {"instances": ROWS[:2].tolist()})
            assert status == 502
            assert ("the GPU is gone" if failure == "raises" else "NaN") in answer["error"]
        broken.clear()
        assert served.client().explain(ROWS[:2])["valid"].all()


def test_model_that_hangs_is_told_and_the_service_recovers():
    hanging = threading.Event()
    let_go = threading.Event()

    def model(X):
        if hanging.is_set():
            assert let_go.wait(10)
        return two_classes(X)

    limits = ServiceLimits(patience=0.2, max_seconds=0.2)
    with running(model, ROWS, limits=limits) as served:
        hanging.set()
        for path in ("/v1/predict", "/v1/explain"):
            status, headers, answer = served.ask("POST", path, {"instances": ROWS[:2].tolist()})
            assert status == 503
            assert "has not answered within" in answer["error"]
            assert headers["retry-after"] == "5"
        assert served.ask("GET", "/healthz")[0] == 503
        assert served.ask("GET", "/v2/health/ready")[0] == 503
        assert served.ask("GET", "/v2/health/live")[0] == 200
        hanging.clear()
        let_go.set()
        while served.ask("GET", "/healthz")[0] == 503:
            time.sleep(0.01)
        served.client().predict(ROWS[:2])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Basic secret"}, 401),
        ({"authorization": "secret"}, 401),
        ({"authorization": "Bearer secre"}, 401),
        ({"authorization": "Bearer secret"}, 200),
        ({"authorization": "Bearer secret", "host": "evil.example"}, 421),
        ({"authorization": "Bearer secret", "host": "127.0.0.1.evil.example"}, 421),
        ({"authorization": "Bearer secret", "host": "inner.example:8000"}, 200),
        ({"authorization": "Bearer secret", "origin": "http://evil.example"}, 403),
        ({"authorization": "Bearer secret", "origin": "null"}, 403),
        ({"authorization": "Bearer secret", "content-type": "text/plain"}, 415),
    ],
)
def test_token_host_and_origin(guarded, headers, status):
    body = {"instances": ROWS[:1].tolist()}
    got, answered, _ = guarded.ask("POST", "/v1/predict", body, headers)
    assert got == status
    assert "access-control-allow-origin" not in answered


@pytest.fixture(scope="module")
def guarded():
    with running(two_classes, ROWS, token="secret", hosts=["inner.example"]) as found:
        yield found


def test_what_needs_a_token_and_what_does_not(guarded):
    for path in ("/v1/metadata", "/metrics", "/openapi.json", "/v2", "/v2/models/model", "/docs"):
        assert guarded.ask("GET", path)[0] == 401
    for path in ("/healthz", "/v2/health/live", "/v2/health/ready"):
        assert guarded.ask("GET", path)[0] == 200
    assert guarded.client("secret").metadata()["classes"] == [0, 1]
    with pytest.raises(ServiceError, match=r"401: .*Bearer") as refused:
        guarded.client().metadata()
    assert refused.value.status == 401


def test_too_many_bytes_are_refused():
    limits = ServiceLimits(max_bytes=2000)
    with running(two_classes, ROWS, limits=limits) as served:
        body = {"instances": ROWS.tolist() * 10}
        assert served.ask("POST", "/v1/predict", body)[0] == 413
        served.client().predict(ROWS[:2])
