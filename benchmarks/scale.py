"""Explain from a thousand to a million rows, on workers of a cluster, and under kills.

    make bench-scale                            all sizes; a run that is stopped goes on
    make bench-scale SIZES="1000 10000"         sizes of the series of 24 steps
    python benchmarks/scale.py --part dask      one part: curve, dask or kills
    python benchmarks/scale.py --page           the page alone, from what was measured before

NativeGuide and a small network, rows read from .npy files, one thread in each process. Every size
runs in a process of its own, whose peak memory is taken. What was measured is kept in
results/scale.json, so that a size is run once; --renew runs it again.
Writes benchmarks/results/scale.md and scale.png.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from argparse import SUPPRESS
from pathlib import Path
from typing import Any

import contrafact as cf
from _common import RESULTS, make_parser
from _scale_cases import CASES, make_model, write_rows

RECORDS = RESULTS / "scale.json"
FOLDER = Path("build/scale")
#: rows of the curve, by case
SIZES = {
    "24 steps": [1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000],
    "6 x 500": [1_000, 3_000, 10_000, 30_000, 100_000],
}
PARTS = ("curve", "dask", "kills")


def read_records() -> dict[str, Any]:
    """Return what was measured before, by what it is."""
    return json.loads(RECORDS.read_text()) if RECORDS.exists() else {}


def keep(name: str, record: Any) -> None:
    """Add a measurement to the file."""
    records = {**read_records(), name: record}
    draft = RECORDS.with_suffix(".draft")
    draft.write_text(json.dumps(dict(sorted(records.items())), indent=1) + "\n")
    draft.rename(RECORDS)


# --- the curve -----------------------------------------------------------------------------------


def run_size(case_name: str, n: int) -> None:
    """Explain n rows in this process, and print what it cost."""
    case = CASES[case_name]
    model, X, y = make_model(case)
    source = write_rows(case, n, FOLDER)
    out = FOLDER / f"{source.stem}-out"
    done = n - cf.Counterfactuals.open(out).missing if (out / "_manifest.json").exists() else 0
    before = peak_memory()
    start = time.perf_counter()
    found = cf.explain_dataset(model, source, out, reference=(X, y), method="NativeGuide")
    seconds = time.perf_counter() - start
    summary = found.summary()
    record = {
        "rows": n,
        "timed_rows": n - done,
        "seconds": seconds,
        "start_memory": before,
        "peak_memory": peak_memory(),
        "calls_per_row": summary["calls"] / n,
        "valid": summary["statuses"].get("valid", 0) / n,
        "bytes": sum(path.stat().st_size for path in out.glob("part-*")),
        "chunk": json.loads((out / "_manifest.json").read_text())["chunk"],
    }
    print(json.dumps(record))
    shutil.rmtree(out)


def peak_memory() -> int:
    """Return the most memory that this process had, in bytes.

    Not by getrusage, which starts with what the process that started this one had.
    """
    (line,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(line)


def measure_curve(sizes: dict[str, list[int]], renew: bool) -> None:
    """Explain every size in a process of its own."""
    for case, numbers in sizes.items():
        for n in numbers:
            name = f"curve, {case}, {n:07d}"
            if name in read_records() and not renew:
                continue
            # Here, for drawing rows takes more memory than explaining them.
            source = write_rows(CASES[case], n, FOLDER)
            if renew:
                shutil.rmtree(FOLDER / f"{source.stem}-out", ignore_errors=True)
            words = [sys.executable, __file__, "--child", case, str(n)]
            told = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
            record = json.loads(told.stdout.splitlines()[-1])
            keep(name, record)
            rate = record["timed_rows"] / record["seconds"]
            print(f"{name}: {rate:.0f} rows/s, {record['peak_memory'] / 2**20:.0f} MiB", flush=True)


# --- a cluster -----------------------------------------------------------------------------------


def measure_dask(n: int, repeats: int) -> None:
    """Compare one worker with two, and the table of two with that of one process."""
    from distributed import Client, LocalCluster

    case = CASES["24 steps"]
    model, X, y = make_model(case)
    source = write_rows(case, n, FOLDER)
    few = write_rows(case, 1000, FOLDER)
    options = {"reference": (X, y), "method": "NativeGuide", "chunk": 5_000}
    seconds: dict[str, list[float]] = {}
    busy: dict[str, list[float]] = {}
    outs = {}
    for workers in (1, 2) * repeats:
        cluster_options = {"host": "127.0.0.1", "dashboard_address": None, "processes": True}
        with LocalCluster(n_workers=workers, threads_per_worker=1, **cluster_options) as cluster:
            with Client(cluster) as client:
                client.wait_for_workers(workers)
            address = cluster.scheduler_address
            # The processes of the workers start with the first chunks.
            warm = FOLDER / "dask-warm"
            shutil.rmtree(warm, ignore_errors=True)
            few_options = {**options, "chunk": 100}
            cf.explain_dataset(model, few, warm, scheduler=address, **few_options)
            out = outs[workers] = FOLDER / f"dask-{workers}"
            shutil.rmtree(out, ignore_errors=True)
            start = time.perf_counter()
            found = cf.explain_dataset(model, source, out, scheduler=address, **options)
            taken = time.perf_counter() - start
            seconds.setdefault(str(workers), []).append(taken)
            share = found.summary()["seconds"] / (workers * taken)
            busy.setdefault(str(workers), []).append(share)
    alone = FOLDER / "dask-alone"
    shutil.rmtree(alone, ignore_errors=True)
    start = time.perf_counter()
    one = cf.explain_dataset(model, source, alone, **options)
    record = {"rows": n, "seconds": seconds, "busy": busy, "alone": time.perf_counter() - start}
    two = cf.Counterfactuals.open(outs[2])
    record["same"] = all(_same(a, b) for a, b in zip(one, two, strict=True))
    keep("dask", record)
    print(record)


def _same(a: cf.Counterfactuals, b: cf.Counterfactuals) -> bool:
    """Return whether two chunks hold the same counterfactuals."""
    exact = ("X", "X_cf", "source", "labels", "cf_labels", "target", "valid", "status", "message")
    return all(bool((getattr(a, name) == getattr(b, name)).all()) for name in exact)


# --- the command line ----------------------------------------------------------------------------


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--part", choices=PARTS, action="append", help="default: all")
    parser.add_argument("--sizes", type=int, nargs="*", help="of the series of 24 steps")
    parser.add_argument("--windows", type=int, nargs="*", help="of the windows of 6 x 500")
    parser.add_argument("--rows", type=int, default=500_000, help="of the part dask")
    parser.add_argument("--repeats", type=int, default=3, help="of the part dask")
    parser.add_argument("--kills", type=int, default=20, help="of the part kills")
    parser.add_argument("--renew", action="store_true", help="measure again what there is")
    parser.add_argument("--page", action="store_true", help="write the page alone")
    parser.add_argument("--child", nargs=2, help=SUPPRESS)
    given = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    RESULTS.mkdir(exist_ok=True)
    if given.child:
        run_size(given.child[0], int(given.child[1]))
        return
    from _scale_kills import kill_again_and_again
    from _scale_page import write_scale_page

    parts = [] if given.page else given.part or PARTS
    if "curve" in parts:
        sizes = dict(SIZES)
        if given.sizes is not None:
            sizes["24 steps"] = given.sizes
        if given.windows is not None:
            sizes["6 x 500"] = given.windows
        measure_curve(sizes, given.renew)
        write_scale_page(read_records())
    if "dask" in parts and (given.renew or "dask" not in read_records()):
        measure_dask(given.rows, given.repeats)
    if "kills" in parts and (given.renew or "kills" not in read_records()):
        keep("kills", kill_again_and_again(given.kills, FOLDER))
    write_scale_page(read_records())


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
