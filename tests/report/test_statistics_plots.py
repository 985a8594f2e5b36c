"""Pictures of comparisons show the numbers, and names never leave the picture or cover each other."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from contrafact.benchmark import correlations, nemenyi, pareto_front, wilcoxon_holm
from contrafact.report import plot_correlations, plot_critical_difference, plot_pareto

MANY = [f"Method{j}(with a setting)" if j % 3 else f"M{j}" for j in range(14)]


def table(names, blocks=12, step=0.6):
    """Each method a little further, a little sparser than the one before."""
    rng = np.random.default_rng(0)
    k = len(names)
    return pd.DataFrame(
        {
            "dataset": "toy",
            "classifier": "net",
            "seed": np.repeat(np.arange(blocks), k),
            "instance": 0,
            "explainer": names * blocks,
            "l2": (rng.normal(size=(blocks, k)) + step * np.arange(k) + 5).ravel(),
            "sparsity": np.tile(np.linspace(0.9, 0.1, k), blocks),
            "valid": 1.0,
        }
    )


def boxes(figure, texts):
    figure.canvas.draw()
    return [Text.get_window_extent(text) for text in texts if text.get_text()]


def legible(figure):
    """All words lie inside the picture, and no two cover each other."""
    found = boxes(figure, [text for ax in figure.axes for text in ax.texts])
    inside = all(
        box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1
        for box in found
    )
    return inside and not any(a.overlaps(b) for a, b in combinations(found, 2))


def words(figure):
    return [text.get_text() for ax in figure.axes for text in ax.texts]


# --- critical differences -----------------------------------------------------------------------------------


def drawn(figure, gid):
    return [line for line in figure.axes[0].lines if line.get_gid() == gid]


def test_dots_and_bars_are_the_ranks_and_groups():
    found = nemenyi(table([*"abcde"]), "l2")
    figure = plot_critical_difference(found)
    dots = np.sort([line.get_xdata()[0] for line in drawn(figure, "method")])
    scale = np.diff(dots) / np.diff(found.mean_ranks)
    np.testing.assert_allclose(scale, scale[0])
    bars = drawn(figure, "clique")
    assert len(bars) == len(found.cliques) > 1
    for bar, clique in zip(bars, found.cliques, strict=True):
        covered = [
            m
            for m, x in zip(found.mean_ranks.index, dots, strict=True)
            if bar.get_xdata()[0] < x < bar.get_xdata()[1]
        ]
        assert tuple(covered) == clique


def test_bars_that_meet_are_on_different_levels():
    figure = plot_critical_difference(nemenyi(table(MANY, 25), "l2"))
    bars = [(*line.get_xdata(), line.get_ydata()[0]) for line in drawn(figure, "clique")]
    assert len(bars) > 3
    for a, b in combinations(bars, 2):
        assert a[2] != b[2] or a[1] < b[0] or b[1] < a[0]


def test_members_are_marked_where_a_bar_passes_a_stranger():
    """b lies between a and c in mean rank; only a and c cannot be told apart."""
    found = wilcoxon_holm(table([*"abc"]), "l2")
    pairs = found.pairs.assign(different=[True, False, True])
    gapped = type(found)(**{**vars(found), "pairs": pairs, "cliques": [("a", "c")]})
    whole = type(found)(**{**vars(found), "cliques": [("a", "b", "c")]})
    marks = [
        [
            line
            for line in plot_critical_difference(one).axes[0].lines
            if line.get_color() == "white"
        ]
        for one in (gapped, whole)
    ]
    assert len(marks[0]) == 1 and len(marks[0][0].get_xdata()) == 2 and not marks[1]


@pytest.mark.parametrize(
    "names", [["a", "b"], MANY, ["CELS", "another library's CELS, own model, targeted", "x"]]
)
@pytest.mark.parametrize("test", [nemenyi, wilcoxon_holm])
def test_names_are_legible(names, test):
    figure = plot_critical_difference(test(table(names), "l2"))
    assert legible(figure)
    assert all(
        any(name[:12] in text.replace("\n", " ") for text in words(figure)) for name in names
    )


def test_equal_methods_and_few_blocks():
    same = table(["a", "b"])
    same["l2"] = 1.0
    figure = plot_critical_difference(wilcoxon_holm(same, "l2"))
    assert legible(figure) and words(figure).count("1.50") == 2
    few = plot_critical_difference(nemenyi(table(MANY, 2), "l2"))
    assert legible(few) and any("longer than the axis" in text for text in words(few))


def test_the_picture_says_what_was_compared(tmp_path):
    figure = plot_critical_difference(
        nemenyi(table([*"abcde"], 10), "l2", 0.05), tmp_path / "cd.png"
    )
    assert {"l2: mean rank over 10 blocks", "critical difference 1.93"} <= set(words(figure))
    assert any("Nemenyi, α = 0.05" in text for text in words(figure))
    assert (tmp_path / "cd.png").stat().st_size > 5000


# --- Pareto fronts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("better", ["sparsity", "valid"])
def test_the_front_is_drawn(better):
    frame = table([*"abcdefg"])
    frame["valid"] = np.where(frame["explainer"] < "d", 1.0, np.arange(len(frame)) % 3 > 0)
    front = pareto_front(frame, [better, "l2"])
    line, beaten, best = plot_pareto(frame, better, "l2").axes[0].lines
    np.testing.assert_allclose(
        sorted(best.get_xydata().tolist()),
        sorted(front.loc[front["on_front"], [better, "l2"]].to_numpy().tolist()),
    )
    assert len(beaten.get_xdata()) == (~front["on_front"]).sum()
    # No point of the staircase's corners is better than the front: it bounds what is beaten.
    sign = np.array([1 if better == "sparsity" else -1, 1])
    for corner in line.get_xydata():
        assert any((p * sign <= corner * sign).all() for p in best.get_xydata())


def test_axes_say_which_way_is_better():
    ax = plot_pareto(table([*"abc"]), "valid", "l2").axes[0]
    assert "→ more is better" in ax.get_xlabel() and "↓ less is better" in ax.get_ylabel()


@pytest.mark.parametrize("names", [["a", "b"], MANY])
def test_points_are_named_legibly(names):
    figure = plot_pareto(table(names, step=-0.3), "sparsity", "l2")
    assert legible(figure) and set(words(figure)) == set(names)


def test_methods_at_one_point_share_a_name(tmp_path):
    frame = table([*"abcde", "f"])
    frame.loc[frame["explainer"] != "f", ["l2", "sparsity"]] = [1.0, 0.5]
    figure = plot_pareto(frame, "sparsity", "l2", tmp_path / "p.svg")
    assert set(words(figure)) == {"a,\nb,\nc,\n+ 2 more", "f"} and (tmp_path / "p.svg").exists()


def test_wide_ranges_get_a_logarithmic_axis():
    frame = table([*"abc"])
    frame["seconds"] = np.tile([0.01, 1.0, 30.0], 12)
    ax = plot_pareto(frame, "seconds", "l2").axes[0]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")


# --- correlations -------------------------------------------------------------------------------------------


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
