"""Parquet files as a source: list columns hold series, plain columns the rows of a table."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from ..data.table_columns import ColumnChoice
from ..data.tables import CsvTable, split_channels
from ..models.classifier import Array
from .sources import Rows, Source, stamps

#: rows that are decoded at a time
BATCH = 8_192
#: names of a column of identifiers, where the user gives none
IDS = ("id", "row_id", "uid", "uuid")


class ParquetSource(Source):
    """One Parquet file, or all of a folder in the order of their names.

    Parameters
    ----------
    path : Path
        The file or folder.
    columns : sequence of str, optional
        The columns that make an instance, in this order; default: all list columns, each a
        channel, or where there are none all but the label and the identifier.
    label : str, optional
        The label column; default: the one called label, class, target or y.
    ids : str, optional
        The column of identifiers; default: the one called id.
    are_steps : bool, default=False
        Whether plain columns are the steps of series, and not those of a table.

    Raises
    ------
    ValueError
        If a file cannot be read, or has no such columns.
    """

    def __init__(
        self,
        path: Path,
        columns: Sequence[str] | None = None,
        label: str | None = None,
        ids: str | None = None,
        are_steps: bool = False,
    ) -> None:
        self.path = path
        self.name = str(path)
        self._files = [path]
        if path.is_dir():
            self._files = sorted(
                file for file in path.rglob("*.parquet") if file.name[0] not in "._"
            )
        if not self._files:
            raise ValueError(f"source {path} holds no .parquet files.")
        heads = [self._open(file) for file in self._files]
        self._ends: list[int] = list(accumulate(head.metadata.num_rows for head in heads))
        schema = heads[0].schema_arrow
        for file, head in zip(self._files, heads, strict=True):
            if set(head.schema_arrow.names) != set(schema.names):
                raise ValueError(f"{file} has other columns than {self._files[0]}.")
            head.close()
        self._choose(schema, columns, label, ids)
        self._are_steps = are_steps and not self._are_lists
        self._reader: _Reader | None = None

    def _choose(self, schema: Any, columns: Any, label: str | None, ids: str | None) -> None:
        """Choose the columns that make an instance, and those that go with it."""
        names = [str(name) for name in schema.names if not str(name).startswith("__index_level_")]
        listed = [name for name in names if _is_list(schema.field(name).type)]
        taken = set(columns or listed)
        others = [name for name in names if name not in taken]
        self._label = ColumnChoice(label, unlabeled=label is None).label_column(self.path, others)
        self._ids = ids
        if ids is None:
            known = (name for name in others if name.lower() in IDS)
            self._ids = next(known, None)
        elif ids not in names:
            raise ValueError(f"source {self.path} has no column {ids!r} (ids).")
        if columns is None:
            own = [name for name in names if name not in (self._label, self._ids)]
            columns = listed or own
        missing = [name for name in columns if name not in names]
        if missing or not len(columns):
            raise ValueError(
                f"source {self.path} has no column {', '.join(map(repr, missing))}; "
                f"it has {', '.join(map(repr, names[:20]))}."
            )
        self._columns = [str(name) for name in columns]
        self._are_lists = set(self._columns) <= set(listed)
        if not self._are_lists and set(self._columns) & set(listed):
            raise ValueError(
                f"source {self.path} mixes list columns and plain ones: "
                f"{', '.join(map(repr, self._columns[:20]))}. Say with columns which to take."
            )
        kept = (schema.pandas_metadata or {}).get("index_columns", [])
        self._index = [name for name in kept if isinstance(name, str)]

    @property
    def holds_lists(self) -> bool:
        """Whether the columns taken hold lists, and not the values of a table."""
        return self._are_lists

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_reader": None}

    def __len__(self) -> int:
        return self._ends[-1]

    def read(self, start: int, stop: int) -> Rows:
        """Read rows `start` to `stop - 1`."""
        import pyarrow as pa

        pieces = []
        position = start
        while position < stop:
            number = bisect_right(self._ends, position)
            begin = self._ends[number] - self._rows_of(number)
            end = min(stop, self._ends[number])
            pieces.append(self._read_file(number, position - begin, end - begin))
            position = end
        table = pa.concat_tables(pieces, promote_options="permissive").combine_chunks()
        return Rows(
            self._instances(table, start),
            None if self._ids is None else _plain(table.column(self._ids)),
            None if self._label is None else _plain(table.column(self._label)),
        )

    def fingerprint(self) -> dict[str, Any]:
        """Describe the content by sizes and times of the files, and the columns taken."""
        root = self.path if self.path.is_dir() else None
        return {
            "kind": "parquet",
            "rows": len(self),
            "columns": self._columns,
            "files": stamps(self._files, root),
        }

    def _instances(self, table: Any, start: int) -> Any:
        """Make instances of the columns: arrays of lists and steps, a frame of others."""
        if self._are_lists:
            channels = [_block(table.column(name), name, start) for name in self._columns]
            if len(channels) == 1:
                return channels[0]
            shapes = {channel.shape for channel in channels}
            if len(shapes) > 1:
                raise ValueError(f"source: the columns hold lists of lengths {sorted(shapes)}.")
            return np.stack(channels, axis=1)
        if self._are_steps:
            values = [np.asarray(table.column(name), dtype=np.float64) for name in self._columns]
            X, _ = split_channels(CsvTable(np.stack(values, axis=1), tuple(self._columns), None))
            return X
        import pandas as pd

        frame = table.select([*self._columns, *self._index]).to_pandas()
        if not self._index:
            frame.index = pd.RangeIndex(start, start + len(frame))
        return frame[self._columns]

    def _rows_of(self, number: int) -> int:
        """Return the number of rows of a file."""
        return self._ends[number] - (self._ends[number - 1] if number else 0)

    def _read_file(self, number: int, start: int, stop: int) -> Any:
        """Read rows of one file, going on from the last read where that is possible."""
        if self._reader is None or not self._reader.can_read(number, start):
            extra = [name for name in (self._ids, self._label) if name is not None]
            columns = list(dict.fromkeys([*self._columns, *extra, *self._index]))
            self._reader = _Reader(number, self._open(self._files[number]), columns, start)
        return self._reader.read(start, stop)

    @staticmethod
    def _open(path: Path) -> Any:
        """Open one file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.ParquetFile(path)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ValueError(f"source {path} cannot be read as .parquet: {error}") from error


class _Reader:
    """Reads one file from some row on; row groups before it are not touched."""

    def __init__(self, number: int, file: Any, columns: list[str], start: int) -> None:
        self.number = number
        groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        self._begins = list(accumulate(groups, initial=0))
        first = bisect_right(self._begins, start) - 1
        self._position = self._begins[first]
        self._batches: Iterator[Any] = file.iter_batches(
            BATCH, row_groups=range(first, file.num_row_groups), columns=columns
        )
        self._batch: Any = None

    def can_read(self, number: int, start: int) -> bool:
        """Return whether a row lies ahead, in the row group that is being read."""
        here = bisect_right(self._begins, self._position)
        return (
            number == self.number
            and start >= self._position
            and bisect_right(self._begins, start) <= here + 1
        )

    def read(self, start: int, stop: int) -> Any:
        """Read rows `start` to `stop - 1` of the file."""
        import pyarrow as pa

        pieces = []
        while True:
            if self._batch is None:
                self._batch = next(self._batches)
            end = self._position + len(self._batch)
            if end > start:
                first = max(start - self._position, 0)
                pieces.append(self._batch.slice(first, stop - self._position - first))
            if end >= stop:
                return pa.Table.from_batches(pieces)
            self._batch = None
            self._position = end


def _is_list(kind: Any) -> bool:
    """Return whether a column holds lists."""
    import pyarrow.types as types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _block(column: Any, name: str, start: int) -> Array:
    """Make one array of a column of lists, which may be nested."""
    import pyarrow.compute as pc

    values = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if not _is_list(values.type):
        return np.asarray(values.to_numpy(zero_copy_only=False))
    if values.null_count:
        row = start + int(np.argmax(np.asarray(values.is_null())))
        raise ValueError(f"source: column {name!r} has no list in row {row}.")
    lengths = np.asarray(pc.list_value_length(values))
    if len(np.unique(lengths)) > 1:
        row = int(np.argmax(lengths != lengths[0]))
        raise ValueError(
            f"source: column {name!r} holds lists of {lengths[0]} and, in row {start + row}, of "
            f"{lengths[row]} entries. Accepted: one length."
        )
    inner = _block(values.flatten(), name, start)
    return inner.reshape(len(values), -1, *inner.shape[1:])


def _plain(column: Any) -> Array:
    """Return labels or identifiers as an array of numbers or texts."""
    values = column.to_numpy()
    return values.astype(str) if values.dtype == object else np.asarray(values)
