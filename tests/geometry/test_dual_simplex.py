import numpy as np
import torch
from polyhedra import KINDS, problems, solve

from contrafact.geometry.dual_problem import Problems
from contrafact.geometry.dual_simplex import nearest_l1


def test_l1_solutions_are_vertices():
    """As many values leave 0 and their bounds as constraints are tight; the others are exact."""
    given = problems("box", 40, 30, 6)
    found = solve("l1", *given)
    x, A, b, lo, hi, _ = given
    for i in (~found.infeasible).nonzero().flatten().tolist():
        delta = found.delta[i].numpy()
        between = (delta != 0) & (delta != lo[i] - x[i]) & (delta != hi[i] - x[i])
        tight = b[i] - A[i] @ (x[i] + delta) < 1e-9
        assert between.sum() <= tight.sum()
    assert (found.delta == 0).double().mean() > 0.3


def test_the_vertex_satisfies_complementary_slackness():
    """δ_j is 0, or at a bound, unless |Aᵀy| = 1 there; y is 0 where a half-space is not tight."""
    for seed, kind in enumerate(KINDS):
        x, A, _, lo, hi, frozen = problems(kind, 20, 7, 6, seed)
        A = A / np.linalg.norm(A, axis=2, keepdims=True)
        c = np.einsum("nmd,nd->nm", A, np.random.default_rng(seed).normal(size=x.shape))
        box = np.where(frozen, 0, np.minimum(lo - x, 0)), np.where(frozen, 0, np.maximum(hi - x, 0))
        found = nearest_l1(Problems(*(torch.as_tensor(v) for v in (A, c, *box))))
        solved = ~found.infeasible.numpy()
        assert solved.any()
        delta = found.delta.numpy()[solved]
        y = found.y.numpy()[solved]
        slack = c[solved] - np.einsum("nmd,nd->nm", A[solved], delta)
        assert slack.min() > -1e-9
        assert np.abs(slack * y).max() < 1e-8
        u = np.einsum("nmd,nm->nd", A[solved], y)
        lo_, hi_ = box[0][solved], box[1][solved]
        between = (delta != 0) & (delta > lo_ + 1e-12) & (delta < hi_ - 1e-12)
        assert np.abs(np.abs(u[between]) - 1).max(initial=0) < 1e-7
        assert (np.sign(u[between]) == -np.sign(delta[between])).all()


def test_a_problem_that_is_solved_at_the_start_is_left_alone():
    A = torch.tensor([[[1.0, 0.0]], [[1.0, 0.0]]], dtype=torch.float64)
    c = torch.tensor([[0.5], [-0.5]], dtype=torch.float64)
    free = torch.full((2, 2), torch.inf, dtype=torch.float64)
    found = nearest_l1(Problems(A, c, -free, free))
    assert found.delta.tolist() == [[0.0, 0.0], [-0.5, 0.0]]
    assert found.y[0].eq(0).all()
    torch.testing.assert_close(found.y[1], torch.ones(1).double())
