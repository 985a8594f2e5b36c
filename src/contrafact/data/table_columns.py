"""Columns of a table: which are read, which holds the labels, and what may stand in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .cleaning import Array

if TYPE_CHECKING:
    import pandas as pd

#: Names of a label column, in upper or lower case, where the user gives none.
LABELS = ("label", "class", "target", "y")


class ColumnChoice(NamedTuple):
    """Which columns of a table are read.

    label : name of the label column; None: the one called label, class, target or y.
    columns : take these, in this order, and leave the others out; None: all but the label.
    unlabeled : whether the label column may be absent.
    """

    label: str | None = None
    columns: Sequence[str] | None = None
    unlabeled: bool = False

    def label_column(self, path: Path, header: list[str]) -> str | None:
        """Find the label column; None if there is none and that is accepted."""
        if self.label is not None:
            if self.label in header:
                return self.label
            if self.unlabeled:
                return None
            raise ValueError(
                f"{path} has no column {self.label!r} (label); it has {_listed(header)}."
            )
        found = [name for name in header if name.strip().lower() in LABELS]
        if len(found) > 1:
            raise ValueError(
                f"{path} has several columns that may hold the labels: {_listed(found)}. "
                "Say which with label (--label)."
            )
        if not found and not self.unlabeled:
            raise ValueError(
                f"{path} has no column called {', '.join(LABELS[:-1])} or {LABELS[-1]}; it has "
                f"{_listed(header)}. Say with label (--label) which one holds the labels."
            )
        return found[0] if found else None

    def instance_columns(self, path: Path, header: list[str], target: str | None) -> list[str]:
        """Choose the columns that make an instance; `target` is the label column."""
        if self.columns is None:
            names = [
                name for name in header if name != target and not name.startswith("Unnamed: 0")
            ]
        else:
            names = list(self.columns)
            absent = [name for name in names if name not in header]
            if absent:
                raise ValueError(
                    f"{path} has no column {_listed(absent)}, which the model was trained on; "
                    f"it has {_listed(header)}."
                )
        if not names:
            raise ValueError(f"{path} has no columns besides the label; it has {_listed(header)}.")
        return names


def check_numbers(path: Path, frame: pd.DataFrame, names: set[str]) -> None:
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


def convert_labels(path: Path, column: pd.Series) -> Array:
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
