"""The page and the figure of scale.py, and the plan for a thousand million rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import matplotlib.pyplot as plt

from _common import RESULTS, conditions, table_head, table_row, write_page, yes_no
from _scale_cases import CASES
from _scale_kills import PROBLEMS

COLORS = {"24 steps": "#0072B2", "6 x 500": "#D55E00"}
MIB = 2**20
#: how far the peak of memory may grow from 10,000 rows on
FLAT = 1.10
#: from which size on memory is compared: the first with several full chunks
LARGE = 10_000
SPEEDUP = 1.8


class Plan(NamedTuple):
    """What a run takes on a cluster, computed from measurements of one process."""

    workers: int
    hours: float
    terabytes: float
    files: int
    chunk_seconds: float
    chunks_per_second: float


def plan(
    rows: int,
    machines: int,
    cores: int,
    rows_per_second: float,
    bytes_per_row: float,
    chunk: int,
    efficiency: float = 1.0,
) -> Plan:
    """Compute what a run takes.

    Parameters
    ----------
    rows : int
        Instances.
    machines, cores : int
        With one worker of one thread on each core.
    rows_per_second : float
        Of one worker.
    bytes_per_row : float
        Of the results.
    chunk : int
        Rows of a file.
    efficiency : float, default=1.0
        Share of their pace that workers keep when all work.

    Returns
    -------
    Plan
        Duration, size, files, and what the scheduler has to hand out.
    """
    workers = machines * cores
    pace = workers * rows_per_second * efficiency
    return Plan(
        workers=workers,
        hours=rows / pace / 3600,
        terabytes=rows * bytes_per_row / 1e12,
        files=-(-rows // chunk),
        chunk_seconds=chunk / (rows_per_second * efficiency),
        chunks_per_second=pace / chunk,
    )


def write_scale_page(records: dict[str, Any]) -> None:
    """Write the page and the figure from what was measured."""
    curves = {name: _curve(records, name) for name in CASES}
    lines = [
        "# Large data",
        "",
        "`explain_dataset` from a thousand rows on: NativeGuide and a small network (one layer of "
        "16 filters), rows in an .npy file, results as Parquet files, each size in a process of "
        "its own. Series of 24 steps are days of ItalyPowerDemand with noise; windows of 6 x 500 "
        "are made up.",
        "",
        conditions("make bench-scale", ["pyarrow", "distributed"]),
        "",
        "![Rows per second and peak memory over the number of rows](scale.png)",
        "",
    ]
    for name, curve in curves.items():
        lines += _curve_table(name, curve)
    lines += _dask_lines(records.get("dask"))
    lines += _kill_lines(records.get("kills"))
    lines += _plan_lines(curves, records.get("dask"))
    write_page("scale.md", *lines)
    _draw(curves)


def _curve(records: dict[str, Any], case: str) -> list[dict[str, Any]]:
    """Return the measurements of a case, by size."""
    found = [record for name, record in records.items() if name.startswith(f"curve, {case},")]
    return sorted(found, key=lambda record: record["rows"])


def _curve_table(case: str, curve: list[dict[str, Any]]) -> list[str]:
    """Return the table of a case."""
    lines = [f"## {case}", ""]
    lines += table_head(
        "rows", "seconds", "rows per second", "peak memory, MiB", "of it by the run, MiB",
        "model rows each", "bytes per row of results", "rows of a chunk", "valid",
    )  # fmt: skip
    for one in curve:
        lines.append(
            table_row(
                f"{one['rows']:,}",
                _seconds(one),
                f"{_rate(one):,.0f}",
                f"{one['peak_memory'] / MIB:.0f}",
                f"{(one['peak_memory'] - one['start_memory']) / MIB:.0f}",
                f"{one['calls_per_row']:.1f}",
                f"{one['bytes'] / one['rows']:.0f}",
                f"{one['chunk']:,}",
                f"{one['valid']:.1%}",
            )
        )
    large = [one["peak_memory"] for one in curve if one["rows"] >= LARGE]
    if len(large) > 1:
        growth = max(large) / large[0]
        lines += [
            "",
            f"Peak memory from {LARGE:,} rows on grows by a factor of at most {growth:.2f} "
            f"(bar: {FLAT:.2f}; kept: {yes_no(growth <= FLAT)}).",
        ]
    return [*lines, ""]


def _dask_lines(record: dict[str, Any] | None) -> list[str]:
    """Return the section on workers of a cluster."""
    if record is None:
        return []
    one, two = (min(record["seconds"][workers]) for workers in ("1", "2"))
    runs = len(record["seconds"]["1"])
    lines = ["## Workers of a cluster", ""]
    lines += [
        f"{record['rows']:,} series of 24 steps in chunks of 5,000 on a dask.distributed cluster "
        f"of this machine, whose workers have one thread each and are running already; best of "
        f"{runs} run{'s' * (runs > 1)}.",
        "",
        *table_head("workers", "seconds", "rows per second", "time in which workers explain"),
        table_row(
            "none, this process", f"{record['alone']:.1f}", _pace(record, record["alone"]), "–"
        ),
        table_row("1", f"{one:.1f}", _pace(record, one), f"{max(record['busy']['1']):.0%}"),
        table_row("2", f"{two:.1f}", _pace(record, two), f"{max(record['busy']['2']):.0%}"),
        "",
        f"Two workers are {one / two:.2f} times as fast as one (bar: {SPEEDUP}; kept: "
        f"{yes_no(one / two >= SPEEDUP)}). The table is that of one process: "
        f"{yes_no(record['same'])}.",
        "",
    ]
    return lines


def _pace(record: dict[str, Any], seconds: float) -> str:
    return f"{record['rows'] / seconds:,.0f}"


def _kill_lines(record: dict[str, Any] | None) -> list[str]:
    """Return the section on kills."""
    if record is None:
        return []
    words = {
        "different": "chunks that differ from the undisturbed run",
        "lost": "rows lost",
        "twice": "rows there twice",
        "rewritten": "finished files written again",
        "stuck": "runs that were stuck",
        "errors": "runs that ended with an error",
    }
    kills = ", ".join(f"{count} × {victim}" for victim, count in record["kills"].items())
    seen = record["seen"]
    return [
        "## Kills",
        "",
        f"{sum(record['kills'].values())} kills (SIGKILL) at random moments of runs of "
        f"{record['rows']:,} rows in chunks of {record['chunk']} (CELS, two workers): {kills}. "
        f"{seen['tables']} tables were finished, in {seen['starts']} starts of the client. All "
        "counts should be 0.",
        "",
        *table_head("seen", "count"),
        *(table_row(words[name], seen[name]) for name in PROBLEMS),
        "",
    ]


def _plan_lines(curves: dict[str, list[dict[str, Any]]], dask: dict[str, Any] | None) -> list[str]:
    """Return the plan for 10^9 rows on 100 machines."""
    efficiency = 1.0
    if dask is not None:
        one, two = (min(dask["seconds"][workers]) for workers in ("1", "2"))
        efficiency = min(1.0, one / two / 2)
    lines = [
        "## A plan for 10⁹ rows on 100 machines",
        "",
        "Computed, not measured: one worker of one thread per core, each with the pace of one "
        f"process here at the largest size, times {efficiency:.2f}, what each of two workers kept "
        "of it. Network and disks that many machines share are not in it.",
        "",
        *table_head(
            "rows", "cores of a machine", "workers", "rows of a chunk", "minutes", "files",
            "results, TB", "seconds of a chunk", "chunks per second at the scheduler",
        ),
    ]  # fmt: skip
    for name, curve in curves.items():
        if not curve:
            continue
        last = curve[-1]
        size = last["bytes"] / last["rows"]
        for cores in (2, 16, 64):
            chunk = 10 * last["chunk"]
            one = plan(10**9, 100, cores, _rate(last), size, chunk, efficiency)
            lines.append(
                table_row(
                    name.replace("x", "×"),
                    cores,
                    f"{one.workers:,}",
                    f"{chunk:,}",
                    f"{60 * one.hours:.1f}",
                    f"{one.files:,}",
                    f"{one.terabytes:.2g}",
                    f"{one.chunk_seconds:.1f}",
                    f"{one.chunks_per_second:.0f}",
                )
            )
    return [
        *lines,
        "",
        "The scheduler of Dask hands out some hundred to a thousand tasks per second: where the "
        "last column is above that, larger chunks help. A worker that is lost costs at most the "
        "seconds of a chunk.",
        "",
    ]


def _seconds(record: dict[str, Any]) -> str:
    """Return how long a size took; of a run that went on, what the rest took."""
    text = f"{record['seconds']:.1f}"
    rest = record["timed_rows"]
    return text if rest == record["rows"] else f"{text} for the last {rest:,} rows"


def _rate(record: dict[str, Any]) -> float:
    return float(record["timed_rows"] / record["seconds"])


def _draw(curves: dict[str, list[dict[str, Any]]]) -> None:
    """Draw rows per second and peak memory over the number of rows."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for name, curve in curves.items():
        if not curve:
            continue
        rows = [one["rows"] for one in curve]
        options = {"marker": "o", "color": COLORS[name], "label": name.replace("x", "×")}
        left.plot(rows, [_rate(one) for one in curve], **options)
        right.plot(rows, [one["peak_memory"] / MIB for one in curve], **options)
    left.set(xscale="log", yscale="log", xlabel="rows", ylabel="rows per second")
    left.set_title("Pace, one process, one thread")
    right.set(xscale="log", xlabel="rows", ylabel="peak memory, MiB")
    right.margins(y=0.15)
    right.set_ylim(bottom=0)
    right.set_title("Memory")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(RESULTS / "scale.png", dpi=150)
    plt.close(figure)
