"""Losses of the LVQ family, by hand."""

import numpy as np
import pytest
import torch
from scipy.special import expit, logsumexp
from torch.autograd import gradcheck

from contrafact.prototypes import losses
from contrafact.prototypes.layers import Euclidean

# Prototypes of classes 0, 1, 0; both rows are of class 0. d⁺ = 1, 4 and d⁻ = 3, 1: μ = −0.5, 0.6.
LABELS, T = torch.tensor([0, 1, 0]), torch.tensor([0, 0])


SAME = T[:, None] == LABELS
D = torch.tensor([[1.0, 3.0, 2.0], [4.0, 1.0, 9.0]], dtype=torch.float64)
LOSSES = {
    "identity": (lambda d: losses.glvq(d, SAME, "identity", 2.0, None), [-0.5, 0.6]),
    "sigmoid": (lambda d: losses.glvq(d, SAME, "sigmoid", 2.0, None), [expit(-1.0), expit(1.2)]),
    "swish": (
        lambda d: losses.glvq(d, SAME, "swish", 2.0, None),
        [-0.5 * expit(-1.0), 0.6 * expit(1.2)],
    ),
    "margin": (lambda d: losses.glvq(d, SAME, "identity", 2.0, 0.1), [0.0, 0.7]),
    "wide margin": (lambda d: losses.glvq(d, SAME, "sigmoid", 2.0, 0.7), [expit(0.4), expit(2.6)]),
    "lvq1": (lambda d: losses.lvq1(d, SAME), [1.0, -1.0]),
    # (1 − w)/(1 + w) is 1/3, squared 1/9: both rows are inside; at 0.3, 1 : 4 is outside.
    "lvq21, wide": (lambda d: losses.lvq21(d, SAME, 0.5), [-2.0, 3.0]),
    "lvq21, narrow": (lambda d: losses.lvq21(d, SAME, 0.3), [-2.0, 0.0]),
    "rslvq": (
        lambda d: losses.rslvq(d, SAME, 2.0),
        [
            logsumexp([-0.5, -1.5, -1]) - logsumexp([-0.5, -1]),
            logsumexp([-2, -0.5, -4.5]) - logsumexp([-2, -4.5]),
        ],
    ),
    "cross-entropy": (
        lambda d: losses.cross_entropy(d, LABELS, T, 2.0),
        [logsumexp([-0.5, -1.5]) + 0.5, logsumexp([-2, -0.5]) + 2],
    ),
}


@pytest.mark.parametrize(("loss", "expected"), LOSSES.values(), ids=LOSSES)
def test_losses_by_hand(loss, expected):
    np.testing.assert_allclose(loss(D), expected, rtol=1e-12)


@pytest.mark.parametrize("loss", [loss for loss, _ in LOSSES.values()], ids=LOSSES)
def test_gradients_of_the_losses(loss):
    assert gradcheck(loss, (D.clone().requires_grad_(),))


def test_a_row_on_two_prototypes_has_a_finite_gradient():
    """d⁺ = d⁻ = 0: 0/0."""
    layer = Euclidean(torch.tensor([[0.3, 0.1], [0.3, 0.1]], dtype=torch.float64))
    mu = losses.relative_distance(
        layer(torch.tensor([[0.3, 0.1]], dtype=torch.float64)), torch.tensor([[True, False]])
    )
    mu.sum().backward()
    assert float(mu.detach()) == 0
    assert bool(layer.prototypes.grad.isfinite().all())


def test_gradients_of_rows_at_the_place_of_prototypes_of_two_classes_are_finite():
    d = torch.tensor([[0.0, 0.0], [1.0, 3.0]], dtype=torch.float64, requires_grad=True)
    same = torch.tensor([[True, False], [True, False]])
    mu = losses.relative_distance(d, same)
    assert mu.tolist() == [0.0, -0.5]
    (50 * mu).sigmoid().sum().backward()
    assert bool(d.grad.isfinite().all()) and bool((d.grad[1] != 0).all())
