"""The explorer as a whole: a real server, asked as the page asks it."""

import json
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest
import torch
from explorer_client import Client, italy, wait_until_idle
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.prototypes import GRLVQ
from contrafact.testing.table_cases import make_table, train_on_table


@pytest.fixture(scope="module")
def explorer():
    model, data = italy()
    with cf.explore(model, data) as explorer:
        wait_until_idle(explorer)
        yield explorer


@pytest.fixture
def client(explorer):
    with Client(explorer.url) as client:
        yield client


@pytest.fixture
def open_client():
    """Start explorers that are stopped after the test."""
    opened = []

    def start(*args, **options):
        explorer = cf.explore(*args, **options)
        wait_until_idle(explorer)
        client = Client(explorer.url)
        opened.extend([client.close, explorer.stop])
        return client

    yield start
    for close in opened:
        close()


def test_the_overview_agrees_with_the_model(client):
    model, data = italy()
    overview = client.read("api/overview")
    instances = overview["instances"]
    proba = model.predict_proba(data.X_test[:, 0])
    assert overview["kind"] == "series" and overview["shape"] == [1, 24]
    assert instances["complete"] and instances["count"] == len(data.X_test)
    assert instances["label"] == proba.argmax(1).tolist()
    assert instances["second"] == proba.argmin(1).tolist()
    assert np.allclose(instances["p"], proba.max(1), atol=1e-4)
    assert np.array_equal(data.y_test, np.array(overview["classes"])[instances["truth"]])
    default = [method["name"] for method in overview["methods"] if method["default"]]
    assert default == ["Graft"]
    assert "PrototypeCounterfactual" not in {method["name"] for method in overview["methods"]}


def test_an_instance_comes_with_its_nearest_neighbors(client):
    model, data = italy()
    view = client.read("api/instances/7")
    assert view["values"] == data.X_test[7].tolist()
    labels = model.predict(data.X_train[:, 0])
    for neighbor in view["neighbors"]:
        of_class = np.flatnonzero(labels == model.classes_[neighbor["label"]])
        distance = np.linalg.norm(data.X_train[of_class] - data.X_test[7], axis=(1, 2))
        assert neighbor["index"] == of_class[distance.argmin()]
        assert neighbor["values"] == data.X_train[neighbor["index"]].tolist()


def test_edited_values_get_the_models_own_probabilities(client):
    model, data = italy()
    edited = data.X_test[3].copy()
    edited[0, 5:9] += 0.7
    answer = client.ask("api/predict", values=edited.tolist(), tag=41)
    assert answer["tag"] == 41
    assert np.allclose(answer["probabilities"], model.predict_proba(edited)[0], atol=1e-12)
    assert answer["label"] == int(np.argmax(answer["probabilities"]))


@pytest.mark.parametrize(
    "values", [[], [[1, 2]], [["a"] * 24], [[None] * 24], [[1e400] * 24], [[1] * 24, [1] * 24]]
)
def test_values_that_are_no_instance_are_refused(client, values):
    body = json.dumps({"values": values})
    answer = client.post("api/predict", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("values")


QUESTIONS = {
    "default": ({}, {}),
    "k": ({"k": 3}, {"k": 3}),
    "named": ({"method": "NativeGuide"}, {"method": "NativeGuide", "refine": "believable"}),
    "level": ({"level": "smallest"}, {"method": cf.Graft("smallest")}),
    "front": ({"front": True, "k": 3}, {"method": cf.Graft(spread="front"), "k": 3}),
    "confidence": ({"confidence": 0.9}, {"confidence": 0.9}),
    "budget": ({"calls": 40}, {"budget": cf.Budget(calls=40)}),
    "limits": (
        {
            "limits": {
                "frozen": [[t < 6 for t in range(24)]],
                "lower": [-2.0],
                "upper": [None],
                "max_step": [1.5],
            }
        },
        {"constraints": cf.Constraints(frozen=np.arange(24)[None] < 6, lower=-2.0, max_step=1.5)},
    ),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_answers_equal_those_of_explain(client, name):
    question, options = QUESTIONS[name]
    model, data = italy()
    view = client.explained(instance=5, target=1, **question)
    result = cf.explain(model, data.X_test[5:6], target="2", reference=data, **options)
    assert view["state"] == "done", view["message"]
    found = {json.dumps(each["values"]) for each in view["alternatives"]}
    assert found == {json.dumps(x.tolist()) for x in result.X_cf}
    for each in view["alternatives"]:
        i = [json.dumps(x.tolist()) for x in result.X_cf].index(json.dumps(each["values"]))
        assert each["valid"] == result.valid[i]
        assert each["changed"] == result.changed[i].tolist()
        assert np.allclose(each["probabilities"], result.cf_proba[i])
    shares = [each["distance"] for each in view["alternatives"]]
    assert shares == sorted(shares)
    assert view["asked"] <= view["allowed"]


def test_the_preview_is_there_before_the_search_ends(open_client):
    model, data = italy()
    known = {x.tobytes() for part in (data.X_train, data.X_test) for x in part}
    let_go = threading.Event()

    def held(X):
        if any(x.tobytes() not in known for x in X):
            let_go.wait(60)
        return model.predict_proba(X[:, 0])

    client = open_client(held, data)
    job = client.start(instance=9)
    view = client.read(f"api/jobs/{job}")
    let_go.set()
    assert view["state"] == "running"
    assert view["preview"]["label"] != client.read("api/instances/9")["label"]
    assert client.finished(job)["state"] == "done"


def test_an_edited_instance_is_explained_as_it_is_now(client):
    model, data = italy()
    edited = data.X_test[3].copy()
    edited[0, 5:9] += 0.1
    view = client.explained(instance=3, values=edited.tolist(), target=1)
    result = cf.explain(model, edited[None], target="2", reference=data)
    assert view["alternatives"][0]["values"] == result.X_cf[0].tolist()


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ({}, "instance"),
        ({"instance": 10**6}, "no instance"),
        ({"instance": 1, "target": 7}, "target"),
        ({"instance": 1, "method": "os.system"}, "method"),
        ({"instance": 1, "method": "PrototypeCounterfactual"}, "method"),
        ({"instance": 1, "level": "wild"}, "level"),
        ({"instance": 1, "method": "CELS", "level": "steady"}, "levels"),
        ({"instance": 1, "k": 99}, "k"),
        ({"instance": 1, "calls": 10**9}, "calls"),
        ({"instance": 1, "path": "/etc/passwd"}, "path"),
        ({"instance": 1, "limits": {"frozen": [[1] * 24]}}, "frozen"),
        ({"instance": 1, "limits": {"lower": [0, 1]}}, "lower"),
        ({"instance": 1, "limits": {"lower": [2], "upper": [1]}}, "lower"),
        ({"instance": 1, "limits": {"increasing": ["age"]}}, "column"),
    ],
)
def test_questions_that_cannot_be_answered_are_refused_in_words(client, question, word):
    answer = client.post("api/explain", json=question)
    if answer.status_code == 200:  # what only the engine can tell
        view = client.finished(answer.json()["job"])
        assert view["state"] == "failed"
        assert word in view["message"]
    else:
        assert answer.status_code in (400, 404, 422)
        assert word in answer.json()["error"]


def test_files_of_a_job(client, tmp_path):
    job = client.start(instance=5, target=1, k=2)
    view = client.finished(job)
    (tmp_path / "arrays.npz").write_bytes(client.get(f"api/jobs/{job}/arrays").content)
    loaded = cf.Counterfactuals.load(tmp_path / "arrays.npz")
    assert [x.tolist() for x in loaded.X_cf] == [each["values"] for each in view["alternatives"]]
    assert loaded.source.tolist() == [5, 5]
    page = client.get(f"api/jobs/{job}/report")
    assert "attachment" in page.headers["content-disposition"]
    assert "now get the class that was asked for" in page.text
    picture = client.get(f"api/jobs/{job}/picture", params={"alternative": 1}).content
    assert picture.startswith(b"\x89PNG")
    assert client.get(f"api/jobs/{job}/picture", params={"alternative": 2}).status_code == 404


def test_a_table_travels_as_codes(open_client):
    frame, y = make_table(120, 0)
    model = train_on_table("linear", frame, y)
    client = open_client(model, (frame, y))
    overview = client.read("api/overview")
    columns = {column["name"]: column for column in overview["columns"]}
    assert overview["kind"] == "table"
    assert overview["instances"]["names"] == frame.index.tolist()
    assert columns["sex"]["options"] == sorted(frame["sex"].unique())
    assert columns["admitted"]["kind"] == "frozen"
    assert columns["hba1c"]["missing"]
    assert sum(columns["ward"]["histogram"]["counts"]) == frame["ward"].notna().sum()

    i = int(np.flatnonzero(frame["hba1c"].isna())[0])
    view = client.read(f"api/instances/{i}")
    place = list(frame.columns).index("hba1c")
    assert view["values"][place] is None and view["texts"][place] == "not known"
    answer = client.ask("api/predict", values=view["values"])
    expected = model.predict_proba(frame.iloc[i : i + 1])[0]
    assert np.allclose(answer["probabilities"], expected)

    sex = list(frame.columns).index("sex")
    profile = client.ask("api/profile", values=view["values"], column=sex)
    for code, proba in zip(profile["at"], profile["probabilities"], strict=True):
        other = frame.iloc[i : i + 1].assign(sex=columns["sex"]["options"][int(code)])
        assert np.allclose(model.predict_proba(other)[0], proba)

    red = list(frame.columns).index("color_red")
    profile = client.ask("api/profile", values=view["values"], column=red)
    others = {"color_blue": 0, "color_green": 0, "color_red": 1}
    other = frame.iloc[i : i + 1].assign(**others)
    assert np.allclose(model.predict_proba(other)[0], profile["probabilities"][-1])

    frozen = [name in ("age", "smokes") for name in frame.columns]
    job = client.start(instance=i, k=2, limits={"frozen": frozen, "max_changed": 2})
    found = client.finished(job)
    result = cf.explain(
        model,
        frame.iloc[i : i + 1],
        reference=(frame, y),
        k=2,
        constraints=cf.Constraints(frozen=["age", "smokes"], max_changed=2),
    )
    assert found["state"] == "done", found["message"]
    texts = {json.dumps(each["texts"]) for each in found["alternatives"]}
    assert len(texts) == len(result)
    for each in found["alternatives"]:
        changed = np.array(each["changed"])
        assert not changed[np.array(frozen)].any()
        assert each["texts"][-1] == view["texts"][-1]  # the date, which never changes
    why = client.ask(f"api/jobs/{job}/why", alternative=0)["parts"]
    assert all(part["sentence"].startswith("Without the change of ") for part in why)


def test_images_are_explained_with_a_mask(open_client):
    data = cf.load_dataset("digits")
    model = LogisticRegression(max_iter=200).fit(
        data.X_train.reshape(-1, 64)[:300], data.y_train[:300]
    )
    client = open_client(model, data)
    frozen = np.zeros((1, 8, 8), dtype=bool)
    frozen[:, :, :3] = True
    job = client.start(instance=2, limits={"frozen": frozen.tolist()})
    view = client.finished(job)
    assert view["state"] == "done", view["message"]
    changed = np.array(view["alternatives"][0]["changed"])
    assert changed.shape == (1, 8, 8) and not changed[frozen].any()
    parts = client.ask(f"api/jobs/{job}/why")["parts"]
    lines = sum(stop - start for part in parts for _, start, stop in part["lines"])
    assert lines == changed.any(0).sum()


def test_prototypes_are_shown_with_distances_and_relevances(open_client):
    X, y = load_iris(return_X_y=True)
    model = GRLVQ(random_state=0).fit(X, y)
    client = open_client(model, (X, y))
    overview = client.read("api/overview")
    assert overview["has_prototypes"]
    assert [m["name"] for m in overview["methods"] if m["default"]] == ["PrototypeCounterfactual"]
    shown = client.read("api/instances/60")["prototypes"]
    distance = np.sqrt(model.distances(X[60:61])[0])
    order = np.argsort(distance, kind="stable")
    assert np.allclose([each["values"] for each in shown], model.prototypes_[order][: len(shown)])
    assert shown[0]["distance_text"] == f"distance {distance.min():.3g}"
    assert np.allclose(shown[0]["relevance"], model.relevances_)


def test_rows_have_a_control_per_column(open_client):
    iris = load_iris(as_frame=True)
    X = iris.data.to_numpy()
    model = LogisticRegression(max_iter=500).fit(X, iris.target)
    client = open_client(model, (X, iris.target), names=list(iris.data.columns))
    column = client.read("api/overview")["columns"][2]
    assert (column["low"], column["high"]) == (X[:, 2].min(), X[:, 2].max())
    assert sum(column["histogram"]["counts"]) == len(X)
    profile = client.ask("api/profile", values=X[0].tolist(), column=2)
    trial = np.repeat(X[:1], len(profile["at"]), 0)
    trial[:, 2] = profile["at"]
    assert np.allclose(profile["probabilities"], model.predict_proba(trial))
    assert X[0, 2] in profile["at"]


def test_two_dimensional_series_and_tensors_come_as_they_are_given(open_client):
    model, data = italy()
    client = open_client(
        model,
        torch.from_numpy(data.X_test[:, 0].copy()),
        reference=(data.X_train[:, 0], data.y_train),
        modality="series",
    )
    assert client.read("api/overview")["shape"] == [1, 24]
    view = client.explained(instance=5, target=1)
    result = cf.explain(
        model,
        data.X_test[5:6, 0],
        target="2",
        reference=(data.X_train[:, 0], data.y_train),
        modality="series",
    )
    assert view["alternatives"][0]["values"] == [result.X_cf[0].tolist()]


def test_ten_thousand_instances_do_not_slow_the_page(open_client):
    model, data = italy()
    X = np.tile(data.X_test, (10, 1, 1))[:10_000]
    client = open_client(model, X, reference=(data.X_train, data.y_train))
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        answer = client.get("api/overview")
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5
    assert len(answer.content) < 10**6
    assert answer.json()["instances"]["count"] == 10_000
    assert answer.json()["instances"]["complete"]


def test_hostile_labels_and_names_stay_data(open_client):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["<script>", "b\u202e\n"])
    y = np.where(X.iloc[:, 0] > 0, "</script><b>", "\x00\ud83d\ude00")
    client = open_client(LogisticRegression().fit(X, y), (X, y))
    overview = client.read("api/overview")
    assert "\x00" not in "".join(overview["classes"])
    assert client.explained(instance=0)["state"] == "done"


@pytest.mark.parametrize("library", ["fastapi", "uvicorn"])
def test_a_missing_library_is_named(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    model, data = italy()
    with pytest.raises(ImportError, match=rf'The explorer needs {library}, .*contrafact\[web\]"'):
        cf.explore(model, data)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"data": np.zeros((0, 1, 24))}, "empty"),
        ({"data": np.zeros((3, 1, 25))}, "shape"),
        ({"data": (np.zeros((3, 1, 24)), [1, 2])}, "data"),
        ({"data": (1, 2, 3)}, "tuple of 3"),
        ({"reference": (np.zeros((3, 1, 24)), [1])}, "reference"),
        ({"names": ["a", "b"]}, "names"),
        ({"port": 70_000}, "port"),
        ({"host": ""}, "host"),
    ],
)
def test_what_cannot_be_explored_is_refused_in_words(change, word):
    model, data = italy()
    given = {"data": data.X_test[:5], "reference": (data.X_train, data.y_train), **change}
    threads = threading.active_count()
    with pytest.raises(ValueError, match=word):
        cf.explore(model, **given)
    assert threading.active_count() == threads


def test_it_stops_and_shows_itself():
    model, data = italy()
    explorer = cf.explore(model, data)
    assert f'src="{explorer.url}"' in explorer._repr_html_()
    with Client(explorer.url) as client:
        client.read("api/health")
    explorer.stop()
    explorer.stop()
    assert not explorer.running
    assert "<iframe" not in explorer._repr_html_()
    assert repr(explorer) == "<Explorer: stopped>"


def test_the_token_can_be_fixed(monkeypatch):
    model, data = italy()
    monkeypatch.setenv("CONTRAFACT_TOKEN", "a-token-of-my-own")
    with cf.explore(model, data) as explorer:
        assert explorer.url.endswith("/a-token-of-my-own/")
    monkeypatch.setenv("CONTRAFACT_TOKEN", "../short")
    with pytest.raises(ValueError, match="CONTRAFACT_TOKEN"):
        cf.explore(model, data)


def test_an_address_that_is_taken_is_told():
    model, data = italy()
    with cf.explore(model, data) as explorer:
        port = int(explorer.url.split(":")[2].split("/")[0])
        with pytest.raises(ValueError, match=f"port {port}"):
            cf.explore(model, data, port=port)
