"""Measure how long a first answer takes: commands that list something, and `explain` of one row.

    make bench-first [BEFORE=folder]

`BEFORE` is the `src` folder of an earlier version, measured in turns with this one. tscf-eval is
measured where it is installed. Writes benchmarks/results/first_answer.md.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from _common import conditions, make_parser, package_versions, table_head, table_row, write_page

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "contrafact methods": ["-m", "contrafact", "methods"],
    "contrafact datasets": ["-m", "contrafact", "datasets"],
    "contrafact --help": ["-m", "contrafact", "--help"],
}
SOURCES = Path(__file__).parent.parent / "src"
ROWS = 40


def time_commands(repeats: int) -> dict[str, float]:
    """Return the median seconds of each command, measured in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(repeats):
        for name, arguments in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
            seconds[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in seconds.items()}


class Stopwatch:
    """Add up the seconds that a model spends in its own methods."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._inside = False

    def timed(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a method of the model; one that calls another is timed once."""

        def call(*arguments: Any) -> Any:
            if self._inside:
                return ask(*arguments)
            self._inside = True
            start = time.process_time()
            try:
                return ask(*arguments)
            finally:
                self.seconds += time.process_time() - start
                self._inside = False

        return call


def time_rows() -> dict[str, list[float]]:
    """Return milliseconds per row of one-row requests: all, and beyond the model's own passes."""
    import torch
    from sklearn.linear_model import LogisticRegression

    import contrafact as cf
    from contrafact.nn.networks import seeded

    torch.set_num_threads(1)
    data = cf.load_dataset("GunPoint")
    y = np.unique(data.y_train, return_inverse=True)[1]
    X = data.X_train.astype(np.float32)
    with seeded(0):
        net = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(150, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2)
        )
        optimizer = torch.optim.Adam(net.parameters(), 1e-2)
        for _ in range(200):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(torch.from_numpy(X)), torch.tensor(y)).backward()
            optimizer.step()
    regression = LogisticRegression(max_iter=1000).fit(X.reshape(len(X), -1), y)
    found = {}
    for name, model in (("logistic regression", regression), ("network", net.eval())):
        watch = Stopwatch()
        for method in ("predict_proba", "predict", "forward"):
            if hasattr(model, method):
                setattr(model, method, watch.timed(getattr(model, method)))
        for method in (cf.NativeGuide, cf.LineSearch):
            explainer = method().fit(model, X, y)
            found[f"{method.__name__}, {name}"] = one_by_one(
                lambda x, explainer=explainer: explainer.explain(x[None]), data.X_test, watch
            )
        if importlib.util.find_spec("tscf_eval") and name == "logistic regression":
            from tscf_eval.counterfactuals import NativeGuide

            peer = NativeGuide(model, (X[:, 0], y), method="ng", distance="euclidean")
            peer.predict_proba = watch.timed(peer.predict_proba)
            found[f"tscf-eval, {name}"] = one_by_one(
                lambda x, peer=peer: peer.explain(x[0]), data.X_test, watch
            )
    return found


def one_by_one(explain: Callable[[Any], Any], X: Any, watch: Stopwatch) -> list[float]:
    """Return median milliseconds of processor time per row, all and without the model's."""
    for x in X[:5]:
        explain(x)
    times = []
    for x in X[:ROWS]:
        watch.seconds = 0.0
        start = time.process_time()
        explain(x)
        whole = time.process_time() - start
        times.append((whole, whole - watch.seconds))
    return [1000 * median(column) for column in zip(*times, strict=True)]


def rows_of(source: Path) -> dict[str, list[float]]:
    """Run `time_rows` with the package in a folder, in a process of its own."""
    path = os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--rows"],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    rows: dict[str, list[float]] = json.loads(done.stdout)
    return rows


def main() -> None:
    """Measure, and write the page."""
    parser = make_parser(__doc__)
    parser.add_argument("--before", type=Path, help="folder src of an earlier version")
    parser.add_argument("--rows", action="store_true", help="only print the times of one row")
    arguments = parser.parse_args()
    if arguments.rows:
        print(json.dumps(time_rows()))
        return
    commands = time_commands(11)
    bare = commands["python -c pass"]
    lines = table_head("command", "seconds", "beside `python -c pass`")
    lines += [table_row(f"`{n}`", f"{s:.3f}", f"{s / bare:.1f}") for n, s in commands.items()]
    sources = [source for source in (arguments.before, SOURCES) if source]
    runs = {source: [rows_of(source) for _ in range(3)] for source in sources}
    now = runs[SOURCES]
    head = ["one row of GunPoint", "ms", "ms beyond the model's passes"]
    lines += ["", *table_head(*head, *(["ms beyond, before", "ratio"] if arguments.before else []))]
    for name in now[0]:
        whole, beyond = (min(run[name][i] for run in now) for i in (0, 1))
        cells = [name, f"{whole:.2f}", f"{beyond:.2f}"]
        if arguments.before:
            earlier = min(run[name][1] for run in runs[arguments.before])
            cells += [f"{earlier:.2f}", f"{beyond / earlier:.2f}"]
        lines.append(table_row(*cells))
    packages = ["tscf-eval"] if importlib.util.find_spec("tscf_eval") else []
    write_page(
        "first_answer.md",
        "# First answers",
        "",
        "Commands are medians of 11 runs in turns. Rows are explained one by one, each in a "
        "request of its own, in processor time on one thread: the median of 40 rows, the best of "
        "three processes. `tscf-eval` is its NativeGuide, by windows, of the nearest neighbor in "
        "Euclidean distance; it grows the window value by value, contrafact bisects, and checks "
        "what it returns.",
        "",
        *lines,
        "",
        conditions("make bench-first", packages),
        "",
    )
    print("\n".join(lines), package_versions("contrafact"))


if __name__ == "__main__":
    main()
