"""Steps of the gradient loop."""

import torch

from contrafact.search import Adam, SteepestDescent


def test_adam_is_adam():
    theta = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    reference = theta.clone().requires_grad_()
    optimizer, ours, step = torch.optim.Adam([reference], lr=0.1), theta.clone(), Adam(0.1)
    for _ in range(20):
        optimizer.zero_grad()
        (reference**4).sum().backward()
        optimizer.step()
        ours = step(ours, 4 * ours**3, ours.sum(1))
    torch.testing.assert_close(ours, reference.detach())


def test_steepest_descent_has_the_length_it_says_and_spares_costly_elements():
    theta, gradient = torch.zeros(2, 4), torch.ones(2, 4)
    weights = torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 10.0, 10.0]])
    moved = SteepestDescent(0.5, weights)(theta, gradient, torch.zeros(2))
    torch.testing.assert_close(moved.square().mean(1).sqrt(), torch.tensor([0.5, 0.5]))
    torch.testing.assert_close(moved[1, 0] / moved[1, 2], torch.tensor(10.0))
