"""Pictures of one row of a table: numbers by distance, categories in words."""

from dataclasses import replace

import numpy as np
import pytest

from contrafact.report import plot, plot_methods
from hospital import hospital_result


@pytest.fixture(scope="module")
def result():
    return hospital_result()


def texts(figure):
    return [text.get_text() for ax in figure.axes for text in ax.texts]


def ticks(figure):
    return [label.get_text() for label in figure.axes[1].get_yticklabels()]


def test_only_changed_columns_are_drawn(result):
    figure = plot(result, 2)
    assert set(ticks(figure)) == {"bmi", "hba1c", "smokes", "activity"}
    written = texts(figure)
    assert "38.0 → 25.0" in written
    assert "yes → no" in written
    assert "not known → 6.1" in written
    assert "some → daily" in written


def test_numbers_are_as_far_apart_as_the_schema_says(result):
    figure = plot(result, 0)
    ends = [
        line.get_xdata().tolist() for line in figure.axes[1].lines if len(line.get_xdata()) == 2
    ]
    scale = result.table.schema["bmi"].scale
    assert ends == [pytest.approx([0, (27.1 - 31.4) / scale])]


def test_nothing_changed(result):
    same = replace(
        result,
        X_cf=result.X,
        cf_labels=result.labels,
        cf_proba=result.proba,
        valid=np.zeros(4, dtype=bool),
        status=np.repeat("invalid", 4),
    )
    assert "no feature changed" in texts(plot(same, 0))


def test_a_narrow_picture_and_a_file(result, tmp_path):
    plot(result, 1, tmp_path / "why.png", width=3.5)
    assert (tmp_path / "why.png").stat().st_size > 5000


def test_methods_on_one_row(result):
    written = texts(plot_methods({"A": result, "B": result[[1, 2]]}, 0))
    assert {"31.4", "27.1", "24.0", "yes", "no", "A", "C"} <= set(written)
    assert "2 columns changed" in written
