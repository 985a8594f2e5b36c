"""Values of tables in JSON: what goes in comes out, and nothing else is accepted."""

import json
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest

from contrafact.tables.plain_values import from_plain, to_plain

VALUES = [
    "text",
    "",
    3,
    -(2**60),
    0.1,
    True,
    b"\x00\xff",
    ("a", 1, ("b", 2.5)),
    date(2026, 3, 14),
    datetime(2026, 3, 14, 15, 9, 26, 535),
    datetime(2026, 3, 14, 15, 9, tzinfo=timezone(timedelta(hours=2))),
    pd.Timestamp("2026-03-14 15:09:26.535897932"),
    pd.Timestamp("2026-03-14", tz="Europe/Berlin"),
    pd.Interval(0, 1.5, closed="left"),
    pd.Interval(pd.Timestamp("2026-01-01"), pd.Timestamp("2026-02-01")),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back(value):
    again = from_plain(json.loads(json.dumps(to_plain(value), allow_nan=False)))
    assert again == value
    assert type(again) is type(value)


def test_numbers_of_numpy_are_plain():
    assert to_plain(np.int64(3)) == 3
    assert type(to_plain(np.float32(0.5))) is float


@pytest.mark.parametrize("gap", [None, float("nan"), pd.NA, pd.NaT], ids=repr)
def test_gaps_keep_their_kind(gap):
    again = from_plain(json.loads(json.dumps(to_plain(gap), allow_nan=False)))
    assert again is gap or (gap != gap and type(again) is float)


@pytest.mark.parametrize(
    "value", [[1], {"a": 1}, 1j, object(), timedelta(1)], ids=lambda value: type(value).__name__
)
def test_other_values_are_refused(value):
    with pytest.raises(ValueError, match="cannot be saved"):
        to_plain(value)


@pytest.mark.parametrize(
    "plain",
    [None, [], {}, [1], ["eval", "1"], ["bytes"], ["bytes", "?"], ["date", 3], ["interval", 1, 2]],
    ids=repr,
)
def test_other_texts_are_refused(plain):
    with pytest.raises(ValueError):
        from_plain(plain)
