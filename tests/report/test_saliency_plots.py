"""Saliency maps: what the method told, or how much changed, and a line around what did."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from contrafact.report import plot_saliency


def drawn(figure):
    """The axes of the map and its values."""
    ax = next(ax for ax in figure.axes if ax.images)
    return ax, np.asarray(ax.images[0].get_array())


def edges(figure):
    ax, _ = drawn(figure)
    (border,) = (each for each in ax.collections if each.get_gid() == "changed")
    return sorted(tuple(map(tuple, segment.tolist())) for segment in border.get_segments())


def bar_label(figure):
    return figure.axes[-1].get_ylabel()


@pytest.mark.parametrize("kind", ["saliency", "weights"])
def test_what_the_method_tells_is_shown(series, kind, tmp_path):
    told = np.random.default_rng(0).uniform(size=series.X.shape)
    figure = plot_saliency(replace(series, info={kind: told}), 0, tmp_path / "map.pdf")
    np.testing.assert_allclose(drawn(figure)[1], told[0])
    assert kind.rstrip("s") in bar_label(figure)
    assert (tmp_path / "map.pdf").stat().st_size > 5000


def test_importance_over_time_holds_for_every_channel(series):
    told = np.random.default_rng(0).normal(size=(3, 20))
    _, shown = drawn(plot_saliency(replace(series, info={"importance": told}), -2))
    np.testing.assert_allclose(shown, [told[1], told[1]])


@pytest.mark.parametrize("told", [1.0, np.nan])
def test_else_the_size_of_the_change(series, told):
    figure = plot_saliency(replace(series, info={"weights": np.full(series.X.shape, told)}), 0)
    span = np.ptp(series.X, axis=(0, 2))
    np.testing.assert_allclose(drawn(figure)[1], 100 * np.abs(series.delta[0]) / span[:, None])
    assert "size of the change" in bar_label(figure)


def test_a_line_runs_around_what_changed(make):
    X = np.zeros((1, 3, 6))
    X_cf = X.copy()
    X_cf[0, 1, 2:4] = 1
    X_cf[0, 2, 3] = 1
    # The two channels touch at time 3: no line between them there.
    assert edges(plot_saliency(make(X, X_cf, [[1, 0]], [[0, 1]]))) == [
        ((1.5, 0.5), (1.5, 1.5)),
        ((1.5, 0.5), (3.5, 0.5)),
        ((1.5, 1.5), (2.5, 1.5)),
        ((2.5, 1.5), (2.5, 2.5)),
        ((2.5, 2.5), (3.5, 2.5)),
        ((3.5, 0.5), (3.5, 2.5)),
    ]
    assert edges(plot_saliency(make(X, X, [[1, 0]], [[1, 0]]))) == []


@pytest.mark.parametrize(("channels", "names"), [(1, 1), (6, 6), (48, 48), (150, 50)])
def test_any_number_of_channels(make, channels, names):
    X = np.random.default_rng(0).normal(size=(1, channels, 30))
    result = replace(
        make(X, -X, [[1, 0]], [[0, 1]]), names=np.array([f"c{c}" for c in range(channels)])
    )
    figure = plot_saliency(result, 0, width=7)
    ax, shown = drawn(figure)
    assert shown.shape == (channels, 30)
    labels = [tick.get_text() for tick in ax.get_yticklabels()]
    assert len(labels) == names and labels[-1] == f"c{ax.get_yticks()[-1]}"
    # No two names lie on each other.
    figure.canvas.draw()
    bottom = [tick.get_window_extent().y0 for tick in ax.get_yticklabels()]
    height = ax.get_yticklabels()[0].get_window_extent().height
    assert np.abs(np.diff(bottom)).min(initial=height) > 0.75 * height
    assert figure.get_figheight() < 10


def test_a_series_without_channels(series):
    flat = replace(series, X=series.X[:, 0], X_cf=series.X_cf[:, 0])
    ax, shown = drawn(plot_saliency(flat, 1))
    assert shown.shape == (1, 20)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["value"]


def test_other_data_and_rows_are_refused(series, make):
    rows = make(np.ones((1, 3)), np.ones((1, 3)), [[1, 0]], [[1, 0]], modality="row")
    with pytest.raises(ValueError, match="plot_saliency draws series; this result holds row data"):
        plot_saliency(rows)
    with pytest.raises(IndexError, match="row 3 does not exist"):
        plot_saliency(series, 3)
