import math

import pytest
import torch

from contrafact.geometry.dual_problem import (
    Problems,
    is_farkas,
    lower_bound,
    times,
    transposed_times,
)

INF = math.inf


def random_problems(n=30, m=4, d=5, unbounded=False):
    generator = torch.Generator().manual_seed(0)
    A = torch.nn.functional.normalize(
        torch.randn(n, m, d, generator=generator, dtype=torch.float64), dim=2
    )
    c = torch.randn(n, m, generator=generator, dtype=torch.float64)
    size = 1 + torch.rand(n, d, generator=generator, dtype=torch.float64)
    if unbounded:
        size = torch.full_like(size, INF)
    return Problems(A, c, -size, size), generator


def test_products():
    given, generator = random_problems()
    delta = torch.randn(30, 5, generator=generator, dtype=torch.float64)
    y = torch.rand(30, 4, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(times(given.A, delta), torch.einsum("nmd,nd->nm", given.A, delta))
    u = transposed_times(given.A, y)
    torch.testing.assert_close(u, torch.einsum("nmd,nm->nd", given.A, y))


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("unbounded", [False, True])
def test_no_feasible_point_is_below_the_bound_of_any_y(norm, unbounded):
    """Weak duality: c is chosen so that a known δ is feasible, y is arbitrary."""
    given, generator = random_problems(unbounded=unbounded)
    delta = 0.9 * torch.randn(30, 5, generator=generator, dtype=torch.float64).clamp(-1, 1)
    given = Problems(given.A, times(given.A, delta), given.lo, given.hi)
    value = torch.linalg.vector_norm(delta, 1 if norm == "l1" else 2, dim=1)
    unit = torch.ones(30, 1, dtype=torch.float64)
    positive = 0
    for scale in (0.01, 0.1, 1.0, 10.0, 1e6):
        y = scale * torch.rand(30, 4, generator=generator, dtype=torch.float64)
        bound = lower_bound(given, y, norm, unit)
        assert (bound >= 0).all() and (bound <= value).all()
        positive += int((bound > 0).sum())
    assert positive > 5


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_bound_scales_with_the_unit(norm):
    given, generator = random_problems()
    y = 0.2 * torch.rand(30, 4, generator=generator, dtype=torch.float64)
    unit = torch.full((30, 1), 4.0, dtype=torch.float64)
    one = torch.ones_like(unit)
    in_units = lower_bound(given.in_units(unit), y, norm, one)
    torch.testing.assert_close(lower_bound(given, y, norm, unit), 4 * in_units)


def test_farkas_certificates_are_checked():
    # x ≤ −1 and −x ≤ −1 contradict each other; x ≤ 1 and −x ≤ 1 do not.
    A = torch.tensor([[[1.0], [-1.0]]] * 3, dtype=torch.float64)
    c = torch.tensor([[-1.0, -1.0], [1.0, 1.0], [-1.0, -1.0]], dtype=torch.float64)
    free = torch.full((3, 1), INF, dtype=torch.float64)
    y = torch.tensor([[2.0, 2.0], [2.0, 2.0], [2.0, 1.0]], dtype=torch.float64)
    assert is_farkas(Problems(A, c, -free, free), y).tolist() == [True, False, False]
    # With a box −0.5 ≤ x ≤ 0.5 one half-space is proof enough.
    box = torch.full((3, 1), 0.5, dtype=torch.float64)
    y = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 3.0]], dtype=torch.float64)
    assert is_farkas(Problems(A, c, -box, box), y).tolist() == [True, False, True]


def test_taking_and_starting():
    given, _ = random_problems()
    some = given.take(torch.tensor([3, 1]))
    assert torch.equal(some.A, given.A[[3, 1]]) and torch.equal(some.hi, given.hi[[3, 1]])
    box = Problems(given.A, given.c, given.lo + 3, given.hi + 3)
    assert torch.equal(box.start, box.lo)
