"""What a metric needs, and how it says so."""

from __future__ import annotations

import numpy as np
import pytest

from contrafact.metrics import evaluate


def test_metrics_say_where_they_make_no_sense(make):
    p = [[0.9, 0.1]]
    result = make(np.zeros((1, 4)), np.ones((1, 4)), p, p, modality="row")
    left_out = evaluate(result, reference=np.zeros((3, 4))).left_out
    for name in ("dtw", "dtw_lof", "dtw_lof_increase", "dtw_lof_inlier"):
        assert left_out[name] == "is for series data; this result holds row data"
    assert left_out["contiguity"] == "is for series and image data; this result holds row data"
    with pytest.raises(ValueError, match="'dtw' is for series data; this result holds row data"):
        evaluate(result, "dtw")
    image = make(np.zeros((1, 1, 2, 2)), np.ones((1, 1, 2, 2)), p, p, modality="image")
    assert "dtw" in evaluate(image).left_out
    assert evaluate(image)["contiguity"].tolist() == [1]
