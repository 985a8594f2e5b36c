"""The picture of a decision between two prototypes of series."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from contrafact.prototypes import GLVQ, GRLVQ, DeepLVQ, MedianLVQ, SoftDTW
from contrafact.report import plot_relevances, plot_warping

RNG = np.random.default_rng(0)
X = RNG.normal(size=(15, 2, 20)).cumsum(-1)
Y = np.array(["ash", "elm", "oak"])[np.arange(15) % 3]
FAST = {"max_iter": 2, "random_state": 0}


def texts(figure):
    axes = [ax.get_title() for ax in figure.axes]
    return [text.get_text() for text in figure.texts], [title for title in axes if title]


@pytest.mark.parametrize("model", [GLVQ(distance_fn=SoftDTW(), **FAST), MedianLVQ(metric="dtw")])
def test_nearest_two_classes(model, tmp_path):
    model.fit(X, Y)
    figure = plot_warping(model, X[4], path=tmp_path / "warping.png")
    assert (tmp_path / "warping.png").stat().st_size > 5000
    title, panels = texts(figure)
    d = model.distances(X[4:5])[0]
    first, second = model.prototype_labels_[d.argsort()[:2]]
    assert panels == [f"prototype of '{first}'", f"prototype of '{second}'"]
    assert title[0].startswith(f"Nearer to the prototype of '{first}'")
    assert len(figure.axes) == 4


def test_classes_can_be_chosen_and_lines_end_on_the_curves():
    model = MedianLVQ(metric="dtw").fit(X[:, 0], Y)
    figure = plot_warping(model, X[4, 0], ("oak", "ash"))
    assert texts(figure)[1] == ["prototype of 'oak'", "prototype of 'ash'"]
    ax = figure.axes[0]
    (lines,) = [part for part in ax.collections if isinstance(part, LineCollection)]
    below, above = (line.get_ydata() for line in ax.lines)
    np.testing.assert_array_equal(below, X[4, 0])
    for (i, low), (j, high) in lines.get_segments():
        assert low == below[int(i)]
        assert high == above[int(j)]
    assert (above > below).all()


def test_relevances_of_time_steps_are_one_profile():
    model = GRLVQ(distance_fn=SoftDTW(), **FAST).fit(X, Y)
    assert len(plot_relevances(model).axes) == 1


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        (MedianLVQ(), {"classes": ("oak",)}, "classes must be two of"),
        (MedianLVQ(), {"classes": ("oak", "fir")}, "classes: 'fir' is not a class of this model"),
        (DeepLVQ(max_iter=1, random_state=0), {}, "the prototypes of this DeepLVQ are no series"),
    ],
)
def test_refusals(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        plot_warping(model.fit(X, Y), X[0], **arguments)
