"""The runner: nothing is lost, nothing is run twice, nothing is believed."""

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
import pytest
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.benchmark import Benchmark, Store, progress_of, run
from contrafact.benchmark.parts import describe, select_instances
from contrafact.engine.result import Counterfactuals

METRICS = ["valid", "l2", "sparsity", "knn_distance"]


def toy(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 1, 8))
    y = np.where(X[:, 0, :4].mean(1) > 0, "up", "down")
    return cf.Dataset(f"toy{seed}", "series", X[:40], y[:40], X[40:], y[40:])


class Liar(cf.NearestUnlike):
    """Returns the instances and calls them valid."""

    def explain(self, X, target=None, **options):
        result = super().explain(X, target, **options)
        n = len(result)
        return Counterfactuals(
            **{
                **vars(result),
                "X_cf": X[result.source],
                "valid": np.ones(n, bool),
                "status": np.full(n, "valid"),
            }
        )


class Crasher(cf.NearestUnlike):
    def explain(self, X, target=None, **options):
        raise RuntimeError("no bread today")


class Dier(cf.NearestUnlike):
    def explain(self, X, target=None, **options):
        os._exit(3)


class Hanger(cf.NearestUnlike):
    def explain(self, X, target=None, **options):
        time.sleep(1000)


class Blank(cf.NearestUnlike):
    """Returns NaN for every other row, and forgets the last."""

    def explain(self, X, target=None, **options):
        result = super().explain(X, target, **options)[:-1]
        X_cf = np.array(result.X_cf)
        X_cf[::2] = np.nan
        return Counterfactuals(**{**vars(result), "X_cf": X_cf})


def small(**options):
    settings = {"seeds": [0, 1], "instances": 6, "metrics": METRICS, **options}
    explainers = {"line": "LineSearch", "mask": {"method": "RandomMask", "options": {"k": 2}}}
    return Benchmark(
        {"a": toy(0), "b": toy(1)}, {"LR": LogisticRegression()}, explainers, **settings
    )


def comparable(frame):
    """Without what a clock says."""
    return frame.drop(columns=["seconds", "fit_seconds"])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return folder, small().run(folder, progress=False)


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


def test_arrays_are_kept(whole):
    folder, frame = whole
    cell = small().cells()[0]
    arrays = Store(folder).arrays(cell)
    own = frame[
        (frame[["dataset", "explainer"]] == [cell.dataset, cell.explainer]).all(axis=1)
        & (frame["seed"] == 0)
    ]
    distance = np.linalg.norm((arrays["X_cf"] - arrays["X"]).reshape(len(own), -1), axis=1)
    np.testing.assert_allclose(distance, own["l2"])


def test_what_changes_a_cell_changes_its_key():
    def keys(grid):
        return {cell.key for cell in grid.cells()}

    base = keys(small())
    assert base == keys(small())
    for other in (
        small(seeds=[2, 3]),
        small(instances=7),
        small(selection="random"),
        small(metrics=["l1"]),
        small(time_limit=5.0),
        Benchmark({"a": toy(2)}, {"LR": LogisticRegression()}, {"line": "LineSearch"}),
        Benchmark(
            {"a": toy(0)},
            {"LR": LogisticRegression(C=2)},
            {"line": {"method": "LineSearch", "steps": 4}},
        ),
    ):
        assert not base & keys(other)


@pytest.fixture(scope="module")
def rogues(tmp_path_factory):
    explainers = {
        "honest": cf.NearestUnlike(),
        "liar": Liar(),
        "crasher": Crasher(),
        "dier": Dier(),
        "blank": Blank(),
        "hanger": Hanger(),
    }
    grid = Benchmark(
        {"a": toy(0)},
        {"LR": LogisticRegression()},
        explainers,
        instances=6,
        metrics=METRICS,
        time_limit=40,
    )
    folder = tmp_path_factory.mktemp("rogues")
    return grid, folder, grid.run(folder, n_jobs=2, progress=False)


def test_rogues_are_scored_truthfully(rogues):
    frame = rogues[2].set_index("explainer")
    assert frame.groupby("explainer").size().to_dict() == dict.fromkeys(frame.index.unique(), 6)
    assert frame.loc["honest", "valid"].all()
    assert not frame.loc["liar", "valid"].any() and (frame.loc["liar", "status"] == "invalid").all()
    assert frame.loc["liar", "message"].str.contains("claimed valid").all()
    assert frame.loc["crasher", "message"].str.contains("no bread today").all()
    assert frame.loc["dier", "message"].str.contains("exit code 3").all()
    assert frame.loc["hanger", "message"].str.contains("ended after 40 seconds").all()
    assert not frame.loc[["crasher", "dier", "hanger"], "valid"].any()


def test_nan_and_missing_rows_are_no_results(rogues):
    blank = rogues[2].query("explainer == 'blank'").sort_values("source")
    assert blank["valid"].tolist() == [False, True, False, True, False, False]
    assert blank["l2"].isna().tolist() == [True, False, True, False, True, True]
    assert blank["message"].iloc[5] == "not returned" and "NaN" in blank["message"].iloc[0]


def test_failed_cells_are_told_and_retried_on_demand(rogues):
    grid, folder, _ = rogues
    states = progress_of(grid, Store(folder)).set_index("explainer")
    assert states["failed"].to_dict() == {
        "honest": 0, "liar": 0, "crasher": 1, "dier": 1, "blank": 0, "hanger": 1
    }  # fmt: skip
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


KILLED = """
    import sys
    sys.path.insert(0, {here!r})
    from test_runner import small
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
        # At a random moment after it got going: some cells further than it was, or in the middle of one.
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


def test_selection_is_stratified_by_margin():
    data = toy(0)
    model = cf.as_classifier(LogisticRegression().fit(data.X_train[:, 0], data.y_train))
    X = np.concatenate([data.X_train, data.X_test])
    rows, target = select_instances(model, X, 12, "stratified", 0)
    proba = np.sort(model.predict_proba(X), axis=1)
    quartile = np.argsort(np.argsort(proba[:, -1])) * 4 // len(X)
    assert np.bincount(quartile[rows]).tolist() == [3, 3, 3, 3]
    assert (target != model.predict(X[rows])).all()
    assert len(select_instances(model, X, None, "all", 0)[0]) == len(X)
    with pytest.raises(ValueError, match="selection must be"):
        select_instances(model, X, 3, "worst", 0)


def test_descriptions_tell_parts_apart():
    assert describe(LogisticRegression(C=2)) != describe(LogisticRegression())
    assert describe(toy(0)) == describe(toy(0)) != describe(toy(1))
    assert describe(np.zeros(3)) != describe(np.zeros((3, 1)))


def test_toml(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text(
        """
        datasets = ["ItalyPowerDemand"]
        seeds = [0, 1]
        instances = 4
        metrics = ["l2"]

        [classifiers]
        LR = { model = "sklearn.linear_model:LogisticRegression", max_iter = 500 }

        [explainers]
        nearest = "NearestUnlike"
        line = { method = "LineSearch", steps = 6, options = { confidence = 0.6 } }
        """
    )
    grid = Benchmark.from_toml(path)
    assert len(grid.cells()) == 4
    path.write_text(path.read_text() + "\n[classifier]\n")
    with pytest.raises(ValueError, match=r"unknown keys \['classifier'\]"):
        Benchmark.from_toml(path)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"datasets": []}, "datasets is empty"),
        ({"explainers": {}}, "explainers is empty"),
        ({"explainers": ["LineSearch"]}, "explainers must be a table"),
    ],
)
def test_bad_grids(parts, message):
    told = {
        "datasets": ["GunPoint"],
        "classifiers": {"m": "mlp"},
        "explainers": {"l": "LineSearch"},
        **parts,
    }
    with pytest.raises((ValueError, TypeError), match=message):
        Benchmark(**told)
