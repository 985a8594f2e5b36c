"""Shared code of the benchmark scripts: test rows, models, clocks, tables and result pages.

Only light packages are imported at the top: prototypes.py measures the memory of processes that
never load torch or contrafact.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import os
import platform
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    import contrafact as cf

Array = NDArray[Any]
T = TypeVar("T")

RESULTS = Path(__file__).parent / "results"


# --- data and models -----------------------------------------------------------------------------


def random_rows(X: Array, n: int, seed: int = 0) -> Array:
    """Return n random rows of X: archive files are often sorted by class."""
    order = np.random.default_rng(seed).permutation(len(X))
    return X[order[:n]]


def flatten_rows(X: Array) -> Array:
    """Reshape (n, ...) to (n, values)."""
    return X.reshape(len(X), -1)


def runner_up(proba: Array, classes: Array) -> Array:
    """Return the second most likely class of every row: the same target for all methods."""
    others = proba.copy()
    others[np.arange(len(proba)), proba.argmax(1)] = -1
    return classes[others.argmax(1)]


def accuracy(model: Any, X: Array, y: Array) -> float:
    """Return the share of rows that the model classifies correctly."""
    return float(np.mean(model.predict(X) == y))


def fit_fcn(data: cf.Dataset) -> cf.Classifier:
    """Train a fully convolutional network for 100 epochs."""
    import contrafact as cf

    return cf.fit_classifier("fcn", data.X_train, data.y_train, max_epochs=100, random_state=0)


def fit_forest(data: cf.Dataset) -> Any:
    """Train a random forest of 100 trees on flattened rows."""
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(100, random_state=0)
    return forest.fit(flatten_rows(data.X_train), data.y_train)


def fit_rocket(data: cf.Dataset) -> Any:
    """Train aeon's ROCKET with 500 kernels."""
    from aeon.classification.convolution_based import RocketClassifier

    rocket = RocketClassifier(n_kernels=500, random_state=0)
    return rocket.fit(data.X_train, data.y_train)


# --- clocks --------------------------------------------------------------------------------------


class Seconds(NamedTuple):
    """Processor time of all threads, and wall-clock time.

    Processor time is disturbed less by other work on the machine.
    """

    cpu: float
    wall: float


def timed(call: Callable[[], T]) -> tuple[T, Seconds]:
    """Return the result of a call and the time it took."""
    cpu = time.process_time()
    wall = time.perf_counter()
    result = call()
    return result, Seconds(time.process_time() - cpu, time.perf_counter() - wall)


class OutOfTime(Exception):
    """The time of one row is over."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTime after some seconds of processor time: other work does not count."""

    def stop(*_: Any) -> None:
        raise OutOfTime

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


# --- text ----------------------------------------------------------------------------------------


def yes_no(condition: Any) -> str:
    """Return "yes" or "no"."""
    return "yes" if condition else "no"


def spread(values: Any, digits: int = 3) -> str:
    """Format mean ± standard deviation."""
    values = np.asarray(values, dtype=float)
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1):.{digits}f}"


def table_head(*columns: str) -> list[str]:
    """Return the first two lines of a Markdown table."""
    return [table_row(*columns), "|---" * len(columns) + "|"]


def table_row(*cells: Any) -> str:
    """Return one line of a Markdown table."""
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def conditions(command: str, packages: Iterable[str] = (), threads: int = 1) -> str:
    """Describe a run in one line: command, date, versions and threads.

    contrafact, torch and Python are always named; `packages` adds others.
    """
    versions = package_versions("contrafact", "torch", *packages)
    count = f"{threads} thread{'' if threads == 1 else 's'}"
    return f"`{command}`, {date.today()}, {versions}, Python {platform.python_version()}, {count}."


def package_versions(*packages: str) -> str:
    """Return "name version, name version, ..." without local suffixes such as +cpu."""
    versions = {name: importlib.metadata.version(name).partition("+")[0] for name in packages}
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Return an argument parser whose help shows the docstring of the script as it is written."""
    return argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


# --- result pages --------------------------------------------------------------------------------


def write_page(name: str, *lines: str) -> None:
    """Write a result page, benchmarks/results/`name`."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / name).write_text("\n".join(lines), encoding="utf-8")


class SectionedPage:
    """A result page of sections that are replaced one by one and written line by line.

    A run that is interrupted keeps every line measured so far, and a run of one part leaves the
    sections of the other parts as they are.

    Parameters
    ----------
    path : Path
        The Markdown file; its sections start with "# ".
    titles : sequence of str
        All titles, in the order of the page.
    """

    def __init__(self, path: Path, titles: Sequence[str]) -> None:
        self.path = path
        self.titles = titles
        self.title = ""
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        self.sections: dict[str, list[str]] = {}
        for block in re.split(r"(?m)^# ", text)[1:]:
            title, _, body = block.partition("\n")
            self.sections[title] = body.strip().splitlines()

    def begin(self, title: str, command: str, packages: Iterable[str], threads: str) -> None:
        """Empty a section and write the conditions of the run."""
        self.title = title
        self.sections[title] = []
        self.add(
            f"`{command}`, {date.today()}, {package_versions(*packages)}, "
            f"Python {platform.python_version()}; {threads}, "
            f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores at the start.",
            "",
        )

    def add(self, *lines: str) -> None:
        """Print lines, append them to the current section and write the page."""
        print("\n".join(lines), flush=True)
        self.sections[self.title] += lines
        known = [title for title in self.titles if title in self.sections]
        blocks = ["\n".join([f"# {title}", "", *self.sections[title]]) for title in known]
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")

    def table(self, *columns: str) -> None:
        """Start a table."""
        self.add(*table_head(*columns))

    def row(self, *cells: Any) -> None:
        """Add a row to the table."""
        self.add(table_row(*cells))


# --- figures -------------------------------------------------------------------------------------


def panels(names: Sequence[str], width: float, height: float) -> tuple[Figure, list[Axes]]:
    """Return a figure with one panel per name side by side; `width` is that of one panel."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * len(names), height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = list(figure.subplots(1, len(names), squeeze=False)[0])
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes
