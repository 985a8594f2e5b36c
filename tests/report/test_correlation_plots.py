"""Correlation plots show the correlations."""

import numpy as np
import pytest
from comparison_tables import legible, table, words

from contrafact.benchmark import correlations
from contrafact.report import plot_correlations


def test_cells_are_the_correlations(tmp_path):
    frame = table([*"abcd"])
    frame["unchanged_fraction"] = 1 - frame["sparsity"]
    found = correlations(frame, ["l2", "sparsity", "unchanged_fraction", "valid"])
    figure = plot_correlations(found, tmp_path / "c.pdf")
    ax = figure.axes[0]
    np.testing.assert_array_equal(np.ma.filled(ax.images[0].get_array(), np.nan), found)
    assert found.loc["sparsity", "unchanged_fraction"] == pytest.approx(1)
    assert (
        words(figure).count("–") == 7 and "1.00" in words(figure) and (tmp_path / "c.pdf").exists()
    )
    assert any(text.startswith("−.") for text in words(figure))
    assert legible(figure)
