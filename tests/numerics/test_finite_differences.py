import numpy as np
import pytest
import torch

from contrafact.numerics.finite_differences import zeroth_order_gradient

A = torch.from_numpy(np.random.default_rng(0).normal(size=(12, 12)))


def quadratic(z):
    z = z.flatten(1)
    return 0.5 * ((z @ A) * z).sum(1)


def gradient(x):
    return (0.5 * x.flatten(1) @ (A + A.T)).view_as(x)


@pytest.fixture
def x():
    return torch.from_numpy(np.random.default_rng(1).normal(size=(6, 3, 4)))


def test_enough_directions_give_central_differences(x):
    estimate = zeroth_order_gradient(quadratic, x, np.arange(6), n_directions=12)
    torch.testing.assert_close(estimate, gradient(x), atol=1e-9, rtol=1e-9)  # exact for a quadratic


@pytest.mark.parametrize("directions", ["normal", "rademacher"])
def test_the_estimate_is_unbiased(x, directions):
    # The mean of many 4-direction estimates approaches the gradient, at the rate of its spread.
    repeats = 4000
    many = x[:1].repeat(repeats, 1, 1)
    estimate = zeroth_order_gradient(
        quadratic, many, np.arange(repeats), n_directions=4, directions=directions
    )
    error = estimate.mean(0) - gradient(x)[0]
    assert (error.abs() < 5 * estimate.std(0) / repeats**0.5).all()
    assert estimate.std(0).min() > 0


def test_rademacher_has_less_variance(x):
    many, seeds = x[:1].repeat(2000, 1, 1), np.arange(2000)
    normal, signs = (
        zeroth_order_gradient(quadratic, many, seeds, n_directions=4, directions=d)
        .std(0)
        .square()
        .sum()
        for d in ("normal", "rademacher")
    )
    assert signs < 0.95 * normal


def test_a_row_stands_alone(x):
    seeds = np.array([5, -3, 9, 2, 2, 7])
    whole = zeroth_order_gradient(quadratic, x, seeds, n_directions=5)
    order = [3, 0, 5, 1, 4, 2]
    shuffled = zeroth_order_gradient(quadratic, x[order], seeds[order], n_directions=5)
    torch.testing.assert_close(shuffled, whole[order], atol=1e-12, rtol=1e-12)
    alone = zeroth_order_gradient(quadratic, x[2:3], seeds[2:3], n_directions=5)
    torch.testing.assert_close(alone[0], whole[2], atol=1e-12, rtol=1e-12)


def test_other_seeds_give_another_estimate(x):
    first, second = (
        zeroth_order_gradient(quadratic, x, s + np.arange(6), n_directions=5) for s in (0, 100)
    )
    assert (first != second).all()


@pytest.mark.parametrize(
    ("n_directions", "rows"), [(5, 2 * 6 * 5), (12, 2 * 6 * 12), (99, 2 * 6 * 12)]
)
def test_one_call_of_the_function(x, n_directions, rows):
    calls = []

    def counting(z):
        calls.append(z.shape)
        return quadratic(z)

    zeroth_order_gradient(counting, x, np.arange(6), n_directions=n_directions)
    assert calls == [(rows, 3, 4)]


@pytest.mark.parametrize("n_directions", [5, 12])
def test_scale_per_row(x, n_directions):
    def cubic(z):
        return (z.flatten(1) ** 3).sum(1)

    scales = torch.tensor([0.01, 0.1, 0.5, 1.0, 2.0, 3.0], dtype=torch.float64)
    together = zeroth_order_gradient(
        cubic, x, np.arange(6), n_directions=n_directions, scale=scales
    )
    for i, scale in enumerate(scales.tolist()):
        alone = zeroth_order_gradient(
            cubic, x[i : i + 1], [i], n_directions=n_directions, scale=scale
        )
        torch.testing.assert_close(together[i], alone[0], atol=1e-10, rtol=1e-10)
    if n_directions == 12:  # central differences of z³ miss by exactly σ²
        expected = 3 * x**2 + scales.view(-1, 1, 1) ** 2
        torch.testing.assert_close(together, expected, atol=1e-8, rtol=1e-8)


@pytest.mark.usefixtures("own_random_numbers")
def test_kind_is_kept_and_nothing_is_touched():
    x = torch.ones(2, 3, requires_grad=True)
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    estimate = zeroth_order_gradient(lambda z: z.double().sum(1), x, [1, 2], n_directions=2)
    assert (
        estimate.dtype == torch.float32 and estimate.shape == x.shape and not estimate.requires_grad
    )
    assert torch.equal(before[0], torch.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002
    assert zeroth_order_gradient(lambda z: z.sum(1), x[:0], np.zeros(0, int)).shape == (0, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_directions": 0}, "n_directions must be a whole number at least 1, got 0"),
        ({"scale": 0.0}, "scale must be positive"),
        ({"scale": torch.ones(4)}, "one per row"),
        ({"directions": "sobol"}, "'normal' or 'rademacher', got 'sobol'"),
        ({"seeds": [1, 2]}, "seeds must be one integer per row"),
        ({"function": lambda z: z}, "function must give one value per row"),
        ({"function": lambda z: z.sum(1).numpy()}, "function must return a Tensor, got ndarray"),
        ({"function": 3}, "function must be a function of rows, got 3"),
        ({"scale": "1"}, "scale must be an array, got '1'"),
        ({"scale": np.inf}, "scale must be positive"),
    ],
)
def test_errors_name_the_argument(x, change, message):
    arguments = {"function": quadratic, "x": x, "seeds": np.arange(6)} | change
    with pytest.raises((ValueError, TypeError), match=message):
        zeroth_order_gradient(**arguments)
