"""The tests on looks and noise: what real series pass, and spikes do not."""

import numpy as np
import pytest
import torch
from window_problems import LENGTH, SINGLE_WINDOW, WindowModel, smooth_series

from contrafact.explainers.support.graft_tests import (
    LooksReal,
    SurvivesNoise,
    log_lead,
)
from contrafact.models.verdict import Verdict


@pytest.fixture
def tasks_of(open_tasks):
    def build(X, model=None):
        model = model or WindowModel(*SINGLE_WINDOW)
        return open_tasks(model, X, [1] * len(X), modality="series", classes=[0, 1])

    return build


# --- looks ----------------------------------------------------------------------------------------


def test_real_series_pass_at_any_edge(tasks_of):
    """A window lifted by next to nothing has the steps and bends of the series itself."""
    reference = smooth_series(80, seed=0)
    looks_real = LooksReal.of(torch.from_numpy(reference))
    tasks = tasks_of(reference[:20])
    passed = []
    for start in range(0, LENGTH, 7):
        x_cf = tasks.x.clone()
        x_cf[..., start : start + 9] += 1e-9
        passed.append(looks_real.passes(tasks, x_cf))
    assert torch.stack(passed).float().mean() > 0.85
    # an edit of the whole series has no edge
    assert looks_real.passes(tasks, torch.from_numpy(smooth_series(20, seed=6))).all()


def test_a_spike_a_jump_and_a_kink_do_not(tasks_of):
    reference = smooth_series(80, seed=0)
    looks_real = LooksReal.of(torch.from_numpy(reference))
    tasks = tasks_of(reference[:20])
    spike, jump, kink = tasks.x.clone(), tasks.x.clone(), tasks.x.clone()
    spike[..., 30] += 1
    jump[..., 30:] += 1
    kink[..., 30:] += 0.04 * torch.arange(LENGTH - 30)
    for x_cf in (spike, jump, kink):
        assert not looks_real.passes(tasks, x_cf).any()
    limits = looks_real.limits
    assert (limits.seam(kink, tasks.x) <= 1).any()


def test_correlations_between_channels_are_kept(tasks_of):
    """The second channel follows the first in all real series."""
    first = smooth_series(80, seed=0)
    noise = 0.01 * smooth_series(80, seed=1)
    looks_real = LooksReal.of(torch.from_numpy(np.concatenate([first, first + noise], 1)))
    tasks = tasks_of(np.concatenate([first, first + noise], 1)[:10])
    other = torch.from_numpy(smooth_series(10, seed=7))
    together = torch.cat([other, other + torch.from_numpy(noise[10:20])], 1)
    assert looks_real.passes(tasks, together).float().mean() > 0.7
    apart = torch.cat([other, tasks.x[:, 1:]], 1)
    assert (looks_real.limits.seam(apart, tasks.x) == 0).all()
    assert not looks_real.passes(tasks, apart).any()


def test_a_correlation_that_the_instance_has_itself_is_allowed(tasks_of):
    first = smooth_series(80, seed=0)
    looks_real = LooksReal.of(torch.from_numpy(np.concatenate([first, first], 1)))
    unusual = np.concatenate([smooth_series(10, seed=2), smooth_series(10, seed=3)], 1)
    tasks = tasks_of(unusual)
    # both channels scaled and shifted: the correlation is that of the instance
    assert looks_real.passes(tasks, 0.9 * tasks.x + 0.1).all()


# --- noise ----------------------------------------------------------------------------------------


def candidates(n, seed=8):
    """Series on both sides of the decision, some of them close to it."""
    return torch.from_numpy(smooth_series(n, SINGLE_WINDOW, seed=seed)) * torch.linspace(
        0.3, 1.5, n, dtype=torch.float64
    ).view(-1, 1, 1)


def test_noise_is_counted_by_hand(tasks_of):
    tasks = tasks_of(smooth_series(12, seed=1))
    x_cf = candidates(12)
    noise = SurvivesNoise(torch.tensor([[0.5]]), 0.4, 10, 8)
    probe = noise.probe(tasks, x_cf)
    assert probe.lead.shape == (12, 10)
    torch.testing.assert_close(probe.share, (probe.lead > 0).double().mean(1))
    assert torch.equal(probe.survived, (probe.lead > 0).sum(1) >= 8)
    assert torch.equal(probe.survived, noise.passes(tasks, x_cf))
    assert 0 < probe.survived.float().mean() < 1
    # the farther from the decision, the more copies stay
    assert probe.share[:3].mean() < probe.share[-3:].mean()


def test_noise_has_the_size_it_says(open_tasks):
    seen = []

    def keep(X):
        seen.append(np.array(X))
        return np.full((len(X), 2), 0.5)

    X = np.zeros((20, 2, 50))
    tasks = open_tasks(keep, X, [1] * 20, modality="series", classes=[0, 1])
    seen.clear()
    scale = torch.tensor([[1.0], [3.0]])
    SurvivesNoise(scale, 0.05, 6, 5).probe(tasks, tasks.x + 7)
    copies = np.concatenate(seen) - 7
    assert copies.shape == (120, 2, 50)
    assert copies[:, 0].std() == pytest.approx(0.05, rel=0.05)
    assert copies[:, 1].std() == pytest.approx(0.15, rel=0.05)
    assert abs(copies.mean()) < 0.005
    assert len(np.unique(copies[:6, 0, 0])) == 6


def test_noise_belongs_to_the_instance(tasks_of):
    X = smooth_series(10, seed=1)
    tasks = tasks_of(X)
    x_cf = candidates(10)
    noise = SurvivesNoise(torch.tensor([[0.5]]), 0.4, 6, 5)
    together = noise.probe(tasks, x_cf)
    for i in range(10):
        one = torch.tensor([i])
        alone = noise.probe(tasks.take(one), x_cf[one])
        torch.testing.assert_close(alone.lead, together.lead[one])
    backward = torch.arange(9, -1, -1)
    mirrored = noise.probe(tasks.take(backward), x_cf[backward])
    torch.testing.assert_close(mirrored.lead, together.lead[backward])
    again = noise.probe(tasks, x_cf)
    assert torch.equal(again.lead, together.lead)


def test_noisy_copies_are_no_attempts(tasks_of):
    tasks = tasks_of(smooth_series(10, seed=1))
    before = tasks.best_attempts().clone()
    SurvivesNoise(torch.tensor([[0.5]]), 0.4, 6, 5).probe(tasks, candidates(10))
    assert torch.equal(tasks.best_attempts(), before)


# --- lead -----------------------------------------------------------------------------------------


def test_lead_is_positive_in_the_class_and_bounded():
    proba = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.4, 0.6], [0.5, 0.5]], dtype=torch.float64)
    lead = log_lead(Verdict.of_proba(proba), torch.ones(4, dtype=torch.long))
    assert lead.isfinite().all()
    assert (lead.sign() == torch.tensor([-1, 1, 1, 0])).all()
    assert float(lead[0]) == pytest.approx(-float(lead[1]))
    three = torch.tensor([[0.2, 0.5, 0.3]], dtype=torch.float64)
    by_target = [float(log_lead(Verdict.of_proba(three), torch.tensor([c]))) for c in range(3)]
    assert by_target[0] < by_target[2] < 0 < by_target[1]
