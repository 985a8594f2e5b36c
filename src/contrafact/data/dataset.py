"""A labeled dataset with its train/test split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..validation import Instance, Nothing, Satisfies, brief, check_parameters
from .arrays import Array, read_array
from .cleaning import as_float, describe_nonfinite

#: Names of the axes of an array of instances, by modality.
SHAPES = {
    "series": ("n", "channels", "length"),
    "image": ("n", "channels", "height", "width"),
    "row": ("n", "features"),
}


def _are_names(value: Any) -> bool:
    """Return whether the value is a sequence of texts."""
    is_sequence = isinstance(value, Sequence) and not isinstance(value, str)
    return is_sequence and all(isinstance(name, str) for name in value)


_RULES = {
    "name": Instance(str, "a text"),
    "names": Satisfies(_are_names, "a tuple of texts") | Nothing(),
}


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Hold labeled training and test instances of one kind.

    Parameters
    ----------
    name : str
        Name of the dataset.
    modality : {"series", "image", "row"}
        What an instance is.
    X_train : array
        Finite numbers, of shape (n, channels, length) for series, (n, channels, height, width) for
        images and (n, features) for rows. Floats stay as they are; whole numbers become floats and
        are not rescaled.
    y_train : array of shape (n,)
        Labels: text, numbers or booleans, not mixed.
    X_test, y_test : array
        The same for the test rows.
    names : tuple of str, optional
        Names of the columns of rows, or of the channels of series and images.

    Raises
    ------
    ValueError
        If shapes, types or values do not fit; the message names the argument.

    Examples
    --------
    >>> Dataset("toy", "row", [[0.0], [1.0]], ["a", "b"], [[0.9]], ["b"])
    Dataset('toy', row, train (2, 1), test (1, 1), classes 'a', 'b')
    """

    name: str
    modality: str
    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_parameters("Dataset", _RULES, {"name": self.name, "names": self.names})
        self._convert("X_train", "y_train")
        self._convert("X_test", "y_test")
        check_same_shape(self.X_train, self.X_test)
        if _is_text(self.y_train) != _is_text(self.y_test):
            raise ValueError(
                f"y_train has dtype {self.y_train.dtype}, y_test {self.y_test.dtype}. "
                "Accepted: both text, or both numbers."
            )
        width = self.X_train.shape[1]
        if self.names is not None and len(self.names) != width:
            raise ValueError(
                f"names has {len(self.names)} entries, X_train has shape {self.X_train.shape}. "
                f"Accepted: one for each of the {width} columns or channels."
            )

    def _convert(self, X_name: str, y_name: str) -> None:
        """Check one part, and store it as arrays."""
        X = as_float(getattr(self, X_name), X_name)
        check_shape(X, self.modality, X_name)
        problem = describe_nonfinite(X, X_name)
        if problem:
            raise ValueError(problem)
        y = as_labels(getattr(self, y_name), y_name, len(X))
        # The dataclass is frozen.
        object.__setattr__(self, X_name, X)
        object.__setattr__(self, y_name, y)

    @property
    def classes(self) -> Array:
        """Labels that occur in either part, sorted."""
        labels = np.concatenate([self.y_train, self.y_test])
        return np.unique(labels)

    def __repr__(self) -> str:
        labels: list[object] = self.classes.tolist()
        shown = ", ".join(map(repr, labels[:10]))
        if len(labels) > 10:
            shown += f", … ({len(labels)})"
        return (
            f"Dataset({self.name!r}, {self.modality}, train {self.X_train.shape}, "
            f"test {self.X_test.shape}, classes {shown})"
        )


def check_shape(X: Array, modality: str, name: str) -> None:
    """Check that an array has the number of axes of its modality, and is not empty.

    Parameters
    ----------
    X : array
        The instances.
    modality : str
        What an instance should be, a key of `SHAPES`.
    name : str
        What the user calls X, for error messages.
    """
    if not isinstance(modality, str) or modality not in SHAPES:
        known = ", ".join(map(repr, SHAPES))
        raise ValueError(f"modality {brief(modality)} is unknown. Accepted: {known}.")
    axes = SHAPES[modality]
    if X.ndim != len(axes) or X.size == 0:
        raise ValueError(
            f"{name} has shape {X.shape}. "
            f"Accepted for modality {modality!r}: ({', '.join(axes)}), not empty."
        )


def check_same_shape(X_train: Array, X_test: Array) -> None:
    """Check that instances of both parts have the same shape.

    Parameters
    ----------
    X_train, X_test : array of shape (n, ...)
        The instances of the two parts.
    """
    train = X_train.shape[1:]
    test = X_test.shape[1:]
    if train != test:
        raise ValueError(
            f"X_test has instances of shape {test}, X_train of {train}. "
            "Accepted: one shape for both."
        )


def as_labels(y: ArrayLike, name: str, n: int | None = None) -> Array:
    """Convert labels to an array of one type.

    Parameters
    ----------
    y : array of shape (n,)
        Text, numbers or booleans, not mixed.
    name : str
        What the user calls y, for error messages.
    n : int, optional
        The number of instances, where each must have a label.

    Returns
    -------
    array of shape (n,)

    Raises
    ------
    ValueError, TypeError
        If the shape, the type or a value is not accepted.
    """
    labels = read_array(y, name)
    if labels.ndim != 1 or (n is not None and len(labels) != n):
        accepted = "a list of labels" if n is None else f"one label per instance of X, ({n},)"
        raise ValueError(f"{name} has shape {labels.shape}. Accepted: {accepted}.")
    if isinstance(y, (list, tuple)):
        _refuse_mixed(y, name)
    # pandas stores text as objects; as a text array it sorts, compares and saves without pickle.
    if labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels):
        labels = labels.astype(str)
    if labels.dtype.kind not in "biufUS":
        raise ValueError(
            f"{name} has dtype {labels.dtype}. Accepted: text, numbers or booleans, not mixed."
        )
    if labels.dtype.kind == "f":
        finite = np.isfinite(labels)
        if not finite.all():
            raise ValueError(f"{name}[{int(finite.argmin())}] is not finite. Accepted: a label.")
    return labels


def _refuse_mixed(y: Sequence[Any], name: str) -> None:
    """Refuse text next to numbers, which NumPy would turn into text."""
    is_text = [isinstance(label, (str, bytes)) for label in y]
    if any(is_text) and not all(is_text):
        text = y[is_text.index(True)]
        other = y[is_text.index(False)]
        raise ValueError(
            f"{name} holds {brief(text)} and {brief(other)}. "
            "Accepted: text, numbers or booleans, not mixed."
        )


def _is_text(y: Array) -> bool:
    """Return whether labels are text."""
    return y.dtype.kind in "US"
