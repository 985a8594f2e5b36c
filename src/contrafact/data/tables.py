"""Reader of .csv: a header with the names of the columns, then one instance per line."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contrafact.data.cleaning import Array

if TYPE_CHECKING:
    import pandas as pd

#: What a label column is called where nobody says, in any case.
LABELS = ("label", "class", "target", "y")
MISSING = ("", "?", "-", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
SEPARATORS = (",", ";", "\t")


class CsvTable(NamedTuple):
    """Columns of numbers (n, columns), their names, and the labels where there are any."""

    X: Array
    names: tuple[str, ...]
    y: Array | None


def read_table(
    path: Path, *, label: str | None, columns: Sequence[str] | None = None, unlabeled: bool = False
) -> CsvTable:
    """Read a .csv with a header.

    Commas, semicolons or tabs between the columns, whichever the header has most of; a decimal comma where
    they are not commas. A first column without a name, as pandas writes its index, is left out.

    Parameters
    ----------
    label : name of the label column; None: the one called label, class, target or y.
    columns : take these, in this order, and leave the others out; None: all but the label.
    unlabeled : a table without that column is fine.
    """
    head = _first_lines(path)
    separator = max(SEPARATORS, key=head[0].count)
    header = [str(name) for name in _read(path, separator, nrows=0).columns]
    _check_header(path, head[0], separator)
    target = _label_column(path, header, label, unlabeled)
    names = [name for name in header if name != target and not name.startswith("Unnamed: 0")]
    if columns is not None:
        absent = [name for name in columns if name not in header]
        if absent:
            raise ValueError(
                f"{path} has no column {_listed(absent)}, which the model was trained on; "
                f"it has {_listed(header)}."
            )
        names = list(columns)
    if not names:
        raise ValueError(f"{path} has no columns besides the label; it has {_listed(header)}.")
    decimal = "," if separator != "," and re.search(r"\d,\d", head[1]) else "."
    frame = _read(
        path,
        separator,
        decimal=decimal,
        dtype={} if target is None else {target: str},
        # Read as text, a label may be called "NA"; only numbers can be missing.
        keep_default_na=False,
        na_values={name: list(MISSING) for name in names},
    )
    if frame.empty:
        raise ValueError(f"{path} holds no instances: it has a header and nothing after it.")
    for name in names:
        _check_numbers(path, frame[name])
    y = None if target is None else _labels(path, frame[target])
    return CsvTable(frame[names].to_numpy(np.float64), tuple(names), y)


def split_channels(table: CsvTable) -> tuple[Array, tuple[str, ...] | None]:
    """A wide table as series (n, channels, length), and the channels' names.

    Columns called x_0, x_1, …, y_0, y_1, … are channels x and y; other columns are the steps of one channel.
    """
    found = [re.fullmatch(r"(.+)_(\d+)", name) for name in table.names]
    if not all(found):
        return table.X[:, None], None
    steps: dict[str, dict[int, int]] = {}
    for column, match in enumerate(found):
        assert match is not None
        steps.setdefault(match[1], {})[int(match[2])] = column
    if len({tuple(sorted(times)) for times in steps.values()}) > 1:
        sizes = ", ".join(f"{name!r} {len(times)}" for name, times in steps.items())
        raise ValueError(
            f"Channels have different steps ({sizes}). Accepted: the same numbers for all of them."
        )
    order = [[times[t] for t in sorted(times)] for times in steps.values()]
    return table.X[:, np.array(order)], tuple(steps) if len(steps) > 1 else None


def _first_lines(path: Path) -> tuple[str, str]:
    """The header, and the first line after it."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            lines = (line for line in file if line.strip())
            first, second = next(lines, ""), next(lines, "")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} cannot be read as .csv: it is not UTF-8 text ({error.reason})."
        ) from error
    if not first:
        raise ValueError(f"{path} holds no instances: it is empty.")
    return first.rstrip("\r\n"), second


def _read(path: Path, separator: str, **options: object) -> pd.DataFrame:
    import pandas as pd

    try:
        with warnings.catch_warnings():
            # pandas warns of lines that are longer than the header, and cuts them.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(  # type: ignore[call-overload,no-any-return]
                path, sep=separator, encoding="utf-8-sig", index_col=False, **options
            )
    except (pd.errors.ParserError, pd.errors.ParserWarning, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} cannot be read as .csv: {reason}") from error


def _check_header(path: Path, line: str, separator: str) -> None:
    cells = [cell.strip().strip('"') for cell in line.split(separator)]
    try:
        numbers = [float(cell) for cell in cells if cell]
    except ValueError:
        return
    if len(numbers) > 2 and all(b == a + 1 for a, b in pairwise(numbers)):
        return  # steps 0, 1, 2, …, as pandas calls columns that have no names
    example = f"label,{','.join(f't{i}' for i in range(min(len(cells), 3)))},…"
    raise ValueError(
        f"{path} has no header: its first line holds numbers only ({', '.join(cells[:3])}, …). "
        f"Accepted: the names of the columns in the first line, e.g. {example}"
    )


def _label_column(path: Path, header: list[str], label: str | None, unlabeled: bool) -> str | None:
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


def _check_numbers(path: Path, column: pd.Series) -> None:
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return
    bad = column[pd.to_numeric(column, errors="coerce").isna() & column.notna()]
    # The header is line 1.
    value, line = str(bad.iloc[0]), int(bad.index[0]) + 2
    hint = "Code it as a number, or leave the column out."
    if re.fullmatch(r"[+-]?\d+,\d+", value):
        hint = "Decimal commas are read where semicolons or tabs stand between the columns."
    raise ValueError(
        f"{path}: column {column.name!r} holds {value[:40]!r} in line {line}, no number. {hint}"
    )


def _labels(path: Path, column: pd.Series) -> Array:
    """Whole numbers, truth values, other numbers, or else text."""
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
    return numbers.astype(np.int64) if (numbers == np.rint(numbers)).all() else numbers


def _listed(names: Sequence[str], most: int = 8) -> str:
    more = f", … ({len(names)})" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more
