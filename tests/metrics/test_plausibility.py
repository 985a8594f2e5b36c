"""Plausibility against plain formulas, written out here."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.neighbors import LocalOutlierFactor

from contrafact.metrics import Reference, evaluate, plausibility
from contrafact.nn.autoencoder_training import fit_autoencoder


def score(make, name, points, reference, *, before=None, target=None, modality="row", **given):
    points = np.asarray(points, dtype=float)
    before = np.zeros_like(points) if before is None else np.asarray(before, dtype=float)
    p = np.tile([1.0, 0.0], (len(points), 1))
    result = make(before, points, p, p, target=target, modality=modality)
    return evaluate(result, name, reference, **given)[name].to_numpy()


def column(*values):
    return np.array(values, dtype=float)[:, None]


def outlier_factor(to_rows, mutual, k):
    """LOF by its definition: mean density of the neighbors over the own density."""
    mutual = mutual + np.diag(np.full(len(mutual), np.inf))
    near = np.argsort(mutual, axis=1)[:, :k]
    k_distance = np.sort(mutual, axis=1)[:, k - 1]

    def density(distance, neighbors):
        reach = np.maximum(np.take_along_axis(distance, neighbors, 1), k_distance[neighbors])
        return 1 / reach.mean(1)

    own = density(mutual, near)
    theirs = np.argsort(to_rows, axis=1)[:, :k]
    return own[theirs].mean(1) / density(to_rows, theirs)


def plain_dtw(x, y):
    """√ of the cheapest warping path between (channels, length) series."""
    cost = np.square(x[:, :, None] - y[:, None, :]).sum(0)
    total = np.full((cost.shape[0] + 1, cost.shape[1] + 1), np.inf)
    total[0, 0] = 0
    for i, j in np.ndindex(cost.shape):
        total[i + 1, j + 1] = cost[i, j] + min(total[i, j], total[i, j + 1], total[i + 1, j])
    return total[-1, -1] ** 0.5


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


def test_dtw_lof_inlier_is_what_scikit_learn_predicts(make):
    """The published share: LocalOutlierFactor(novelty=True).predict on DTW distances says 1."""
    rng = np.random.default_rng(1)
    reference = rng.normal(size=(30, 8))
    points = reference[:12] + np.linspace(0, 3, 12)[:, None] * rng.normal(size=(12, 8))
    mutual = np.array([[plain_dtw(a[None], b[None]) for b in reference] for a in reference])
    to_rows = np.array([[plain_dtw(a[None], b[None]) for b in reference] for a in points])
    detector = LocalOutlierFactor(novelty=True, metric="precomputed").fit(mutual)
    expected = (detector.predict(to_rows) == 1).astype(float)
    assert 0 < expected.mean() < 1
    np.testing.assert_array_equal(
        score(make, "dtw_lof_inlier", points, reference, modality="series"), expected
    )


def test_dtw_lof_samples_a_large_reference(make, monkeypatch):
    rng = np.random.default_rng(2)
    reference, points = rng.normal(size=(60, 5)), rng.normal(size=(4, 5))
    whole = score(make, "dtw_lof", points, reference, modality="series")
    monkeypatch.setattr(plausibility.DtwLOF, "most_rows", 30)
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
    # Ten rows alike: Σα = ν·10 = 1, so the machine is ρ − exp(−γ‖x − r‖²) with ρ = 1; γ = 1 without variance.
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
    monkeypatch.setattr(plausibility, "fit_autoencoder", partial(fit_autoencoder, max_epochs=30))
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


def test_ynn_by_hand(make):
    reference = column(0, 1, 2, 3, 4, 10, 11, 12, 13, 14)
    labels = np.array(["a", "a", "a", "b", "b", "b", "b", "b", "b", "c"])
    found = score(make, "ynn", column(1.9, 12, 12), (reference, labels), target=["b", "b", "a"])
    np.testing.assert_allclose(found, [2 / 5, 4 / 5, 0])
    np.testing.assert_allclose(
        score(make, "ynn", column(0), (reference[2:4], labels[2:4])), [1 / 2]
    )


def test_connectedness_by_hand(make):
    # The third neighbor is 2 away inside and 3 at the ends; of 100 it is 93 away, so 100 is no core row.
    reference, labels = column(*range(10), 100, 50, 60), ["b"] * 11 + ["a", "c"]
    points = column(12, 12.5, 99, -3, 50)
    found = score(make, "connectedness", points, (reference, labels), target=["b"] * 4 + ["a"])
    np.testing.assert_array_equal(found, [1, 0, 0, 1, np.nan])


def test_detectors_are_fitted_once(make, monkeypatch):
    fits = []
    whole = plausibility.LOF._fit
    monkeypatch.setattr(
        plausibility.LOF, "_fit", lambda self, *a: fits.append(1) or whole(self, *a)
    )
    reference = Reference(np.random.default_rng(0).normal(size=(9, 2)))
    p = np.tile([1.0, 0.0], (3, 1))
    result = make(np.zeros((3, 2)), np.ones((3, 2)), p, p, modality="row")
    first = evaluate(result, ["lof", "lof_increase"], reference)
    again = evaluate(result, ["lof", "lof_increase"], pickle.loads(pickle.dumps(reference)))
    assert len(fits) == 2  # the copy learns anew
    evaluate(result[:2], "lof", reference)
    assert len(fits) == 2
    np.testing.assert_array_equal(first["lof"], again["lof"])


def test_spread_is_per_feature_or_per_channel(make):
    p = [[1.0, 0.0]]
    rows = make(np.zeros((1, 2)), np.zeros((1, 2)), p, p, modality="row")
    np.testing.assert_allclose(Reference([[0, 0], [2, 20]]).spread(rows), [1, 10])
    series = make(np.zeros((1, 2, 2)), np.zeros((1, 2, 2)), p, p)
    channels = Reference([[[-1, 1], [0, 0]], [[1, -1], [4, 4]]]).spread(series)
    np.testing.assert_allclose(channels, [1, 1, 2, 2])
