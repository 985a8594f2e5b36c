"""Reader of .csv files: a header with the names of the columns, then one instance per line."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .cleaning import Array
from .table_columns import ColumnChoice, check_numbers, convert_labels

if TYPE_CHECKING:
    import pandas as pd

#: Texts that stand for a missing number.
MISSING = ("", "?", "-", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
SEPARATORS = (",", ";", "\t")
#: pandas takes a fixed time for each column; beyond this a table is better stored as arrays.
MAX_COLUMNS = 20_000


class CsvFrame(NamedTuple):
    """Contents of a table of columns of any kind.

    frame : the columns besides the label; row labels from a first column without a name.
    y : (n,), the labels, where there are any.
    """

    frame: pd.DataFrame
    y: Array | None


class CsvTable(NamedTuple):
    """Contents of a .csv file.

    X : (n, columns), the numbers.
    names : the names of these columns.
    y : (n,), the labels, where there are any.
    """

    X: Array
    names: tuple[str, ...]
    y: Array | None


def read_table(path: Path, choice: ColumnChoice) -> CsvTable:
    """Read a .csv file with a header.

    Columns are separated by commas, semicolons or tabs, whichever the header has most of; where
    they are not commas, a decimal comma is understood. A first column without a name, as pandas
    writes its index, is left out.

    Parameters
    ----------
    path : Path
        The file, in UTF-8.
    choice : ColumnChoice
        Which columns are taken.

    Returns
    -------
    CsvTable

    Raises
    ------
    ValueError
        If the file cannot be read; the message names the file and, where it can, the line.
    """
    frame, names, y = _read_columns(path, choice)
    check_numbers(path, frame, set(names))
    return CsvTable(frame[names].to_numpy(np.float64), tuple(names), y)


def read_frame(path: Path, choice: ColumnChoice) -> CsvFrame:
    """Read a .csv or .parquet file with columns of any kind, as a data frame.

    Parameters
    ----------
    path : Path
        The file; see `read_table` for the form of a .csv.
    choice : ColumnChoice
        Which columns are taken.

    Returns
    -------
    CsvFrame

    Raises
    ------
    ValueError
        If the file cannot be read; the message names the file.
    """
    if path.suffix.lower() == ".parquet":
        return _read_parquet(path, choice)
    frame, names, y = _read_columns(path, choice)
    chosen = frame[names]
    first = str(frame.columns[0])
    if first.startswith("Unnamed: 0"):
        chosen = chosen.set_axis(frame[first].tolist(), axis=0)
    return CsvFrame(chosen, y)


def _read_parquet(path: Path, choice: ColumnChoice) -> CsvFrame:
    """Read a .parquet file."""
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
    except ImportError as error:
        raise ImportError(
            f"{path} is a .parquet file, which needs pyarrow: pip install 'contrafact[parquet]'."
        ) from error
    except (ValueError, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} cannot be read as .parquet: {reason}") from error
    frame.columns = [str(name) for name in frame.columns]
    header = frame.columns.tolist()
    target = choice.label_column(path, header)
    names = choice.instance_columns(path, header, target)
    if len(frame) == 0:
        raise ValueError(f"{path} holds no instances.")
    y = None if target is None else frame[target].to_numpy()
    if y is not None and y.dtype == object:
        y = y.astype(str)
    return CsvFrame(frame[names], y)


def _read_columns(path: Path, choice: ColumnChoice) -> tuple[pd.DataFrame, list[str], Array | None]:
    """Read a .csv file: all columns, the names of those that make an instance, and the labels."""
    first, second = _first_lines(path)
    separator = max(SEPARATORS, key=first.count)
    n_columns = first.count(separator) + 1
    if n_columns > MAX_COLUMNS:
        raise ValueError(
            f"{path} has {n_columns:,} columns. Accepted: up to {MAX_COLUMNS:,} in a .csv; "
            "for more write an .npz, e.g. numpy.savez('data.npz', X=X, y=y)."
        )
    header = [str(name) for name in _read(path, separator, nrows=0).columns]
    _check_header(path, first, separator)
    target = choice.label_column(path, header)
    names = choice.instance_columns(path, header, target)
    has_decimal_comma = separator != "," and re.search(r"\d,\d", second)
    frame = _read(
        path,
        separator,
        decimal="," if has_decimal_comma else ".",
        keep_default_na=False,
        na_values=list(MISSING),
    )
    if frame.empty:
        raise ValueError(f"{path} holds no instances: it has a header and nothing after it.")
    y = None
    if target is not None:
        # Read again, as text: a label may be called "NA"; only numbers can be missing.
        place = [header.index(target)]
        text = _read(path, separator, usecols=place, dtype=str, na_filter=False)
        y = convert_labels(path, text[target])
    return frame, names, y


def split_channels(table: CsvTable) -> tuple[Array, tuple[str, ...] | None]:
    """Convert a wide table to series.

    Columns called x_0, x_1, …, y_0, y_1, … are the steps of channels x and y; otherwise all columns
    are the steps of one channel, in their order.

    Parameters
    ----------
    table : CsvTable
        One series per row.

    Returns
    -------
    X : array of shape (n, channels, length)
        The series.
    names : tuple of str or None
        Names of the channels; None where there is only one.
    """
    steps = _columns_by_channel(table.names)
    if steps is None:
        return table.X[:, None], None
    numbers = {tuple(sorted(columns)) for columns in steps.values()}
    if len(numbers) > 1:
        sizes = ", ".join(f"{name!r} {len(columns)}" for name, columns in steps.items())
        raise ValueError(
            f"Channels have different steps ({sizes}). Accepted: the same numbers for all of them."
        )
    # Sorted by the number of the step: 10 comes after 9, wherever its column stands.
    order = [[columns[step] for step in sorted(columns)] for columns in steps.values()]
    X = table.X[:, np.array(order)]
    return X, tuple(steps) if len(steps) > 1 else None


def _columns_by_channel(names: Sequence[str]) -> dict[str, dict[int, int]] | None:
    """Map channels and steps to columns; None unless every name is <channel>_<step>."""
    steps: dict[str, dict[int, int]] = {}
    for column, name in enumerate(names):
        match = re.fullmatch(r"(.+)_(\d+)", name)
        if match is None:
            return None
        channel = match[1]
        step = int(match[2])
        steps.setdefault(channel, {})[step] = column
    return steps


def check_text(path: Path) -> None:
    """Raise an error if a file holds NUL, which no text does; readers would cut lines there."""
    with path.open("rb") as file:
        while block := file.read(2**20):
            if b"\0" in block:
                raise ValueError(f"{path} is not UTF-8 text: it holds NUL bytes.")


def _first_lines(path: Path) -> tuple[str, str]:
    """Read the header, and the first line after it."""
    check_text(path)
    try:
        with path.open(encoding="utf-8-sig") as file:
            lines = (line for line in file if line.strip())
            first = next(lines, "")
            second = next(lines, "")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} cannot be read as .csv: it is not UTF-8 text ({error.reason})."
        ) from error
    if not first:
        raise ValueError(f"{path} holds no instances: it is empty.")
    return first.rstrip("\r\n"), second


def _read(path: Path, separator: str, **options: object) -> pd.DataFrame:
    """Read with pandas; its errors become a ValueError that names the file."""
    import pandas as pd

    try:
        with warnings.catch_warnings():
            # pandas warns of lines that are longer than the header, and cuts them.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(  # type: ignore[call-overload,no-any-return]
                path,
                sep=separator,
                encoding="utf-8-sig",
                index_col=False,
                **options,
            )
    except (
        pd.errors.ParserError,
        pd.errors.ParserWarning,
        pd.errors.EmptyDataError,
        UnicodeDecodeError,
        OverflowError,
    ) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} cannot be read as .csv: {reason}") from error


def _check_header(path: Path, line: str, separator: str) -> None:
    """Raise an error if the first line holds numbers only, and thus no names."""
    cells = [cell.strip().strip('"') for cell in line.split(separator)]
    try:
        numbers = [float(cell) for cell in cells if cell]
    except ValueError:
        return
    is_range = all(b == a + 1 for a, b in pairwise(numbers))
    if len(numbers) > 2 and is_range:
        return  # steps 0, 1, 2, …, as pandas calls columns that have no names
    steps = ",".join(f"t{i}" for i in range(min(len(cells), 3)))
    example = f"label,{steps},…"
    raise ValueError(
        f"{path} has no header: its first line holds numbers only ({', '.join(cells[:3])}, …). "
        f"Accepted: the names of the columns in the first line, e.g. {example}"
    )
