"""The runner: nothing is lost, nothing is run twice, and failures stay in their cells."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from small_grid import METRICS, Crasher, comparable, small, toy

from contrafact.benchmark import Benchmark, Store, progress_of, run


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


KILLED = """
    import sys
    sys.path.insert(0, {here!r})
    from small_grid import small
    small().run({folder!r}, n_jobs=2, progress=False)
"""


def test_killed_ten_times_nothing_is_lost_or_run_twice(whole, tmp_path):
    program = textwrap.dedent(KILLED).format(here=str(Path(__file__).parent), folder=str(tmp_path))
    rng = np.random.default_rng(0)
    seen = {}
    for _ in range(10):
        process = subprocess.Popen([sys.executable, "-c", program])
        done = (
            len(list((tmp_path / "cells").glob("*.parquet")))
            if (tmp_path / "cells").exists()
            else 0
        )
        deadline = time.monotonic() + 60
        # At a random moment after it got going: some cells further than it was, or in the middle of
        # one.
        while process.poll() is None and time.monotonic() < deadline:
            now = len(list(tmp_path.glob("cells/*.parquet"))) + len(
                list(tmp_path.glob("models/*.pkl"))
            )
            if now > done:
                break
            time.sleep(0.02)
        time.sleep(rng.uniform(0, 0.3))
        process.kill()  # its own children find their input closed, and leave
        process.wait()
        for path in (tmp_path / "cells").glob("[!.]*.parquet"):
            assert seen.setdefault(path, path.stat().st_mtime_ns) == path.stat().st_mtime_ns
    frame = small().run(tmp_path, n_jobs=2, progress=False)
    pd.testing.assert_frame_equal(comparable(frame), comparable(whole[1]))
    assert all(path.stat().st_mtime_ns == at for path, at in seen.items())


def test_a_cluster_gives_the_same_table_and_survives_a_worker(whole, tmp_path):
    from distributed import Client, LocalCluster

    def kill_soon(pid):
        while not list(tmp_path.glob("models/*.pkl")):
            time.sleep(0.05)
        os.kill(pid, signal.SIGKILL)

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
