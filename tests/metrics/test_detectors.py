"""Detectors against plain formulas, written out here."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from plain_formulas import column, outlier_factor, plain_dtw, score
from scipy.spatial.distance import cdist

from contrafact.metrics import detectors, evaluate
from contrafact.nn.autoencoder_training import fit_autoencoder


def test_detectors_say_how_many_rows_they_need(three):
    assert (
        evaluate(three, reference=np.zeros((1, 2, 4))).left_out["lof"]
        == "needs 2 reference rows, got 1"
    )
    with pytest.raises(ValueError, match="'dtw_lof_inlier' needs 2 reference rows, got 1"):
        evaluate(three, "dtw_lof_inlier", np.zeros((1, 2, 4)))


@pytest.mark.parametrize(("m", "k"), [(40, 20), (8, 7)])
def test_lof_by_its_definition(make, m, k):
    rng = np.random.default_rng(m)
    reference, points = rng.normal(size=(m, 3)), rng.normal(size=(15, 3)) * 2
    expected = outlier_factor(cdist(points, reference), cdist(reference, reference), k)
    np.testing.assert_allclose(score(make, "lof", points, reference), expected, rtol=1e-6)
    inside = outlier_factor(cdist(points * 0, reference), cdist(reference, reference), k)
    np.testing.assert_allclose(
        score(make, "lof_increase", points, reference), expected - inside, rtol=1e-6, atol=1e-9
    )


def test_dtw_lof_by_its_definition(make):
    rng = np.random.default_rng(0)
    reference, points = rng.normal(size=(24, 2, 6)), rng.normal(size=(5, 2, 6)) * 1.5
    mutual = np.array([[plain_dtw(a, b) for b in reference] for a in reference])
    to_rows = np.array([[plain_dtw(a, b) for b in reference] for a in points])
    expected = outlier_factor(to_rows, mutual, 20)
    np.testing.assert_allclose(
        score(make, "dtw_lof", points, reference, modality="series"), expected, rtol=1e-6
    )


def test_dtw_lof_samples_a_large_reference(make, monkeypatch):
    rng = np.random.default_rng(2)
    reference, points = rng.normal(size=(60, 5)), rng.normal(size=(4, 5))
    whole = score(make, "dtw_lof", points, reference, modality="series")
    monkeypatch.setattr(detectors.DtwLOF, "most_rows", 30)
    part = score(make, "dtw_lof", points, reference, modality="series")
    drawn = np.random.default_rng(0).permutation(reference)[:30]
    assert (whole != part).all()
    np.testing.assert_array_equal(part, score(make, "dtw_lof", points, drawn, modality="series"))


def test_isolation_forest(make):
    # Rows all alike cannot be split: every path is as long as an average one, so the score is ½.
    np.testing.assert_allclose(score(make, "isolation_forest", column(0, 9), np.zeros((8, 1))), 0.5)
    reference = np.random.default_rng(0).normal(size=(100, 2))
    inside, outside = score(make, "isolation_forest", [[0, 0], [6, 6]], reference)
    assert inside < 0.5 < 0.6 < outside


def test_ocsvm_by_hand(make):
    # Ten rows alike: Σα = ν·10 = 1, so the machine is ρ − exp(−γ‖x − r‖²) with ρ = 1; γ = 1 without
    # variance.
    points = column(0, 0.5, 2)
    np.testing.assert_allclose(
        score(make, "ocsvm", points, np.zeros((10, 1))), 1 - np.exp(-(points[:, 0] ** 2)), atol=1e-6
    )


def test_knn_distance_by_hand(make):
    X = np.zeros((2, 4))
    result = make(X, np.array([[0.0] * 4, [2.0] * 4]), [[1, 0]] * 2, [[1, 0]] * 2, modality="row")
    reference = np.arange(7.0)[:, None] * np.ones(4)
    # RMS distance between constant rows is the difference of the constants.
    assert evaluate(result, "knn_distance", reference)["knn_distance"].tolist() == [2, 6 / 5]
    assert evaluate(result, "knn_distance", reference[:2])["knn_distance"].tolist() == [0.5, 1.5]


def test_knn_distance_in_blocks(make):
    rng = np.random.default_rng(1)
    X, reference = rng.normal(size=(600, 3)), rng.normal(size=(50, 3))
    result = make(X, X, np.eye(2)[[0] * 600], np.eye(2)[[0] * 600], modality="row")
    distance = np.sort(np.sqrt(np.square(X[:, None] - reference).mean(2)), axis=1)[:, :5].mean(1)
    np.testing.assert_allclose(
        evaluate(result, "knn_distance", reference)["knn_distance"], distance
    )


def test_prototype_energy_by_hand(make):
    centers = np.arange(6) * 10.0
    reference = np.concatenate([centers - 0.1, centers + 0.1, centers - 0.1, centers + 0.1])[
        :, None
    ]
    labels = np.tile(np.repeat(["a", "b"], 3), 4)
    # Three means per class are the centers; the variance about them is 0.01.
    points, before = column(0.05, 5, 200), column(0, 0, 0)
    squared = np.square(points - centers)
    expected = -np.logaddexp.reduce(-squared / (2 * 0.01), axis=1)
    found = score(make, "prototype_energy", points, (reference, labels), before=before)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    rise = score(make, "prototype_energy_increase", points, (reference, labels), before=before)
    np.testing.assert_allclose(
        rise, expected, rtol=1e-6, atol=1e-9
    )  # at a prototype the energy is 0


@pytest.mark.parametrize("copies", [1, 30])
def test_prototype_energy_where_every_row_is_a_prototype(make, copies):
    """The centers of clusters of one row are that row but for rounding."""
    rng = np.random.default_rng(0)
    reference, labels = np.repeat(rng.normal(size=(6, 24)), copies, 0), np.repeat(["a", "b"], 3)
    found = score(
        make, "prototype_energy", reference[:4] + 0.3, (reference, np.repeat(labels, copies))
    )
    assert (found < 100).all()


def test_prototype_energy_is_not_fooled_by_scale(make):
    rng = np.random.default_rng(0)
    reference, labels = rng.normal(size=(60, 4)) + 2, ["a", "b"] * 30
    once = score(make, "prototype_energy", reference[:9], (reference, labels))
    thrice = score(make, "prototype_energy", 3 * reference[:9], (reference, labels))
    assert (thrice > once).all()


def test_prototype_energy_of_rows_all_alike(make):
    found = score(make, "prototype_energy", column(0, 2), (np.zeros((4, 1)), ["a", "b"] * 2))
    np.testing.assert_allclose(found, [-np.log(2), 2 - np.log(2)])  # two prototypes at 0, σ = 1


def test_autoencoder_residual_by_hand(make, zero):
    reference = np.array(
        [[[1.0, -1.0, 3.0, 1.0], [2.0, 0.0, 0.0, 2.0]]]
    )  # two channels, four points
    r = reference[0]
    mu, sigma = r.mean(1), np.cov(r, bias=True)
    points = np.array(
        [[[1.0, 2, 3, 4], [0, 0, 1, 1]], [[1.0] * 4] * 2]
    )  # the second is μ everywhere
    gap = points - mu[:, None]
    expected = np.einsum("ncp,cd,ndp->np", gap, np.linalg.inv(sigma), gap).mean(1)
    found = score(
        make, "autoencoder_residual", points, reference, modality="series", autoencoder=zero((2, 4))
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    assert found[1] == pytest.approx(0, abs=1e-9) and found[0] > 1
    # The reference itself scores the number of its channels.
    own = score(
        make,
        "autoencoder_residual",
        reference,
        reference,
        modality="series",
        autoencoder=zero((2, 4)),
    )
    np.testing.assert_allclose(own, 2, rtol=1e-6)


def test_autoencoder_by_name(make, monkeypatch):
    monkeypatch.setattr(detectors, "fit_autoencoder", partial(fit_autoencoder, max_epochs=30))
    t = np.linspace(0, 6, 16)
    reference = np.sin(t + np.linspace(0, 3, 20)[:, None])
    points = np.stack([np.sin(t + 1.5), np.random.default_rng(0).normal(size=16)])
    good, bad = score(
        make, "autoencoder_residual", points, reference, modality="series", autoencoder="cnn"
    )
    assert bad > 5 * good


def test_autoencoder_of_another_shape(make, zero):
    with pytest.raises(
        ValueError, match=r"takes instances of shape \(1, 4\); the result has \(2, 4\)"
    ):
        score(
            make,
            "autoencoder_residual",
            np.zeros((1, 2, 4)),
            np.zeros((3, 2, 4)),
            modality="series",
            autoencoder=zero((1, 4)),
        )
    with pytest.raises(TypeError, match="an Autoencoder or a name, got int"):
        score(make, "autoencoder_residual", [[0.0]], [[0.0]], modality="series", autoencoder=3)
