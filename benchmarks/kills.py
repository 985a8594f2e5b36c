"""Kill a benchmark again and again, and compare its tables with those of an undisturbed run.

    make bench-kills            100 kills, about half of them on a Dask cluster

A kill (SIGKILL) hits, at a random moment, the process that runs the grid, one of the child
processes that do its tasks, or a worker of the cluster. A run whose process was killed is started
again. When a grid is finished, its table and its counterfactuals must be those of the undisturbed
run, no finished cell or classifier may have been written twice, nothing may be left of killed
processes, and no run may stop making progress or end with an error.
Writes benchmarks/results/kills.md.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from argparse import SUPPRESS
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import contrafact as cf
from _common import conditions, make_parser, table_head, table_row, write_page
from contrafact.benchmark import Benchmark, Store

#: seconds without a new file or a kill after which a run counts as stuck
PATIENCE = 900.0
#: seconds that children of killed processes have to leave
GRACE = 30.0
#: part of the command line of a child process
CHILD = "contrafact.parallel.child"
#: share of the kills that do not wait for the run to get going again after the last one
EARLY = 0.2
#: kills of one grid
KILLS_PER_GRID = 10
#: what is killed, as the page calls it
VICTIMS = {
    "parent": "the process that runs the grid",
    "child": "a child process that runs its tasks",
    "worker": "a worker of the cluster",
}
#: measured times in the table, which differ from run to run
CLOCKS = ["seconds", "fit_seconds"]


def make_grid(seeds: int) -> Benchmark:
    """Return a grid of quick cells: 2 data sets × 2 classifiers × 3 methods × seeds."""

    def toy(seed: int) -> cf.Dataset:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 1, 8))
        y = np.where(X[:, 0, :4].mean(1) > 0, "up", "down")
        return cf.Dataset(f"toy{seed}", "series", X[:40], y[:40], X[40:], y[40:])

    return Benchmark(
        {"a": toy(0), "b": toy(1)},
        {
            "logistic": "sklearn.linear_model:LogisticRegression",
            "forest": {"model": "sklearn.ensemble:RandomForestClassifier", "n_estimators": 5},
        },
        {
            "line": "LineSearch",
            "mask": {"method": "RandomMask", "options": {"k": 2}},
            "nearest": "NearestUnlike",
        },
        seeds=range(seeds),
        instances=6,
        metrics=["valid", "l2", "sparsity", "knn_distance"],
    )


# --- processes -----------------------------------------------------------------------------------


def processes() -> dict[int, tuple[int, str]]:
    """Return the parent and the command line of every process, by its number."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            state = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if state[0] != "Z":
            found[int(folder.name)] = (int(state[1]), words)
    return found


def children_of(parents: set[int], words: str) -> list[int]:
    """Return the living children of some processes whose command line contains these words."""
    return [
        number
        for number, (parent, command) in processes().items()
        if parent in parents and words in command
    ]


class Cluster:
    """A Dask scheduler, and two workers that are started again when they die.

    Not the nannies of a LocalCluster: they give up a worker that is killed while it starts.
    """

    def __enter__(self) -> Cluster:
        from distributed import LocalCluster

        self.scheduler = LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None)
        self.address = self.scheduler.scheduler_address
        self.workers = [self._start(), self._start()]
        return self

    def __exit__(self, *_: Any) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait()
        self.scheduler.close()

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a worker of one thread."""
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--memory-limit", "0"]
        words = [sys.executable, "-m", "distributed.cli.dask_worker", self.address, *options]
        return subprocess.Popen(words, stderr=subprocess.DEVNULL)

    def mend(self) -> None:
        """Start workers that died again."""
        self.workers = [
            worker if worker.poll() is None else self._start() for worker in self.workers
        ]


# --- one grid under fire -------------------------------------------------------------------------


@dataclass
class Record:
    """What happened so far."""

    kills: Counter[str] = field(default_factory=Counter)
    cells: int = 0
    grids: int = 0
    starts: int = 0
    twice: int = 0
    different: int = 0
    left: int = 0
    stuck: int = 0
    errors: int = 0
    longest: float = 0.0


class Fire:
    """Run a grid in a folder, and kill parts of the run until it is finished.

    Parameters
    ----------
    folder : Path
        Where the cells are kept.
    seeds : int
        Of the grid.
    cluster : Cluster or None
        Where the tasks run; None for processes here.
    rng : Generator
        Draws moments and victims.
    record : Record
        What happened; filled in.
    pause : float
        Mean seconds between two kills.
    limit : int
        Kills in all, with those that the record has already.
    """

    def __init__(
        self,
        folder: Path,
        seeds: int,
        cluster: Cluster | None,
        rng: np.random.Generator,
        record: Record,
        pause: float,
        limit: int,
    ) -> None:
        self.folder = folder
        self.seeds = seeds
        self.cluster = cluster
        self.rng = rng
        self.record = record
        self.pause = pause
        self.limit = limit
        self.is_due = False
        self.written: dict[Path, int] = {}
        self.seen: set[int] = set()

    def run(self) -> bool:
        """Run until the grid is finished; return whether it got there without being stuck."""
        process = self._start()
        last_event = time.monotonic()
        next_kill = self._next_kill()
        while True:
            time.sleep(0.05)
            code = process.poll()
            if code == 0:
                break
            if code is not None:
                self.record.errors += code != -signal.SIGKILL
                process = self._start()
            if self.cluster is not None:
                self.cluster.mend()
            if self._look():
                self.is_due = True
                self.record.longest = max(self.record.longest, time.monotonic() - last_event)
                last_event = time.monotonic()
            if time.monotonic() > next_kill and sum(self.record.kills.values()) < self.limit:
                if self._kill(process):
                    last_event = time.monotonic()
                next_kill = self._next_kill()
            if time.monotonic() - last_event > PATIENCE:
                self.record.stuck += 1
                process.kill()
                return False
        self._look()
        return True

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the process that runs the grid."""
        self.record.starts += 1
        words = [sys.executable, __file__, "--run", str(self.folder), "--seeds", str(self.seeds)]
        if self.cluster is not None:
            words += ["--scheduler", self.cluster.address]
        return subprocess.Popen(words)

    def _next_kill(self) -> float:
        """Draw the moment of the next kill."""
        return time.monotonic() + self.rng.exponential(self.pause)

    def _look(self) -> bool:
        """Return whether something was written since the last look; note what was written twice."""
        before = self.written
        files = [*self.folder.glob("cells/[!.]*"), *self.folder.glob("models/[!.]*")]
        self.written = {path: path.stat().st_mtime_ns for path in files}
        for path, at in self.written.items():
            # A cell is finished when its table is there, which is written after its arrays.
            finished = path.with_suffix(".parquet") if path.suffix == ".npz" else path
            self.record.twice += finished in before and before.get(path) != at
        return self.written.keys() != before.keys()

    def _kill(self, process: subprocess.Popen[bytes]) -> bool:
        """Kill a part of the run; return whether there was one to kill."""
        victims = self._victims(process)
        self.seen.update(victims["child"])
        if not self.is_due:
            return False
        kinds = [kind for kind, numbers in victims.items() if numbers]
        kind = str(self.rng.choice(kinds))
        victim = int(self.rng.choice(victims[kind]))
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            return False  # it has ended by itself
        where = "here" if self.cluster is None else "cluster"
        self.record.kills[f"{kind}, {where}"] += 1
        self.is_due = bool(self.rng.random() < EARLY)
        return True

    def _victims(self, process: subprocess.Popen[bytes]) -> dict[str, list[int]]:
        """Return the processes of the run by kind."""
        workers = []
        if self.cluster is not None:
            workers = [worker.pid for worker in self.cluster.workers]
        parents = set(workers) or {process.pid}
        return {
            "parent": [process.pid],
            "child": children_of(parents, CHILD),
            "worker": workers,
        }

    def count_left(self) -> int:
        """Return how many child processes outlived the processes that they belonged to."""
        workers = [] if self.cluster is None else self.cluster.workers
        owners = {worker.pid for worker in workers}
        deadline = time.monotonic() + GRACE
        while True:
            living = processes()
            known = [living[number] for number in self.seen & living.keys()]
            orphans = [owner for owner, words in known if CHILD in words and owner not in owners]
            if not orphans or time.monotonic() > deadline:
                return len(orphans)
            time.sleep(0.5)


def table_of(grid: Benchmark, folder: Path) -> pd.DataFrame:
    """Return the table of a grid without what a clock says."""
    return grid.results(folder).drop(columns=CLOCKS)


def is_same(grid: Benchmark, one: Path, two: Path) -> bool:
    """Return whether two folders hold the same table and the same counterfactuals."""
    if not table_of(grid, one).equals(table_of(grid, two)):
        return False
    pairs = [(Store(one).arrays(cell), Store(two).arrays(cell)) for cell in grid.cells()]
    return all(np.array_equal(a["X_cf"], b["X_cf"], equal_nan=True) for a, b in pairs)


def under_fire(
    kills: int,
    seeds: int,
    pause: float,
    kinds: tuple[str, ...] = ("here", "cluster"),
    random_state: int = 0,
) -> Record:
    """Run grids, here and on a cluster in turn, until there were that many kills.

    Parameters
    ----------
    kills : int
        How many.
    seeds : int
        Seeds of each grid: it has 12 cells for each.
    pause : float
        Mean seconds between two kills.
    kinds : tuple of str, default=("here", "cluster")
        Where the grids run, in turn.
    random_state : int, default=0
        Seed of moments and victims.

    Returns
    -------
    Record
        What happened.
    """
    record = Record()
    rng = np.random.default_rng(random_state)
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place) / "whole"
        make_grid(seeds).run(whole, progress=False)
        while sum(record.kills.values()) < kills and not record.stuck:
            folder = Path(place) / str(record.grids)
            limit = min(kills, sum(record.kills.values()) + KILLS_PER_GRID)
            if kinds[record.grids % len(kinds)] == "here":
                _one_grid(Fire(folder, seeds, None, rng, record, pause, limit), whole)
            else:
                with Cluster() as cluster:
                    _one_grid(Fire(folder, seeds, cluster, rng, record, pause, limit), whole)
            print(record, flush=True)
    return record


def _one_grid(fire: Fire, whole: Path) -> None:
    """Run one grid to its end, and compare it with the undisturbed run."""
    record = fire.record
    is_finished = fire.run()
    record.grids += 1
    record.left += fire.count_left()
    if not is_finished:
        return
    grid = make_grid(fire.seeds)
    table = table_of(grid, fire.folder)
    record.cells += len(table.drop_duplicates(["dataset", "classifier", "explainer", "seed"]))
    record.different += not is_same(grid, fire.folder, whole)
    record.left += len([*fire.folder.glob("**/.contrafact-draft-*")])


def write_results(record: Record, command: str, random_state: int) -> None:
    """Write the page."""
    checks = {
        "grids run to their end": record.grids - record.stuck,
        "cells in them": record.cells,
        "starts of a run: one for each grid, one after each kill of its process": record.starts,
        "**grids whose table or counterfactuals differ from the undisturbed run**": (
            record.different
        ),
        "**files of finished cells, and trained classifiers, written twice**": record.twice,
        "**drafts and processes left over**": record.left,
        "**runs that ended with an error**": record.errors,
        "**runs that were stuck**": record.stuck,
        "longest time without a new file or a kill, seconds": f"{record.longest:.0f}",
    }
    write_page(
        "kills.md",
        "# A benchmark under fire",
        "",
        f"{sum(record.kills.values())} kills (SIGKILL) at random moments of benchmarks that run in "
        "two child processes of this machine, or on two workers of a Dask cluster. A run whose "
        "process was killed is started again. Bar: the lines in bold are 0.",
        "",
        f"{conditions(command, ['distributed'])} Seed of moments and victims: {random_state}. A "
        f"run counts as stuck after {PATIENCE:g} seconds without a new file or a kill.",
        "",
        *table_head("killed", "on this machine", "on a cluster"),
        *[
            table_row(name, record.kills[f"{kind}, here"], record.kills[f"{kind}, cluster"])
            for kind, name in VICTIMS.items()
        ],
        "",
        *table_head("seen", "count"),
        *[table_row(name, value) for name, value in checks.items()],
        "",
    )


def main() -> None:
    """Kill, and write the page; or be the process that is killed."""
    parser = make_parser(__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--pause", type=float, default=1.0, help="mean seconds between two kills")
    parser.add_argument("--random-state", type=int, default=0, help="of moments and victims")
    parser.add_argument("--run", type=Path, help=SUPPRESS)
    parser.add_argument("--scheduler", help=SUPPRESS)
    args = parser.parse_args()
    if args.run is not None:
        grid = make_grid(args.seeds)
        grid.run(args.run, n_jobs=2, scheduler=args.scheduler, progress=False)
        return
    record = under_fire(args.kills, args.seeds, args.pause, random_state=args.random_state)
    write_results(record, "make bench-kills", args.random_state)


if __name__ == "__main__":
    main()
