"""Schema: what the columns of a table hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

from typing_extensions import Self

from ..validation import Instance, ListOf, Nothing, Satisfies, brief, check_parameters
from .columns import KINDS, Column, Kind
from .frames import RawColumn, is_frame, read_columns
from .inference import infer_column, infer_groups

_RULES = {
    "columns": ListOf(Instance(Column), "Column objects"),
    "open_groups": Satisfies(
        lambda given: (
            isinstance(given, (list, tuple, Set)) and all(isinstance(name, str) for name in given)
        ),
        "a collection of names of one-hot groups",
    ),
}
_KINDS = Nothing() | Satisfies(
    lambda given: (
        isinstance(given, Mapping)
        and all(isinstance(name, str) and kind in KINDS for name, kind in given.items())
    ),
    f"a dict of column names to {', '.join(map(repr, KINDS))}",
)


@dataclass(frozen=True, repr=False)
class Schema:
    """Describe the columns of a table: kinds, ranges, categories, one-hot groups, units.

    Counterfactuals keep to it: a category is one of the allowed ones, a whole number stays whole,
    a one-hot group has exactly one 1. Distances are measured in its units, so that the units of the
    data do not matter. A schema is never changed; `edit` makes another one.

    Parameters
    ----------
    columns : sequence of Column
        The columns in the order of the frame.
    open_groups : collection of str, default=()
        One-hot groups in which all columns may be 0.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [44, 61, 58], "smokes": [True, False, True]})
    >>> schema = Schema.infer(frame)
    >>> schema
    Schema of 2 columns
      age     integer from 44 to 61
      smokes  boolean
    >>> schema.edit("age", lower=18, upper=100)["age"].upper
    100
    """

    columns: tuple[Column, ...]
    open_groups: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        check_parameters("Schema", _RULES, vars(self))
        columns = tuple(self.columns)
        if not columns:
            raise ValueError("Schema: columns must be Column objects, at least one, got none.")
        names = [column.name for column in columns]
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise ValueError(f"Schema: column {repeated[0]!r} appears more than once.")
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "open_groups", frozenset(self.open_groups))
        unknown = self.open_groups - set(self.groups)
        if unknown:
            raise ValueError(f"Schema: open_groups names {sorted(unknown)}, which no column has.")
        lonely = [name for name, members in self.groups.items() if len(members) < 2]
        if lonely:
            raise ValueError(f"Schema: the one-hot group {lonely[0]!r} has one column only.")

    @classmethod
    def infer(cls, frame: Any, *, kinds: Mapping[str, Kind] | None = None) -> Self:
        """Infer a schema from the values of a frame.

        Whole numbers are "integer", two values 0 and 1 "boolean", few texts "categorical", dates
        and texts that hardly repeat "fixed"; columns such as color_red and color_blue, of which at
        most one is 1 in every row, are a one-hot group. Ranges and levels are those of the frame.

        Parameters
        ----------
        frame : pandas.DataFrame or polars.DataFrame
            The table, best all reference rows.
        kinds : mapping of str to str, optional
            Kinds of columns that are known better, by name.

        Returns
        -------
        Schema
            Look at it (it prints as a list), and correct it with `edit`.
        """
        if not is_frame(frame):
            raise TypeError(f"frame must be a data frame of pandas or polars, got {brief(frame)}.")
        check_parameters("Schema.infer", {"kinds": _KINDS}, {"kinds": kinds})
        raw = read_columns(frame, "frame")
        unknown = [name for name in kinds or {} if name not in {column.name for column in raw}]
        if unknown:
            raise ValueError(f"kinds: frame has no column {unknown[0]!r}.")
        return cls.of_columns(raw, "frame", kinds)

    @classmethod
    def of_columns(
        cls,
        raw: Sequence[RawColumn],
        argument: str,
        kinds: Mapping[str, Kind] | None = None,
    ) -> Self:
        """Infer a schema from the columns of a frame.

        Parameters
        ----------
        raw : sequence of RawColumn
            The columns.
        argument : str
            What the user calls the frame, for messages.
        kinds : mapping of str to str, optional
            Kinds of columns that are known better, by name.

        Returns
        -------
        Schema
            What they hold.
        """
        if not raw or len(raw[0].values) == 0:
            raise ValueError(
                f"{argument} is a frame without {'rows' if raw else 'columns'}. Accepted: at "
                "least one row and one column."
            )
        wanted = dict(kinds or {})
        columns = [infer_column(column, wanted.get(column.name)) for column in raw]
        columns, open_groups = infer_groups(raw, columns, set(wanted))
        return cls(tuple(columns), open_groups)

    def __getitem__(self, name: str) -> Column:
        return self.columns[self.position(name)]

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __repr__(self) -> str:
        width = max(len(name) for name in self.names)
        lines = [f"  {column.name:{width}}  {column.describe()}" for column in self.columns]
        return "\n".join([f"Schema of {len(self)} columns", *lines])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """The one-hot groups: positions of the columns of each."""
        members: dict[str, list[int]] = {}
        for position, column in enumerate(self.columns):
            if column.group is not None:
                members.setdefault(column.group, []).append(position)
        return {name: tuple(positions) for name, positions in members.items()}

    @cached_property
    def parts(self) -> dict[str, tuple[int, ...]]:
        """What can be changed on its own, a column or a one-hot group: positions of its columns."""
        members: dict[str, list[int]] = {}
        for position, column in enumerate(self.columns):
            members.setdefault(column.group or column.name, []).append(position)
        return {name: tuple(positions) for name, positions in members.items()}

    def position(self, name: str) -> int:
        """Return the position of a column.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        int
            Counted from 0.

        Raises
        ------
        ValueError
            If there is no such column; the message lists those there are.
        """
        if name not in self.names:
            listed = ", ".join(repr(known) for known in self.names[:12])
            more = ", …" if len(self) > 12 else ""
            raise ValueError(f"There is no column {brief(name)}. Columns: {listed}{more}.")
        return self.names.index(name)

    def positions(self, names: Sequence[str]) -> list[int]:
        """Return the positions of several columns; the name of a one-hot group stands for all."""
        found: list[int] = []
        for name in names:
            found += self.groups.get(name, ()) or (self.position(name),)
        return found

    def edit(self, name: str, **changes: Any) -> Schema:
        """Return a schema with another description of one column.

        Parameters
        ----------
        name : str
            The column.
        **changes : object
            Fields of `Column`, such as kind, levels, lower, upper, step, decimals, cost, missing.

        Returns
        -------
        Schema
            A new schema; this one stays as it is.
        """
        position = self.position(name)
        accepted = {field.name for field in fields(Column)} - {"name"}
        unknown = [change for change in changes if change not in accepted]
        if unknown:
            raise TypeError(
                f"a column has no field {unknown[0]!r}. Fields: {', '.join(sorted(accepted))}."
            )
        if isinstance(changes.get("levels"), list):
            changes["levels"] = tuple(changes["levels"])
        if "kind" in changes and changes["kind"] not in ("ordered", "categorical", "boolean"):
            changes.setdefault("levels", ())
        columns = list(self.columns)
        columns[position] = replace(columns[position], **changes)
        return Schema(tuple(columns), self.open_groups)

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain values, for JSON; infinite bounds become None."""
        columns = []
        for column in self.columns:
            plain = asdict(column)
            plain["levels"] = list(column.levels)
            for bound in ("lower", "upper"):
                if abs(plain[bound]) == float("inf"):
                    plain[bound] = None
            columns.append(plain)
        return {"columns": columns, "open_groups": sorted(self.open_groups)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned.

        Parameters
        ----------
        plain : mapping
            The schema as plain values.

        Returns
        -------
        Schema
            The schema, checked.
        """
        if not isinstance(plain, Mapping) or not isinstance(plain.get("columns"), list):
            raise ValueError(
                f"a schema must be a mapping with a list of columns, got {brief(plain)}."
            )
        columns = []
        known = {field.name for field in fields(Column)}
        for entry in plain["columns"]:
            if not isinstance(entry, Mapping) or not {"name", "kind"} <= set(entry) <= known:
                raise ValueError(f"a column of a schema has name, kind, …; got {brief(entry)}.")
            values = dict(entry)
            values["levels"] = tuple(values.get("levels") or ())
            for bound, nowhere in (("lower", float("-inf")), ("upper", float("inf"))):
                if values.get(bound) is None:
                    values[bound] = nowhere
            columns.append(Column(**values))
        return cls(tuple(columns), frozenset(plain.get("open_groups", ())))
