"""The runner: nothing is lost, nothing is run twice, and failures stay in their cells."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from small_grid import METRICS, Crasher, comparable, small, toy

from contrafact.benchmark import Benchmark, Store, progress_of, run

#: networks that a test makes, and libraries that it calls itself, draw from the global generators
pytestmark = pytest.mark.usefixtures("own_random_numbers")


def test_every_request_has_its_rows(whole):
    _, frame = whole
    counts = (
        frame.groupby(["dataset", "classifier", "explainer", "seed"]).size().unstack("explainer")
    )
    assert (counts["line"] == 6).all() and (counts["mask"] == 12).all() and counts.shape == (4, 2)
    assert (frame["cell_status"] == "done").all() and set(METRICS) <= set(frame)


def test_a_finished_run_does_nothing_more(whole):
    folder, frame = whole
    times = {path: path.stat().st_mtime_ns for path in (folder / "cells").iterdir()}
    pd.testing.assert_frame_equal(small().run(folder, progress=False), frame)
    assert times == {path: path.stat().st_mtime_ns for path in (folder / "cells").iterdir()}


def test_two_jobs_give_the_same_table(whole, tmp_path):
    pd.testing.assert_frame_equal(
        comparable(small().run(tmp_path, n_jobs=2, progress=False)), comparable(whole[1])
    )


def test_failed_cells_are_told_and_retried_on_demand(rogues, hanger):
    grid, folder, _ = rogues
    states = progress_of(grid, Store(folder)).set_index("explainer")
    assert states["failed"].to_dict() == {
        "honest": 0, "liar": 0, "crasher": 1, "dier": 1, "blank": 0
    }  # fmt: skip
    assert progress_of(hanger[0], Store(folder))["failed"].tolist() == [1]
    before = {path: path.stat().st_mtime_ns for path in (folder / "cells").glob("*.parquet")}
    faster = Benchmark(**{**vars(grid), "explainers": {"crasher": Crasher()}, "_read": {}})
    run(faster, folder, retry_failed=True, progress=False)
    changed = [path for path, at in before.items() if path.stat().st_mtime_ns != at]
    assert len(changed) == 1


def test_a_classifier_that_can_not_be_trained_fails_its_cells_only(tmp_path):
    def broken(data, seed):
        raise ValueError("no such luck")

    grid = Benchmark(
        {"a": toy(0)},
        {"broken": broken, "LR": LogisticRegression()},
        {"line": "LineSearch"},
        instances=4,
        metrics=METRICS,
    )
    frame = grid.run(tmp_path, progress=False).set_index("classifier")
    assert frame.loc["LR", "valid"].all()
    assert frame.loc["broken", "message"].str.contains("no such luck").all()


def test_retrained_classifiers_judge_survival(tmp_path):
    data = toy(0)
    forest = RandomForestClassifier(3, max_depth=2)
    grid = Benchmark(
        {"a": data},
        {"forest": forest},
        {"line": "LineSearch"},
        metrics=["valid", "survival"],
        retrainings=2,
    )
    frame = grid.run(tmp_path, progress=False)
    (cell,) = grid.cells()
    X_cf = Store(tmp_path).arrays(cell)["X_cf"].reshape(len(frame), -1)
    votes = []
    for seed in (1000, 1001):
        model = clone(forest).set_params(random_state=seed)
        model.fit(data.X_train.reshape(len(data.X_train), -1), data.y_train)
        votes.append(model.predict(X_cf) == frame["target"])
    np.testing.assert_array_equal(frame["survival"], np.mean(votes, axis=0))
    assert frame["survival"].nunique() > 1


def test_under_fire_nothing_is_lost_or_written_twice(monkeypatch):
    """A few kills of the process that runs the grid and of its children; the script kills 100."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    from kills import under_fire

    record = under_fire(kills=2, seeds=1, pause=0.5, kinds=("here",))
    assert sum(record.kills.values()) == 2
    assert record.cells == 12 * record.grids
    assert (record.twice, record.different, record.left) == (0, 0, 0)
    assert (record.errors, record.stuck) == (0, 0)


def test_a_full_disk_loses_nothing_that_was_written(monkeypatch, tmp_path):
    """The run ends with the error; the next one goes on."""
    write = Store.write
    written = []

    def full(self, cell, frame, arrays):
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        written.append(cell)
        write(self, cell, frame, arrays)

    monkeypatch.setattr(Store, "write", full)
    with pytest.raises(OSError, match="No space left"):
        small().run(tmp_path, progress=False)
    monkeypatch.setattr(Store, "write", write)
    states = [Store(tmp_path).state(cell).state for cell in small().cells()]
    assert states.count("done") == 2 and states.count("missing") == 6


def test_a_cluster_gives_the_same_table_and_survives_a_worker(whole, tmp_path, monkeypatch):
    from distributed import Client, LocalCluster

    def kill_soon(pid):
        while not list(tmp_path.glob("models/*.pkl")):
            time.sleep(0.05)
        os.kill(pid, signal.SIGKILL)

    monkeypatch.setattr("contrafact.parallel.workers.LOOK", 0.1)

    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "host": "127.0.0.1",
        "dashboard_address": None,
    }
    with LocalCluster(processes=True, **options) as cluster:
        with Client(cluster) as client:
            pid, _ = client.run(os.getpid).values()
        threading.Thread(target=kill_soon, args=(pid,), daemon=True).start()
        frame = small().run(tmp_path, scheduler=cluster.scheduler_address, progress=False)
    pd.testing.assert_frame_equal(comparable(frame), comparable(whole[1]))


def test_a_cluster_without_workers_is_given_up(monkeypatch, tmp_path):
    from distributed import LocalCluster

    monkeypatch.setattr("contrafact.parallel.workers.LOOK", 0.1)
    monkeypatch.setattr("contrafact.parallel.workers.PATIENCE", 0.5)
    options = {"n_workers": 0, "host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(**options) as cluster, pytest.raises(ConnectionError, match="no workers"):
        small().run(tmp_path, scheduler=cluster.scheduler_address, progress=False)
