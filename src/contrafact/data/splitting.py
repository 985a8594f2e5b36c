"""Train/test split of data that come without one."""

from __future__ import annotations

import numpy as np

from .cleaning import Array
from .dataset import as_labels
from .readers import Source

#: Share of every class that goes to the test part.
TEST_SHARE = 0.3
SEED = 0


def stratified_split(y: Array) -> tuple[Array, Array]:
    """Split instances 70/30 within every class, the same way every time.

    Every class keeps at least one instance in either part, however small it is.

    Parameters
    ----------
    y : array of shape (n,)
        The labels; at least two instances of each.

    Returns
    -------
    train, test : array of int
        Shuffled indices of the two parts.
    """
    y = as_labels(y, "y")
    rng = np.random.default_rng(SEED)
    train = []
    test = []
    labels, sizes = np.unique(y, return_counts=True)
    for label, size in zip(labels, sizes, strict=True):
        if size < 2:
            raise ValueError(
                f"y has a single instance of class {label.item()!r}. Accepted: two or more of each "
                "class, or data already split into train and test."
            )
        members = rng.permutation(np.flatnonzero(y == label))
        wanted = round(TEST_SHARE * size)
        n_test = min(max(wanted, 1), size - 1)
        test.append(members[:n_test])
        train.append(members[n_test:])
    shuffled_train = rng.permutation(np.concatenate(train))
    shuffled_test = rng.permutation(np.concatenate(test))
    return shuffled_train, shuffled_test


def split_source(source: Source) -> Source:
    """Split a source that has one part into train and test.

    Parameters
    ----------
    source : Source
        One part, with labels.

    Returns
    -------
    Source
        Two parts.
    """
    ((instances, y),) = source.parts
    assert y is not None
    X = np.asarray(instances)
    train, test = stratified_split(y)
    return source._replace(parts=[(X[train], y[train]), (X[test], y[test])])
