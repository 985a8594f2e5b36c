import pytest
import torch

from contrafact.geometry.dual_problem import Problems
from contrafact.geometry.simplex_tableau import Costs, Tableau, Vertices


def problems():
    """Two problems with three half-spaces in two dimensions; the second box is away from 0."""
    generator = torch.Generator().manual_seed(0)
    A = torch.randn(2, 3, 2, generator=generator, dtype=torch.float64)
    c = torch.randn(2, 3, generator=generator, dtype=torch.float64)
    lo = torch.tensor([[-1.0, -2.0], [0.5, -torch.inf]], dtype=torch.float64)
    hi = torch.tensor([[1.0, torch.inf], [3.0, -0.25]], dtype=torch.float64)
    return Problems(A, c, lo, hi)


def test_costs_have_three_levels_and_two_knots():
    costs = Costs.of(problems())
    inf = torch.inf
    expected = [[0.5, -inf, 0, 0, 0], [0.5, -0.25, inf, inf, inf], [3, -0.25, inf, inf, inf]]
    assert costs.levels[1].tolist() == expected
    assert costs.knots[0].tolist() == pytest.approx([-1, -1, 0, 0, 0], rel=1e-9)
    assert costs.knots[1].tolist() == pytest.approx([1, 1, inf, inf, inf], rel=1e-9)
    assert costs.knots[1, 0] != costs.knots[1, 1]  # equal knots would lead to cycling


def test_the_first_tableau_has_the_slacks_as_its_basis():
    given = problems()
    tableau = Tableau.start(given, Costs.of(given))
    assert tableau.B.tolist() == [[2, 3, 4]] * 2
    assert tableau.N.tolist() == [[0, 1]] * 2
    slack = given.c - torch.einsum("nmd,nd->nm", given.A, given.start)
    torch.testing.assert_close(tableau.x_B, slack)
    assert tableau.T.data_ptr() != given.A.data_ptr()  # it is changed in place


def test_problems_that_are_over_leave_every_tensor():
    given = problems()
    tableau = Tableau.start(given, Costs.of(given))
    left = tableau.without(torch.tensor([True, False]))
    assert left.rows.tolist() == [1]
    for name, tensor in vars(left).items():
        assert torch.equal(tensor, getattr(tableau, name)[1:]), name


def test_recorded_vertices_keep_values_and_rays():
    given = problems()
    costs = Costs.of(given)
    tableau = Tableau.start(given, costs)
    vertices = Vertices.start(tableau, given)
    vertices.record_optimal(tableau, costs, torch.tensor([False, True]))
    assert vertices.values[1].tolist() == [0.5, -0.25, 0, 0, 0]
    assert vertices.r_B[1].eq(0).all()
    p, side = torch.tensor([[2], [0]]), torch.tensor([[-1], [1]])
    vertices.record_infeasible(tableau, costs, torch.tensor([True, False]), p, side)
    assert vertices.infeasible.tolist() == [True, False]
    assert vertices.r_B[0].tolist() == [0, 0, -1]
