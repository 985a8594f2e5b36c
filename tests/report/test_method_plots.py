"""Methods side by side: the same instance, what each made of it, and nothing else."""

from __future__ import annotations

import re
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgba

from contrafact.report import plot_methods
from contrafact.report.style import MISSED, REACHED


def words(figure):
    return "\n".join(
        text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_visible()
    )


def marks(figure, gid):
    """(column, line, marker, fill) of the marks of a kind in the table of features."""
    return [
        (
            line.get_xdata()[0],
            line.get_ydata()[0],
            line.get_marker(),
            to_rgba(line.get_markerfacecolor()),
        )
        for line in figure.findobj(matplotlib.lines.Line2D)
        if line.get_gid() == gid
    ]


@pytest.fixture
def rival(series):
    """The other way round: fails row 12, reaches row 14 by one changed value."""
    X_cf = series.X.copy()
    X_cf[0, 0, 7] += 2
    X_cf[1, 1, 0] -= 3
    return replace(
        series,
        X_cf=X_cf,
        cf_proba=np.array([[0.75, 0.25], [0.25, 0.75], [0.125, 0.875]]),
        cf_labels=np.array(["gun", "point", "point"]),
        valid=np.array([False, True, True]),
        status=np.array(["budget", "valid", "already_target"]),
        calls=np.array([1234, 5, 0]),
    )


def test_a_panel_for_each_method_on_shared_axes(series, rival, tmp_path):
    figure = plot_methods({"CELS": series, "other": rival}, 12, tmp_path / "methods.png")
    panels = [ax for ax in figure.axes if ax.lines]
    assert len(panels) == 4  # two methods, two channels
    np.testing.assert_array_equal(panels[1].lines[1].get_ydata(), series.X_cf[0, 1])
    np.testing.assert_array_equal(panels[2].lines[1].get_ydata(), rival.X_cf[0, 0])
    assert panels[0].get_ylim() == panels[2].get_ylim()
    assert [len(ax.patches) for ax in panels] == [1, 2, 1, 0]
    assert (tmp_path / "methods.png").stat().st_size > 10_000


def test_figures_of_each_method(series, rival):
    text = words(plot_methods({"CELS": series, "other": rival}, 12))
    assert "row 12: 'gun' (0.97), what would make it 'point'?" in text
    assert "now 'point' (0.62)\n12 % changed\nl2 distance 2.236\n7 model rows" in text
    assert "not reached: 'gun' (0.75)\n2 % changed\nl2 distance 2\n1234 model rows" in text
    assert "already 'point'" in words(plot_methods({"CELS": series}, 17))


def test_a_failed_method_looks_failed(series, rival):
    figure = plot_methods({"CELS": series, "other": rival}, 14)
    first, _, last, _ = (ax for ax in figure.axes if ax.lines)
    assert first.lines[1].get_color() == MISSED.color
    assert last.lines[1].get_color() == REACHED.color
    assert "best attempt, not reached" in words(figure)


def test_the_channels_that_change_most(make):
    X = np.random.default_rng(0).normal(size=(1, 8, 12))
    X_cf = X.copy()
    X_cf[0, [1, 3, 4, 6], 2] += [9, 9, 0.01, 9]
    names = np.array([f"sensor {c}" for c in range(8)])
    text = words(plot_methods({"a": replace(make(X, X_cf, [[1, 0]], [[0, 1]]), names=names)}))
    assert re.findall(r"sensor \d", text) == ["sensor 1", "sensor 3", "sensor 6"]
    assert "of 5 more, 1 changed too" in text


def test_the_first_valid_one_of_several_is_drawn(series, rival):
    both = replace(rival, source=np.array([12, 12, 17]), X=series.X[[0, 0, 2]])
    figure = plot_methods({"k = 2": both}, 12)
    np.testing.assert_array_equal(figure.axes[0].lines[1].get_ydata(), rival.X_cf[1, 0])


def test_kinds_of_array_may_differ(series):
    flat = replace(series, X=series.X[:, 0], X_cf=series.X_cf[:, 0])
    lifted = replace(
        series,
        X=torch.tensor(series.X[:, :1]).float(),
        X_cf=torch.tensor(series.X_cf[:, :1]).float(),
    )
    assert len([ax for ax in plot_methods({"a": flat, "b": lifted}, 14).axes if ax.lines]) == 2


def test_images_in_lines_beside_the_original(make):
    X = np.random.default_rng(0).uniform(size=(1, 1, 6, 6))
    X_cf = X.copy()
    X_cf[0, 0, 2, 3] -= 0.5
    good = make(X, X_cf, [[0.75, 0.25]], [[0.25, 0.75]], modality="image")
    bad = make(X, X - 0.25, [[0.75, 0.25]], [[0.6, 0.4]], modality="image")
    figure = plot_methods({"good": good, "bad": bad})
    pictures = [ax for ax in figure.axes if ax.images]
    assert [ax.get_title() for ax in pictures] == [
        "original",
        "changed version",
        "what changed",
        "best attempt",
        "",
    ]
    assert pictures[2].images[0].get_clim() == pictures[4].images[0].get_clim() == (-0.5, 0.5)
    assert pictures[3].spines["top"].get_edgecolor() == to_rgba(MISSED.color)
    assert "not reached: 'a' (0.60)" in words(figure)


def test_features_against_methods(make):
    X = np.array([[1.0, 2.0, 3.0, 4.0]])
    up = make(X, np.array([[1.0, 2.5, 3.0, 8.0]]), [[1, 0]], [[0, 1]], modality="row")
    down = make(X, np.array([[1.0, 1.0, 3.0, 4.0]]), [[1, 0]], [[1, 0]], modality="row")
    names = np.array(["age", "income", "debt", "rooms"])
    figure = plot_methods({"up": replace(up, names=names), "down": down})
    table = next(ax for ax in figure.axes if ax.get_xlabel())
    assert [tick.get_text() for tick in table.get_yticklabels()] == ["income", "rooms"]
    assert marks(figure, "changed") == [
        (0, 0, "^", to_rgba(REACHED.color)),
        (0, 1, "^", to_rgba(REACHED.color)),
        (1, 0, "v", to_rgba("white")),
    ]
    assert [mark[:2] for mark in marks(figure, "same")] == [(1, 1)]
    assert [text.get_text() for text in table.texts] == ["2", "4", "2.5", "8", "1"]
    assert "2 features changed" in words(figure) and "1 feature changed" in words(figure)


def test_rows_that_nobody_changed(make):
    X = np.ones((1, 3))
    assert "no feature changed" in words(
        plot_methods({"a": make(X, X, [[1, 0]], [[1, 0]], modality="row")})
    )


def test_a_model_without_an_answer(make):
    mute = make(np.ones((1, 9)), np.zeros((1, 9)), [[1, 0]], [[np.nan, np.nan]])
    assert "not reached: no answer" in words(plot_methods({"a": mute}))


@pytest.mark.parametrize("name", ["$x$\n😀", "m" * 10_000, "<b>\x00\ud800"])
def test_odd_names_of_methods(series, name, tmp_path, recwarn):
    plot_methods({name: series}, 12, tmp_path / "odd.svg")
    assert not recwarn.list


def test_inputs_that_do_not_exist(series):
    with pytest.raises(
        IndexError, match="No counterfactual of input 0; there are those of 12, 14, 17"
    ):
        plot_methods({"a": series}, 0)
