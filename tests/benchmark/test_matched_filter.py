"""The matched filter, by hand."""

import numpy as np
import torch

from contrafact.benchmark.matched_filter import MatchedFilter


def test_logits_by_hand():
    filters = np.array([[[1.0, 2, 0, 0]], [[0, 0, 1, 2]]])  # two places of one channel
    rule = MatchedFilter(filters, threshold=4.0, sharpness=2.0)
    x = torch.tensor([[[1.0, 1, 0, 3]], [[2, 1, 0, 0]], [[0, 0, 0, 0]]], dtype=torch.float64)
    # z = (3, 6), (4, 0), (0, 0): above, at and below the threshold
    expected = [[-1.0, 1.0], [0.0, 0.0], [2.0, -2.0]]
    np.testing.assert_allclose(rule(x), expected)
    assert not any(parameter.requires_grad for parameter in rule.parameters())
