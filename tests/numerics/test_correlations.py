"""Correlations between channels: those of NumPy, and 0 where a channel does not vary."""

import numpy as np
import torch

from contrafact.numerics import channel_correlations


def test_correlations_are_those_of_numpy():
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(40, 3, 25)).cumsum(-1))
    ours = channel_correlations(X)
    for x, correlation in zip(X.numpy(), ours.numpy(), strict=True):
        np.testing.assert_allclose(correlation, np.corrcoef(x), atol=1e-12)
    one_by_one = torch.stack([channel_correlations(x) for x in X])
    torch.testing.assert_close(ours, one_by_one, rtol=0, atol=1e-12)


def test_a_channel_that_does_not_vary_has_none():
    # The mean of these is not 0.1 to the last bit.
    series = torch.from_numpy(np.stack([np.full(7, 0.1), np.arange(7.0)]))
    assert channel_correlations(series).tolist() == [[0.0, 0.0], [0.0, 1.0]]
