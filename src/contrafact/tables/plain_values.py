"""Values of a table as JSON can hold them, and back; nothing of it runs code."""

from __future__ import annotations

from base64 import b64decode, b64encode
from datetime import date, datetime
from typing import Any

import numpy as np

from ..validation import brief


def to_plain(value: Any) -> Any:
    """Convert a value of a table to what JSON can hold.

    Parameters
    ----------
    value : object
        A text, a number, a boolean, bytes, a date, an interval, a tuple of these, or a missing
        value.

    Returns
    -------
    object
        Texts, numbers and booleans as they are; all others as a list of a word and their parts.

    Raises
    ------
    ValueError
        If the value is none of these.
    """
    import pandas as pd

    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple):
        return ["tuple", *map(to_plain, value)]
    for word, gap in _gaps().items():
        if value is gap or (word == "NaN" and isinstance(value, float) and value != value):
            return [word]
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, bytes):
        return ["bytes", b64encode(value).decode("ascii")]
    if isinstance(value, pd.Timestamp):
        return ["timestamp", value.isoformat()]
    if isinstance(value, datetime):
        return ["datetime", value.isoformat()]
    if isinstance(value, date):
        return ["date", value.isoformat()]
    if isinstance(value, pd.Interval):
        return ["interval", to_plain(value.left), to_plain(value.right), value.closed]
    raise ValueError(f"{brief(value)} cannot be saved")


def _gaps() -> dict[str, Any]:
    """Return what can stand for a missing value."""
    import pandas as pd

    return {"None": None, "NaN": float("nan"), "NA": pd.NA, "NaT": pd.NaT}


def from_plain(plain: Any) -> Any:
    """Read what `to_plain` returned.

    Parameters
    ----------
    plain : object
        The value as JSON holds it.

    Returns
    -------
    object
        The value.

    Raises
    ------
    ValueError
        If it is no such value.
    """
    import pandas as pd

    if isinstance(plain, (str, bool, int, float)):
        return plain
    if not isinstance(plain, list) or not plain or not isinstance(plain[0], str):
        raise ValueError(f"{brief(plain)} is not a value of a table")
    word, *parts = plain
    if word == "tuple":
        return tuple(map(from_plain, parts))
    if word == "interval" and len(parts) == 3:
        return pd.Interval(from_plain(parts[0]), from_plain(parts[1]), parts[2])
    if word in _gaps() and not parts:
        return _gaps()[word]
    if len(parts) != 1 or not isinstance(parts[0], str):
        raise ValueError(f"{brief(plain)} is not a value of a table")
    if word == "bytes":
        return b64decode(parts[0], validate=True)
    readers: dict[str, Any] = {
        "timestamp": pd.Timestamp,
        "datetime": datetime.fromisoformat,
        "date": date.fromisoformat,
    }
    if word not in readers:
        raise ValueError(f"{brief(plain)} is not a value of a table")
    return readers[word](parts[0])
