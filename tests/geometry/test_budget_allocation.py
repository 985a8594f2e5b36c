import pytest
import torch
from linear_problems import norm, points, slack, weights

from contrafact.geometry import budget_allocation, lmo
from contrafact.geometry.budget_allocation import scale_free, scale_free_allocation


@pytest.mark.parametrize("p", [1.1, 1.25, 1.5, 4.0])
def test_newton_and_sorting_agree(p, monkeypatch):
    w, x = weights("lognormal", (20, 300)), points((20, 300))
    by_newton = lmo(w, x, 2.0, p)
    monkeypatch.setattr(budget_allocation, "_NEWTON_FROM", 99)
    assert torch.allclose(lmo(w, x, 2.0, p), by_newton, rtol=1e-9, atol=1e-12)


def test_unfinished_newton_falls_back_on_sorting(monkeypatch):
    w, x = weights("cauchy", (20, 300)), points((20, 300))
    expected = lmo(w, x, 3.0, 1.5)
    monkeypatch.setattr(budget_allocation, "_NEWTON_PASSES", 2)
    assert torch.allclose(lmo(w, x, 3.0, 1.5), expected, rtol=1e-9, atol=1e-12)


def test_the_knapsack_fills_by_value():
    """p = 1: the budget of 1 goes to the largest r first; the last to get some sets the price."""
    r = torch.tensor([[0.5, 1.0, 0.2, 0.8]])
    u = torch.tensor([[0.6, 0.3, 1.0, 0.4]])
    share, price = scale_free_allocation(r, u, 1.0)
    torch.testing.assert_close(share, torch.tensor([[0.3, 0.3, 0.0, 0.4]]))
    torch.testing.assert_close(price, torch.tensor([[0.5]]))
    share, price = scale_free_allocation(r, u / 4, 1.0)
    assert torch.equal(share, u / 4) and price.item() == 0  # all limits together cost less than 1


@pytest.mark.parametrize("p", [1.0, 1.0 + 1e-12, 1.02, 1.5, 2.0, 6.0])
def test_the_budget_is_spent_at_one_price(p):
    w, x = weights("normal", (6, 40)), points((6, 40))
    g = slack(w, x)
    eps = 0.5 * norm(g, p)[:, None]
    r, u = scale_free(w, torch.minimum(g, eps), eps)
    share, price = scale_free_allocation(r, u, p)
    assert ((share >= 0) & (share <= u)).all()
    torch.testing.assert_close((share**p).sum(1), torch.ones(6).double())
    if p > 1.01:
        free = (share > 1e-100) & (share < u * (1 - 1e-12))
        marginal = r / share ** (p - 1)
        torch.testing.assert_close(marginal[free], price.expand_as(r)[free])


def test_scale_free_rows_without_weight_or_budget_are_zero():
    w = torch.tensor([[0.0, 0.0], [2.0, -4.0]])
    r, u = scale_free(w, torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[2.0], [0.0]]))
    assert r.tolist() == [[0, 0], [0.5, 1]] and u.tolist() == [[0.5, 1], [0, 0]]
