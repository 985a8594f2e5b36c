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

if TYPE_CHECKING:
    import pandas as pd

#: Names of a label column, in upper or lower case, where the user gives none.
LABELS = ("label", "class", "target", "y")
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


def read_table(
    path: Path,
    *,
    label: str | None,
    columns: Sequence[str] | None = None,
    unlabeled: bool = False,
) -> CsvTable:
    """Read a .csv file with a header.

    Columns are separated by commas, semicolons or tabs, whichever the header has most of; where
    they are not commas, a decimal comma is understood. A first column without a name, as pandas
    writes its index, is left out.

    Parameters
    ----------
    path : Path
        The file, in UTF-8.
    label : str or None
        Name of the label column; None: the one called label, class, target or y.
    columns : sequence of str, optional
        Take these columns, in this order, and leave the others out; default: all but the label.
    unlabeled : bool, default=False
        Accept a table without a label column.

    Returns
    -------
    CsvTable

    Raises
    ------
    ValueError
        If the file cannot be read; the message names the file and, where it can, the line.
    """
    frame, names, y = _read_columns(path, label, columns, unlabeled)
    _check_numbers(path, frame, set(names))
    return CsvTable(frame[names].to_numpy(np.float64), tuple(names), y)


def read_frame(
    path: Path,
    *,
    label: str | None,
    columns: Sequence[str] | None = None,
    unlabeled: bool = False,
) -> CsvFrame:
    """Read a .csv or .parquet file with columns of any kind, as a data frame.

    Parameters
    ----------
    path : Path
        The file; see `read_table` for the form of a .csv.
    label : str or None
        Name of the label column; None: the one called label, class, target or y.
    columns : sequence of str, optional
        Take these columns, in this order, and leave the others out; default: all but the label.
    unlabeled : bool, default=False
        Accept a table without a label column.

    Returns
    -------
    CsvFrame

    Raises
    ------
    ValueError
        If the file cannot be read; the message names the file.
    """
    if path.suffix.lower() == ".parquet":
        return _read_parquet(path, label, columns, unlabeled)
    frame, names, y = _read_columns(path, label, columns, unlabeled)
    chosen = frame[names]
    first = str(frame.columns[0])
    if first.startswith("Unnamed: 0"):
        chosen = chosen.set_axis(frame[first].tolist(), axis=0)
    return CsvFrame(chosen, y)


def _read_parquet(
    path: Path,
    label: str | None,
    columns: Sequence[str] | None,
    unlabeled: bool,
) -> CsvFrame:
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
    target = _label_column(path, header, label, unlabeled)
    names = _number_columns(path, header, target, columns)
    if len(frame) == 0:
        raise ValueError(f"{path} holds no instances.")
    y = None if target is None else frame[target].to_numpy()
    if y is not None and y.dtype == object:
        y = y.astype(str)
    return CsvFrame(frame[names], y)


def _read_columns(
    path: Path,
    label: str | None,
    columns: Sequence[str] | None,
    unlabeled: bool,
) -> tuple[pd.DataFrame, list[str], Array | None]:
    """Read a .csv file: all columns, the names of those that make an instance, and the labels."""
    first, second = _first_lines(path)
    separator = max(SEPARATORS, key=first.count)
    n_columns = first.count(separator) + 1
    if n_columns > MAX_COLUMNS:
        raise ValueError(
            f"{path} has {n_columns:,} columns. Accepted: up to {MAX_COLUMNS:,} in a .csv; "
            "for more write an .npz, e.g. numpy.savez('data.npz', X=X, y=y)."
        )
    header = [
        str(name)
        for name in _read(
            path,
            separator,
            nrows=0,
        ).columns
    ]
    _check_header(path, first, separator)
    target = _label_column(path, header, label, unlabeled)
    names = _number_columns(path, header, target, columns)
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
        y = _labels(path, text[target])
    return frame, names, y


def _number_columns(
    path: Path,
    header: list[str],
    target: str | None,
    columns: Sequence[str] | None,
) -> list[str]:
    """Choose the columns that hold the numbers of an instance."""
    if columns is None:
        names = [name for name in header if name != target and not name.startswith("Unnamed: 0")]
    else:
        names = list(columns)
        absent = [name for name in names if name not in header]
        if absent:
            raise ValueError(
                f"{path} has no column {_listed(absent)}, which the model was trained on; "
                f"it has {_listed(header)}."
            )
    if not names:
        raise ValueError(f"{path} has no columns besides the label; it has {_listed(header)}.")
    return names


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


def _label_column(
    path: Path,
    header: list[str],
    label: str | None,
    unlabeled: bool,
) -> str | None:
    """Find the label column; None if there is none and that is accepted."""
    if label is not None:
        if label in header:
            return label
        if unlabeled:
            return None
        raise ValueError(f"{path} has no column {label!r} (label); it has {_listed(header)}.")
    found = [name for name in header if name.strip().lower() in LABELS]
    if len(found) > 1:
        raise ValueError(
            f"{path} has several columns that may hold the labels: {_listed(found)}. "
            "Say which with label (--label)."
        )
    if not found and not unlabeled:
        raise ValueError(
            f"{path} has no column called {', '.join(LABELS[:-1])} or {LABELS[-1]}; it has "
            f"{_listed(header)}. Say with label (--label) which one holds the labels."
        )
    return found[0] if found else None


def _check_numbers(path: Path, frame: pd.DataFrame, names: set[str]) -> None:
    """Raise an error that names the first cell that is not a number, among some columns."""
    # By type first: to look at columns one by one takes long where there are many.
    for name, dtype in frame.dtypes.items():
        if dtype.kind not in "biuf" and name in names:
            _refuse_text(path, frame[name])


def _refuse_text(path: Path, column: pd.Series) -> None:
    """Raise an error that names the first cell of a column that is not a number."""
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce")
    bad = column[numbers.isna() & column.notna()]
    if not len(bad):
        longest = max(map(str, column), key=len)
        raise ValueError(
            f"{path}: column {column.name!r} holds {longest[:40]!r}, which has more digits than a "
            "number can keep. If it is an identifier, leave the column out."
        )
    value = str(bad.iloc[0])
    line = int(bad.index[0]) + 2  # the header is line 1
    hint = "Code it as a number, or leave the column out."
    if re.fullmatch(r"[+-]?\d+,\d+", value):
        hint = "Decimal commas are read where semicolons or tabs stand between the columns."
    raise ValueError(
        f"{path}: column {column.name!r} holds {value[:40]!r} in line {line}, "
        f"which is not a number. {hint}"
    )


def _labels(path: Path, column: pd.Series) -> Array:
    """Convert labels to booleans, whole numbers or other numbers where all are; else to text."""
    import pandas as pd

    text = column.str.strip()
    if (text == "").any():
        line = int(text.eq("").to_numpy().argmax()) + 2
        raise ValueError(f"{path}: line {line} has no label in column {column.name!r}.")
    if text.isin(["True", "False"]).all():
        return np.asarray(text == "True", dtype=bool)
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(np.float64)
    if not np.isfinite(numbers).all():
        return text.to_numpy(str)
    if np.abs(numbers).max() > 2**53:
        return text.to_numpy(str)  # as numbers, long identifiers would become the same
    is_whole = numbers == np.rint(numbers)
    return numbers.astype(np.int64) if is_whole.all() else numbers


def _listed(names: Sequence[str], most: int = 8) -> str:
    """List names for a message, the first few of many."""
    shown = ", ".join(repr(name) for name in names[:most])
    if len(names) > most:
        shown += f", … ({len(names)})"
    return shown
