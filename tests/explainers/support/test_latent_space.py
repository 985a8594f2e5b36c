"""What latent methods share: the carrier network, centroids, traces, and the way back from a code."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from linear_autoencoder import Pca
from torch import nn

import contrafact as cf
from contrafact.engine.batch import Batch
from contrafact.engine.budget import Meter
from contrafact.explainers.support.code_network import Carrier
from contrafact.explainers.support.latent_space import Centroids, LatentSpace, Trace, shorten
from contrafact.nn.autoencoders import ConvAutoencoder, LSTMAutoencoder
from contrafact.nn.networks import seeded
from contrafact.numerics.randomness import row_seeds

ITALY = cf.load_dataset("ItalyPowerDemand")


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# --- the carrier --------------------------------------------------------------------------------------------

D = 5
SIZE = 3 * (D * D + D)


def plain_network(theta):
    """The same weights as a network of torch's own: per layer Wᵀ row by row, then the bias."""
    network = nn.Sequential(
        nn.Linear(D, D), nn.ReLU(), nn.Linear(D, D), nn.ReLU(), nn.Linear(D, D)
    ).double()
    layers = [layer for layer in network if isinstance(layer, nn.Linear)]
    with torch.no_grad():
        for layer, part in zip(layers, theta.split(D * D + D), strict=True):
            layer.weight.copy_(part[: D * D].reshape(D, D).T)
            layer.bias.copy_(part[D * D :])
    return network, layers


@pytest.mark.parametrize("skip", [False, True])
def test_stacked_weights_are_as_many_networks(skip):
    carrier = Carrier(torch.zeros(SIZE).double(), D, skip)
    theta, z, weight = normal(6, SIZE), normal(6, D, seed=1), normal(6, D, seed=2)
    theta.requires_grad_()
    out = carrier(theta, z)
    (gradient,) = torch.autograd.grad((out * weight).sum(), theta)
    for j in range(6):
        network, layers = plain_network(theta[j])
        alone = network(z[j]) + (z[j] if skip else 0)
        torch.testing.assert_close(out[j], alone)
        (alone * weight[j]).sum().backward()
        own = torch.cat(
            [g.flatten() for layer in layers for g in (layer.weight.grad.T, layer.bias.grad)]
        )
        torch.testing.assert_close(gradient[j], own)


def test_every_copy_starts_at_the_carriers_weights_and_none_shares_them():
    carrier = Carrier(normal(SIZE), D, skip=False)
    copies = carrier.start(3)
    assert carrier.size == SIZE and copies.shape == (3, SIZE) and (copies == carrier.weights).all()
    copies[0] += 1
    assert (copies[1] == carrier.weights).all() and not (copies[0] == carrier.weights).any()


def test_a_skip_starts_as_the_identity_and_can_leave_it():
    codes = normal(20, D)
    carrier = Carrier.fit(codes, max_epochs=1, skip=True)
    theta = carrier.start(20).requires_grad_()
    out = carrier(theta, codes)
    assert torch.equal(out, codes)
    (gradient,) = torch.autograd.grad(out.sum(), theta)
    assert (gradient.abs().amax(1) > 0).all()


def test_a_trained_carrier_reproduces_codes():
    codes = normal(100, 2) @ normal(
        2, 16, seed=1
    )  # on a plane, as codes of few kinds of series are

    def error(epochs):
        carrier = Carrier.fit(codes, max_epochs=epochs, skip=False)
        return float((carrier(carrier.start(100), codes) - codes).square().mean())

    assert error(200) < 0.05 * float(codes.var()) < error(1) / 10


def test_the_carrier_is_seeded_and_leaves_the_random_state_alone():
    before = torch.get_rng_state()
    one = Carrier.fit(normal(20, D), max_epochs=2, skip=False)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(99)
    assert torch.equal(one.weights, Carrier.fit(normal(20, D), max_epochs=2, skip=False).weights)


# --- centroids ----------------------------------------------------------------------------------------------

PLACE = torch.tensor([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0], [-2.0, 0.0]]).double()
OWNER = torch.tensor([0, 1, 1, 2])


def test_one_centroid_pulls_by_the_distance():
    z = normal(4, 2)
    pull = Centroids(PLACE, OWNER, beta=0.7).pull(z, torch.tensor([0, 2, 0, 2]))
    expected = (z - PLACE[[0, 3, 0, 3]]).norm(dim=1)
    torch.testing.assert_close(pull, expected, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("beta", [0.1, 1.0, 50.0])
def test_several_pull_by_the_soft_minimum(beta):
    z = normal(4, 2)
    pull = Centroids(PLACE, OWNER, beta).pull(z, torch.ones(4, dtype=torch.long))
    square = ((z.numpy()[:, None] - PLACE[1:3].numpy()) ** 2).sum(2)
    expected = -np.log(np.exp(-beta / 2 * square).sum(1)) / beta
    np.testing.assert_allclose(pull, expected, rtol=1e-9)


def test_a_sharp_soft_minimum_is_half_the_nearest_square_and_its_slope_the_way_there():
    z = normal(4, 2).requires_grad_()
    pull = Centroids(PLACE, OWNER, beta=1e6).pull(z, torch.ones(4, dtype=torch.long))
    way = z.detach()[:, None] - PLACE[1:3]
    nearest = way.square().sum(2).argmin(1)
    way = way[torch.arange(4), nearest]
    torch.testing.assert_close(pull, way.square().sum(1) / 2, atol=1e-5, rtol=0)
    torch.testing.assert_close(torch.autograd.grad(pull.sum(), z)[0], way)


def test_one_place_in_the_soft_minimum_is_half_the_square():
    """Two centroids at one place: ½‖z − μ‖² as of one, less the log 2 / β of counting it twice."""
    z, twice, beta = normal(4, 2), Centroids(PLACE[[1, 1]], torch.tensor([0, 0]), 0.7), 0.7
    expected = (z - PLACE[1]).square().sum(1) / 2 - np.log(2) / beta
    torch.testing.assert_close(twice.pull(z, torch.zeros(4, dtype=torch.long)), expected)


@pytest.mark.parametrize("c", [0, 1], ids=["one centroid", "several"])
def test_the_slope_is_finite_on_a_centroid(c):
    z = PLACE[[OWNER.tolist().index(c)]].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(
        Centroids(PLACE, OWNER, 1.0).pull(z, torch.tensor([c])).sum(), z
    )
    assert gradient.isfinite().all()
    if c == 0:
        assert not gradient.any()


def test_distance_and_nearest():
    centroids = Centroids(PLACE, OWNER, 1.0)
    z = torch.tensor([[0.0, 0.0], [3.0, 3.0]]).double()
    distance = centroids.distance(z, 4)
    r2 = np.sqrt(2)
    np.testing.assert_allclose(
        distance, [[0, r2, 2, np.inf], [3 * r2, 1, np.sqrt(34), np.inf]], atol=1e-7
    )
    assert centroids.nearest(z, torch.tensor([1, 1])).tolist() == [2, 1]
    assert centroids.nearest(z, torch.tensor([0, 2])).tolist() == [0, 3]


def test_single_centroids_are_the_means_of_their_classes():
    codes, column = (
        normal(30, 4),
        torch.arange(30) % 3 * 2,
    )  # class columns 0, 2 and 4: gaps are allowed
    centroids = Centroids.fit(codes, column, 1, beta=3.0)
    assert centroids.owner.tolist() == [0, 2, 4]
    torch.testing.assert_close(
        centroids.place, torch.stack([codes[column == c].mean(0) for c in (0, 2, 4)])
    )
    own = codes - centroids.place[column // 2]
    assert centroids.beta == pytest.approx(3.0 / float(own.square().sum(1).mean()))


def test_clusters_of_a_class_are_found():
    blobs = torch.tensor([[-5.0, 0.0], [5.0, 0.0], [0.0, 9.0]]).double()
    codes = torch.cat([blob + 0.1 * normal(10, 2, seed=i) for i, blob in enumerate(blobs)])
    column = torch.tensor([1] * 20 + [0] * 10)
    centroids = Centroids.fit(codes, column, 2, beta=1.0)
    assert centroids.owner.tolist() == [0, 0, 1, 1]
    two = centroids.place[2:]
    torch.testing.assert_close(two[two[:, 0].argsort()], blobs[:2], atol=0.1, rtol=0)


def test_small_classes_have_as_many_centroids_as_members():
    codes, column = normal(8, 3), torch.tensor([0, 1, 1, 2, 2, 2, 2, 2])
    centroids = Centroids.fit(codes, column, 3, beta=1.0)
    assert centroids.owner.tolist() == [0, 1, 1, 2, 2, 2]
    torch.testing.assert_close(centroids.place[0], codes[0])
    torch.testing.assert_close(centroids.place[1:3].sort(0)[0], codes[1:3].sort(0)[0])
    # Every code on its own centroid: no spread to measure β by, and still a finite pull.
    alone = Centroids.fit(codes[:3], column[:3], 3, beta=1.0)
    z = normal(1, 3, seed=5).requires_grad_()
    pull = alone.pull(z, torch.tensor([1]))
    assert pull.isfinite().all() and torch.autograd.grad(pull.sum(), z)[0].isfinite().all()


# --- the trace ----------------------------------------------------------------------------------------------


def test_a_trace_keeps_the_first_and_the_last_step_of_every_run():
    steps = [1, 3, 0, 200]  # entry 2 never takes a step
    trace = Trace(torch.eye(3).double()[:, :2])
    for t in range(200):
        entries = torch.tensor([e for e, n in enumerate(steps) if t < n])
        # As a search that works in parts does: two notes a step, the later entries first.
        for part in entries.flip(0).split(2):
            codes = torch.stack([part, torch.full_like(part, t), 0 * part], dim=1).double()
            trace.note(SimpleNamespace(entries=part, code=codes), 1000.0 * part.double() + t)
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


# --- the latent space ---------------------------------------------------------------------------------------


def batch_of(model, X, target):
    """What the engine would hand to a method."""
    classifier = cf.as_classifier(model)
    x = classifier.as_input(X)
    verdict = classifier.verdict(x)
    seeds = row_seeds(X, 0)
    return Batch(
        x, target(verdict.label), verdict, classifier, None, Meter(len(X)), 1, None, seeds, "series"
    )


@pytest.fixture
def batch(linear):
    return batch_of(linear, ITALY.X_test[:6], lambda label: 1 - label)


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
    assert space.spread[1] == 1 and space.spread[0] == space.codes[:, 0].std(correction=0)


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
def test_no_movement_is_no_change_to_the_last_bit_and_can_be_left(batch, kind):
    """float32 rounds a row otherwise in another batch: bits must not depend on which rows are decoded."""
    space = LatentSpace.fit(untrained(kind), batch.x, max_epochs=1)
    rows = torch.tensor([0, 0, 1, 2, 3, 4, 5])
    base = space.encode(batch.x[rows])
    decode = space.decoder(batch, rows, base, residual=True)
    for entries in (torch.arange(7), torch.tensor([4]), torch.tensor([6, 1, 3])):
        z = base[entries].clone().requires_grad_()
        x_cf = decode(z, entries)
        assert torch.equal(x_cf, batch.x[rows[entries]])
        weight = normal(*x_cf.shape)
        (gradient,) = torch.autograd.grad((x_cf * weight).sum(), z)
        (expected,) = torch.autograd.grad((space.decode(z) * weight).sum(), z)
        assert (gradient.abs().amax(1) > 0).all()
        torch.testing.assert_close(gradient, expected)


def test_a_moved_code_moves_by_the_decoders_difference(batch):
    space = LatentSpace.fit(untrained("cnn"), batch.x, max_epochs=1)
    entries = torch.arange(6)
    base = space.encode(batch.x)
    z = base.clone()
    z[2:] += 0.5 * normal(4, 6).float()
    moved = (space.decode(z) - space.decode(base)).detach()
    with torch.no_grad():
        residual = space.decoder(batch, batch.rows, base, residual=True)(z, entries)
        plain = space.decoder(batch, batch.rows, base, residual=False)(z, entries)
    torch.testing.assert_close(residual, batch.x + moved, atol=1e-6, rtol=0, check_dtype=False)
    assert torch.equal(residual[:2], batch.x[:2]) and (residual[2:] != batch.x[2:]).any(2).all()
    torch.testing.assert_close(plain, space.decode(z).detach(), check_dtype=False)


def test_further_starts_lie_around_the_code_and_follow_the_row(batch):
    space = LatentSpace.fit(Pca(ITALY.X_train, 4), torch.from_numpy(ITALY.X_train), max_epochs=1)
    rows = torch.arange(6).repeat_interleave(50)
    z = space.encode(batch.x)[rows]
    starts = space.starts(batch, rows, z)
    away = ((starts - z) / space.spread).reshape(6, 50, 4)
    assert not away[:, 0].any()
    assert len(away[:, 1:].unique()) == 6 * 49 * 4  # nothing is drawn twice
    np.testing.assert_allclose(away[:, 1:].std(), 1, atol=0.1)
    np.testing.assert_allclose(away[:, 1:].mean(), 0, atol=0.1)
    alone = batch.take(torch.tensor([4]))
    again = space.starts(alone, torch.zeros(50, dtype=torch.long), z[200:250])
    torch.testing.assert_close(again, starts[200:250])


def test_shortening_goes_back_to_the_first_accepted_point_and_never_beyond_the_code(batch, linear):
    """Linear model, linear decoder: the share of the way is the share of the edit, and acceptance has one
    threshold along it."""
    space = LatentSpace.fit(Pca(ITALY.X_train, 6), torch.from_numpy(ITALY.X_train), max_epochs=1)
    base = space.encode(batch.x)
    decode = space.decoder(batch, batch.rows, base, residual=True)
    direction = torch.from_numpy(linear.coef_).reshape(1, 1, -1)
    toward = space.encode(direction) / space.encode(direction).norm()
    sign = torch.where(batch.target == 1, 1.0, -1.0)[:, None]
    far = base + sign * toward * torch.tensor([3.0, 5.0, 8.0, 13.0, 20.0, 0.0])[:, None]
    end, entries = decode(far, batch.rows), batch.rows
    x_cf = shorten(batch, entries, decode, base, far)

    def accepted(x):
        return batch.accepts(batch.ask(x, entries), entries)

    whole, part = (end - batch.x).flatten(1), (x_cf - batch.x).flatten(1)
    share = (part * whole).sum(1) / whole.square().sum(1).clamp_min(1e-12)
    torch.testing.assert_close(part, share[:, None] * whole)
    good = accepted(end)
    assert good[:5].all() and not good[5]
    assert torch.equal(accepted(x_cf), good)
    assert ((share[:5] > 0) & (share[:5] < 1)).all()
    back = batch.x + ((share - 1 / 64).reshape(-1, 1, 1) * (end - batch.x))
    assert not accepted(back)[:5].any()
    assert torch.equal(x_cf[5], batch.x[5])  # a code that did not move stays where it is
