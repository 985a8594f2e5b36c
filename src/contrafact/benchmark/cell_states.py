"""How far a run is: cells done, failed, missing and damaged, in numbers and in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..validation import Instance, check_parameters
from .grid import Benchmark, Cell

if TYPE_CHECKING:
    import pandas as pd

    from .store import Store

#: how many cells a line names
MOST_NAMED = 3


@dataclass(frozen=True)
class CellState:
    """Say how far a cell is.

    Parameters
    ----------
    cell : Cell
        The cell.
    state : {"done", "failed", "missing", "damaged"}
        A damaged cell has files that cannot be read.
    reason : str, default=""
        Why it failed, or cannot be read.
    path : Path, optional
        The file that cannot be read.
    """

    cell: Cell
    state: Literal["done", "failed", "missing", "damaged"]
    reason: str = ""
    path: Path | None = None


def progress_of(grid: Benchmark, store: Store) -> pd.DataFrame:
    """Count the cells that are done, failed and missing.

    Parameters
    ----------
    grid : Benchmark
        The grid.
    store : Store
        Where its cells are kept.

    Returns
    -------
    DataFrame
        One row per explainer: `explainer`, `done`, `failed`, `missing`. Damaged cells are missing.

    Examples
    --------
    >>> from contrafact.benchmark import Store
    >>> grid = Benchmark(["ItalyPowerDemand"], {"LR": "sklearn.linear_model:LogisticRegression"},
    ...                  {"nearest": "NearestUnlike"}, seeds=[0, 1])
    >>> progress_of(grid, Store("new"))["missing"].tolist()
    [2]
    """
    from .store import Store

    rules = {"grid": Instance(Benchmark), "store": Instance(Store)}
    check_parameters("progress_of", rules, {"grid": grid, "store": store})
    return count_states([store.state(cell) for cell in grid.cells()])


def count_states(states: Sequence[CellState]) -> pd.DataFrame:
    """Count states by explainer, as `progress_of` does."""
    import pandas as pd

    rows = [
        (each.cell.explainer, "missing" if each.state == "damaged" else each.state)
        for each in states
    ]
    frame = pd.DataFrame(rows, columns=["explainer", "state"])
    counts = pd.crosstab(frame["explainer"], frame["state"])
    counts = counts.reindex(frame["explainer"].drop_duplicates())
    counts = counts.reindex(columns=["done", "failed", "missing"], fill_value=0)
    return counts.rename_axis(columns=None).reset_index()


def failure_lines(states: Iterable[CellState]) -> list[str]:
    """Return one line for every distinct reason why cells failed, with some of the cells."""
    cells: dict[str, list[Cell]] = {}
    for each in states:
        if each.state == "failed":
            cells.setdefault(each.reason, []).append(each.cell)
    return [f"{len(those)} × {reason} ({_named(those)})" for reason, those in cells.items()]


def damaged_text(states: Iterable[CellState]) -> str:
    """Return which cells cannot be read; empty where all can."""
    damaged = [each for each in states if each.state == "damaged"]
    files = [f"{each.path} ({_name(each.cell)}: {each.reason})" for each in damaged[:MOST_NAMED]]
    if not damaged:
        return ""
    noun = "damaged cell" if len(damaged) == 1 else "damaged cells"
    more = ", …" if len(damaged) > MOST_NAMED else ""
    return f"{len(damaged)} {noun}: {', '.join(files)}{more}. Running the grid again replaces them."


def _named(cells: Sequence[Cell]) -> str:
    """Name some of the cells."""
    names = "; ".join(map(_name, cells[:MOST_NAMED]))
    return f"{names}; …" if len(cells) > MOST_NAMED else names


def _name(cell: Cell) -> str:
    """Name a cell."""
    return f"{cell.dataset}, {cell.classifier}, {cell.explainer}, seed {cell.seed}"
