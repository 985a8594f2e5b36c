"""A cluster of dask.distributed gives the same table, whatever becomes of its workers."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from scale_samples import check_same, power

import contrafact as cf
from contrafact.process_state import keeping_random_numbers


@pytest.fixture(scope="module")
def cluster():
    from distributed import LocalCluster

    with (
        keeping_random_numbers(),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module")
def one():
    data, model = power()
    return cf.explain(model, data.X_test[:120], reference=data, method="NativeGuide")


def run(cluster, source, out, chunk):
    data, model = power()
    return cf.explain_dataset(
        model,
        source,
        out,
        reference=data,
        method="NativeGuide",
        chunk=chunk,
        scheduler=cluster.scheduler_address,
    )


def test_workers_read_a_file_and_write_the_folder(cluster, one, tmp_path):
    np.save(tmp_path / "X.npy", power()[0].X_test[:120])
    check_same(one, run(cluster, tmp_path / "X.npy", tmp_path / "out", 30)[:])


def test_rows_are_sent_and_come_back_where_nothing_is_shared(cluster, one, tmp_path, monkeypatch):
    """The folder of the run is a link that only this process knows."""
    from contrafact.scale import jobs

    class Hidden(jobs.ResultFolder):
        def __reduce__(self):
            nowhere = self.path.with_name("nowhere")
            return jobs.ResultFolder, (nowhere, self.manifest)

    monkeypatch.setattr("contrafact.scale.explaining.ResultFolder", Hidden)
    found = run(cluster, power()[0].X_test[:120], tmp_path / "out", 30)
    assert not (tmp_path / "nowhere").exists()
    check_same(one, found[:])


def test_a_worker_that_is_killed_loses_nothing(cluster, one, tmp_path, monkeypatch):
    from distributed import Client

    monkeypatch.setattr("contrafact.parallel.workers.LOOK", 0.1)
    with Client(cluster, set_as_default=False) as client:
        pid, _ = client.run(os.getpid).values()

    def kill_soon():
        while not list(tmp_path.glob("out/part-*")):
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_soon, daemon=True)
    killer.start()
    found = run(cluster, power()[0].X_test[:120], tmp_path / "out", 4)
    killer.join()
    check_same(one, found[:])
    assert len(found) == 120
