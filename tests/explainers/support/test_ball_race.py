"""Races in balls: which runs there are, what they cost, and that they find what single runs do
not."""

import numpy as np
import pytest
import torch

import contrafact as cf
from contrafact.explainers.support.ball_race import MOST_RUNS, racing_runs, runs_together
from contrafact.search.ball import Ball


class Valley(torch.nn.Module):
    """Two classes: from 0 the slope of the second leads to a low peak, behind which is a high one.

    logit = 3 exp(-(x1 - 0.3)² / 0.02) + 8 exp(-|x - (-1, 1, ...)|² / 2) - 4
    """

    def forward(self, x):
        low = 3 * torch.exp(-((x[:, 0] - 0.3) ** 2) / 0.02)
        peak = torch.cat([-torch.ones_like(x[:, :1]), torch.ones_like(x[:, 1:])], 1)
        high = 8 * torch.exp(-(x - peak).square().sum(1) / 2)
        score = low + high - 4
        return torch.stack([torch.zeros_like(score), score], 1)


ROWS = np.random.default_rng(0).uniform(-1, 1, size=(200, 4)).astype(np.float32)
ORIGIN = np.zeros((1, 4), dtype=np.float32)


def explained(rows=ORIGIN, **params):
    explainer = cf.SVCE(**{"norm": 2, "radius": 1.2, "bounds": (-1.5, 1.5), **params})
    return explainer.fit(Valley(), ROWS).explain(rows, target=np.ones(len(rows), dtype=int))


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, np.inf])
def test_both_optimizers_and_all_kinds_of_starts_race(p):
    runs = racing_runs(p, MOST_RUNS)
    assert len(set(runs)) == MOST_RUNS
    assert {"afw", "apgd"} <= {run.optimizer for run in runs}
    assert ("apgd-l2" in {run.optimizer for run in runs}) is (p == 1.5)
    assert {run.start for run in runs} == {"line", "gaussian"}


def test_large_arrays_take_turns_and_small_ones_run_together():
    for shape, together in (((2, 10), 2**19 // 20), ((2, 3, 300, 300), 1)):
        x = torch.zeros(shape)
        ball = Ball(x, torch.ones(2), 2.0, x[0], x[0], x == 0)
        assert runs_together(ball) == together


def test_runs_in_turn_find_what_runs_together_do(monkeypatch):
    together = explained(ROWS[:3], n_iter=30)
    monkeypatch.setattr("contrafact.explainers.support.ball_race.TOGETHER", 1)
    in_turn = explained(ROWS[:3], n_iter=30)
    np.testing.assert_allclose(in_turn.X_cf, together.X_cf, atol=1e-5)


@pytest.mark.parametrize("n_iter", [1, 4, 30, 75])
def test_a_race_takes_the_steps_of_the_restarts(n_iter):
    """Rounding to whole steps of three balls may cost one more each."""
    calls = explained(n_iter=n_iter, restarts=5, confidence=None).calls
    besides = 3
    assert (calls <= max(5 * n_iter, 3) + besides + 3).all()
    assert (calls >= 0.9 * 5 * n_iter).all()


def test_a_race_finds_the_high_peak_beyond_the_low_one():
    """A run that climbs from the center ends on the low peak; the guide lies beyond."""
    assert explained().info["confidence_after"][0] > 0.6


def test_races_repeat_themselves_and_do_not_depend_on_the_batch():
    rows = ROWS[:6]
    together = explained(rows, n_iter=30)
    again = explained(rows, n_iter=30)
    np.testing.assert_array_equal(together.X_cf, again.X_cf)
    alone = np.concatenate([explained(rows[i : i + 1], n_iter=30).X_cf for i in range(len(rows))])
    np.testing.assert_allclose(together.X_cf, alone, atol=1e-4)


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0])
def test_a_fixed_radius_reaches_what_a_smaller_automatic_one_did(norm):
    rows = ROWS[:12]
    auto = explained(rows, norm=norm, radius="auto", n_iter=30, restarts=2)
    turned = auto.status == "valid"
    assert turned.sum() >= 6
    for i in np.flatnonzero(turned):
        radius = float(1.02 * auto.info["radius"][i])
        fixed = explained(rows[i : i + 1], norm=norm, radius=radius, n_iter=30, restarts=2)
        assert fixed.valid.all() and fixed.info["norm_used"][0] <= radius * (1 + 1e-5)


def test_the_automatic_radius_costs_at_most_600_rows_at_the_default():
    result = explained(ROWS[:12], radius="auto")
    assert result.calls.max() <= 600
    assert result.info["converged"].dtype == bool
