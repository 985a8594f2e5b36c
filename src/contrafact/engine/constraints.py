"""Constraints: limits that every counterfactual must keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..data.arrays import as_real, read_array
from ..models.classifier import Array
from ..numerics.tensors import read_tensor
from ..validation import Integer, ListOf, Nothing, Satisfies, brief, check_parameters
from .feasible_set import FeasibleSet, round_inward

#: the kinds of constraint that speak of columns by name
TABLE_KINDS = frozenset(
    {"increasing", "decreasing", "max_changed", "relations", "forbidden", "linked"}
)
#: the kinds of constraint there are
KINDS = frozenset({"bounds", "frozen", "max_step"}) | TABLE_KINDS

_NAME = Satisfies(lambda name: isinstance(name, str), "a column name")
_NAMES = ListOf(_NAME, "column names")


def _by_column(entry: Callable[[Any], bool], noun: str) -> Satisfies:
    """Accept a mapping from column names to entries of some form."""

    def accepts(value: Any) -> bool:
        return isinstance(value, Mapping) and all(
            isinstance(name, str) and entry(one) for name, one in value.items()
        )

    return Satisfies(accepts, f"a dict of column names to {noun}")


def _is_pair(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and len(value) == 2


_TABLE_RULES = {
    "bounds": Nothing() | _by_column(_is_pair, "(lower, upper)"),
    "increasing": Nothing() | _NAMES,
    "decreasing": Nothing() | _NAMES,
    "max_changed": Nothing() | Integer(at_least=1),
    "relations": Nothing() | ListOf(Satisfies(lambda text: isinstance(text, str), ""), "texts"),
    "forbidden": Nothing()
    | _by_column(
        lambda pairs: isinstance(pairs, (tuple, list)) and all(map(_is_pair, pairs)),
        "lists of (before, after)",
    ),
    "linked": Nothing() | _by_column(callable, "functions"),
}

#: relative tolerance for steps in finished arrays, which may be rounded once more
STEP_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Constraints:
    """Limit what a counterfactual may change.

    Every method keeps the limits while it searches, and its results are checked again.

    Parameters
    ----------
    lower, upper : float or array, optional
        Bounds on the values, in the units of the data: one number, one per channel, or anything
        that broadcasts against one instance. Use -inf and inf where there is no bound.
    frozen : bool array or list of column names, optional
        True where nothing may change: time windows, channels, pixel regions, columns. Broadcasts
        against one instance. Columns of a data frame can be named.
    max_step : float or array of shape (channels,), optional
        Series only: the largest change from one time step to the next, |x'(t+1) - x'(t)|; one
        number, or one per channel. Use inf for channels without a limit.
    bounds : dict of str to (lower, upper), optional
        Tables only, like all that follow. By column, the range of changed values: two numbers, or
        levels of an ordered column, or None where there is no bound; or two arrays with one entry
        per instance.
    increasing, decreasing : list of column names, optional
        Columns whose numbers or levels may not fall, or not rise.
    max_changed : int, optional
        Most columns that may change; a one-hot group counts as one, linked columns do not count.
    relations : list of str, optional
        Comparisons of numeric columns that have to hold where one of them is changed, such as
        "age >= years_employed + 16".
    forbidden : dict of str to list of (before, after), optional
        By column, which level may not become which.
    linked : dict of str to function, optional
        By column, how it follows from the others: a function of a frame that returns one number
        per row. The column changes where its value by the function does.

    Examples
    --------
    >>> import numpy as np
    >>> first_half = np.arange(150) < 75
    >>> limits = Constraints(lower=-3.0, upper=3.0, frozen=first_half)
    >>> sorted(limits.kinds)
    ['bounds', 'frozen']
    >>> limits = Constraints(frozen=["sex"], increasing=["age"], bounds={"hba1c": (4, 9)})
    >>> sorted(limits.kinds)
    ['bounds', 'frozen', 'increasing']
    """

    lower: Any = None
    upper: Any = None
    frozen: Any = None
    max_step: Any = None
    bounds: Mapping[str, tuple[Any, Any]] | None = None
    increasing: Sequence[str] | None = None
    decreasing: Sequence[str] | None = None
    max_changed: int | None = None
    relations: Sequence[str] | None = None
    forbidden: Mapping[str, Sequence[tuple[Any, Any]]] | None = None
    linked: Mapping[str, Callable[[Any], Any]] | None = None

    def __post_init__(self) -> None:
        check_parameters("constraints", _TABLE_RULES, vars(self))
        for name, nowhere in (("lower", np.inf), ("upper", -np.inf)):
            limit = self._read(name)
            if limit is None:
                continue
            if np.isnan(limit).any():
                raise ValueError(
                    f"constraints.{name} contains NaN; use ±inf where there is no bound."
                )
            if (limit == nowhere).any():
                raise ValueError(f"constraints.{name} is {nowhere} somewhere, so nothing keeps it.")
        steps = self._read("max_step")
        if steps is not None and not (steps > 0).all():
            raise ValueError(
                "constraints.max_step must be positive, a number or one per channel, "
                f"got {brief(self.max_step)}."
            )
        if isinstance(self.frozen, str):
            raise ValueError(
                "constraints.frozen must be a boolean array or a list of column names, "
                f"got {brief(self.frozen)}."
            )
        if self.frozen is not None and not self.names_columns:
            dtype = read_array(self.frozen, "constraints.frozen").dtype
            if dtype.kind != "b":
                raise ValueError(
                    "constraints.frozen must be a boolean array (True = may not change) or a list "
                    f"of column names, got dtype {dtype}."
                )

    def __repr__(self) -> str:
        given = [
            f"{name}={brief(value)}" for name, value in vars(self).items() if value is not None
        ]
        return f"Constraints({', '.join(given)})"

    def _read(self, name: str) -> Array | None:
        """Return a limit as an array of float64; None where there is none."""
        value = getattr(self, name)
        if value is None:
            return None
        array = read_array(value, f"constraints.{name}")
        if array.dtype == bool:
            raise ValueError(
                f"constraints.{name} must be a number or an array of numbers, got {brief(value)}."
            )
        return as_real(array, f"constraints.{name}").astype(np.float64)

    @property
    def names_columns(self) -> bool:
        """Whether `frozen` is a list of column names."""
        return _NAMES.accepts(self.frozen)

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of constraint in force, such as "bounds", "frozen", "max_step"."""
        used = {name for name in KINDS if getattr(self, name) is not None}
        if self.lower is not None or self.upper is not None:
            used.add("bounds")
        return frozenset(used)

    def check_array(self) -> None:
        """Raise ValueError if a limit names columns, for instances that have none."""
        named = self.kinds & TABLE_KINDS
        if self.bounds is not None:
            named |= {"bounds"}
        if self.names_columns and self.frozen:
            named |= {"frozen"}
        if named:
            raise ValueError(
                f"constraints.{min(named)} names columns, so the data have to be a table: pass "
                "data frames to fit and explain."
            )

    def check(self, X: Any, X_cf: Any) -> dict[str, Array]:
        """Check which counterfactuals keep which limit.

        Parameters
        ----------
        X : array of shape (n, *shape)
            The instances, with their channel axis.
        X_cf : array of shape (n, *shape)
            Their counterfactuals.

        Returns
        -------
        dict of str to bool array of shape (n,)
            For each limit in force ("lower", "upper", "frozen", "max_step") the rows that keep it.
            A value that was not changed and is equal to its bound in single precision keeps it.

        Examples
        --------
        >>> import numpy as np
        >>> X, X_cf = np.zeros((2, 3)), np.array([[0.0, 0.5, 0.0], [0.0, 2.0, 0.0]])
        >>> Constraints(upper=1.0).check(X, X_cf)
        {'upper': array([ True, False])}
        """
        x = read_tensor(X, "X").detach().cpu().double()
        x_cf = read_tensor(X_cf, "X_cf").detach().cpu().double()
        if x.ndim < 2 or x.shape != x_cf.shape:
            raise ValueError(
                f"X has shape {tuple(x.shape)}, X_cf {tuple(x_cf.shape)}. "
                "Accepted: (n, *shape) for both."
            )
        feasible_set = self.resolve(
            tuple(x.shape[1:]),
            torch.float64,
            torch.device("cpu"),
        )
        kept = feasible_set.check(
            x_cf,
            x,
            precision=torch.float32,
            step_tolerance=STEP_TOLERANCE,
        )
        return {
            name: rows.numpy() for name, rows in kept.items() if getattr(self, name) is not None
        }

    def resolve(
        self,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        device: torch.device,
    ) -> FeasibleSet:
        """Express the limits as tensors over one instance.

        Parameters
        ----------
        shape : tuple of int
            Shape of one instance.
        dtype : torch.dtype
            Precision the model computes in.
        device : torch.device
            Where the model computes.

        Returns
        -------
        FeasibleSet
            The same limits, never looser than asked.
        """
        self.check_array()
        steps = self.step_limits(shape)
        lower = np.full(shape, -np.inf)
        upper = np.full(shape, np.inf)
        frozen = np.zeros(shape, dtype=bool)
        if self.lower is not None:
            lower = broadcast_over_instance(self.lower, shape, "lower")
        if self.upper is not None:
            upper = broadcast_over_instance(self.upper, shape, "upper")
        if self.frozen is not None and not self.names_columns:
            frozen = broadcast_over_instance(self.frozen, shape, "frozen", bool)
        crossed = np.argwhere(lower > upper)
        if len(crossed):
            at = tuple(crossed[0].tolist())
            raise ValueError(
                f"constraints: lower {lower[at]} is above upper {upper[at]} at position {at}."
            )
        return FeasibleSet(
            lower=round_inward(lower, dtype, up=True).to(device),
            upper=round_inward(upper, dtype, up=False).to(device),
            exact_lower=torch.from_numpy(lower).to(device),
            exact_upper=torch.from_numpy(upper).to(device),
            frozen=torch.from_numpy(frozen).to(device),
            max_step=None if steps is None else torch.from_numpy(steps).to(device),
        )

    def step_limits(self, shape: tuple[int, ...]) -> Array | None:
        """Return the largest step of every channel, (channels,); None where there is no limit.

        Parameters
        ----------
        shape : tuple of int
            Shape of one instance, which has to be a series.

        Returns
        -------
        array of float64, shape (channels,), or None
            The limits, inf where a channel has none.
        """
        steps = self._read("max_step")
        if steps is None:
            return None
        if len(shape) != 2:
            raise ValueError(
                f"constraints.max_step applies to series; instances here have shape {shape}."
            )
        channels = shape[0]
        if steps.shape not in ((), (channels,), (channels, 1)):
            raise ValueError(
                f"constraints.max_step has shape {steps.shape}; accepted are one number, or one "
                f"per channel, ({channels},)."
            )
        return np.array(np.broadcast_to(steps.reshape(-1), channels))


def broadcast_over_instance(
    value: Any,
    shape: tuple[int, ...],
    name: str,
    dtype: Any = float,
) -> Array:
    """Broadcast a limit over one instance; a vector with one entry per channel goes by channel.

    Parameters
    ----------
    value : number or array
        The limit as given.
    shape : tuple of int
        Shape of one instance.
    name : str
        Name of the limit, for messages.
    dtype : data type, default=float
        Data type of the result.

    Returns
    -------
    array of shape `shape`
        The limit of every value.
    """
    array = read_array(value, f"constraints.{name}").astype(dtype)
    by_channel = array.ndim == 1 and len(shape) > 1 and len(array) == shape[0] > 1
    if by_channel and shape[0] == shape[-1]:
        raise ValueError(
            f"constraints.{name} has {len(array)} entries, as many as channels and as the last "
            f"axis; give it shape {(len(array),) + (1,) * (len(shape) - 1)} or {shape} to say "
            "which is meant."
        )
    if by_channel:
        array = array.reshape(-1, *[1] * (len(shape) - 1))
    try:
        return np.array(np.broadcast_to(array, shape))
    except ValueError:
        raise ValueError(
            f"constraints.{name} has shape {array.shape}, which does not broadcast against an "
            f"instance of shape {shape}."
        ) from None
