"""Pareto plots show the means, and names never cover each other."""

import numpy as np
import pytest
from comparison_tables import MANY, legible, table, words

from contrafact.benchmark import pareto_front
from contrafact.report import plot_pareto


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


def test_the_picture_says_who_was_in_the_target_class_already():
    frame = table([*"abc"])
    assert plot_pareto(frame, "valid", "l2").axes[0].get_title("left") == "means over all requests"
    frame["status"] = np.where(frame["dataset"] < "toy05", "already_target", "valid")
    assert plot_pareto(frame, "valid", "l2").axes[0].get_title("left") == (
        "means over 12 instances, 5 of them already in the target class"
    )


def test_wide_ranges_get_a_logarithmic_axis():
    frame = table([*"abc"])
    frame["seconds"] = np.tile([0.01, 1.0, 30.0], 12)
    ax = plot_pareto(frame, "seconds", "l2").axes[0]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
