"""Store: a folder of finished cells, each written completely or not at all."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import cloudpickle  # type: ignore[import-untyped]
import numpy as np

from ..models.classifier import Array
from .grid import Cell

if TYPE_CHECKING:
    import pandas as pd


class Store:
    """Keep finished cells in a folder.

        grid.pkl             the grid itself
        cells/KEY.parquet    one row per counterfactual, all metrics; exists if the cell is done
        cells/KEY.npz        the arrays: X, X_cf
        models/KEY.pkl       trained classifiers

    A file appears under its name only when it is complete: a run that is killed leaves no
    half-written cell. Pandas, DuckDB or anything else that reads Parquet can query cells/*.parquet
    directly.

    Parameters
    ----------
    folder : str or Path
        Where the files are; made where it does not exist.

    Examples
    --------
    >>> store = Store("benchmark")
    >>> store.has_model("0123")
    False
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        for part in ("cells", "models"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)

    def has(self, cell: Cell) -> bool:
        """Return whether the cell is finished, failed or not."""
        return self._table(cell).exists()

    def failed(self, cell: Cell) -> bool:
        """Return whether the finished cell as a whole ended in an error or ran out of time."""
        import pandas as pd

        frame = pd.read_parquet(self._table(cell), columns=["cell_status"])
        return bool((frame["cell_status"] != "done").any())

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
        # The arrays first, for the table says that all is there.
        with _complete(table.with_suffix(".npz")) as path:
            np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
        with _complete(table) as path:
            frame.to_parquet(path, index=False)

    def frame(self, cells: Iterable[Cell]) -> pd.DataFrame:
        """Return the table of all finished cells among these, in their order."""
        import pandas as pd

        parts = [pd.read_parquet(self._table(cell)) for cell in cells if self.has(cell)]
        if not parts:
            return pd.DataFrame()
        return pd.concat(parts, ignore_index=True)

    def arrays(self, cell: Cell) -> dict[str, Array]:
        """Return the arrays of a finished cell, by name."""
        with np.load(self._table(cell).with_suffix(".npz")) as stored:
            return dict(stored)

    def has_model(self, key: str) -> bool:
        """Return whether a classifier was trained."""
        return self._model(key).exists()

    def write_model(self, key: str, trained: bytes) -> None:
        """Write a trained classifier.

        Parameters
        ----------
        key : str
            Its `Cell.model_key`.
        trained : bytes
            The pickled model, as training returns it.
        """
        with _complete(self._model(key)) as path:
            path.write_bytes(trained)

    def model(self, key: str) -> bytes:
        """Return a trained classifier as `write_model` got it."""
        return self._model(key).read_bytes()

    def write_settings(self, settings: Any) -> None:
        """Write the grid, so that a run can be resumed from the folder alone."""
        with _complete(self.folder / "grid.pkl") as path:
            path.write_bytes(cloudpickle.dumps(settings))

    def settings(self) -> Any:
        """Return the grid that `write_settings` wrote; unpickles it, so trust the folder."""
        path = self.folder / "grid.pkl"
        if not path.exists():
            raise FileNotFoundError(
                f"{self.folder} holds no benchmark: there is no grid.pkl in it."
            )
        return pickle.loads(path.read_bytes())

    def _table(self, cell: Cell) -> Path:
        """Return the path of a cell's table."""
        return self.folder / "cells" / f"{cell.key}.parquet"

    def _model(self, key: str) -> Path:
        """Return the path of a classifier."""
        return self.folder / "models" / f"{key}.pkl"


@contextmanager
def _complete(path: Path) -> Iterator[Path]:
    """Yield a draft to write to, which gets the name `path` when it is complete."""
    # Unique, for another run may be writing the same; the suffix stays, for writers look at it.
    draft = path.with_name(f".{os.getpid()}-{uuid4().hex}-{path.name}")
    try:
        yield draft
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
