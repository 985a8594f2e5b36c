"""Pictures of prototype models show what the model holds."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine

from contrafact.prototypes import GLVQ, GMLVQ, GRLVQ, LGMLVQ, DeepLVQ, MedianLVQ
from contrafact.report import plot_projection, plot_prototypes, plot_relevances


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300].reshape(-1, 1, 8, 8), y[:300]


@pytest.fixture(scope="module")
def wine():
    data = load_wine(as_frame=True)
    return (data.data - data.data.mean()) / data.data.std(), data.target


def test_images_of_every_prototype_are_drawn(digits, tmp_path):
    model = GLVQ(2, max_iter=3, random_state=0).fit(*digits)
    figure = plot_prototypes(model, path=tmp_path / "p.png")
    drawn = [ax.images[0].get_array() for ax in figure.axes if ax.images]
    assert len(drawn) == 20 and (tmp_path / "p.png").stat().st_size > 1000


def test_profiles_are_the_prototypes(wine):
    model = GLVQ(2, max_iter=3, random_state=0).fit(*wine)
    figure = plot_prototypes(model, *wine)
    lines = [line.get_ydata() for line in figure.axes[1].lines if line.get_linewidth() == 2]
    np.testing.assert_allclose(lines, model.prototypes_[model.prototype_labels_ == 1])


def test_exemplars_of_deep_models_are_instances(digits):
    model = DeepLVQ(max_iter=1, random_state=0).fit(*digits)
    flat = {row.tobytes() for row in digits[0]}
    assert all(one.tobytes() in flat for one in model.exemplars_)
    assert len([ax for ax in plot_prototypes(model).axes if ax.images]) == 10


def test_bars_are_the_largest_relevances_by_name(wine):
    model = GMLVQ(max_iter=10, random_state=0).fit(*wine)
    ax = plot_relevances(model, most=5).axes[0]
    best = np.argsort(-model.relevances_)[:5]
    names = [tick.get_text() for tick in ax.get_yticklabels()][::-1]
    assert names == [
        wine[0].columns[j] if len(wine[0].columns[j]) <= 28 else names[i]
        for i, j in enumerate(best)
    ]
    np.testing.assert_allclose(
        [bar.get_width() for bar in ax.patches][::-1], model.relevances_[best]
    )


@pytest.mark.parametrize(
    "model", [GRLVQ(max_iter=2, random_state=0), LGMLVQ(max_iter=2, random_state=0)]
)
def test_maps_sum_to_one(digits, model):
    ax = plot_relevances(model.fit(*digits)).axes[0]
    assert ax.images[0].get_array().sum() == pytest.approx(1)


def test_projection_rings_what_is_wrong(wine):
    model = GMLVQ(max_iter=2, random_state=0).fit(*wine)
    y = np.where(np.arange(len(wine[1])) < 4, 2, wine[1])
    wrong = int((model.predict(wine[0]) != y).sum())
    texts = [text.get_text() for text in plot_projection(model, wine[0], y).legends[0].get_texts()]
    assert f"misclassified ({wrong})" in texts and wrong >= 4


def test_projection_spans_the_models_own_distance(wine):
    """With a metric of rank 2 nothing is lost: distances on the plane are the model's distances."""
    model = GMLVQ(rank=2, max_iter=10, random_state=0).fit(*wine)
    ax = plot_projection(model, *wine).axes[0]
    clouds = [c.get_offsets() for c in ax.collections]
    placed, stars = np.concatenate(clouds[:3]), np.concatenate(clouds[-3:])
    order = np.argsort(np.asarray(wine[1]), kind="stable")
    squared = ((placed[:, None] - stars) ** 2).sum(2)
    np.testing.assert_allclose(squared, model.distances(wine[0])[order], atol=1e-8)


def test_what_can_not_be_drawn_is_refused(wine):
    with pytest.raises(ValueError, match="GLVQ has no relevances"):
        plot_relevances(GLVQ(max_iter=1, random_state=0).fit(*wine))
    with pytest.raises(ValueError, match="its own metric"):
        plot_projection(LGMLVQ(max_iter=1, random_state=0).fit(*wine), *wine)
    D = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
    with pytest.raises(ValueError, match="dissimilarities only"):
        plot_prototypes(MedianLVQ(metric="precomputed").fit(D, [0, 0, 0, 1, 1, 1]))
