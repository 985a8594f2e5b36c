"""`contrafact serve` as a process of its own."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import contrafact as cf
from contrafact.web import Client, ServiceError

TRAIN = """
import numpy as np
def model(X):
    p = 1 / (1 + np.exp(-4 * X.reshape(len(X), -1).mean(1)))
    return np.stack([1 - p, p], 1)
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with a model and a reference."""
    X = np.random.default_rng(0).normal(size=(40, 1, 30))
    np.savez(tmp_path / "data.npz", X=X, y=np.where(X.mean((1, 2)) > 0, "up", "down"))
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def start(folder, *options, **environment):
    """Start the command; gives the process and the line that it prints."""
    words = [sys.executable, "-m", "contrafact", "serve", "train:model"]
    process = subprocess.Popen(
        [*words, "--reference", "data.npz", "--port", "0", *options],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return process, process.stdout.readline().strip()


def test_service_answers_until_it_is_terminated(folder):
    process, line = start(folder, "--name", "waves", CONTRAFACT_TOKEN="secret")
    try:
        _, url = line.split()
        with pytest.raises(ServiceError, match="401"):
            Client(url).metadata()
        client = Client(url, "secret")
        about = client.metadata()
        data = np.load(folder / "data.npz")
        X = data["X"]
        got = client.explain(X[:3], limits={"frozen": [[True] * 5 + [False] * 25]})
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=20)
    assert (about["name"], about["classes"]) == ("waves", ["down", "up"])
    assert (got["cf_labels"] != got["labels"]).all()
    assert (got["X_cf"][:, :, :5] == X[:3, :, :5]).all()
    assert process.returncode == 0
    assert "Stopped." in said
    namespace = {}
    exec(TRAIN, namespace)
    want = cf.explain(
        cf.as_classifier(namespace["model"], classes=["down", "up"]),
        X[:3],
        reference=(X, data["y"]),
        constraints=cf.Constraints(frozen=np.arange(30) < 5),
    )
    np.testing.assert_allclose(got["X_cf"], want.X_cf)


def test_another_host_gets_a_warning_and_a_wrong_argument_one_line(folder):
    process, _ = start(folder, "--host", "0.0.0.0")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert "lets other machines reach the service" in said
    assert "no --token" in said
    assert process.returncode == 0
    process, _ = start(folder, "--host", "no.such.host.invalid")
    _, said = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "Cannot listen on host 'no.such.host.invalid'" in said
    assert "Traceback" not in said
