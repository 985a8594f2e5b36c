"""Store: a folder of finished cells, each written whole or not at all."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle  # type: ignore[import-untyped]
import numpy as np

from ..models.classifier import Array
from .grid import Cell

if TYPE_CHECKING:
    import pandas as pd


class Store:
    """Finished cells in a folder.

        cells/KEY.parquet    one row per counterfactual, all metrics; its presence says that the cell is done
        cells/KEY.npz        the arrays: X, X_cf
        models/KEY.pkl       trained classifiers

    A file appears under its name only when it is complete: a run that is killed leaves no half-written cell.
    Pandas, DuckDB or anything else that reads Parquet can query cells/*.parquet directly.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        for part in ("cells", "models"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)

    def has(self, cell: Cell) -> bool:
        return self._table(cell).exists()

    def failed(self, cell: Cell) -> bool:
        """Whether the cell as a whole ended in an error, in time or not."""
        import pandas as pd

        return bool(
            (
                pd.read_parquet(self._table(cell), columns=["cell_status"])["cell_status"] != "done"
            ).any()
        )

    def write(self, cell: Cell, frame: pd.DataFrame, arrays: dict[str, Array]) -> None:
        """The arrays first, for the table says that all is there."""
        with self._whole(self._table(cell).with_suffix(".npz")) as path:
            np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
        with self._whole(self._table(cell)) as path:
            frame.to_parquet(path, index=False)

    def frame(self, cells: Iterable[Cell]) -> pd.DataFrame:
        """All finished cells among these, in their order."""
        import pandas as pd

        parts = [pd.read_parquet(self._table(cell)) for cell in cells if self.has(cell)]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def arrays(self, cell: Cell) -> dict[str, Array]:
        with np.load(self._table(cell).with_suffix(".npz")) as stored:
            return dict(stored)

    def has_model(self, key: str) -> bool:
        return self._model(key).exists()

    def write_model(self, key: str, trained: bytes) -> None:
        with self._whole(self._model(key)) as path:
            path.write_bytes(trained)

    def model(self, key: str) -> bytes:
        return self._model(key).read_bytes()

    def write_settings(self, settings: Any) -> None:
        """What `resume` needs: the grid itself."""
        with self._whole(self.folder / "grid.pkl") as path:
            path.write_bytes(cloudpickle.dumps(settings))

    def settings(self) -> Any:
        path = self.folder / "grid.pkl"
        if not path.exists():
            raise FileNotFoundError(
                f"{self.folder} holds no benchmark: there is no grid.pkl in it."
            )
        return pickle.loads(path.read_bytes())

    def _table(self, cell: Cell) -> Path:
        return self.folder / "cells" / f"{cell.key}.parquet"

    def _model(self, key: str) -> Path:
        return self.folder / "models" / f"{key}.pkl"

    @staticmethod
    def _whole(path: Path) -> _Whole:
        return _Whole(path)


class _Whole:
    """A file that gets its name when it is complete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Unique, for another run may be writing the same; the suffix stays, for writers look at it.
        self.draft = path.with_name(f".{os.getpid()}-{id(self)}-{path.name}")

    def __enter__(self) -> Path:
        return self.draft

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is not None:
            self.draft.unlink(missing_ok=True)
            return
        with self.draft.open("rb") as written:
            os.fsync(written.fileno())
        self.draft.replace(self.path)
