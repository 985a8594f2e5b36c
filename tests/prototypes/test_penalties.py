"""Penalties and proximal steps against NumPy and brute force."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from penalties_by_hand import log_determinants, mean_squared_cosine

from bad_inputs import NOT_NUMBERS, bad_arrays, refuses
from contrafact.prototypes import (
    elastic_net_proximal,
    orthogonality_loss,
    prototype_diversity_loss,
    sparse_relevance_proximal,
)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    labels=st.lists(
        st.integers(-(10**12), 10**12) | st.sampled_from([-3, 0, 7]), min_size=1, max_size=14
    ),
    dimension=st.integers(1, 5),
    sigma=st.sampled_from([0.1, 1.0, 5.0]),
)
def test_diversity_is_the_log_determinant_of_every_class(seed, labels, dimension, sigma):
    p = np.random.default_rng(seed).normal(size=(len(labels), dimension))
    tensor = torch.from_numpy(p).requires_grad_()
    loss = prototype_diversity_loss(tensor, torch.tensor(labels), sigma)
    assert float(loss.detach()) == pytest.approx(
        log_determinants(p, labels, sigma), rel=1e-6, abs=1e-6
    )
    loss.backward()
    assert bool(tensor.grad.isfinite().all())


@pytest.mark.parametrize("loss", [prototype_diversity_loss, orthogonality_loss])
@pytest.mark.parametrize(
    "labels",
    [["ash", "oak", "ash", "oak"], [True, False, True, False], [0.5, -1, 0.5, -1]],
    ids=["text", "bool", "float"],
)
def test_any_labels_and_arrays_of_either_kind(loss, labels):
    p = np.random.default_rng(0).normal(size=(4, 3))
    numbers = torch.tensor([7, -2, 7, -2])
    expected = float(loss(torch.from_numpy(p), numbers))
    for names in (labels, np.array(labels), np.array(labels, dtype=object)):
        found = loss(p, names)
        assert isinstance(found, np.ndarray) and float(found) == pytest.approx(expected)
        assert float(loss(torch.from_numpy(p), names)) == pytest.approx(expected)
    assert float(loss(p, numbers.numpy())) == pytest.approx(expected)


def test_diversity_takes_series_and_images():
    p = torch.randn(5, 2, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = torch.tensor([1, 1, 0, 0, 0])
    flat = prototype_diversity_loss(p.flatten(1), labels)
    torch.testing.assert_close(prototype_diversity_loss(p, labels), flat)


def test_gradient_of_the_diversity():
    p = torch.randn(
        6, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True
    )
    labels = torch.tensor([4, -1, 4, 4, -1, 9])
    assert torch.autograd.gradcheck(lambda p: prototype_diversity_loss(p, labels, 0.7), (p,))


def test_median_width():
    """Of the distances within classes; to prototypes of other classes it pays no heed."""
    p, labels = np.array([[0.0], [1.0], [3.0], [50.0], [57.0]]), [2, 2, 2, 5, 5]
    among = [1.0, 3.0, 2.0, 7.0]  # the median of torch is the lower one of two
    loss = prototype_diversity_loss(torch.from_numpy(p), torch.tensor(labels), "median")
    assert float(loss) == pytest.approx(log_determinants(p, labels, sorted(among)[1]), rel=1e-6)
    scaled = prototype_diversity_loss(1000 * torch.from_numpy(p), torch.tensor(labels), "median")
    assert float(scaled) == pytest.approx(float(loss))


@settings(max_examples=80, deadline=None)
@given(
    n=st.integers(2, 40),
    dimension=st.integers(1, 4),
    apart=st.sampled_from([0.0, 1e-300, 1e-160, 1e-30, 1e-12, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2]),
    place=st.sampled_from([0.0, 1.0, 1e4]),
    sigma=st.sampled_from([0.5, 1.0, "median"]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 100),
)
def test_gradients_are_finite_however_close_prototypes_are(
    n, dimension, apart, place, sigma, dtype, seed
):
    noise = torch.from_numpy(np.random.default_rng(seed).normal(size=(n, dimension)))
    p = (place + apart * noise).to(dtype).requires_grad_()
    loss = prototype_diversity_loss(p, torch.arange(n) % 2, sigma)
    loss.backward()
    assert bool(loss.isfinite()) and bool(p.grad.isfinite().all())


@pytest.mark.parametrize("sigma", [1.0, "median"])
@pytest.mark.parametrize("apart", [0.0, 1e-9])
def test_coincident_prototypes_part(sigma, apart):
    p = torch.full((4, 3), 2.0, dtype=torch.float64)
    p[1] += apart
    p.requires_grad_()
    labels = torch.tensor([0, 0, 0, 8])
    optimizer = torch.optim.Adam([p], lr=0.05)
    for _ in range(150):
        optimizer.zero_grad()
        prototype_diversity_loss(p, labels, sigma).backward()
        optimizer.step()
    distance = torch.pdist(p.detach()[:3])
    assert float(distance.min()) > 0.5
    np.testing.assert_array_equal(p.detach()[3], 2.0)  # alone in its class: nothing to part from


def test_directions_of_parting_come_from_the_seed():
    p = torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)
    labels = torch.zeros(3, dtype=torch.long)

    def gradient(seed):
        return torch.autograd.grad(prototype_diversity_loss(p, labels, seed=seed), p)[0]

    assert torch.equal(gradient(0), gradient(0))
    assert not torch.allclose(gradient(0), gradient(1))
    assert float(gradient(0).abs().max()) > 0
    state = torch.get_rng_state()
    gradient(2)
    assert torch.equal(state, torch.get_rng_state())


def test_diversity_compiles_whole():
    """One graph, forward and backward, without a look at the values."""
    compiled = torch.compile(prototype_diversity_loss, backend="aot_eager", fullgraph=True)
    for p in (torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), torch.zeros(6, 3)):
        labels = torch.tensor([5, 5, -2, 5, -2, 0])
        p.requires_grad_()
        ours, plain = compiled(p, labels, 0.8), prototype_diversity_loss(p, labels, 0.8)
        torch.testing.assert_close(ours, plain)
        torch.testing.assert_close(*(torch.autograd.grad(loss, p)[0] for loss in (ours, plain)))


@settings(max_examples=100, deadline=None)
@given(
    x=st.floats(-5, 5),
    l1=st.floats(0, 3),
    l2=st.floats(0, 3),
    learning_rate=st.floats(0.01, 2),
)
def test_proximal_steps_minimize_what_they_stand_for(x, l1, l2, learning_rate):
    """prox(x) = argmin over z of ½(z − x)² + learning_rate·(l1|z| + l2/2 z²)."""

    def objective(z, l2):
        return (z - x) ** 2 / 2 + learning_rate * (l1 * np.abs(z) + l2 / 2 * z**2)

    grid = np.append(np.linspace(-6, 6, 12001), 0.0)
    given = torch.tensor([x], dtype=torch.float64)
    z = float(elastic_net_proximal(given, l1, l2, learning_rate))
    assert objective(z, l2) <= objective(grid, l2).min() + 1e-12
    assert abs(z - grid[objective(grid, l2).argmin()]) <= 1e-3 + 1e-9
    z = float(sparse_relevance_proximal(given, l1, learning_rate))
    assert objective(z, 0) <= objective(grid, 0).min() + 1e-12
    if abs(x) <= l1 * learning_rate:
        assert z == 0


def test_orthogonality_loss_by_hand():
    p, labels = (
        torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64),
        [3, 3, -1, 5, 5],
    )
    loss = orthogonality_loss(p, torch.tensor(labels))
    assert float(loss) == pytest.approx(mean_squared_cosine(p.numpy(), labels))
    assert float(orthogonality_loss(torch.eye(3), torch.arange(3))) == 0
    assert torch.autograd.gradcheck(
        lambda p: orthogonality_loss(p, torch.tensor(labels)), (p.requires_grad_(),)
    )


GOOD = {
    prototype_diversity_loss: {"prototypes": np.eye(3), "labels": [0, 0, 1], "sigma": 1.0},
    orthogonality_loss: {"prototypes": np.eye(3), "labels": [0, 0, 1]},
    sparse_relevance_proximal: {"relevances": np.eye(3), "l1_weight": 0.5},
    elastic_net_proximal: {"relevances": np.eye(3), "l1_weight": 0.5, "l2_weight": 1.0},
}


@pytest.mark.parametrize("function", GOOD)
def test_arrays_give_what_tensors_give(function):
    (_, array), *others = GOOD[function].items()
    from_arrays = function(array, **dict(others))
    labels = {k: torch.tensor(v) if k == "labels" else v for k, v in others}
    from_tensors = function(torch.from_numpy(array), **labels)
    assert isinstance(from_arrays, np.ndarray) and isinstance(from_tensors, torch.Tensor)
    np.testing.assert_array_equal(from_arrays, from_tensors.numpy())


@pytest.mark.parametrize("function", GOOD)
def test_bad_arguments_are_named(function):
    first = next(iter(GOOD[function]))
    for label, bad in bad_arrays(np.eye(3)).items():
        if label != "number" or first == "prototypes":
            refuses(first, function, **GOOD[function] | {first: bad})
    numbers = {"sigma", "l1_weight", "l2_weight"} & set(GOOD[function])
    for name in numbers:
        for bad in [*NOT_NUMBERS.values(), None, -1.0]:
            refuses(name, function, **GOOD[function] | {name: bad})
    if first == "prototypes":
        for bad in ([0, 1], [[0], [1], [2]], torch.tensor([0.5, 1, 2]), None):
            refuses("labels", function, **GOOD[function] | {"labels": bad})


def test_sigma_of_0_is_refused():
    refuses("sigma", prototype_diversity_loss, np.eye(2), [0, 0], 0.0)
