import numpy as np
import torch
from polyhedra import INF, problems

from contrafact.geometry import dual_newton
from contrafact.geometry.dual_newton import nearest_l2
from contrafact.geometry.dual_problem import Problems


def displaced(kind, seed=0):
    """Problems in displacement form with normals of length 1."""
    x, A, b, lo, hi, _ = problems(kind, 20, 7, 6, seed)
    length = np.linalg.norm(A, axis=2)
    c = (b - np.einsum("nmd,nd->nm", A, x)) / length
    arrays = (A / length[..., None], c, lo - x, hi - x)
    return Problems(*(torch.as_tensor(v) for v in arrays))


def test_kkt_conditions():
    """δ = clip(−Aᵀy, lo, hi), no half-space is violated, and y is 0 where one is not tight."""
    for kind in ("plain", "box", "frozen"):
        given = displaced(kind)
        found = nearest_l2(given)
        slack = given.c - torch.einsum("nmd,nd->nm", given.A, found.delta)
        solved = (slack > -1e-9).all(1)
        assert solved.sum() >= 10
        u = torch.einsum("nmd,nm->nd", given.A, found.y)
        expected = (-u).clamp(given.lo, given.hi)
        torch.testing.assert_close(found.delta[solved], expected[solved], atol=1e-9, rtol=1e-9)
        assert (found.y >= 0).all()
        assert torch.minimum(slack, found.y)[solved].abs().max() < 1e-8


def test_the_line_search_finds_the_root():
    generator = torch.Generator().manual_seed(0)
    u, v = torch.randn(2, 50, 9, generator=generator, dtype=torch.float64)
    lo = torch.full((50, 9), -0.7, dtype=torch.float64)
    hi = torch.full((50, 9), INF, dtype=torch.float64)

    def slope(t, linear):
        return linear - (v * (-(u + t * v)).clamp(lo, hi)).sum(1, keepdim=True)

    # The slope is −1 at t = 0, and increases.
    linear = -1 - slope(0.0, 0.0)
    t = dual_newton._line_search(u, v, linear, lo, hi)
    at_root = slope(t, linear).abs() <= 1e-3
    whole = (t == 1) & (slope(t, linear) < 0)
    assert (at_root | whole).all()
    assert at_root.any() and whole.any()


def test_the_direction_ascends_and_keeps_y_positive():
    given = displaced("plain")
    generator = torch.Generator().manual_seed(1)
    y = torch.rand(given.c.shape, generator=generator, dtype=torch.float64)
    y[:, ::2] = 0
    u = torch.einsum("nmd,nm->nd", given.A, y)
    s = given.c + torch.einsum("nmd,nd->nm", given.A, u)
    direction = dual_newton._newton_direction(given.A, s, y, torch.ones_like(u, dtype=torch.bool))
    assert ((y + direction) >= -1e-15).all()
    assert ((-s * direction).sum(1) >= 0).all()
