"""Montage: three pictures for each counterfactual, on one scale."""

from dataclasses import replace

import numpy as np
import pytest

import contrafact as cf
from contrafact.report import montage
from contrafact.report.style import ALARM


@pytest.fixture(scope="module")
def images():
    data = cf.load_dataset("digits")
    X = data.X_train.astype(np.float32) / 16
    model = cf.fit_classifier("smallcnn", X, data.y_train, max_epochs=5)
    return (
        cf.LineSearch().fit(model, X, data.y_train).explain(data.X_test[:5].astype(np.float32) / 16)
    )


def test_montage_draws_three_pictures_for_each(images, tmp_path):
    figure = montage(images, [0, 2, 4], tmp_path / "m.png")
    pictures = [ax for ax in figure.axes if ax.images]
    assert len(pictures) == 9 and (tmp_path / "m.png").stat().st_size > 5000
    drawn = pictures[5].images[0]  # what changed in the second of them
    np.testing.assert_allclose(drawn.get_array(), (images.X_cf - images.X)[2, 0], atol=1e-6)


def test_difference_maps_share_one_symmetric_range(images):
    pictures = [ax.images[0] for ax in montage(images).axes if ax.images]
    ranges = {image.get_clim() for image in pictures[2::3]}
    assert len(ranges) == 1
    low, high = ranges.pop()
    assert low == -high == pytest.approx(-np.abs(images.X_cf - images.X).max())


def test_montage_refuses_series(series):
    with pytest.raises(ValueError, match="montage draws images"):
        montage(series)


def test_what_was_not_reached_is_framed(images):
    failed = replace(
        images,
        valid=np.arange(5) != 1,
        status=np.where(np.arange(5) == 1, "invalid", images.status),
        cf_labels=np.where(np.arange(5) == 1, images.labels, images.cf_labels),
    )
    titles = [ax.title for ax in montage(failed).axes if ax.images]
    first, second = titles[4].get_text().split("\n")
    assert first == f"{failed.cf_labels[1]}, not {failed.target[1]}"
    assert second.startswith("P ") and " → " in second
    assert titles[4].get_color() == ALARM != titles[1].get_color()
    assert titles[1].get_text().startswith(f"{failed.cf_labels[0]}\nP ")


def test_labels_are_not_read_as_mathematics(images, tmp_path):
    odd = np.array([f"$x_{c}$ 😀" for c in range(10)])
    named = {name: odd[getattr(images, name)] for name in ("labels", "cf_labels", "target")}
    figure = montage(replace(images, classes=odd, **named), [0], tmp_path / "odd.svg")
    assert figure.axes[0].title._preprocess_math(figure.axes[0].get_title()) == (
        f"{str(named['labels'][0])!r}\nbefore",
        False,
    )


def test_the_norm_is_named_once_and_its_value_above_each_difference(images):
    known = replace(
        images,
        info={**images.info, "norm_used": np.linspace(0.5, 1, 5)},
        provenance={**images.provenance, "method": "SVCE", "parameters": {"norm": 1.5}},
    )
    figure = montage(known, [0, 4])
    assert figure.get_suptitle() == "SVCE, change in the l1.5 norm"
    titles = [ax.get_title() for ax in figure.axes if ax.images]
    assert titles[2] == "change\n0.50" and titles[5] == "change\n1.00"
    assert montage(images).get_suptitle() == "LineSearch"


def test_long_labels_are_smaller_than_their_pictures(images):
    long = np.array([f"class number {c}" for c in range(10)])
    named = {name: long[getattr(images, name)] for name in ("labels", "target")}
    failed = {"valid": np.zeros(5, bool), "status": np.repeat("invalid", 5)}
    named["cf_labels"] = named["labels"]
    figure = montage(replace(images, classes=long, **failed, **named), [0, 1])
    renderer = figure.canvas.get_renderer()
    figure.draw(renderer)
    for ax in figure.axes:
        if ax.images:
            assert ax.title.get_window_extent().width < 1.15 * ax.get_window_extent().width
