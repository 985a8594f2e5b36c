"""A train/test split for data that come without one."""

from __future__ import annotations

import numpy as np

from contrafact.data.cleaning import Array

TEST_SHARE = 0.3
SEED = 0


def stratified_split(y: Array) -> tuple[Array, Array]:
    """Shuffled indices of the training and the test instances: 70/30 in every class, always the same.

    Every class keeps at least one instance on either side, however small it is.
    """
    rng = np.random.default_rng(SEED)
    train, test = [], []
    for label, size in zip(*np.unique(y, return_counts=True), strict=True):
        if size < 2:
            raise ValueError(
                f"y has a single instance of class {label.item()!r}. Accepted: two or more of each class, "
                "or data already split into train and test."
            )
        members = rng.permutation(np.flatnonzero(y == label))
        n_test = min(max(round(TEST_SHARE * size), 1), size - 1)
        test.append(members[:n_test])
        train.append(members[n_test:])
    return rng.permutation(np.concatenate(train)), rng.permutation(np.concatenate(test))
