"""Measure the largest memory of one call of `explain`, by method, instances and length.

    make bench-memory

Every call has a process of its own. Writes benchmarks/results/memory.md.
"""

from __future__ import annotations

import resource
import subprocess
import sys

import numpy as np
import torch

import contrafact as cf
from _common import conditions, make_parser, table_head, table_row, write_page
from contrafact.nn.networks import seeded

METHODS = ("LineSearch", "NativeGuide", "CELS", "SVCE", "TSEvo", "Graft")
#: instances and length of a series
SIZES = ((500, 150), (1_000, 150), (2_000, 150), (500, 600))
REFERENCE_ROWS = 500
#: model rows per counterfactual, so that slow methods end; memory does not depend on it
CALLS = 60


def largest() -> float:
    """Return the most memory that this process had until now, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def series(n: int, length: int, seed: int) -> np.ndarray:
    """Make random walks, (n, 1, length)."""
    steps = np.random.default_rng(seed).normal(size=(n, 1, length))
    walks: np.ndarray = (steps.cumsum(2) / length**0.5).astype(np.float32)
    return walks


def measure(method: str, n: int, length: int) -> None:
    """Print how much memory a call takes above what was there before."""
    torch.set_num_threads(1)
    with seeded(0):
        net = torch.nn.Sequential(
            torch.nn.Conv1d(1, 16, 8), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool1d(1),
            torch.nn.Flatten(), torch.nn.Linear(16, 2),
        ).eval()  # fmt: skip
    X = series(REFERENCE_ROWS, length, 1)
    explainer = getattr(cf, method)().fit(net, X, net(torch.from_numpy(X)).argmax(1).numpy())
    explainer.explain(X[:4], budget=cf.Budget(calls=4 * CALLS))
    instances = series(n, length, 2)
    before = largest()
    explainer.explain(instances, budget=cf.Budget(calls=n * CALLS))
    print(largest() - before)


def main() -> None:
    """Measure all, each in its own process, and write the page."""
    parser = make_parser(__doc__)
    parser.add_argument("--one", nargs=3, help=sys.argv[0])
    arguments = parser.parse_args()
    if arguments.one:
        method, n, length = arguments.one
        measure(method, int(n), int(length))
        return
    lines = table_head("method", *(f"{n:,} x {length}" for n, length in SIZES), "KB per instance")
    for method in METHODS:
        found = []
        for n, length in SIZES:
            command = [sys.executable, __file__, "--one", method, str(n), str(length)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found.append(float(done.stdout))
        slope = (found[2] - found[1]) / (SIZES[2][0] - SIZES[1][0]) * 1024
        lines.append(table_row(method, *(f"{value:,.0f}" for value in found), f"{slope:,.1f}"))
        print(lines[-1], flush=True)
    write_page(
        "memory.md",
        "# Memory",
        "",
        "Largest memory of one call of `explain`, in MB above what the process had before: random "
        f"walks as float32, a convolutional network, {REFERENCE_ROWS} reference rows, {CALLS} "
        "model rows per counterfactual. The last column is the growth from 1,000 to 2,000 "
        "instances of length 150 (0.6 KB each).",
        "",
        *lines,
        "",
        conditions("make bench-memory"),
        "",
    )


if __name__ == "__main__":
    main()
