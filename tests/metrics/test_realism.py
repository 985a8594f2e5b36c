"""Realism of edited series, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from contrafact.metrics import evaluate

NAN = float("nan")
P = [0.5, 0.5]


def edited(make, X, X_cf):
    X, X_cf = np.asarray(X, dtype=float), np.asarray(X_cf, dtype=float)
    return make(X, X_cf, [P] * len(X), [P] * len(X))


def score(name, result, reference):
    return evaluate(result, name, reference)[name].to_numpy()


def test_seam_and_kink_by_hand(make):
    # Real series rise by 1 or fall by 2 each step; one bends by 3, between its first two steps.
    reference = [[0, 1, 2, 3, 4, 5], [0, -2, -4, -6, -8, -10], [0, -2, -1, 0, 1, 2]]
    X = [[0, 1, 2, 3, 4, 5]] * 4
    X_cf = [
        [0, 1, 2, 9, 4, 5],  # up by 7, down by 5; bends of 6, 12 and 6, the last around t = 4
        [0, 1, 2, 3, 2, 1],  # down by 1; a bend of 2 around t = 3
        [0, 1, 2, 3, 4, 5],
        [9, 9, -9, 0, 9, -9],  # all is edited, so nothing is joined
    ]
    result = edited(make, X, X_cf)
    np.testing.assert_allclose(score("seam", result, reference), [7 / 2, 1 / 2, 0, 0])
    # Around t = 3 the real bend is within reach, one of 12 values. Around t = 4 it is not: there
    # real series do not bend at all, and the limit is a millionth of the standard deviation.
    near = np.quantile([3] + [0] * 11, 0.99)
    floor = 1e-6 * np.std(reference)
    np.testing.assert_allclose(score("kink", result, reference), [6 / floor, 2 / near, 0, 0])
    np.testing.assert_array_equal(score("unreal_join", result, reference), [1, 0, 0, 0])


def test_rounding_makes_no_edge(make):
    """A whole series shifted, but for one value that moved less than counts as a change."""
    X = np.linspace(0, 1, 10)[None]
    X_cf = X + 100
    X_cf[0, 4] = X[0, 4] + 1e-9
    result = edited(make, X, X_cf)
    assert result.changed.sum() == 9
    assert score("seam", result, X)[0] == pytest.approx(100 / np.abs(np.diff(X)).max(), rel=0.01)


def test_joined_stretches_are_more_real_than_pasted_ones(make):
    rng = np.random.default_rng(0)
    real = rng.normal(size=(80, 60)).cumsum(axis=1)
    x, donor, reference = real[:20], real[20:40], real[40:]
    pasted = x.copy()
    pasted[:, 20:35] = donor[:, 20:35]
    line = np.linspace(0, 1, 17)[1:-1]
    gap = x - donor
    joined = x.copy()
    joined[:, 20:35] = donor[:, 20:35] + (1 - line) * gap[:, 19:20] + line * gap[:, 35:36]
    assert score("unreal_join", edited(make, x, pasted), reference).mean() > 0.5
    assert score("unreal_join", edited(make, x, joined), reference).mean() < 0.2


def test_window_distance_by_hand(make):
    # Windows have 3 steps. Real series are constant, 0, 1 and 3: two are 1 away from the nearest
    # other, one is 2 away, in units of √3 times the standard deviation.
    reference = np.repeat([[0.0], [1.0], [3.0]], 10, axis=1)
    middle = np.quantile([1, 1, 2] * 7, 0.95)  # seven places within three steps
    X = np.repeat([[1.0], [3.0], [0.0]], 10, axis=1)
    X_cf = X.copy()
    X_cf[0, 4] = 2.0  # windows with one 2 among ones are 1 away
    X_cf[1, 4:] = 1.0  # 3, 3, 1 is 2 away from 3, 3, 3; so is 3, 1, 1 from 1, 1, 1
    result = edited(make, X, X_cf)
    found = score("window_distance", result, reference)
    np.testing.assert_allclose(found, [1 / np.sqrt(3) / middle, 2 / np.sqrt(3) / middle, NAN])


def test_windows_may_lie_a_few_steps_away(make):
    """A bump moved by three steps is real, one moved by eight is not."""
    rng = np.random.default_rng(0)
    t = np.arange(50)

    def bump(center):
        return np.exp(-((t - center) ** 2) / 8)

    reference = np.stack([bump(20) for _ in range(20)]) + 0.05 * rng.normal(size=(20, 50))
    X = np.tile(bump(20), (2, 1))
    moved = np.stack([bump(22), bump(30)])
    near, far = score("window_distance", edited(make, X, moved), reference)
    assert near < 1.5
    assert far > 3


def test_window_distance_of_channels_does_not_depend_on_their_units(make):
    rng = np.random.default_rng(0)
    real = rng.normal(size=(30, 2, 20)).cumsum(axis=2)
    X, reference = real[:5], real[5:]
    X_cf = X.copy()
    X_cf[:, 1, 5:12] += 3
    units = np.array([1000.0, 0.01])[:, None]
    plain = score("window_distance", edited(make, X, X_cf), reference)
    scaled = score("window_distance", edited(make, X * units, X_cf * units), reference * units)
    np.testing.assert_allclose(scaled, plain)


def test_blocks_and_long_references(make, monkeypatch):
    rng = np.random.default_rng(0)
    real = rng.normal(size=(70, 2, 15))
    result = edited(make, real[:9], real[9:18])
    whole = score("window_distance", result, real[18:])
    monkeypatch.setattr("contrafact.metrics.real_windows.MAX_ELEMENTS", 3000)
    np.testing.assert_allclose(score("window_distance", result, real[18:]), whole)
    # Every second row of 52 is compared with where 26 are the most.
    monkeypatch.setattr("contrafact.metrics.real_windows.MOST_ROWS", 26)
    # Deviations are those of all rows; here both halves have the same.
    twice = np.repeat(real[18:44], 2, axis=0)
    np.testing.assert_allclose(
        score("window_distance", result, twice), score("window_distance", result, real[18:44])
    )


def test_window_distance_needs_two_rows(make):
    result = edited(make, np.zeros((1, 5)), np.ones((1, 5)))
    with pytest.raises(ValueError, match="'window_distance' needs 2 reference rows, got 1"):
        evaluate(result, "window_distance", np.zeros((1, 5)))


@pytest.mark.parametrize("length", [1, 2, 3])
def test_short_series(make, length):
    reference = np.random.default_rng(0).normal(size=(9, length))
    result = edited(make, np.zeros((1, length)), np.full((1, length), 7.0))
    names = ["seam", "kink", "unreal_join", "window_distance"]
    found = evaluate(result, names, reference)[names].to_numpy()[0]
    np.testing.assert_array_equal(found[:3], [0, 0, 0])
    assert found[3] > 1


def test_channel_correlation_gap_by_hand(make):
    t = np.linspace(-1, 1, 11)
    together, opposite = np.stack([t, 2 * t]), np.stack([t, -t])
    constant = np.stack([t, np.full(11, 0.1)])
    # The five nearest of x' are four that go together and one that does not: R̄ = 3/5.
    reference = np.stack([together] * 4 + [opposite] + [opposite + 50] * 3)
    X = np.zeros((3, 2, 11))
    result = edited(make, X, np.stack([together, opposite, constant]))
    found = score("channel_correlation_gap", result, reference)
    np.testing.assert_allclose(found, [2 / 5, 8 / 5, 3 / 5])
    few = score("channel_correlation_gap", result, reference[:2])
    np.testing.assert_allclose(few, [0, 2, 1], atol=1e-12)


def test_channel_correlations_in_blocks(make, monkeypatch):
    rng = np.random.default_rng(0)
    real = rng.normal(size=(30, 4, 12))
    result = edited(make, real[:7], real[7:14])
    whole = score("channel_correlation_gap", result, real[14:])
    nearest = np.linalg.norm(real[14:].reshape(16, -1) - real[7].ravel(), axis=1).argsort()[:5]
    near = np.mean([np.corrcoef(real[14:][j]) for j in nearest], axis=0)
    by_hand = np.abs(np.corrcoef(real[7]) - near)[np.triu_indices(4, 1)].mean()
    assert whole[0] == pytest.approx(by_hand)
    monkeypatch.setattr("contrafact.metrics.realism.MAX_ELEMENTS", 2 * 5 * 16)
    np.testing.assert_allclose(score("channel_correlation_gap", result, real[14:]), whole)


def test_one_channel_has_no_correlations(make):
    result = edited(make, np.zeros((1, 5)), np.ones((1, 5)))
    reference = np.zeros((2, 5))
    with pytest.raises(ValueError, match="'channel_correlation_gap' is for series of several chan"):
        evaluate(result, "channel_correlation_gap", reference)
    assert "channel_correlation_gap" not in evaluate(result, reference=reference)


@pytest.mark.parametrize("name", ["seam", "kink", "window_distance", "channel_correlation_gap"])
def test_rows_and_missing_references(make, name):
    row = make(np.zeros((1, 4)), np.ones((1, 4)), [P], [P], modality="row")
    with pytest.raises(ValueError, match=f"'{name}' is for series data"):
        evaluate(row, name, np.zeros((2, 4)))
    series = edited(make, np.zeros((1, 2, 4)), np.ones((1, 2, 4)))
    with pytest.raises(ValueError, match=f"'{name}' needs more than the result: pass reference=X"):
        evaluate(series, name)
