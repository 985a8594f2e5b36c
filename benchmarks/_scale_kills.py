"""Kills of scale.py: workers, their processes and the client die at random moments."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import contrafact as cf
from _scale_cases import CASES, make_model, write_rows
from kills import CHILD, Cluster, children_of

ROWS = 20_000
CHUNK = 250
#: mean seconds between two kills
PAUSE = 4.0
#: seconds without a new file after which a run counts as stuck
PATIENCE = 300.0

CLIENT = """
import sys
import contrafact as cf
from _scale_kills import arguments
cf.explain_dataset(**arguments(sys.argv[1], sys.argv[2]), scheduler=sys.argv[3])
"""


def arguments(source: str, out: str) -> dict[str, Any]:
    """Return the arguments of `explain_dataset`; the same in every process."""
    model, X, y = make_model(CASES["24 steps"])
    options = {"reference": (X, y), "method": "CELS", "chunk": CHUNK}
    return {"model": model, "source": source, "out": out, **options}


def kill_again_and_again(kills: int, folder: Path) -> dict[str, Any]:
    """Run the job until it was killed that often, and compare its tables with an undisturbed one.

    Returns
    -------
    dict
        What was killed, and what was found: all counts but those of kills and runs should be 0.
    """
    source = write_rows(CASES["24 steps"], ROWS, folder)
    calm = folder / "kills-calm"
    shutil.rmtree(calm, ignore_errors=True)
    one = cf.explain_dataset(**arguments(str(source), str(calm)), workers=2)
    rng = np.random.default_rng(0)
    killed: Counter[str] = Counter()
    found: Counter[str] = Counter()
    with Cluster() as cluster:
        while sum(killed.values()) < kills:
            out = folder / "kills-out"
            shutil.rmtree(out, ignore_errors=True)
            _run_under_fire(source, out, cluster, kills, rng, killed, found)
            _compare(one, cf.Counterfactuals.open(out), found)
            found["tables"] += 1
            print(dict(killed), dict(found), flush=True)
    seen = {name: found[name] for name in ("tables", "starts", *PROBLEMS)}
    return {"rows": ROWS, "chunk": CHUNK, "kills": dict(killed), "seen": seen}


#: what should not be found
PROBLEMS = ("different", "lost", "twice", "rewritten", "stuck", "errors")


def _run_under_fire(
    source: Path,
    out: Path,
    cluster: Cluster,
    kills: int,
    rng: np.random.Generator,
    killed: Counter[str],
    found: Counter[str],
) -> None:
    """Run the job to its end; what is killed is started again."""
    client = _start(source, out, cluster, found)
    written: dict[str, int] = {}
    due = time.monotonic() + rng.exponential(PAUSE)
    last = time.monotonic()
    while True:
        time.sleep(0.05)
        if _look(out, written, found):
            last = time.monotonic()
        if client.poll() is not None:
            found["errors"] += client.returncode != 0
            return
        if time.monotonic() - last > PATIENCE:
            found["stuck"] += 1
            client.kill()
            client.wait()
            return
        if time.monotonic() < due or sum(killed.values()) >= kills:
            continue
        due = time.monotonic() + rng.exponential(PAUSE)
        victim = str(rng.choice(["client", "worker", "child of a worker"]))
        if victim == "client":
            client.kill()
            client.wait()
            client = _start(source, out, cluster, found)
        elif victim == "worker":
            cluster.workers[int(rng.integers(2))].kill()
            time.sleep(0.2)
            cluster.mend()
        else:
            children = children_of({worker.pid for worker in cluster.workers}, CHILD)
            if not children:
                continue
            os.kill(int(rng.choice(children)), signal.SIGKILL)
        killed[victim] += 1


def _start(source: Path, out: Path, cluster: Cluster, found: Counter[str]) -> Any:
    """Start the process that hands out the chunks."""
    found["starts"] += 1
    words = [sys.executable, "-c", CLIENT, str(source), str(out), cluster.address]
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    return subprocess.Popen(words, env={**os.environ, "PYTHONPATH": path})


def _look(out: Path, written: dict[str, int], found: Counter[str]) -> bool:
    """Note new files, and finished ones that were written again; return whether any is new."""
    before = len(written)
    for path in out.glob("part-*"):
        stamp = path.stat().st_mtime_ns
        if written.setdefault(path.name, stamp) != stamp:
            found["rewritten"] += 1
            written[path.name] = stamp
    return len(written) > before


def _compare(one: Any, two: Any, found: Counter[str]) -> None:
    """Compare a table with the undisturbed one, row by row."""
    lines = two.to_frame()
    found["lost"] += len(set(range(ROWS)) - set(lines["source"].tolist()))
    found["twice"] += int(lines["source"].duplicated().sum())
    exact = ("X_cf", "source", "cf_labels", "target", "status", "message")
    for a, b in zip(one, two, strict=True):
        found["different"] += not all(
            np.array_equal(getattr(a, name), getattr(b, name)) for name in exact
        )
