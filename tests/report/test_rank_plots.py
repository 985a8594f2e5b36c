"""Critical-difference diagrams show the ranks, and names never cover each other."""

from itertools import combinations

import numpy as np
import pytest
from comparison_tables import MANY, legible, table, words

from contrafact.benchmark import nemenyi, wilcoxon_holm
from contrafact.report import plot_critical_difference


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
    assert {"l2: mean rank over 10 data sets", "critical difference 1.93"} <= set(words(figure))
    assert any("Nemenyi, α = 0.05" in text for text in words(figure))
    assert (tmp_path / "cd.png").stat().st_size > 5000
