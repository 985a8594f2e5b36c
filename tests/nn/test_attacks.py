"""Attacks: how far they get, and what they leave alone."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from contrafact.geometry import project
from contrafact.nn.attacks import _random_in_ball, log_odds, pgd, radii_of, strongest_attack
from contrafact.nn.networks import seeded

INF = math.inf


def attacked(loss, x, seed=0, **options):
    with seeded(seed):
        return pgd(loss, x, **options)


def rows(n=6, shape=(1, 5, 4), seed=0, dtype=torch.float32):
    return torch.rand(n, *shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def network():
    with seeded(0):
        return nn.Sequential(
            nn.Flatten(), nn.Linear(20, 16), nn.BatchNorm1d(16), nn.Dropout(), nn.Linear(16, 3)
        )


def length(delta, norm):
    return torch.linalg.vector_norm(delta.flatten(1), ord=norm, dim=1)


W = torch.linspace(-1, 2, 20).reshape(1, 5, 4)


def linear(x):
    return (x * W).flatten(1).sum(1)


@pytest.mark.parametrize(("norm", "dual"), [(2, 2), (INF, 1)])
def test_a_linear_loss_rises_by_the_dual_norm(norm, dual):
    """max over ||d|| <= eps of w·d = eps ||w||_dual."""
    x = rows()
    best = 0.3 * torch.linalg.vector_norm(W.flatten(), ord=dual)
    # What the random start has across the gradient shrinks with every step; large steps leave none.
    for step_size, reached in ((None, 0.97), (0.3, 1 - 1e-5)):
        x_adv = attacked(linear, x, norm=norm, eps=0.3, steps=40, step_size=step_size, bounds=None)
        gain = linear(x_adv) - linear(x)
        assert (gain <= best * (1 + 1e-5)).all() and (gain >= best * reached).all()


def test_in_the_box_a_linear_loss_reaches_its_corner():
    x = rows()
    expected = (x + 0.3 * W.sign()).clamp(0, 1)
    torch.testing.assert_close(attacked(linear, x, norm=INF, eps=0.3), expected)


def test_in_the_box_the_l2_attack_spends_its_radius_where_it_can():
    """Half of the values are at the upper bound: they cannot rise, the rest take the radius."""
    x = torch.full((6, 1, 5, 4), 0.5)
    x[..., :2] = 1.0
    free = torch.where((W > 0) & (x == 1), 0.0, W)
    gain = linear(attacked(linear, x, eps=0.2, steps=40)) - linear(x)
    best = 0.2 * length(free, 2)
    assert (gain <= best * (1 + 1e-5)).all() and (gain >= 0.96 * best).all()


@pytest.mark.parametrize(("norm", "dual"), [(1, INF), (1.5, 3), (3, 1.5)])
@pytest.mark.parametrize("steps", [1, 7])
def test_frank_wolfe_solves_a_linear_loss_in_every_step(norm, dual, steps):
    x = rows()
    best = 0.3 * torch.linalg.vector_norm(W.flatten(), ord=dual)
    x_adv = attacked(linear, x, norm=norm, eps=0.3, steps=steps, bounds=None)
    torch.testing.assert_close(linear(x_adv) - linear(x), best.expand(6), rtol=1e-4, atol=0)


def sparse_steps(loss, x, eps, steps, k):
    """l1 reference: sign steps on the k steepest values, projected onto ball and box."""
    x_adv = x.clone()
    for _ in range(steps):
        x_adv.requires_grad_()
        (g,) = torch.autograd.grad(loss(x_adv).sum(), x_adv)
        x_adv = x_adv.detach()
        g = g.masked_fill(((x_adv == 1) & (g > 0)) | ((x_adv == 0) & (g < 0)), 0.0)
        least = g.flatten(1).abs().topk(k).values[:, -1].reshape(-1, 1, 1, 1)
        step = 2.5 * eps / steps / k * g.sign() * (g.abs() >= least)
        x_adv = project(x_adv + step, x, eps, 1, bounds=(0, 1))
    return x_adv


@pytest.mark.parametrize("k", [1, 3, 8])
def test_the_l1_attack_is_at_least_as_strong_as_sparse_projected_steps(k):
    x = rows(64)
    with seeded(3):
        net = nn.Sequential(nn.Flatten(), nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 3))
    loss = log_odds(net, net(x).argmax(1))
    ours = loss(attacked(loss, x, norm=1, eps=1.5, steps=10))
    reference = loss(sparse_steps(loss, x, 1.5, 10, k))
    assert ours.mean() > reference.mean() - 1e-3


def test_the_strongest_of_several_attacks_is_kept_row_by_row():
    x, net = rows(32), network().eval()
    loss = log_odds(net, torch.arange(32) % 3)
    balls = [(1, 1.0), (2, 0.4), (INF, 0.12)]
    with seeded(0):
        together = strongest_attack(loss, x, balls, fast=False, steps=5, bounds=(0.0, 1.0))
    with seeded(0):
        alone = [pgd(loss, x, norm=p, eps=eps, steps=5) for p, eps in balls]
    losses = torch.stack([loss(x_adv) for x_adv in alone])
    torch.testing.assert_close(loss(together), losses.amax(0))
    assert len(losses.argmax(0).unique()) > 1


@pytest.mark.parametrize("d", [1, 7, 784])
def test_equal_radii_change_a_random_linear_model_alike(d):
    norms = (1, 1.5, 2, INF)
    radii = radii_of(norms, 0.5, torch.zeros(2, d))
    assert radii[2] == pytest.approx(0.5) and list(radii) == sorted(radii, reverse=True)
    w = torch.randn(4000, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    duals = (INF, 3, 2, 1)
    effect = [r * length(w, q).mean() for r, q in zip(radii, duals, strict=True)]
    if d > 1:
        assert max(effect) < 1.15 * min(effect)
    assert radii_of(norms, [1, 2, 3, 4], w) == (1, 2, 3, 4)


@pytest.mark.parametrize("norm", [1, 1.5, 2, 3, INF])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_ball_and_the_box_are_never_left(norm, dtype):
    x, net = rows(64, dtype=dtype), network().eval().to(dtype)
    x_adv = attacked(log_odds(net, torch.arange(64) % 3), x, norm=norm, eps=0.4)
    assert x_adv.dtype == dtype and not x_adv.requires_grad
    assert x_adv.min() >= 0 and x_adv.max() <= 1
    assert (length(x_adv - x, norm) <= 0.4 * (1 + 1e-5)).all()
    assert length(x_adv - x, norm).max() > 0.39


def test_modes_weights_gradients_and_inputs_are_left_alone():
    net, x = network().eval(), rows()
    net[3].train()
    net[1].weight.grad = torch.ones(16, 20)
    before = [p.clone() for p in net.state_dict().values()]
    attacked(log_odds(net, torch.arange(6) % 3), x)
    assert [m.training for m in net] == [False, False, False, True, False]
    assert all(torch.equal(a, b) for a, b in zip(before, net.state_dict().values(), strict=True))
    assert torch.equal(net[1].weight.grad, torch.ones(16, 20))
    assert all(p.grad is None for name, p in net.named_parameters() if name != "1.weight")
    assert not x.requires_grad and torch.equal(x, rows())


def test_it_runs_where_gradients_are_off():
    with torch.no_grad():
        assert (linear(attacked(linear, rows())) > linear(rows())).all()


def test_same_seed_same_attack():
    net, t = network().eval(), torch.arange(6) % 3
    one, two, other = (attacked(log_odds(net, t), rows(), seed=seed, steps=2) for seed in (0, 0, 1))
    assert torch.equal(one, two) and not torch.equal(one, other)


@pytest.mark.parametrize("norm", [1, 1.5, 2, INF])
def test_the_start_fills_the_ball(norm):
    """A flat loss keeps the start as drawn: uniform in the ball, so r^d is uniform in [0, 1]."""
    x = torch.full((4000, 3), 0.5)
    if norm in (2, INF):
        delta = attacked(lambda x: 0 * x.sum(1), x, norm=norm, eps=0.3) - x
    else:  # Frank-Wolfe moves on a flat loss too, toward the center
        with seeded(0):
            delta = _random_in_ball(x, norm, 0.3)
    radius = (length(delta, norm) / 0.3).pow(3).sort().values
    assert (radius - torch.linspace(0, 1, 4000)).abs().max() < 0.04
    assert delta.mean(0).abs().max() < 0.02


@pytest.mark.parametrize(
    "option", [{"norm": INF}, {"eps": 0.2}, {"steps": 3}, {"step_size": 0.3}], ids=str
)
def test_every_option_matters(option):
    net, t = network().eval(), torch.arange(6) % 3
    plain, changed = (attacked(log_odds(net, t), rows(), **o) for o in ({}, option))
    assert not torch.equal(plain, changed)


def test_the_default_step_crosses_the_ball():
    plain, same = (
        attacked(linear, rows(), eps=0.4, steps=4, **o) for o in ({}, {"step_size": 0.25})
    )
    assert torch.equal(plain, same)


def test_no_radius_no_change():
    assert torch.equal(attacked(linear, rows(), eps=0.0), rows())


def test_log_odds_are_the_cross_entropy_with_another_slope():
    f, t = (
        torch.randn(50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64),
        torch.arange(50) % 4,
    )
    p = f.softmax(1)[range(50), t]
    torch.testing.assert_close(log_odds(lambda f: f, t)(f), ((1 - p) / p).log())
    f.requires_grad_()
    (odds,) = torch.autograd.grad(log_odds(lambda f: f, t)(f).sum(), f)
    (entropy,) = torch.autograd.grad(cross_entropy(f, t, reduction="sum"), f)
    torch.testing.assert_close((1 - p)[:, None] * odds, entropy)


def test_a_very_sure_model_is_attacked_all_the_same():
    """A million times the logits: the same decisions, while the cross-entropy's gradient is 0."""
    net = network().eval()
    t = net(rows()).argmax(1)
    x = rows().requires_grad_()
    (g,) = torch.autograd.grad(cross_entropy(1e6 * net(x), t), x)
    assert (g == 0).all()
    sure = attacked(log_odds(lambda x: 1e6 * net(x), t), rows(), eps=2.0)
    assert (net(sure).argmax(1) != t).all()


def test_gradients_whose_squares_vanish_still_lead():
    x = rows()
    tiny = attacked(lambda x: 1e-30 * linear(x), x, bounds=None)
    torch.testing.assert_close(tiny, attacked(linear, x, bounds=None))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": 0.5}, "norm must be a number from 1 to inf, got 0.5"),
        ({"eps": -0.1}, "eps must be a finite number at least 0, got -0.1"),
        ({"eps": INF}, "eps must be a finite number"),
        ({"steps": 0}, "steps must be a whole number at least 1.*, got 0"),
        (
            {"bounds": (0.0, 0.5)},
            r"X must lie within bounds \(0.0, 0.5\), got values from 0.\d+ to 0.9",
        ),
    ],
)
def test_errors_name_the_argument(options, message):
    with pytest.raises(ValueError, match=message):
        pgd(linear, rows(), **options)
