"""Grids in files, as data: a TOML file that someone wrote, the grid.json of a folder.

Nothing in such a file is run. Import paths are looked up only within known libraries, and have to
name classifiers, unless the file is trusted.
"""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..consent import require_trust
from ..data.writing import complete_file
from ..metrics import Metric
from .grid import Benchmark, Cell
from .grid_checks import check_grid, check_imports, unknown_name

#: of the layout of grid.json
FORMAT = 1
#: keys of a grid in a file
SETTINGS = tuple(field.name for field in fields(Benchmark) if not field.name.startswith("_"))
KEY = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True)
class StoredGrid:
    """Hold the grid of a folder, as far as it is data.

    Parameters
    ----------
    cells : list of Cell
        The cells, in order.
    metrics : list of str or None
        Names of the metrics asked for; None for all that can be computed.
    version : str
        The version of contrafact that ran it last: keys of cells depend on it.
    settings : Benchmark, mapping of str to object, or None
        The grid; None where a part of it is a Python object.
    objects : list of str
        The parts that are Python objects.
    path : Path
        The file.
    trust : bool
        Import what the settings name, whatever it is.
    """

    cells: list[Cell]
    metrics: list[str] | None
    version: str
    settings: Benchmark | Mapping[str, Any] | None
    objects: list[str]
    path: Path
    trust: bool

    def benchmark(self) -> Benchmark:
        """Return the grid.

        Returns
        -------
        Benchmark
            Equal to the one that was written.

        Raises
        ------
        ValueError
            Where a part of it is a Python object, which a folder does not keep, or where it names
            something to import that is not allowed without trust.
        """
        if isinstance(self.settings, Benchmark):
            return self.settings
        if self.settings is None:
            raise ValueError(
                f"{self.path} does not hold the whole grid: parts of it are Python objects "
                f"({', '.join(self.objects)}). To resume, call run(grid, folder) again from the "
                "script that made the grid; finished cells are not run again."
            )
        return benchmark_of(self.settings, self.path, trust=self.trust)


def benchmark_of(settings: Any, path: Path, *, trust: bool) -> Benchmark:
    """Make a grid from what a file says, checked before anything of it is used.

    Parameters
    ----------
    settings : mapping of str to object
        The parameters of `Benchmark`.
    path : Path
        The file, for messages.
    trust : bool
        Import what the settings name, whatever it is.

    Returns
    -------
    Benchmark
        The grid.

    Raises
    ------
    ValueError, TypeError
        Where a name is unknown or may not be imported.
    """
    if not isinstance(settings, Mapping):
        raise ValueError(f"{path} holds no grid.")
    for key in settings:
        if key not in SETTINGS:
            raise unknown_name(str(path), "key", key, SETTINGS)
    for key in ("datasets", "classifiers", "explainers"):
        if key not in settings:
            raise ValueError(f"{path}: {key} is missing.")
    check_imports(settings, path, trust)
    grid = Benchmark(**settings)
    check_grid(grid)
    return grid


def write_grid(grid: Benchmark, folder: Path) -> None:
    """Write grid.json: the grid where it is data, its cells and metrics in any case."""
    objects: list[str] = []
    settings = {name: _as_data(getattr(grid, name), name, objects) for name in SETTINGS}
    metrics = None
    if grid.metrics is not None:
        metrics = [m.name if isinstance(m, Metric) else str(m) for m in grid.metrics]
    content = {
        "format": FORMAT,
        "version": __version__,
        "grid": None if objects else settings,
        "objects": objects,
        "metrics": metrics,
        "cells": [asdict(cell) for cell in grid.cells()],
    }
    with complete_file(folder / "grid.json") as path:
        path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def read_grid(folder: Path, *, trust: bool) -> StoredGrid:
    """Read what `write_grid` wrote; a pickle of version 0.1.0 only where it is trusted.

    Parameters
    ----------
    folder : Path
        The folder.
    trust : bool
        Unpickle a grid of version 0.1.0, and import what a grid names, whatever it is.

    Returns
    -------
    StoredGrid
        The grid.

    Raises
    ------
    FileNotFoundError
        Where the folder does not exist, or holds no grid.
    ValueError
        Where the file is damaged, or a pickle that is not trusted.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"The folder {folder} does not exist.")
    path = folder / "grid.json"
    if path.exists():
        return _parse(path, trust)
    old = folder / "grid.pkl"
    if not old.exists():
        raise FileNotFoundError(f"{folder} holds no benchmark: there is no grid.json in it.")
    require_trust(
        f"{old} is the grid of version 0.1.0, a pickle",
        trust,
        instead="Or call run(grid, folder) from the script that made the grid; the tables in "
        "cells/*.parquet are plain data.",
    )
    grid: Benchmark = pickle.loads(old.read_bytes())
    metrics = None if grid.metrics is None else list(grid.metrics)
    return StoredGrid(grid.cells(), metrics, "0.1.0", grid, [], old, trust)


def _parse(path: Path, trust: bool) -> StoredGrid:
    """Read grid.json; raise ValueError where it is not what `write_grid` wrote."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        cells = [_cell(entry) for entry in content["cells"]]
        metrics = content["metrics"]
        stored = StoredGrid(
            cells=cells,
            metrics=None if metrics is None else [str(name) for name in metrics],
            version=str(content["version"]),
            settings=content["grid"],
            objects=[str(text) for text in content["objects"]],
            path=path,
            trust=trust,
        )
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{path} is damaged or of another version ({type(error).__name__}: {error}). "
            "Running the grid again from its TOML file or script writes it anew."
        ) from error
    return stored


def _cell(entry: Mapping[str, Any]) -> Cell:
    """Read a cell; its keys become names of files."""
    retrained = tuple((int(seed), str(key)) for seed, key in entry["retrained"])
    cell = Cell(**{**entry, "retrained": retrained})
    for key in (cell.key, cell.model_key):
        if not KEY.fullmatch(key):
            raise ValueError(f"{key!r} is no key")
    return cell


def _as_data(value: Any, place: str, objects: list[str]) -> Any:
    """Return a value as JSON has it; what is none is added to the objects."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.integer | np.floating):
        return value.item()
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _as_data(part, f"{place}.{name}", objects) for name, part in value.items()}
    if isinstance(value, list | tuple | range):
        return [_as_data(part, place, objects) for part in value]
    objects.append(f"{place}: {type(value).__name__}")
    return None
