"""Ctrl-C during `contrafact explain`: finished rows are kept, a second one ends at once."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from contrafact.engine.result import Counterfactuals

#: a model that takes its time once the search has begun
SLOW = """
import time
import numpy as np

asked = 0


class Slow:
    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        global asked
        asked += len(X)
        X = X.reshape(len(X), -1)
        if asked > 100:
            print("searching", flush=True)
            time.sleep(0.05)
        p = 1 / (1 + np.exp(-X.sum(1)))
        return np.stack([1 - p, p], 1)

    def predict(self, X):
        return self.predict_proba(X).argmax(1)


model = Slow()
"""


#: leaves so little to change that some rows cannot be moved
FROZEN = ("--freeze", "0:10")


@pytest.fixture
def started(tmp_path):
    """Starts the command, waits for the search, and returns the process."""
    (tmp_path / "slow_model.py").write_text(SLOW)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1, 12))
    np.savez(tmp_path / "data.npz", X=X, y=(X.sum((1, 2)) > 0).astype(int))

    def start(*options):
        run = "from contrafact.cli import app; app()"
        command = [sys.executable, "-c", run, "explain", "slow_model:model"]
        process = subprocess.Popen(
            [*command, "data.npz", "--rows", "0:6", "--method", "TSEvo", *FROZEN, *options],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "200"},
        )
        for line in process.stderr:
            if "searching" in line:
                break
        time.sleep(1)
        return process

    return start


def test_finished_rows_are_kept(started, tmp_path):
    process = started("--save", "kept.npz", "--report", "kept.html", "--json")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Ctrl-C again ends at once" in err
    assert "of 6 rows were finished and are kept" in err
    kept = Counterfactuals.load(tmp_path / "kept.npz")
    assert len(kept) == 6
    assert any("the search was interrupted" in text for text in kept.message)
    unfinished = kept.status == "budget"
    assert "</html>" in (tmp_path / "kept.html").read_text(encoding="utf-8")
    told = json.loads(out)
    assert told["methods"][0]["statuses"].get("budget", 0) == int(unfinished.sum())
    assert any("rows were finished" in note for note in told["notes"])
    assert {path.name for path in tmp_path.iterdir()} >= {"kept.npz", "kept.html"}
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".contrafact")]


def test_a_second_one_ends_at_once(started, tmp_path):
    process = started("--save", "kept.npz")
    process.send_signal(signal.SIGINT)
    for line in process.stderr:
        if "again ends at once" in line:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
