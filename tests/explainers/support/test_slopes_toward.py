"""First-order predictions: gradients of log-odds, directions between classes, their scale."""

import pytest
import torch

from contrafact.explainers.support.slopes_toward import (
    LARGEST_FACTOR,
    discriminant_slopes,
    log_odds_gradient,
    scaled_slopes,
)
from contrafact.models import as_classifier


@pytest.fixture
def three_classes():
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(10, 6), torch.nn.Tanh())
    module = torch.nn.Sequential(layers, torch.nn.Linear(6, 3)).double()
    return module, as_classifier(module, classes=[0, 1, 2])


@pytest.mark.usefixtures("own_random_numbers")
def test_gradient_is_that_of_the_log_odds(three_classes):
    module, classifier = three_classes
    x = torch.randn(4, 2, 5, dtype=torch.float64)
    target = torch.tensor([0, 1, 2, 1])
    gradient = log_odds_gradient(classifier, x, target)
    assert gradient.shape == x.shape
    assert not gradient.requires_grad
    eps = 1e-3 if gradient.dtype == torch.float32 else 1e-6

    def log_odds(values):
        with torch.no_grad():
            p = module(values.to(next(module.parameters()))).softmax(1).double()
        own = p.gather(1, target[:, None])[:, 0]
        return own.log() - (1 - own).log()

    for channel, step in ((0, 0), (1, 3), (1, 4)):
        bump = torch.zeros_like(x)
        bump[:, channel, step] = eps
        slope = (log_odds(x + bump) - log_odds(x - bump)) / (2 * eps)
        torch.testing.assert_close(gradient[:, channel, step].double(), slope, rtol=1e-2, atol=1e-3)


def test_discriminant_points_from_class_to_class_and_trusts_steady_values():
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(60, 1, 4, generator=generator, dtype=torch.float64)
    label = torch.arange(60) % 3
    X[label == 1, 0, 1] += 3
    X[..., 2] *= 10
    X[label == 1, 0, 2] += 3
    slopes = discriminant_slopes(X, label, 4)
    assert slopes.shape == (4, 4, 1, 4)
    torch.testing.assert_close(slopes, -slopes.transpose(0, 1))
    assert slopes[1, 0, 0, 1] > 5 * slopes[1, 0, 0, 2].abs()
    assert (slopes[0, 0] == 0).all()
    # class 3 has no rows and stands at the mean of all
    assert slopes[3].isfinite().all()


def test_discriminant_of_constant_values_is_finite():
    X = torch.zeros(6, 1, 3, dtype=torch.float64)
    slopes = discriminant_slopes(X, torch.tensor([0, 0, 0, 1, 1, 1]), 2)
    assert (slopes == 0).all()


def test_scale_makes_the_way_predict_the_lead(open_tasks, counting):
    tasks = open_tasks(counting, -torch.ones(3, 1, 5).numpy(), [1] * 3, modality="series")
    donor = torch.ones(3, 2, 1, 5)
    slope = torch.rand(3, 2, 1, 5, generator=torch.Generator().manual_seed(0)) + 0.5
    there = torch.full((3, 2), 4.0, dtype=torch.float64)
    here = torch.full((3,), -2.0, dtype=torch.float64)
    scaled = scaled_slopes(tasks, donor, slope, there, here)
    way = donor - tasks.x[:, None]
    torch.testing.assert_close((scaled * way).flatten(2).sum(2), there - here[:, None])
    weak = scaled_slopes(tasks, donor, 1e-3 * slope, there, here)
    torch.testing.assert_close(weak, LARGEST_FACTOR * 1e-3 * slope.double())
    against = scaled_slopes(tasks, donor, -slope, there, here)
    assert (against < 0).all()
    # a donor that hardly leads still promises something
    lagging = scaled_slopes(tasks, donor, slope, there - 10, here)
    assert (lagging > 0).all()
