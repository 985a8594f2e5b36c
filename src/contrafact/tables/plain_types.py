"""Types of columns of pandas and polars as JSON can hold them, and back."""

from __future__ import annotations

from dataclasses import fields
from importlib.util import find_spec
from typing import Any

from ..validation import brief
from .frame_forms import FrameForm
from .plain_values import from_plain, to_plain

#: types of polars that their name tells whole
POLARS_NAMES = (
    *("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"),
    *("Float32", "Float64", "Boolean", "String", "Categorical", "Date", "Object"),
)


def form_to_plain(form: FrameForm) -> dict[str, Any]:
    """Convert the form of a frame to what JSON can hold.

    Parameters
    ----------
    form : FrameForm
        Library, labels and types.

    Returns
    -------
    dict
        Plain values.

    Raises
    ------
    ValueError
        If a type cannot be saved; the message names the column.
    """
    types = []
    convert = _polars_to_plain if form.library == "polars" else pandas_to_plain
    for label, dtype in zip(form.labels, form.dtypes, strict=True):
        try:
            types.append(convert(dtype))
        except ValueError as error:
            raise ValueError(f"column {str(label)!r}: {error}.") from None
    others = {
        field.name: [to_plain(value) for value in getattr(form, field.name)]
        for field in fields(form)
        if field.name not in ("library", "dtypes")
    }
    return {"library": form.library, "dtypes": types, **others}


def form_from_plain(plain: dict[str, Any]) -> FrameForm:
    """Read what `form_to_plain` returned.

    Parameters
    ----------
    plain : dict
        Plain values.

    Returns
    -------
    FrameForm
        The form.

    Raises
    ------
    ValueError
        If it is no such form.
    ImportError
        If its library is not installed.
    """
    library = plain["library"]
    if library not in ("pandas", "polars"):
        raise ValueError(f"library must be 'pandas' or 'polars', got {brief(library)}")
    if find_spec(library) is None:
        raise ImportError(f"it holds frames of {library}, which is not installed.")
    convert = _polars_from_plain if library == "polars" else pandas_from_plain
    types = tuple(convert(dtype) for dtype in plain["dtypes"])
    others = {
        field.name: tuple(from_plain(value) for value in plain[field.name])
        for field in fields(FrameForm)
        if field.name not in ("library", "dtypes")
    }
    if len(others["labels"]) != len(types):
        raise ValueError(f"there are {len(others['labels'])} labels for {len(types)} types")
    return FrameForm(library, dtypes=types, **others)


def pandas_to_plain(dtype: Any) -> dict[str, Any]:
    """Convert a type of pandas to plain values.

    Parameters
    ----------
    dtype : dtype
        The type.

    Returns
    -------
    dict
        What `pandas_from_plain` reads.
    """
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype):
        return {
            "kind": "category",
            "categories": [to_plain(level) for level in dtype.categories.to_list()],
            "of": pandas_to_plain(dtype.categories.dtype),
            "ordered": bool(dtype.ordered),
        }
    if isinstance(dtype, pd.StringDtype):
        missing = "NA" if dtype.na_value is pd.NA else "NaN"
        return {"kind": "text", "storage": dtype.storage, "missing": missing}
    try:
        is_named = bool(pd.api.types.pandas_dtype(str(dtype)) == dtype)
    except (TypeError, NotImplementedError):
        is_named = False
    if not is_named:
        raise ValueError(f"dtype {dtype} cannot be saved")
    return {"kind": "named", "name": str(dtype)}


def pandas_from_plain(plain: dict[str, Any]) -> Any:
    """Read what `pandas_to_plain` returned.

    Parameters
    ----------
    plain : dict
        Plain values.

    Returns
    -------
    dtype
        The type.
    """
    import pandas as pd

    if plain["kind"] == "category":
        levels = [from_plain(level) for level in plain["categories"]]
        categories = pd.Index(levels, dtype=pandas_from_plain(plain["of"]))
        return pd.CategoricalDtype(categories, ordered=plain["ordered"])
    if plain["kind"] == "text":
        storage = plain["storage"] if find_spec("pyarrow") else "python"
        if plain["missing"] == "NA":
            return pd.StringDtype(storage)
        return pd.StringDtype(storage, na_value=float("nan"))
    return pd.api.types.pandas_dtype(plain["name"])


def _polars_to_plain(dtype: Any) -> dict[str, Any]:
    """Convert a type of polars to plain values."""
    import polars as pl

    if isinstance(dtype, pl.Enum):
        return {"kind": "enum", "categories": dtype.categories.to_list()}
    if isinstance(dtype, pl.Datetime):
        return {"kind": "moment", "unit": dtype.time_unit, "zone": dtype.time_zone}
    if isinstance(dtype, pl.Decimal):
        return {"kind": "decimal", "precision": dtype.precision, "scale": dtype.scale}
    name = str(dtype.base_type())
    if name not in POLARS_NAMES:
        raise ValueError(f"dtype {dtype} cannot be saved")
    return {"kind": "named", "name": name}


def _polars_from_plain(plain: dict[str, Any]) -> Any:
    """Read what `_polars_to_plain` returned."""
    import polars as pl

    if plain["kind"] == "enum":
        return pl.Enum(plain["categories"])
    if plain["kind"] == "moment":
        return pl.Datetime(plain["unit"], plain["zone"])
    if plain["kind"] == "decimal":
        return pl.Decimal(plain["precision"], plain["scale"])
    if plain["name"] not in POLARS_NAMES:
        raise ValueError(f"{brief(plain['name'])} is not a type of polars")
    return getattr(pl, plain["name"])()
