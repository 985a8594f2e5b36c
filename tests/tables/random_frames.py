"""Random mixed frames: every type of column that people have, in pandas and polars."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl


def _gappy(rng, values, gap=None):
    """Put a missing value in about every fifth place, never in all."""
    values = list(values)
    for i in np.flatnonzero(rng.random(len(values)) < 0.2)[: len(values) - 1]:
        values[i] = gap
    return values


def _words(rng, n, words):
    return [str(word) for word in rng.choice(words, n)]


def _moments(rng, n):
    start = np.datetime64("2019-01-01T00:00:00", "us")
    return start + rng.integers(0, 10**14, n).astype("timedelta64[us]")


def _flags(rng, n, levels, is_open):
    """Make the columns of a one-hot group."""
    chosen = rng.integers(0, levels + is_open, n)
    return {f"color_{level}": (chosen == level).astype(int) for level in range(levels)}


PANDAS = {
    "bool": lambda rng, n: pd.Series(rng.random(n) < 0.5),
    "flag": lambda rng, n: pd.Series(rng.integers(0, 2, n)),
    "boolean": lambda rng, n: pd.Series(_gappy(rng, rng.random(n) < 0.5), dtype="boolean"),
    "int8": lambda rng, n: pd.Series(rng.integers(-100, 100, n), dtype="int8"),
    "int64": lambda rng, n: pd.Series(rng.integers(18, 90, n)),
    "Int64": lambda rng, n: pd.Series(_gappy(rng, rng.integers(0, 9, n)), dtype="Int64"),
    "step": lambda rng, n: pd.Series(5 * rng.integers(0, 40, n)),
    "rounded": lambda rng, n: pd.Series(rng.normal(27, 4, n).round(1)),
    "float64": lambda rng, n: pd.Series(_gappy(rng, rng.normal(0, 100, n), np.nan)),
    "tiny": lambda rng, n: pd.Series(10 ** rng.uniform(-12, 3, n)),
    "Float64": lambda rng, n: pd.Series(_gappy(rng, rng.normal(0, 1, n)), dtype="Float64"),
    "float32": lambda rng, n: pd.Series(_gappy(rng, rng.normal(0, 1, n), np.nan), dtype="float32"),
    "category": lambda rng, n: pd.Series(
        pd.Categorical(_gappy(rng, _words(rng, n, list("cab"))), categories=list("cabd"))
    ),
    "ordered": lambda rng, n: pd.Series(
        pd.Categorical(
            _gappy(rng, _words(rng, n, ["low", "high"])), ["low", "middle", "high"], ordered=True
        )
    ),
    "numbered category": lambda rng, n: pd.Series(rng.integers(1, 4, n)).astype("category"),
    "str": lambda rng, n: pd.Series(_gappy(rng, _words(rng, n, ["f", "m"]))),
    "object": lambda rng, n: pd.Series(_gappy(rng, _words(rng, n, ["f", "m"])), dtype=object),
    "object with nan": lambda rng, n: pd.Series(
        _gappy(rng, _words(rng, n, ["f", "m"]), np.nan), dtype=object
    ),
    "free text": lambda rng, n: pd.Series([f"note {i} {rng.random()}" for i in range(n)]),
    "datetime": lambda rng, n: pd.Series(pd.DatetimeIndex(_moments(rng, n))),
    "nanoseconds": lambda rng, n: pd.Series(
        pd.DatetimeIndex(_gappy(rng, rng.integers(0, 10**18, n), None))
    ),
    "zoned": lambda rng, n: pd.Series(
        pd.DatetimeIndex(_gappy(rng, _moments(rng, n), None)).tz_localize("UTC")
    ).dt.tz_convert("Europe/Berlin"),
    "date objects": lambda rng, n: pd.Series(
        [dt.date(2020, 1, int(day)) for day in rng.integers(1, 28, n)], dtype=object
    ),
    "timedelta": lambda rng, n: pd.Series(pd.to_timedelta(rng.integers(0, 99, n), unit="h")),
    "nothing": lambda rng, n: pd.Series([None] * n, dtype=object),
    "constant": lambda rng, n: pd.Series([7.5] * n),
    "large numbers": lambda rng, n: pd.Series(2**60 + rng.integers(0, 9, n)),
}

POLARS = {
    "bool": lambda rng, n: pl.Series(_gappy(rng, (rng.random(n) < 0.5).tolist())),
    "int8": lambda rng, n: pl.Series(rng.integers(-100, 100, n), dtype=pl.Int8),
    "int64": lambda rng, n: pl.Series(_gappy(rng, rng.integers(18, 90, n).tolist())),
    "rounded": lambda rng, n: pl.Series(rng.normal(27, 4, n).round(1)),
    "float64": lambda rng, n: pl.Series(_gappy(rng, rng.normal(0, 100, n).tolist())),
    "nan": lambda rng, n: pl.Series(_gappy(rng, rng.normal(0, 1, n).tolist(), float("nan"))),
    "float32": lambda rng, n: pl.Series(rng.normal(0, 1, n), dtype=pl.Float32),
    "decimal": lambda rng, n: pl.Series(rng.normal(0, 99, n).round(2)).cast(pl.Decimal(10, 2)),
    "categorical": lambda rng, n: pl.Series(
        _gappy(rng, _words(rng, n, list("cab"))), dtype=pl.Categorical
    ),
    "enum": lambda rng, n: pl.Series(
        _gappy(rng, _words(rng, n, ["low", "high"])), dtype=pl.Enum(["low", "middle", "high"])
    ),
    "str": lambda rng, n: pl.Series(_gappy(rng, _words(rng, n, ["f", "m"])), dtype=pl.String),
    "date": lambda rng, n: pl.Series(_gappy(rng, [dt.date(2020, 1, 1 + i % 28) for i in range(n)])),
    "datetime": lambda rng, n: pl.Series(_moments(rng, n)),
    "zoned": lambda rng, n: (
        pl.Series(_moments(rng, n)).dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo")
    ),
    "duration": lambda rng, n: pl.Series([dt.timedelta(hours=i) for i in range(n)]),
    "nothing": lambda rng, n: pl.Series([None] * n),
}

#: types of pandas whose columns can be searched
CHANGEABLE = [
    "bool",
    "boolean",
    "int64",
    "Int64",
    "step",
    "rounded",
    "float64",
    "tiny",
    "Float64",
    "float32",
    "category",
    "ordered",
    "str",
    "object",
]


def random_frame(rng, n, library="pandas", kinds=None, *, group=None):
    """Make a frame of some kinds of column in random order; `group`: "closed", "open" or None."""
    makers = PANDAS if library == "pandas" else POLARS
    kinds = list(makers) if kinds is None else list(kinds)
    rng.shuffle(kinds)
    columns = {kind: makers[kind](rng, n) for kind in kinds}
    if group is not None:
        columns |= _flags(rng, n, 3, group == "open")
    return pd.DataFrame(columns) if library == "pandas" else pl.DataFrame(columns)
