"""Store: a folder of finished cells, each written completely or not at all."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..consent import require_trust
from ..data.writing import complete_file, only_writer, remove_drafts
from ..extras import require_extra
from ..models.classifier import Array
from ..validation import Boolean, FilePath, check_parameters
from .cell_states import CellState, damaged_text
from .grid import Benchmark, Cell
from .grid_files import StoredGrid, read_grid, write_grid
from .signing import content_of, signed

if TYPE_CHECKING:
    import pandas as pd

NAMES = ("dataset", "classifier", "explainer", "seed")
#: columns of every cell
COLUMNS = (*NAMES, "valid", "message", "cell_status")


class Store:
    """Keep finished cells in a folder.

        grid.json            the grid and its cells, as data
        cells/KEY.parquet    one row per counterfactual, all metrics; exists if the cell is done
        cells/KEY.npz        the arrays: X, X_cf
        models/KEY.pkl       trained classifiers, with the signature of the user who trained them

    A file appears under its name only when it is complete: a run that is killed leaves no
    half-written cell. Pandas, DuckDB or anything else that reads Parquet can query cells/*.parquet
    directly. Nothing is created before something is written, and nothing in the folder is run: a
    pickled classifier is read only where this user signed it, or the folder is trusted.

    Parameters
    ----------
    folder : str or Path
        Where the files are.
    trust : bool, default=False
        Read classifiers, and grids of version 0.1.0, that anyone may have written. Reading them can
        run code.

    Examples
    --------
    >>> store = Store("benchmark")
    >>> store.has_model("0123")
    False
    """

    def __init__(self, folder: str | Path, *, trust: bool = False) -> None:
        require_extra("benchmark", "A benchmark")
        rules = {"folder": FilePath(), "trust": Boolean()}
        check_parameters("Store", rules, {"folder": folder, "trust": trust})
        self.folder = Path(folder)
        self.trust = trust

    def state(self, cell: Cell) -> CellState:
        """Return whether a cell is done, failed, missing or damaged, and why.

        Parameters
        ----------
        cell : Cell
            The cell.

        Returns
        -------
        CellState
            A cell whose files cannot be read is damaged: it counts as missing.
        """
        _, state = self._read(cell)
        return state

    def write(
        self,
        cell: Cell,
        frame: pd.DataFrame,
        arrays: dict[str, Array],
    ) -> None:
        """Write a finished cell.

        Parameters
        ----------
        cell : Cell
            The cell.
        frame : DataFrame
            One row per counterfactual.
        arrays : dict of str to ndarray
            The arrays of the cell.
        """
        table = self._table(cell)
        table.parent.mkdir(parents=True, exist_ok=True)
        # The arrays first, for the table says that all is there.
        with complete_file(table.with_suffix(".npz")) as path:
            np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
        with complete_file(table) as path:
            frame.to_parquet(path, index=False, write_page_checksum=True)

    def frame(self, cells: Iterable[Cell]) -> pd.DataFrame:
        """Return the table of all finished cells among these, in their order.

        Parameters
        ----------
        cells : iterable of Cell
            The cells; damaged ones are left out, with a warning that names them.

        Returns
        -------
        DataFrame
            One row per counterfactual; empty where no cell is finished.
        """
        import pandas as pd

        parts = []
        states = []
        for cell in cells:
            frame, state = self._read(cell)
            states.append(state)
            if frame is not None:
                parts.append(frame)
        damaged = damaged_text(states)
        if damaged:
            warnings.warn(f"Left out: {damaged}", stacklevel=2)
        if not parts:
            return pd.DataFrame()
        return pd.concat(parts, ignore_index=True)

    def arrays(self, cell: Cell) -> dict[str, Array]:
        """Return the arrays of a finished cell, by name.

        Parameters
        ----------
        cell : Cell
            The cell.

        Returns
        -------
        dict of str to ndarray
            The arrays `X` and `X_cf`; none where the cell failed.

        Raises
        ------
        ValueError
            Where the file is damaged.
        """
        path = self._table(cell).with_suffix(".npz")
        try:
            with np.load(path) as stored:
                return dict(stored)
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"{path} is damaged ({error}). Remove it, and run the grid again."
            ) from error

    def has_model(self, key: str) -> bool:
        """Return whether a classifier was trained, and may be read."""
        return self._model(key).exists() and (self.trust is True or self._is_own_model(key))

    def has_foreign_model(self, key: str) -> bool:
        """Return whether there is a classifier that this user did not train, or was altered."""
        return self._model(key).exists() and not self._is_own_model(key)

    def write_model(self, key: str, trained: bytes) -> None:
        """Write a trained classifier.

        Parameters
        ----------
        key : str
            Its `Cell.model_key`.
        trained : bytes
            The pickled model, as training returns it.
        """
        path = self._model(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with complete_file(path) as draft:
            draft.write_bytes(signed(key, trained))

    def model(self, key: str) -> bytes:
        """Return a trained classifier as `write_model` got it.

        Parameters
        ----------
        key : str
            Its `Cell.model_key`.

        Returns
        -------
        bytes
            The pickled model.

        Raises
        ------
        ValueError
            Where this user did not write it, or it was altered, and the folder is not trusted.
        """
        file = self._model(key).read_bytes()
        content = content_of(key, file)
        if content is not None:
            return content
        require_trust(
            f"{self._model(key)} is a pickle that you did not write, or that was altered",
            self.trust,
        )
        return file

    def write_grid(self, grid: Benchmark) -> None:
        """Write the grid and its cells, so that a run can be resumed from the folder alone."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_grid(grid, self.folder)

    def grid(self) -> StoredGrid:
        """Return the grid that `write_grid` wrote.

        Returns
        -------
        StoredGrid
            Its cells and metrics; `benchmark()` makes the grid itself.

        Raises
        ------
        FileNotFoundError
            Where the folder does not exist, or holds no benchmark.
        ValueError
            Where the grid is a pickle of version 0.1.0 and the folder is not trusted.
        """
        return read_grid(self.folder, trust=self.trust)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other runs out of the folder; remove drafts that killed runs left.

        Yields
        ------
        None
            While the folder is this run's own.

        Raises
        ------
        BlockingIOError
            Where another process runs a benchmark in the folder.
        """
        with only_writer(self.folder, "runs a benchmark"):
            for name in ("cells", "models"):
                remove_drafts(self.folder / name)
            yield

    def _read(self, cell: Cell) -> tuple[pd.DataFrame | None, CellState]:
        """Return the table of a cell, where it can be read, and its state."""
        import pandas as pd

        path = self._table(cell)
        if not path.exists():
            return None, CellState(cell, "missing")
        try:
            frame = pd.read_parquet(path, page_checksum_verification=True)
        except (OSError, ValueError) as error:  # errors of Arrow are either
            return None, CellState(cell, "damaged", _first_line(error), path)
        absent = [name for name in COLUMNS if name not in frame]
        if absent or frame.empty:
            reason = f"no column {', '.join(absent)}" if absent else "no rows"
            return None, CellState(cell, "damaged", reason, path)
        # Names are not part of the key: the grid may call its parts otherwise by now.
        frame = frame.assign(**{name: getattr(cell, name) for name in NAMES})
        if (frame["cell_status"] == "done").all():
            return frame, CellState(cell, "done")
        message = str(frame["message"].iloc[0]).strip()
        return frame, CellState(cell, "failed", message.splitlines()[-1] if message else "")

    def _is_own_model(self, key: str) -> bool:
        """Return whether this user wrote a classifier, and nobody altered it."""
        return content_of(key, self._model(key).read_bytes()) is not None

    def _table(self, cell: Cell) -> Path:
        """Return the path of a cell's table."""
        return self.folder / "cells" / f"{cell.key}.parquet"

    def _model(self, key: str) -> Path:
        """Return the path of a classifier."""
        return self.folder / "models" / f"{key}.pkl"


def _first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return str(error).strip().partition("\n")[0]
