"""`contrafact explain --out` reads and writes in chunks, and goes on where it was stopped."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sample_files import IRIS

import contrafact as cf

POWER = ("logistic.joblib", "--trust", "--reference", "split.npz", "--method", "NearestUnlike")


@pytest.fixture
def series(shelf):
    """Forty series in an .npy file and in Parquet files."""
    X = cf.load_dataset("ItalyPowerDemand").X_test[:40]
    np.save(shelf / "large.npy", X)
    lists = pa.array(X[:, 0].tolist(), pa.list_(pa.float64(), 24))
    (shelf / "parts").mkdir(exist_ok=True)
    pq.write_table(pa.table({"power": lists, "id": np.arange(40)}), shelf / "parts" / "a.parquet")
    return X


def test_the_folder_holds_what_explain_gives(ask, series, tmp_path):
    model, *options = POWER
    told = ask(model, "large.npy", *options, "--out", tmp_path / "out", "--chunk", "15")
    assert told.exit_code == 0, told.output
    assert "40 of 40 rows are explained: 40 valid. On average 25% of a valid one" in told.stdout
    assert f"Folder: {tmp_path / 'out'}\nAgain: contrafact explain" in told.stdout
    found = cf.Counterfactuals.open(tmp_path / "out")
    assert found.complete and len(found._numbers) == 3
    plain = ask(model, "large.npy", *options, "--save", tmp_path / "plain.npz")
    assert plain.exit_code == 0, plain.output
    one = cf.Counterfactuals.load(tmp_path / "plain.npz")
    np.testing.assert_array_equal(one.X_cf, found[:].X_cf)
    assert one.status.tolist() == found[:].status.tolist()


def test_parquet_lists_workers_report_and_json(ask, series, tmp_path):
    model, *options = POWER
    page = tmp_path / "why.html"
    told = ask(
        model,
        "parts",
        *options,
        "--out",
        tmp_path / "out",
        "--workers",
        1,
        "--report",
        page,
        "--json",
    )
    assert told.exit_code == 0, told.output
    content = json.loads(told.stdout)
    assert content["rows"] == 40 and content["statuses"] == {"valid": 40}
    assert content["method"] == "NearestUnlike" and content["files"]["report"] == str(page)
    assert page.exists()
    assert cf.Counterfactuals.open(tmp_path / "out").to_frame()["id"].tolist() == list(range(40))


def test_data_that_are_read_whole_bring_their_reference(ask, tmp_path):
    told = ask(
        "logistic.joblib", "split.npz", "--trust", "--out", tmp_path / "a", "--method", "CELS"
    )
    assert told.exit_code == 0, told.output
    assert "7 of 7 rows are explained" in told.stdout
    told = ask(*IRIS, "--out", tmp_path / "b", "--method", "NICE", "--chunk", "40")
    assert told.exit_code == 0, told.output
    assert cf.Counterfactuals.open(tmp_path / "b")[:].frame_cf.shape[1] == 4


def test_a_table_in_parquet_with_a_schema(ask, shelf, tmp_path):
    frame = pd.read_csv(shelf / "iris.csv")
    frame.to_parquet(tmp_path / "iris.parquet", index=False)
    told = ask(
        IRIS[0],
        tmp_path / "iris.parquet",
        *IRIS[2:],
        "--reference",
        "iris.csv",
        "--method",
        "NICE",
        "--out",
        tmp_path / "out",
        "--chunk",
        "40",
    )
    assert told.exit_code == 0, told.output
    found = cf.Counterfactuals.open(tmp_path / "out")
    assert len(found) == len(frame) and found.to_frame()["y"].tolist() == frame["kind"].tolist()


def test_options_that_do_not_go_together(ask, series, tmp_path):
    model, *options = POWER
    out = ("--out", tmp_path / "out")
    for given, words in {
        ("large.npy", *options, *out, "--rows", "0:3"): "--rows and --out exclude each other",
        ("large.npy", *options, *out, "--save", "a.npz"): "--save and --out exclude each other",
        ("large.npy", *options, *out, "--method", "CELS"): "--out takes one method",
        ("large.npy", *options, *out, "--fill"): "--fill is for data that are read whole",
        ("large.npy", *options, "--chunk", "3"): "--chunk is for large data: it needs --out DIR",
        ("large.npy", "--trust", *out): "--reference is needed: large.npy is read in chunks",
    }.items():
        told = ask(model, *given)
        assert told.exit_code == 2 and words in told.stderr, told.output
    assert not (tmp_path / "out").exists()


SLOW = """
import time
import numpy as np


class Slow:
    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        time.sleep(0.005)
        p = 1 / (1 + np.exp(-X.reshape(len(X), -1).sum(1)))
        return np.stack([1 - p, p], 1)

    def predict(self, X):
        return self.predict_proba(X).argmax(1)


model = Slow()
"""


def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(tmp_path):
    (tmp_path / "slow_model.py").write_text(SLOW)
    X = np.random.default_rng(0).normal(size=(24, 1, 12))
    np.save(tmp_path / "data.npy", X)
    np.savez(tmp_path / "train.npz", X=X, y=(X.sum((1, 2)) > 0).astype(int))
    words = ["data.npy", "--reference", "train.npz", "--method", "LineSearch", "--no-refine"]
    words += ["--out", "out", "--chunk", "2"]
    run = "from contrafact.cli import app; app()"
    command = [sys.executable, "-c", run, "explain", "slow_model:model", *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    options = {"cwd": tmp_path, "env": environment, "text": True}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    while process.poll() is None and len(list(tmp_path.glob("out/part-*"))) < 2:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate()
    assert process.returncode == 130, stderr
    assert "Stopped: chunks that were finished are kept." in stderr
    assert "of 24 rows are explained" in stdout
    assert "Go on: contrafact explain slow_model:model data.npy" in stdout
    finished = len(list(tmp_path.glob("out/part-*")))
    assert 2 <= finished < 12
    again = subprocess.run(command, capture_output=True, **options)
    assert again.returncode == 0, again.stderr
    assert "24 of 24 rows are explained" in again.stdout
