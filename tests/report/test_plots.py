"""Pictures: what is drawn is what the result says."""

from __future__ import annotations

import warnings
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib._pylab_helpers import Gcf
from matplotlib.image import imread
from matplotlib.patches import Rectangle

from bad_inputs import refuses
from contrafact.report import plot, plot_many
from contrafact.report.style import MISSED, REACHED


def words(figure):
    """Everything written on a figure."""
    figure.canvas.draw()
    return "\n".join(
        text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_visible()
    )


def spans(ax):
    return [patch for patch in ax.patches if isinstance(patch, Rectangle)]


def labeled(figure, label):
    (ax,) = (ax for ax in figure.axes if ax.get_ylabel() == label)
    return ax


def test_changed_stretches_are_shaded(series):
    figure = plot(series, 0)
    edges = [
        (span.get_x(), span.get_x() + span.get_width())
        for span in spans(labeled(figure, "channel 1"))
    ]
    assert edges == [(2.5, 5.5), (8.5, 9.5)]
    assert len(spans(labeled(figure, "channel 0"))) == 1
    assert not any(spans(ax) for ax in plot(series, 2).axes if ax.get_ylabel())


def test_lines_are_the_data(series):
    ax = labeled(plot(series, 0), "channel 1")
    before, after = ax.lines
    np.testing.assert_array_equal(before.get_ydata(), series.X[0, 1])
    np.testing.assert_array_equal(after.get_ydata(), series.X_cf[0, 1])
    assert after.get_color() == REACHED.color


def test_title_says_what_happened(series):
    text = words(plot(series, 0))
    assert "row 12: 'gun' (0.97) → 'point' (0.62)" in text
    assert "in 3 stretches" in text
    assert "time step" in text
    assert "not reached" not in text


def test_a_failure_looks_like_one(series):
    figure = plot(series, 1)
    assert "still 'gun' (0.56), wanted 'point'" in words(figure)
    assert "not reached (infeasible): with a frozen window" in words(figure)
    assert labeled(figure, "channel 0").lines[1].get_color() == MISSED.color
    assert labeled(figure, "channel 0").lines[1].is_dashed()


def test_probabilities_are_the_bars(series):
    ax = next(ax for ax in plot(series, 0).axes if "probability" in ax.get_xlabel())
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], [0.97, 0.03, 0.375, 0.625])


def test_lifted_and_torch_series(series):
    flat = replace(series, X=series.X[:, 0], X_cf=series.X_cf[:, 0])
    tensors = replace(flat, X=torch.from_numpy(flat.X), X_cf=torch.from_numpy(flat.X_cf))
    for result in (flat, tensors):
        ax = labeled(plot(result, 1), "value")
        assert len(spans(ax)) == 1
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), series.X[1, 0])


def test_changed_channels_come_first_and_the_rest_is_counted(make):
    X = np.zeros((1, 9, 5))
    X_cf = X.copy()
    X_cf[0, [2, 8], 1] = 1
    result = make(X, X_cf, [[1, 0]], [[0, 1]])
    figure = plot(result)
    assert [ax.get_ylabel() for ax in figure.axes if ax.get_ylabel()] == [
        f"channel {c}" for c in (2, 8, 0, 1, 3, 4)
    ]
    assert "3 more channels, 0 of them changed, not shown" in words(figure)


def test_a_few_of_many_classes(make):
    classes = [f"c{k}" for k in range(12)]
    p, q = np.full((1, 12), 0.02), np.full((1, 12), 0.02)
    p[0, 7], q[0, 9], p[0, 4] = 0.7, 0.78, 0.1
    result = make(np.zeros((1, 5)), np.ones((1, 5)), p, q, classes=classes, target=["c3"])
    figure = plot(result)
    ax = next(ax for ax in figure.axes if "probability" in ax.get_xlabel())
    names = [text.get_text() for text in ax.texts if "'" in text.get_text()]
    assert names[:4] == ["'c7'", "'c3'", "'c9'", "'c4'"]
    assert len(names) == 6
    assert "6 classes not shown" in ax.get_xlabel()


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_difference_map_is_centered_at_zero(make, channels, tmp_path):
    X = np.random.default_rng(0).uniform(size=(1, channels, 6, 8))
    X_cf = X.copy()
    X_cf[0, 0, 2, 3] -= 2
    X_cf[0, 0, 4, 4] += 0.5
    result = make(X, X_cf, [[0.75, 0.25]], [[0.25, 0.75]], modality="image")
    figure = plot(result, 0, tmp_path / "image.png")
    before, after, difference = (ax.images[0] for ax in figure.axes if ax.images and ax.get_title())
    assert difference.get_clim() == (-2, 2)
    shown = np.asarray(difference.get_array())
    assert (shown != 0).sum() == 2
    assert shown[2, 3] == -2
    assert np.asarray(before.get_array()).shape == ((6, 8, 3) if channels == 3 else (6, 8))
    assert np.asarray(after.get_array()).min() >= 0
    assert imread(tmp_path / "image.png").shape[1] == 1500
    assert "in 2 regions" in words(figure)


def test_image_without_change(make):
    X = np.zeros((1, 1, 4, 4))
    figure = plot(make(X, X, [[0.75, 0.25]], [[0.75, 0.25]], modality="image"))
    difference = next(ax for ax in figure.axes if ax.get_title() == "what changed").images[0]
    assert difference.get_clim() == (-1, 1)
    assert "nothing changed" in words(figure)


def test_features_most_changed_first(make):
    X = np.ones((1, 20))
    X_cf = X.copy()
    X_cf[0, :15] += np.arange(15) + 1
    figure = plot(make(X, X_cf, [[1, 0]], [[0, 1]], modality="row"))
    ax = next(ax for ax in figure.axes if ax.get_xlabel().startswith("value"))
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [
        f"feature {j}" for j in range(14, 2, -1)
    ]
    assert "3 more changed, not shown" in ax.get_xlabel()
    assert ax.texts[0].get_text() == "1 → 16"
    assert [line.get_xdata()[-1] for line in ax.lines[:3]] == [16, 1, 16]


def test_features_of_unlike_scale_share_an_axis_in_percent(make):
    X = np.array([[1000.0, 0.1, 0.2, 5.0]])
    X_cf = np.array([[1250.0, 0.05, 0.2, 4.0]])
    figure = plot(make(X, X_cf, [[1, 0]], [[0, 1]], modality="row"))
    ax = next(ax for ax in figure.axes if ax.get_xlabel().startswith("%"))
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [
        "feature 1",
        "feature 0",
        "feature 3",
    ]
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [100, 50])


def test_no_feature_changed(make):
    X = np.ones((1, 3))
    assert "no feature changed" in words(plot(make(X, X, [[1, 0]], [[1, 0]], modality="row")))


@pytest.mark.parametrize(
    "label", ["$x_1$", "$", r"\$\frac{", "日本語", "<b>&", "x" * 200, "two\nlines", "", "%d {0}"]
)
def test_odd_labels_are_shown_as_they_are(series, label):
    classes = np.array(["gun", label])
    names = {
        name: np.where(getattr(series, name) == "gun", "gun", label)
        for name in ("labels", "cf_labels", "target")
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure = plot(replace(series, classes=classes, **names), 0)
        title = next(text for text in figure.texts if "row 12" in text.get_text())
        figure.canvas.draw()
    shown, is_math = title._preprocess_math(title.get_text())
    assert not is_math
    assert f"→ {repr(label)[:20]}" in shown
    assert title.get_window_extent().x1 <= figure.bbox.x1


def test_long_words_stay_on_the_page(make):
    classes = ["a" * 80, "b" * 80, "c" * 80]
    result = make(
        np.zeros((1, 9)), np.ones((1, 9)), [[0.8, 0.1, 0.1]], [[0.2, 0.1, 0.7]], classes=classes,
        message=np.array(["reason " * 100]), provenance={"method": "M" * 300},
    )  # fmt: skip
    figure = plot(result)
    figure.canvas.draw()
    assert max(text.get_window_extent().x1 for text in figure.texts) <= figure.bbox.x1


@pytest.mark.parametrize(
    ("suffix", "start"),
    [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("PNG", b"\x89PNG")],
)
def test_suffix_decides_the_format(series, suffix, start, tmp_path):
    path = tmp_path / f"picture.{suffix}"
    plot(series, 0, path)
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("name", ["picture", "picture.jpg"])
def test_other_suffixes_are_refused(series, name, tmp_path):
    with pytest.raises(ValueError, match=r"picture.*\.png, \.svg, \.pdf"):
        plot(series, 0, tmp_path / name)


@pytest.mark.parametrize("i", [3, -4])
def test_rows_that_do_not_exist(series, i):
    with pytest.raises(IndexError, match=f"row {i} does not exist: this result has 3 rows"):
        plot(series, i)


def test_negative_rows_count_from_the_end(series):
    assert words(plot(series, -1)) == words(plot(series, 2))


def test_grid(series, tmp_path):
    figure = plot_many(series, [0, 1, 0], tmp_path / "grid.png")
    titles = [ax.get_title(loc="left") for ax in figure.axes if ax.get_visible()]
    assert titles == [
        "row 12: 'gun' (0.97) → 'point' (0.62)",
        "row 14: 'gun' (0.75) → still 'gun' (0.56), wanted 'point'",
        "row 12: 'gun' (0.97) → 'point' (0.62)",
    ]
    # Of row 0 the second channel changed more.
    assert [(ax.get_ylabel(), len(spans(ax))) for ax in figure.axes[:2]] == [
        ("channel 1", 2),
        ("channel 0", 1),
    ]
    (legend,) = figure.legends
    assert len(legend.get_texts()) == 4
    assert (tmp_path / "grid.png").stat().st_size > 10_000


def test_grid_refuses(series, make):
    with pytest.raises(ValueError, match="rows is empty"):
        plot_many(series, [])
    with pytest.raises(IndexError, match="row 9"):
        plot_many(series, [0, 9])
    rows = make(np.ones((1, 3)), np.ones((1, 3)), [[1, 0]], [[1, 0]], modality="row")
    with pytest.raises(ValueError, match="holds row data"):
        plot_many(rows, [0])


def test_nothing_global_is_touched(series):
    before = dict(matplotlib.rcParams)
    X, X_cf = series.X.copy(), series.X_cf.copy()
    series.plot(0)
    assert dict(matplotlib.rcParams) == before
    assert not Gcf.figs  # pyplot's list of open figures
    np.testing.assert_array_equal(series.X, X)
    np.testing.assert_array_equal(series.X_cf, X_cf)


def test_names_take_the_place_of_numbers(series, make):
    named = replace(series, names=np.array(["flow", "pressure"]))
    assert {"flow", "pressure"} < {ax.get_ylabel() for ax in plot(named, 0).axes}
    assert [ax.get_ylabel() for ax in plot_many(named, [0, 1]).axes] == ["pressure", "flow"]
    alone = replace(
        series, X=series.X[:, :1], X_cf=series.X_cf[:, :1], names=np.array(["ECG (mV)"])
    )
    assert "ECG (mV)" in {ax.get_ylabel() for ax in plot(alone, 0).axes}
    rows = make(np.ones((1, 3)), np.array([[1.0, 2.0, 5.0]]), [[1, 0]], [[0, 1]], modality="row")
    figure = plot(replace(rows, names=np.array(["age", "income", "debt"])))
    ax = next(ax for ax in figure.axes if ax.get_xlabel() == "value")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["debt", "income"]


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_hostile_names(series, make, suffix, tmp_path):
    hostile = np.array(
        ["x" * 10_000, "$\\frac{", "a\nb\x00\ud800", "😀 日本", "<b>&", ""], dtype=object
    )
    rows = make(np.zeros((1, 6)), np.ones((1, 6)), [[1, 0]], [[0, 1]], modality="row")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = plot(replace(rows, names=hostile), 0, tmp_path / f"rows.{suffix}")
        plot_many(replace(series, names=hostile[2:4]), [0, 1], tmp_path / f"many.{suffix}")
    ax = next(ax for ax in figure.axes if ax.get_xlabel() == "value")
    shown = [tick._preprocess_math(tick.get_text()) for tick in ax.get_yticklabels()]
    assert not any(is_math for _, is_math in shown)
    assert [text for text, _ in shown] == [
        "x" * 23 + "…",
        "$\\frac{",
        "a b",
        "😀 日本",
        "<b>&",
        "feature 5",
    ]


def test_text_stays_text_in_vector_files(series, tmp_path):
    named = replace(series, names=np.array(["flow", "pressure"]))
    plot(named, 0, tmp_path / "why.svg")
    drawing = ElementTree.parse(tmp_path / "why.svg")
    texts = {element.text for element in drawing.iter("{http://www.w3.org/2000/svg}text")}
    assert {"row 12: 'gun' (0.97) → 'point' (0.62)", "pressure", "time step"} < texts
    plot(named, 0, tmp_path / "why.pdf")
    written = (tmp_path / "why.pdf").read_bytes()
    assert b"/Type42" in written or b"/CIDFontType2" in written or b"/TrueType" in written
    assert b"/Type3" not in written


@pytest.mark.parametrize("width", [3.5, 7])
def test_width_of_a_column_and_of_a_page(series, make, width):
    image = np.random.default_rng(0).uniform(size=(1, 1, 8, 8))
    many = np.full((1, 10), 0.1)
    results = {
        "series": series[1],
        "image": make(
            image,
            image[:, :, ::-1],
            many,
            many,
            classes=list("abcdefghij"),
            modality="image",
            target=["c"],
        ),
        "row": make(np.ones((1, 14)), np.full((1, 14), 50.0), [[1, 0]], [[0, 1]], modality="row"),
    }
    figures = {name: plot(result, 0, width=width) for name, result in results.items()}
    figures["many"] = plot_many(series, [0, 1], width=width)
    for name, figure in figures.items():
        figure.canvas.draw()
        assert figure.get_figwidth() == width
        texts = [*figure.texts, *figure.legends[0].get_texts()]
        for ax in figure.axes:
            texts += [ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label, *ax.texts]
        inside = [text.get_window_extent() for text in texts if text.get_text()]
        assert max(box.x1 for box in inside) <= figure.bbox.x1 + 2, name
        assert min(box.x0 for box in inside) >= -2, name
        assert min(text.get_fontsize() for text in texts) >= 7, name
    with pytest.raises(ValueError, match="width is 1 inches; accepted: 3 or more"):
        plot(series, 0, width=1)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("result", None),
        ("result", {"a": 1}),
        ("i", "0"),
        ("i", 0.5),
        ("i", True),
        ("i", [0]),
        ("path", 3),
        ("path", "why.html"),
        ("width", "5"),
        ("width", None),
        ("width", np.nan),
        ("width", 1e9),
    ],
)
def test_bad_arguments_are_named(series, name, bad):
    refuses(name, plot, **{"result": series, "i": 0} | {name: bad})


@pytest.mark.parametrize("rows", [None, 3, "ab", [0.5], ["a"], [[0]], [True], {"a": 1}, object()])
def test_bad_rows_are_named(series, rows):
    refuses("rows", plot_many, series, rows)
