"""Search for the nearest unlike neighbors of 1,000 queries in 2,000,000 series on disk.

    make bench-references

The reference is a float32 file that is mapped into memory. The search is compared with the bare
product: the same number of multiplications, in blocks of the same size, without norms, choice of
rows by class or selection. Writes benchmarks/results/large_references.md.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch

import contrafact as cf
from _common import Array, conditions, make_parser, table_head, table_row, write_page
from contrafact.guides import NearestUnlikeNeighbor
from contrafact.guides.proposals import MAX_SCORES
from contrafact.nn.networks import seeded

MEGABYTE = 2**20


def make_series(data: cf.Dataset, n: int, seed: int) -> Array:
    """Blend random pairs of GunPoint's series and add noise, (n, 1, length)."""
    random = np.random.default_rng(seed)
    X = np.concatenate([data.X_train, data.X_test]).astype(np.float32)
    first, second = random.integers(len(X), size=(2, n))
    share = random.random((n, 1, 1), dtype=np.float32)
    noise = 0.05 * random.standard_normal((n, *X.shape[1:]), dtype=np.float32)
    blend: Array = X[first] + share * (X[second] - X[first]) + noise
    return blend


def write_reference(path: Path, data: cf.Dataset, n: int) -> None:
    """Write n series to a file, block by block."""
    shape = (n, *data.X_train.shape[1:])
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    block = 50_000
    for start in range(0, n, block):
        size = min(block, n - start)
        file[start : start + size] = make_series(data, size, 1 + start)
    file.flush()


def train_network(data: cf.Dataset) -> torch.nn.Module:
    """Train a small network on GunPoint."""
    x = torch.from_numpy(data.X_train).float()
    y = torch.from_numpy(np.unique(data.y_train, return_inverse=True)[1])
    with seeded(0):
        net = torch.nn.Sequential(
            torch.nn.Flatten(),
            torch.nn.Linear(x[0].numel(), 32),
            torch.nn.ReLU(),
            torch.nn.Linear(32, 2),
        )
        optimizer = torch.optim.Adam(net.parameters(), 1e-2)
        for _ in range(200):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
    return net.eval()


def bare_product(guide: NearestUnlikeNeighbor, queries: Array, target: Array) -> float:
    """Return the seconds of the processor that the products of the search take alone."""
    rows = guide.candidates_.flatten(1)
    seconds = 0.0
    for c in range(len(guide.classifier_.classes)):
        x = torch.from_numpy(queries[target == c]).flatten(1)
        n_rows = int((guide.candidate_class_ == c).sum())
        size = max(1, MAX_SCORES // max(len(x), rows.shape[1]))
        product = x.new_empty(len(x) * size)
        start = time.process_time()
        for block in rows[:n_rows].split(size):
            torch.mm(x, block.T, out=product[: len(x) * len(block)].view(len(x), len(block)))
        seconds += time.process_time() - start
    return seconds


def own_megabytes() -> float:
    """Return the largest memory the process ever had, files that are mapped included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure, and write the page."""
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    data = cf.load_dataset("GunPoint")
    net = train_network(data)
    queries = make_series(data, arguments.queries, 0)
    target = 1 - cf.as_classifier(net).verdict(queries).label.numpy()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reference.npy"
        before = own_megabytes()
        write_reference(path, data, arguments.rows)
        size = path.stat().st_size / MEGABYTE
        X = np.load(path, mmap_mode="r")
        seconds = {}
        for kind in ("asked", "read"):
            guide = None  # two mappings of one file would count twice
            start = time.process_time()
            guide = NearestUnlikeNeighbor(answers=Path(folder) / "answers.npz").fit(net, X)
            seconds[kind] = time.process_time() - start
        times = []
        for _ in range(arguments.repeats):
            start = time.process_time()
            guide.guide(queries, target)
            times.append((time.process_time() - start, bare_product(guide, queries, target)))
        above = own_megabytes() - before - size
    search = median(pair[0] for pair in times)
    product = median(pair[1] for pair in times)
    ratio = median(pair[0] / pair[1] for pair in times)
    shape = f"{arguments.rows:,} x {X[0].size}"
    lines = [
        *table_head("what", "measured"),
        table_row("reference", f"{shape} float32, {size:,.0f} MB on disk, mapped for reading"),
        table_row("fit, the model asked about every row", f"{seconds['asked']:.1f} s"),
        table_row("fit, its answers read from the file beside it", f"{seconds['read']:.1f} s"),
        table_row(f"search for {arguments.queries:,} queries", f"{search:.2f} s"),
        table_row("bare blocked product", f"{product:.2f} s"),
        table_row("ratio", f"{ratio:.2f}"),
        table_row("largest memory above what was there before and the data", f"{above:,.0f} MB"),
    ]
    threads = torch.get_num_threads()
    write_page(
        "large_references.md",
        "# Large references",
        "",
        "How long the search for the nearest unlike neighbors takes in a large reference, and how "
        "much memory. The series are blends of two series of GunPoint with noise; the model is a "
        "network of two layers. Queries look for rows of the other class only; the bare product "
        "multiplies as many numbers in blocks of the same size and does nothing else. Results are "
        "exact: leaders by float32 products are ranked in float64, and more are looked at where "
        "rounding could hide a nearer one. Times are processor times, medians of "
        f"{arguments.repeats}.",
        "",
        *lines,
        "",
        conditions("make bench-references", threads=threads),
        "",
    )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
