"""One labeled dataset with its train/test split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from contrafact.data.cleaning import Array, as_float, describe_nonfinite

SHAPES = {
    "series": ("n", "channels", "length"),
    "image": ("n", "channels", "height", "width"),
    "row": ("n", "features"),
}


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Labeled training and test instances of one kind.

    Parameters
    ----------
    name : str
    modality : "series", "image" or "row"
    X_train, X_test : arrays of shape (n, channels, length), (n, channels, height, width) or (n, features)
        Finite numbers. Floats stay as they are; whole numbers become floats, not rescaled.
    y_train, y_test : arrays of shape (n,)
        Labels of any one type.
    names : tuple of str, optional
        Of the columns of rows, or of the channels of series and images.

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
        for part in ("train", "test"):
            X = as_float(getattr(self, f"X_{part}"), f"X_{part}")
            check_shape(X, self.modality, f"X_{part}")
            problem = describe_nonfinite(X, f"X_{part}")
            if problem:
                raise ValueError(problem)
            object.__setattr__(self, f"X_{part}", X)
            object.__setattr__(
                self, f"y_{part}", as_labels(getattr(self, f"y_{part}"), f"y_{part}", len(X))
            )
        check_same_shape(self.X_train, self.X_test)
        if _is_text(self.y_train) != _is_text(self.y_test):
            raise ValueError(
                f"y_train has dtype {self.y_train.dtype}, y_test {self.y_test.dtype}. "
                "Accepted: both text, or both numbers."
            )
        if self.names is not None and len(self.names) != self.X_train.shape[1]:
            raise ValueError(
                f"names has {len(self.names)} entries, X_train has shape {self.X_train.shape}. "
                f"Accepted: one for each of the {self.X_train.shape[1]} columns or channels."
            )

    @property
    def classes(self) -> Array:
        """The labels that occur, sorted."""
        return np.unique(np.concatenate([self.y_train, self.y_test]))

    def __repr__(self) -> str:
        labels: list[object] = self.classes.tolist()
        shown = ", ".join(map(repr, labels[:10])) + (
            f", … ({len(labels)})" if len(labels) > 10 else ""
        )
        return (
            f"Dataset({self.name!r}, {self.modality}, train {self.X_train.shape}, "
            f"test {self.X_test.shape}, classes {shown})"
        )


def check_shape(X: Array, modality: str, name: str) -> None:
    if modality not in SHAPES:
        raise ValueError(
            f"modality {modality!r} is unknown. Accepted: {', '.join(map(repr, SHAPES))}."
        )
    axes = SHAPES[modality]
    if X.ndim != len(axes) or X.size == 0:
        raise ValueError(
            f"{name} has shape {X.shape}. Accepted for modality {modality!r}: ({', '.join(axes)}), not empty."
        )


def check_same_shape(X_train: Array, X_test: Array) -> None:
    train, test = X_train.shape[1:], X_test.shape[1:]
    if train != test:
        raise ValueError(
            f"X_test has instances of shape {test}, X_train of {train}. Accepted: one shape for both."
        )


def as_labels(y: ArrayLike, name: str, n: int | None = None) -> Array:
    """Labels of one type; with `n`, one for each of the n instances."""
    labels = np.asarray(y)
    if labels.ndim != 1 or (n is not None and len(labels) != n):
        length = "any length" if n is None else n
        raise ValueError(
            f"{name} has shape {labels.shape}. Accepted: one label per instance, ({length},)."
        )
    # pandas hands text over as objects; as text proper it sorts, compares and saves without pickle.
    if labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels):
        labels = labels.astype(str)
    if labels.dtype.kind not in "biufUS":
        raise ValueError(
            f"{name} has dtype {labels.dtype}. Accepted: text, numbers or booleans, not mixed."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(
            f"{name}[{int(np.isfinite(labels).argmin())}] is not finite. Accepted: a label."
        )
    return labels


def _is_text(y: Array) -> bool:
    return y.dtype.kind in "US"
