"""Levels of pixels: on the grid, in the class there, hardly farther than without."""

import itertools

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

import contrafact as cf
from contrafact.explainers.support.pixel_levels import find_levels

DIGITS = load_digits()
PIXELS = np.round(DIGITS.images[:, None] / 16 * 255).astype(np.uint8)
IMAGES = PIXELS.astype(np.float32) / 255
X = IMAGES[600:612]
QUICK = {"n_iter": 15, "restarts": 1, "bounds": (0, 1)}


@pytest.fixture(scope="module")
def cnn():
    torch.set_num_threads(1)
    return cf.fit_classifier(
        "smallcnn", IMAGES[:500], DIGITS.target[:500], max_epochs=10, batch_size=64
    )


def saved(images):
    return np.round(images * 255).astype(np.uint8).astype(np.float32) / 255


def fitted(model, **options):
    return cf.SVCE(**{**QUICK, **options}).fit(model, IMAGES[:300], DIGITS.target[:300])


@pytest.fixture(scope="module")
def answers(cnn):
    return fitted(cnn, levels=None).explain(X), fitted(cnn).explain(X)


def test_answers_stay_valid_when_saved(cnn, answers):
    plain, rounded = answers
    assert plain.valid.all() and rounded.valid.all()
    assert (cnn.predict(saved(plain.X_cf)) == plain.target).mean() < 1
    assert (cnn.predict(saved(rounded.X_cf)) == rounded.target).all()
    np.testing.assert_array_equal(saved(rounded.X_cf), rounded.X_cf)
    growth = rounded.info["norm_used"] / plain.info["norm_used"]
    assert np.median(growth) < 1.01 and growth.max() < 1.2
    assert (rounded.calls - plain.calls).max() <= 20


def test_what_is_reported_is_about_the_rounded_image(answers):
    _, rounded = answers
    delta = (rounded.X_cf - rounded.X).reshape(len(X), -1).astype(float)
    used = (np.abs(delta) ** 1.5).sum(1) ** (2 / 3)
    np.testing.assert_allclose(rounded.info["norm_used"], used, rtol=1e-6)
    p = rounded.cf_proba[np.arange(len(X)), np.searchsorted(rounded.classes, rounded.target)]
    np.testing.assert_allclose(rounded.info["confidence_after"], p, atol=1e-5)


def test_a_batch_equals_a_loop(cnn, answers):
    _, rounded = answers
    one = fitted(cnn).explain(X[3:4])
    np.testing.assert_array_equal(one.X_cf[0], rounded.X_cf[3])


def test_a_fixed_radius_is_kept_where_the_class_is_reached_within_it(cnn):
    result = fitted(cnn, radius=2.0).explain(X)
    assert result.valid.all()
    assert (result.info["norm_used"] <= 2.0).all()
    np.testing.assert_array_equal(saved(result.X_cf), result.X_cf)


def test_a_radius_too_small_to_round_in_is_left_for_the_class(cnn, answers):
    plain, _ = answers
    radius = 1.0001 * plain.info["norm_used"].min()
    row = plain.info["norm_used"].argmin()
    unrounded = fitted(cnn, radius=radius, levels=None, n_iter=75, restarts=3)
    before = unrounded.explain(X[row : row + 1], target=plain.target[row : row + 1])
    assert before.valid.all()
    rounding = fitted(cnn, radius=radius, n_iter=75, restarts=3)
    result = rounding.explain(X[row : row + 1], target=plain.target[row : row + 1])
    assert result.valid.all()
    assert radius < result.info["norm_used"] < 1.2 * radius
    assert result.info["radius"] == pytest.approx(result.info["norm_used"], rel=1e-6)


def test_values_that_may_not_change_are_yours(cnn):
    frozen = np.arange(8) < 3
    constraints = cf.Constraints(frozen=np.tile(frozen, (8, 1)), upper=0.9)
    odd = (X + np.float32(0.001)).clip(0, 0.9)
    result = fitted(cnn).explain(odd, constraints=constraints)
    np.testing.assert_array_equal(result.X_cf[..., frozen], odd[..., frozen])
    free = result.X_cf[result.status == "valid"][..., ~frozen]
    assert free.max() <= 0.9
    np.testing.assert_array_equal(saved(free), free)


def test_a_saved_explainer_knows_its_levels(cnn, tmp_path):
    path = fitted(cnn).save(tmp_path / "svce")
    again = cf.SVCE.load(path, cnn).explain(X[:2])
    np.testing.assert_array_equal(again.X_cf, fitted(cnn).explain(X[:2]).X_cf)


@pytest.mark.parametrize(
    ("pixels", "bounds", "n"),
    [
        (IMAGES, None, 256),
        (IMAGES, (0.0, 1.0), 256),
        (PIXELS.astype(np.float32), None, 256),
        (2 * IMAGES - 1, None, 256),
        (np.minimum(IMAGES, IMAGES[0, 0, 0, 2]), None, 256),
        (IMAGES, (0.0, 0.9999), None),
        (IMAGES, (0.0, 1.1), None),
        (IMAGES**2, None, None),
        (DIGITS.images[:, None] / 16, None, None),
        (IMAGES[:, 0], None, None),
    ],
)
def test_the_grid_of_pictures_is_found(pixels, bounds, n):
    given = None if bounds is None else tuple(torch.tensor([bound]) for bound in bounds)
    found = find_levels("auto", torch.as_tensor(pixels), given)
    assert (None if found is None else found.n) == n


def test_refuses(cnn):
    with pytest.raises(ValueError, match="levels=16 is for images"):
        cf.SVCE(levels=16).fit(lambda X: np.ones((len(X), 2)) / 2, IMAGES[:9, 0])
    with pytest.raises(ValueError, match=r"levels=4 needs bounds=\(low, high\)"):
        fitted(cnn, levels=4, bounds=(0, 0.5))
    with pytest.raises(ValueError, match="levels must be"):
        fitted(cnn, levels=1)


@pytest.mark.parametrize("norm", [1, 1.5])
@pytest.mark.usefixtures("own_random_numbers")
def test_close_to_the_nearest_point_of_a_coarse_grid(norm):
    """Against all 8^4 images of 2 x 2 pixels with 8 levels, for linear models."""
    random = np.random.default_rng(0)
    grid = np.array(list(itertools.product(range(8), repeat=4)), dtype=np.float32) / 7
    ratios = []
    for _ in range(4):
        w = random.normal(size=4)
        module = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
        module[1].weight.data = torch.tensor(np.stack([-w, w])).float()
        module[1].bias.data = torch.tensor([w.sum(), -w.sum()]).float() / 2
        reference, instances = (
            random.integers(0, 8, (n, 1, 2, 2)).astype(np.float32) / 7 for n in (30, 6)
        )
        method = cf.SVCE(norm=norm, levels=8, bounds=(0, 1), n_iter=20, restarts=1)
        result = method.fit(module, reference).explain(instances)
        assert result.valid.all()
        labels = cf.as_classifier(module).predict(grid.reshape(-1, 1, 2, 2))
        for x, x_cf, target in zip(instances, result.X_cf, result.target, strict=True):
            length = np.linalg.norm(grid - x.ravel(), norm, axis=1)
            nearest = length[labels == target].min()
            ratios.append(np.linalg.norm((x_cf - x).ravel(), norm) / nearest)
    assert np.mean(ratios) < 1.1 and np.max(ratios) < 2.2
