"""Counterfactuals: the result of `explain`, with validity, status and cost of every row."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..deprecation import warn_renamed
from ..models.classifier import Array
from ..tables import Schema, Table
from .blanks import fill_blanks
from .committee_info import COMMITTEE_KEYS
from .instances import PLURALS, Modality
from .positions import chosen_positions
from .result_checks import as_numpy as as_numpy
from .result_checks import check_result, same_values
from .result_exports import ResultExports
from .statuses import STATUSES

#: a smaller relative difference is rounding, not a change
CHANGE_TOLERANCE = 1e-6
#: the same for features, whose units differ: relative to the largest difference of the row
FEATURE_TOLERANCE = 1e-9

#: share of an image's range of values from which a change of a pixel can be seen
VISIBLE = 0.02

#: fields that are not arrays with one entry per counterfactual
SHARED_FIELDS = ("classes", "modality", "info", "provenance", "names", "table", "exceptions")


@dataclass(frozen=True)
class Counterfactuals(ResultExports):
    """Hold counterfactuals, one row each, with what the model says of them.

    Made by `Explainer.explain`, or by `from_arrays` from arrays of any origin. Rows that failed
    are kept, with their best attempt and the reason.

    Parameters
    ----------
    X, X_cf : array or tensor of shape (n, *shape)
        The instances and their counterfactuals, in the user's kind (NumPy or torch) and shape.
    source : array of int, shape (n,)
        Row of the input each counterfactual belongs to; with k > 1 an input has several rows.
    labels, cf_labels, target : array of shape (n,)
        The model's class before and after, and the class wanted.
    proba, cf_proba : array of shape (n, classes)
        The model's probabilities before and after, columns as in `classes`.
    valid : array of bool, shape (n,)
        Whether the model, asked again about `X_cf`, decides for `target`.
    status : array of str, shape (n,)
        "valid", "already_target", "invalid", "infeasible", "budget" or "error".
    message : array of str, shape (n,)
        The reason, where there is something to say.
    seconds : array of float, shape (n,)
        Share of the wall time, in seconds.
    calls : array of int, shape (n,)
        Model rows spent.
    classes : array of shape (classes,)
        The model's classes, in the order of the probability columns.
    modality : {"series", "image", "row"}
        Kind of data.
    info : dict of str to array
        What the method has to tell, one entry per row; see `info_keys` of the method. With a
        committee also `committee_votes` (members that put x' in the target class),
        `committee_size`, `committee_calls` (rows they were asked about) and `survival` (the
        probability that a retrained model agrees).
    provenance : dict
        Method, parameters, version, seed and options of the request.
    names : array of str, optional
        Names of the features of rows, or of the channels of series or images.
    table : Table, optional
        The instances as rows of a table, where data frames were given. `X` and `X_cf` then hold
        them as numbers: levels by their position, NaN where missing; see `frame` and `frame_cf`.
    exceptions : dict of int to Exception
        By input row, the exceptions behind rows with the status "error"; not saved to files.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> import contrafact as cf
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X, y)
    >>> result = cf.NearestUnlike().fit(model, X, y).explain(X[:5], target=1)
    >>> result
    <Counterfactuals: 5 rows of 4 by NearestUnlike: 5 valid, 95% changed>
    >>> result[0].to_frame()[["label", "target", "cf_label"]].values.tolist()
    [[0, 1, 1]]
    """

    X: Any
    X_cf: Any
    source: Array
    labels: Array
    cf_labels: Array
    target: Array
    proba: Array
    cf_proba: Array
    valid: Array
    status: Array
    message: Array
    seconds: Array
    calls: Array
    classes: Array
    modality: Modality
    info: dict[str, Array] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    names: Array | None = None
    table: Table | None = None
    exceptions: dict[int, Exception] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        check_result(self)

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, rows: Any) -> Counterfactuals:
        """Return the chosen rows: an index, a slice, a boolean mask or a list of positions."""
        positions = chosen_positions(rows, len(self))
        chosen: dict[str, Any] = {
            f.name: getattr(self, f.name)[positions]
            for f in fields(self)
            if f.name not in SHARED_FIELDS
        }
        if self.table is not None:
            chosen["table"] = self.table.take(positions)
        chosen["info"] = {name: values[positions] for name, values in self.info.items()}
        return replace(self, **chosen)

    def __repr__(self) -> str:
        counts = [(int((self.status == status).sum()), status) for status in STATUSES]
        summary = ", ".join(f"{count} {status}" for count, status in counts if count) or "empty"
        moved = self.status == "valid"
        if moved.any() and self.table is not None:
            summary += f", {self.changed_parts[moved].sum(1).mean():.3g} columns changed"
        elif moved.any() and self.modality == "image":
            summary += f", {self.visible_pixels[moved].mean():.0%} of pixels visibly changed"
        elif moved.any():
            summary += f", {self.changed_fraction[moved].mean():.0%} changed"
        method = self.provenance.get("method", "unknown method")
        shape = " × ".join(str(size) for size in self.X.shape[1:])
        if self.table is not None:
            shape = f"{len(self.table.schema.parts)} columns"
        noun = PLURALS[self.modality]
        return f"<Counterfactuals: {len(self)} {noun} of {shape} by {method}: {summary}>"

    @property
    def delta(self) -> Any:
        """The change, X_cf - X."""
        return self.X_cf - self.X

    @property
    def changed(self) -> Any:
        """Mask of the values that changed by more than rounding.

        The values of a series or image share a unit: a difference counts if it is above a millionth
        of the largest one of its instance. The features of a row do not: a difference counts if it
        is above a millionth of the feature's own size, and above 1e-9 of the row's largest
        difference, so that noise on zeros does not count.
        """
        if isinstance(self.X, Tensor):
            return torch.from_numpy(self._changed()).to(self.X.device)
        return self._changed()

    @property
    def changed_fraction(self) -> Array:
        """Share of the values that changed, per row; of a table, of its columns."""
        if self.table is not None:
            return np.asarray(self.changed_parts.mean(1))
        size = int(np.prod(self.X.shape[1:]))
        return np.asarray(self._changed().reshape(len(self), size).mean(1))

    @property
    def visible_pixels(self) -> Array:
        """Mask of the pixels of images that changed visibly, (n, height, width).

        In some channel by more than 2 % of the range of the image's values, before and after. On
        many images `changed` is true of every pixel, most of which moved by next to nothing.
        """
        if self.modality != "image":
            raise ValueError(
                f"visible_pixels is of images; this result holds {self.modality} data."
            )
        both = np.stack([as_numpy(self.X), as_numpy(self.X_cf)], axis=1).astype(np.float64)
        values = both.reshape(len(self), int(np.prod(both.shape[1:])))
        span = np.ptp(values, axis=1) if values.size else np.zeros(len(self))
        size = np.abs(both[:, 1] - both[:, 0]).max(axis=1, initial=0)
        return np.asarray(size > VISIBLE * span[:, None, None])

    @property
    def changed_parts(self) -> Array:
        """Mask of the columns of a table that changed; a one-hot group counts as one."""
        parts = self._need_table().schema.parts
        changed = self._changed()
        by_part = [changed[:, list(members)].any(1) for members in parts.values()]
        return np.stack(by_part, axis=1)

    @property
    def frame(self) -> Any:
        """The instances as a data frame like the one given: library, types, labels of rows."""
        return self._need_table().frame()

    @property
    def frame_cf(self) -> Any:
        """The counterfactuals as a data frame like the one given."""
        return self.table_cf.frame()

    @property
    def table_cf(self) -> Table:
        """The counterfactuals as rows of a table, where data frames were given."""
        return self._need_table().with_codes(as_numpy(self.X_cf))

    @property
    def options(self) -> Array:
        """Which of the counterfactuals of its instance each row is, from 0."""
        order = np.argsort(self.source, kind="stable")
        _, first, count = np.unique(self.source[order], return_index=True, return_counts=True)
        numbers = np.empty(len(self), dtype=np.int64)
        numbers[order] = np.arange(len(self)) - np.repeat(first, count)
        return numbers

    @property
    def row_labels(self) -> list[Any]:
        """What the user calls the instance of each row: the label in a frame, or its number."""
        if self.table is None or self.table.index is None:
            return list(self.source.tolist())
        return list(self.table.index.tolist())

    def _need_table(self) -> Table:
        if self.table is None:
            raise ValueError("X was an array, so that there is no frame; see X and X_cf.")
        return self.table

    def _changed(self) -> Array:
        if self.table is not None:
            return ~same_values(as_numpy(self.X), as_numpy(self.X_cf))
        before = as_numpy(self.X).astype(np.float64)
        after = as_numpy(self.X_cf).astype(np.float64)
        size = np.abs(after - before)
        other_axes = tuple(range(1, size.ndim))
        largest = size.max(axis=other_axes, keepdims=True, initial=0)
        if self.modality != "row":
            return np.asarray(size > CHANGE_TOLERANCE * largest)
        own = np.maximum(np.abs(before), np.abs(after))
        above_rounding = size > CHANGE_TOLERANCE * own
        return np.asarray(above_rounding & (size > FEATURE_TOLERANCE * largest))

    @property
    def target_proba(self) -> Array:
        """P(target) before (column 0) and after (column 1), shape (n, 2)."""
        position = {label: i for i, label in enumerate(self.classes.tolist())}
        column = np.array([position[label] for label in self.target.tolist()], dtype=int)
        rows = np.arange(len(self))
        before = self.proba[rows, column]
        after = self.cf_proba[rows, column]
        return np.stack([before, after], axis=1)

    def updated(self, rows: Array, new: Counterfactuals) -> Counterfactuals:
        """Replace some rows and add up their cost.

        Parameters
        ----------
        rows : array of int
            Positions to replace.
        new : Counterfactuals
            Their replacements, in order.

        Returns
        -------
        Counterfactuals
            A new result; this one is not changed.
        """
        new = replace(
            new,
            calls=self.calls[rows] + new.calls,
            seconds=self.seconds[rows] + new.seconds,
        )
        changes: dict[str, Any] = {}
        for name in (
            "X_cf",
            "labels",
            "cf_labels",
            "proba",
            "cf_proba",
            "valid",
            "status",
            "message",
            "calls",
            "seconds",
        ):
            changes[name] = _with_rows(
                getattr(self, name),
                rows,
                getattr(new, name),
            )
        if self.table is not None:
            new_codes = renumbered(as_numpy(new.X_cf), new._need_table(), self.table)
            changes["X_cf"] = _with_rows(self.X_cf, rows, new_codes)
        # What a committee said of the old arrays does not hold for the new ones.
        info = {name: values for name, values in self.info.items() if name not in COMMITTEE_KEYS}
        for name, values in new.info.items():
            blank = fill_blanks(values[:0], np.zeros(len(self), dtype=bool))
            info[name] = _with_rows(blank, rows, values)
        provenance = {**self.provenance, "refined": new.provenance.get("options", {})}
        return replace(self, **changes, info=info, provenance=provenance)

    @classmethod
    def from_arrays(
        cls,
        model: Any,
        X: Any,
        X_cf: Any,
        target: Any = None,
        *,
        method: str = "given",
        modality: Modality | None = None,
        schema: Schema | None = None,
    ) -> Counterfactuals:
        """Make a result of counterfactuals of any origin by asking the model about them.

        Parameters
        ----------
        model : object
            Anything `as_classifier` takes.
        X, X_cf : array of shape (n, *shape), or data frame
            Instances and one counterfactual each.
        target : label, or one label per instance, optional
            Classes wanted. None: any class other than that of the instance; where the model
            does not change its decision, the row is invalid.
        method : str, default="given"
            Name for the provenance.
        modality : {"series", "image", "row"}, optional
            Kind of data, where the shape does not tell.
        schema : Schema, optional
            What the columns of data frames hold; default: it is inferred from both.

        Returns
        -------
        Counterfactuals
            With `valid` as the model says.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LogisticRegression(max_iter=500).fit(X, y)
        >>> Counterfactuals.from_arrays(model, X[[0, 0]], X[[70, 1]]).valid.tolist()
        [True, False]
        """
        from .given_arrays import from_arrays

        return from_arrays(model, X, X_cf, target, method=method, modality=modality, schema=schema)

    @classmethod
    def judge(cls, *args: Any, **kwargs: Any) -> Counterfactuals:
        """Call `from_arrays`; the old name, kept for one version.

        Parameters
        ----------
        *args, **kwargs : object
            As for `from_arrays`.

        Returns
        -------
        Counterfactuals
            What `from_arrays` returns.
        """
        warn_renamed("Counterfactuals.judge", "Counterfactuals.from_arrays")
        return cls.from_arrays(*args, **kwargs)


def renumbered(codes: Array, table: Table, other: Table) -> Array:
    """Return rows of a table with the numbers that their fixed values have in another one."""
    codes = codes.copy()
    for i, column in enumerate(table.schema):
        if column.kind == "fixed":
            codes[:, i] = other.fixed.translate(column.name, codes[:, i], table.fixed)
    return codes


def _with_rows(values: Any, rows: Array, new: Any) -> Any:
    """Return a copy with some rows replaced, in a dtype that holds both."""
    if isinstance(values, Tensor):
        whole = values.clone()
        whole[rows] = new
        return whole
    whole = values.astype(np.result_type(values, new))
    whole[rows] = new
    return whole
