"""Recipes: what they say, run again, gives the same arrays to the last bit."""

import json
import shlex
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
import torch
from explorer_client import Client, italy, wait_until_idle
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import contrafact as cf
from contrafact.cli import app
from contrafact.cli.explain_request import ExplainRequest
from contrafact.cli.exploring import _start
from contrafact.cli.specs import Layout
from contrafact.testing.table_cases import make_table, train_on_table
from contrafact.web.recipes import _freeze_specs

MASK = [[3 <= t < 6 or t == 20 for t in range(24)]]
QUESTIONS = [
    {},
    {"target": 0, "k": 2, "confidence": 0.8},
    {"method": "CELS", "calls": 300},
    {"level": "smallest", "limits": {"frozen": MASK, "lower": [-1.5], "upper": [None]}},
    {"method": "LineSearch", "limits": {"max_step": [0.9]}},
]


def values(job, client):
    return [each["values"] for each in client.finished(job)["alternatives"]]


def run_python(recipe, **names):
    exec(recipe["python"], names)
    return names["result"]


def same(result, found):
    return sorted(map(json.dumps, result.X_cf.tolist())) == sorted(map(json.dumps, found))


@pytest.mark.parametrize("question", QUESTIONS)
def test_python_lines_give_the_same_again(question):
    model, data = italy()
    with cf.explore(model, data) as explorer, Client(explorer.url) as client:
        job = client.start(instance=5, **question)
        found = values(job, client)
        recipe = client.read(f"api/jobs/{job}/recipe")
    assert recipe["command"] == ""
    assert same(run_python(recipe, model=model, X=data.X_test, reference=data), found)


def test_edited_instances_are_in_the_arrays(tmp_path):
    model, data = italy()
    edited = data.X_test[5] + np.linspace(0, 0.1, 24)
    with cf.explore(model, data) as explorer, Client(explorer.url) as client:
        job = client.start(instance=5, values=edited.tolist())
        found = values(job, client)
        recipe = client.read(f"api/jobs/{job}/recipe")
        (tmp_path / "arrays.npz").write_bytes(client.get(f"api/jobs/{job}/arrays").content)
    assert "edited" in recipe["note"] and recipe["command"] == ""
    stored = cf.Counterfactuals.load(tmp_path / "arrays.npz").X[:1]
    assert np.array_equal(stored[0], edited)
    assert same(run_python(recipe, model=model, edited=stored, reference=data), found)


def test_python_lines_of_a_table():
    frame, y = make_table(100, 1)
    model = train_on_table("linear", frame, y)
    limits = {
        "frozen": [name == "sex" for name in frame.columns],
        "lower": [40.0 if name == "age" else None for name in frame.columns],
        "increasing": ["bmi"],
    }
    with cf.explore(model, (frame, y)) as explorer, Client(explorer.url) as client:
        job = client.start(instance=4, limits=limits)
        view = client.finished(job)
        recipe = client.read(f"api/jobs/{job}/recipe")
    result = run_python(recipe, model=model, X=frame, reference=(frame, y))
    assert result.valid.tolist() == [each["valid"] for each in view["alternatives"]]
    numbers = [j for j, name in enumerate(frame.columns) if name != "admitted"]
    after = np.array(view["alternatives"][0]["values"], dtype=float)
    assert np.array_equal(result.X_cf[0, numbers], after[numbers], equal_nan=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Weights and data in files."""
    folder = tmp_path_factory.mktemp("files")
    _, data = italy()
    model = cf.fit_classifier("fcn", data.X_train, data.y_train, max_epochs=3)
    torch.save(model.module.state_dict(), folder / "weights.pt")
    np.savez(
        folder / "days.npz",
        X_train=data.X_train,
        y_train=data.y_train,
        X_test=data.X_test[:20],
        y_test=data.y_test[:20],
    )
    frame, y = make_table(90, 2)
    frame = frame[["age", "bmi", "dose", "smokes", "color_blue", "color_green", "color_red"]]

    joblib.dump(LogisticRegression(max_iter=2000).fit(frame, y), folder / "table.joblib")
    frame.assign(outcome=y).to_csv(folder / "table.csv", index=False)
    return folder


@pytest.fixture
def from_files(folder, monkeypatch):
    """Explore files as the command does."""
    monkeypatch.chdir(folder)
    opened = []

    def start(model, data, **options):
        request = ExplainRequest(model=model, data=data, rows=":", **options)
        explorer = _start(request, "127.0.0.1", 0)
        wait_until_idle(explorer)
        client = Client(explorer.url)
        opened.extend([client.close, explorer.stop])
        return client

    yield start
    for close in opened:
        close()


def run_command(recipe, tmp_path):
    words = shlex.split(recipe["command"])
    assert words[0] == "contrafact"
    saved = tmp_path / "again.npz"
    told = CliRunner().invoke(app, [*words[1:], "--save", str(saved)])
    assert told.exit_code in (0, 1), told.output
    return cf.Counterfactuals.load(saved)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_command_and_the_lines_give_the_same_again(from_files, tmp_path, question):
    client = from_files("weights.pt", "days.npz", network="fcn")
    job = client.start(instance=3, **question)
    found = values(job, client)
    recipe = client.read(f"api/jobs/{job}/recipe")
    again = run_command(recipe, tmp_path)
    assert same(again, found)
    assert again.source.tolist() == [3] * len(found)
    assert same(run_python(recipe), found)


def test_the_command_of_a_table(from_files, tmp_path):
    client = from_files("table.joblib", "table.csv", label="outcome", trust=True)
    names = client.read("api/overview")["names"]
    limits = {
        "frozen": [name == "age" for name in names],
        "upper": [26.5 if name == "bmi" else None for name in names],
        "decreasing": ["dose"],
        "max_changed": 3,
    }
    job = client.start(instance=11, k=2, limits=limits)
    found = values(job, client)
    assert same(run_command(client.read(f"api/jobs/{job}/recipe"), tmp_path), found)


def test_masks_of_images_become_windows():
    rng = np.random.default_rng(0)
    workspace = SimpleNamespace(names=None, modality="image")
    for mask in (rng.random((2, 6, 7)) < 0.4, np.repeat(rng.random((1, 6, 7)) < 0.5, 2, 0)):
        specs = _freeze_specs(workspace, mask)
        assert np.array_equal(Layout(mask.shape, "image").frozen(specs), mask)
