"""Where prototypes start."""

import numpy as np
import pytest

from contrafact.prototypes import GLVQ


@pytest.mark.parametrize("init", ["kmeans", "kmeans++", "random", "means"])
@pytest.mark.parametrize("n", [1, 3])
def test_inits(init, n, blobs):
    """After a step of length zero the prototypes are where they started."""
    X, y = blobs
    model = GLVQ(n, init=init, learning_rate=0.0, max_iter=1, random_state=0).fit(X, y)
    means = np.stack([X[y == c].mean(0) for c in range(3)])
    for c, own in enumerate(model.prototypes_.reshape(3, n, 4)):
        if init in ("random", "kmeans++"):
            rows = X[y == c]
            nearest = np.abs(own[:, None] - rows).max(2)
            assert nearest.min(1).max() < 1e-12
            assert len(np.unique(nearest.argmin(1))) == n
        elif n == 1:
            np.testing.assert_allclose(own[0], means[c])
        elif init == "means":
            assert np.abs(own - means[c]).max() < X[y == c].std()
            assert len(np.unique(own, axis=0)) == n
        else:  # centers: each is the mean of the rows nearest to it
            winner = ((X[y == c][:, None] - own) ** 2).sum(2).argmin(1)
            np.testing.assert_allclose(
                own, [X[y == c][winner == k].mean(0) for k in range(n)], atol=1e-3
            )
