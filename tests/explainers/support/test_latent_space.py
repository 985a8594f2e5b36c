"""Latent spaces: candidates from codes, starts, shortening, traces."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from linear_autoencoder import Pca

import contrafact as cf
from contrafact.explainers.support.latent_space import LatentSpace, Trace, shorten
from contrafact.nn.autoencoders import ConvAutoencoder, LSTMAutoencoder
from contrafact.nn.networks import seeded

ITALY = cf.load_dataset("ItalyPowerDemand")


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_a_trace_keeps_the_first_and_the_last_step_of_every_run():
    steps = [1, 3, 0, 200]  # entry 2 never takes a step
    trace = Trace(torch.eye(3).double()[:, :2])
    for t in range(200):
        entries = torch.tensor([e for e, n in enumerate(steps) if t < n])
        # As a search that works in parts does: two notes a step, the later entries first.
        for part in entries.flip(0).split(2):
            codes = torch.stack([part, torch.full_like(part, t), 0 * part], dim=1).double()
            trace.note(
                SimpleNamespace(tasks={"position": part}, code=codes), 1000.0 * part.double() + t
            )
    curves = trace.curves(4)
    loss, path = curves["loss_curve"], curves["path"]
    assert loss.shape == (4, Trace.POINTS) and path.shape == (4, Trace.POINTS, 2)
    for e, n in enumerate(steps):
        if n == 0:
            assert loss[e].isnan().all() and path[e].isnan().all()
            continue
        assert loss[e, 0] == 1000 * e and loss[e, -1] == 1000 * e + n - 1
        assert (loss[e].diff() >= 0).all() and len(loss[e].unique()) == min(n, Trace.POINTS)
        assert (path[e, :, 0] == e).all() and torch.equal(path[e, :, 1], loss[e] - 1000 * e)
    assert loss[3].diff().max() - loss[3].diff().min() <= 1  # evenly


def test_a_trace_of_no_steps_is_empty():
    curves = Trace(torch.eye(2)).curves(2)
    assert curves["loss_curve"].isnan().all() and curves["path"].shape == (2, Trace.POINTS, 2)


@pytest.fixture
def tasks(linear, open_tasks):
    return open_tasks(linear, ITALY.X_test[:6])


def test_spread_and_plane_describe_the_codes():
    space = LatentSpace.fit(Pca(ITALY.X_train, 4), torch.from_numpy(ITALY.X_train), max_epochs=1)
    codes = space.codes
    torch.testing.assert_close(space.spread, codes.std(0, correction=0))
    torch.testing.assert_close(
        space.plane.T @ space.plane, torch.eye(2).double(), atol=1e-9, rtol=0
    )
    on_plane = (codes @ space.plane).var(0, correction=0)
    expected = torch.linalg.eigvalsh(torch.cov(codes.T, correction=0)).flip(0)[:2]
    torch.testing.assert_close(on_plane, expected)


def test_a_dimension_that_never_varies_gets_a_spread_of_1():
    autoencoder = Pca(ITALY.X_train, 3)
    autoencoder.axes.data[:, 1] = 0
    space = LatentSpace.fit(autoencoder, torch.from_numpy(ITALY.X_train), max_epochs=1)
    assert space.spread[1] == 1
    torch.testing.assert_close(space.spread[0], space.codes[:, 0].std(correction=0))


@pytest.mark.usefixtures("own_random_numbers")
def test_an_autoencoder_of_other_instances_is_refused():
    with pytest.raises(
        ValueError, match=r"autoencoder takes instances of shape \(1, 9\); X holds \(1, 24\)"
    ):
        LatentSpace.fit(ConvAutoencoder((1, 9)), torch.from_numpy(ITALY.X_train), max_epochs=1)


def untrained(kind):
    with seeded(0):
        if kind == "lstm":
            return LSTMAutoencoder((1, 24), latent=6, hidden=12)
        return ConvAutoencoder((1, 24), latent=6, widths=(6, 8))


@pytest.mark.parametrize("kind", ["lstm", "cnn"])
def test_no_movement_is_no_change_to_the_last_bit_and_can_be_left(tasks, kind):
    """float32 rounds a row otherwise in another batch: bits must not depend on which rows are
    decoded."""
    space = LatentSpace.fit(untrained(kind), tasks.x, max_epochs=1)
    tasks = tasks.take(torch.tensor([0, 0, 1, 2, 3, 4, 5]))
    tasks = space.attach_base(tasks, space.encode(tasks.x), residual=True)
    for which in (torch.arange(7), torch.tensor([4]), torch.tensor([6, 1, 3])):
        some = tasks.take(which)
        z = some["base"].clone().requires_grad_()
        x_cf = space.candidates(some, z, residual=True)
        assert torch.equal(x_cf, some.x)
        weight = normal(*x_cf.shape)
        (gradient,) = torch.autograd.grad((x_cf * weight).sum(), z)
        (expected,) = torch.autograd.grad((space.decode(z) * weight).sum(), z)
        assert (gradient.abs().amax(1) > 0).all()
        torch.testing.assert_close(gradient, expected)


def test_a_moved_code_moves_by_the_decoders_difference(tasks):
    space = LatentSpace.fit(untrained("cnn"), tasks.x, max_epochs=1)
    base = space.encode(tasks.x)
    z = base.clone()
    z[2:] += 0.5 * normal(4, 6).float()
    moved = (space.decode(z) - space.decode(base)).detach()
    with torch.no_grad():
        residual = space.candidates(space.attach_base(tasks, base, True), z, residual=True)
        plain = space.candidates(space.attach_base(tasks, base, False), z, residual=False)
    torch.testing.assert_close(residual, tasks.x + moved, atol=1e-6, rtol=0, check_dtype=False)
    assert torch.equal(residual[:2], tasks.x[:2]) and (residual[2:] != tasks.x[2:]).any(2).all()
    torch.testing.assert_close(plain, space.decode(z).detach(), check_dtype=False)


def test_further_starts_lie_around_the_code_and_follow_the_instance(linear, open_tasks):
    space = LatentSpace.fit(Pca(ITALY.X_train, 4), torch.from_numpy(ITALY.X_train), max_epochs=1)
    tasks = open_tasks(linear, ITALY.X_test[:6], k=50)
    z = space.encode(tasks.x)
    starts = space.starts(tasks, z)
    away = ((starts - z) / space.spread).reshape(6, 50, 4)
    assert not away[:, 0].any()
    assert len(away[:, 1:].unique()) == 6 * 49 * 4  # nothing is drawn twice
    np.testing.assert_allclose(away[:, 1:].std(), 1, atol=0.1)
    np.testing.assert_allclose(away[:, 1:].mean(), 0, atol=0.1)
    alone = open_tasks(linear, ITALY.X_test[4:5], k=50)
    again = space.starts(alone, z[200:250])
    torch.testing.assert_close(again, starts[200:250])


def test_shortening_goes_back_to_the_first_accepted_point_and_never_beyond_the_code(tasks, linear):
    """Linear model, linear decoder: the share of the way is the share of the edit, and acceptance
    has one
    threshold along it."""
    space = LatentSpace.fit(Pca(ITALY.X_train, 6), torch.from_numpy(ITALY.X_train), max_epochs=1)
    base = space.encode(tasks.x)
    tasks = space.attach_base(tasks, base, residual=True)

    def decode(tasks, code):
        return space.candidates(tasks, code, residual=True)

    direction = torch.from_numpy(linear.coef_).reshape(1, 1, -1)
    toward = space.encode(direction) / space.encode(direction).norm()
    sign = torch.where(tasks.target == 1, 1.0, -1.0)[:, None]
    far = base + sign * toward * torch.tensor([3.0, 5.0, 8.0, 13.0, 20.0, 0.0])[:, None]
    end = decode(tasks, far)
    x_cf = shorten(tasks, decode, far)

    def accepted(x):
        return tasks.accepted(x)

    whole, part = (end - tasks.x).flatten(1), (x_cf - tasks.x).flatten(1)
    share = (part * whole).sum(1) / whole.square().sum(1).clamp_min(1e-12)
    torch.testing.assert_close(part, share[:, None] * whole)
    good = accepted(end)
    assert good[:5].all() and not good[5]
    assert torch.equal(accepted(x_cf), good)
    assert ((share[:5] > 0) & (share[:5] < 1)).all()
    back = tasks.x + ((share - 1 / 64).reshape(-1, 1, 1) * (end - tasks.x))
    assert not accepted(back)[:5].any()
    assert torch.equal(x_cf[5], tasks.x[5])  # a code that did not move stays where it is
