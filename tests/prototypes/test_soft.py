"""Soft models of the LVQ family."""

import numpy as np
import pytest

from contrafact.prototypes import CELVQ, RSLVQ


@pytest.mark.parametrize("kind", [RSLVQ, CELVQ])
def test_temperature_is_the_losses_too(kind, blobs):
    cold, warm = (
        kind(2, temperature=T, max_iter=10, random_state=0).fit(*blobs) for T in (0.1, 10.0)
    )
    assert (cold.temperature_, warm.temperature_) == pytest.approx((0.1, 10.0))
    assert np.abs(cold.prototypes_ - warm.prototypes_).max() > 0.01
