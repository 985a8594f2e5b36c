"""Only results of the same instances can be compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from contrafact.report import write_report
from contrafact.report.comparison import check_same_instances


def test_only_the_same_instances_are_compared(series, make):
    with pytest.raises(
        ValueError, match="'a' and 'b' answer for different instances: their X differ"
    ):
        check_same_instances(
            {"a": series, "b": replace(series, X=series.X + 1, X_cf=series.X_cf + 1)}
        )
    with pytest.raises(ValueError, match="different rows of the input: 12, 14, 17 and 12, 14"):
        check_same_instances({"a": series, "b": series[:2]})
    rows = make(np.ones((1, 3)), np.ones((1, 3)), [[1, 0]], [[1, 0]], modality="row")
    with pytest.raises(ValueError, match="'a' holds series data, 'b' row data"):
        check_same_instances({"a": series, "b": rows})


@pytest.mark.parametrize("results", [{}, []])
def test_something_has_to_be_compared(results):
    with pytest.raises(ValueError, match="results has to map names to Counterfactuals"):
        check_same_instances(results)


def test_nothing_asked_of_two_methods_is_the_same_question(series, tmp_path):
    page = write_report({"one": series[:0], "two": series[:0]}, tmp_path / "nothing.html")
    assert "Nothing was asked." in page.read_text(encoding="utf-8")
