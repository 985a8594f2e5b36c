"""The norm that is advised, and the gains it rests on."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import contrafact as cf
from contrafact.explainers.norm_advice import NormAdvice, choose

INF = math.inf
RNG = np.random.default_rng(0)
X = RNG.random((12, 2)).astype(np.float32)
Y = (X.sum(1) > 1).astype(int)


def linear(w, b):
    """A model of two classes whose margin is w·x + b."""
    module = nn.Linear(2, 2)
    module.weight.data = torch.tensor([[0.0, 0.0], list(w)])
    module.bias.data = torch.tensor([0.0, b])
    return module


EVEN = {"w": (4.0, 4.0), "b": -4.0}
SINGLE = {"w": (6.0, 0.0), "b": -3.0}


@pytest.mark.usefixtures("own_random_numbers")
def test_gains_of_linear_models_are_ratios_of_distances():
    """The distance to the plane w·x + b = 0 is |w·x + b| / ‖w‖_q."""
    models = linear(**EVEN), X, Y, linear(**SINGLE)
    advice = cf.advise_norm(*models, (1, INF), bounds=(-9, 9), n_iter=10)
    right = (X[:, 0] > 0.5) == Y
    ratio = np.median(np.abs(X.sum(1) - 1)[right] / np.abs(X[right, 0] - 0.5))
    assert advice.gain[1] == pytest.approx(ratio, rel=0.05)
    assert advice.gain[INF] == pytest.approx(ratio / 2, rel=0.05)
    assert advice == choose(advice.gain, 2.0)


@pytest.mark.parametrize(
    ("gain", "norm", "trusted"),
    [
        ({1: 1.0, 2: 2.0, INF: 3.0}, 2, True),
        ({INF: 3.0, 1: 2.5}, 1, True),
        ({1: 0.4, 2: 1.0, INF: 1.9}, INF, False),
    ],
)
def test_the_sparsest_norm_of_enough_gain_is_advised(gain, norm, trusted):
    assert choose(gain, 2.0) == NormAdvice(norm, gain, trusted)


@pytest.mark.usefixtures("own_random_numbers")
def test_confidence_matters_and_seeds_repeat():
    def gain(**options):
        models = linear(**EVEN), X, Y, linear(**SINGLE)
        return cf.advise_norm(*models, (2,), bounds=(-9, 9), n_iter=5, **options).gain[2]

    assert gain() == gain()
    # P = 0.9 is log(9) / ‖w‖ beyond the plane, which the steeper model reaches sooner.
    assert gain(confidence=0.9) != pytest.approx(gain(), rel=0.01)


@pytest.mark.usefixtures("own_random_numbers")
def test_errors_name_the_argument():
    good = {"model": linear(**EVEN), "X": X, "y": Y, "reference": linear(**EVEN)}
    for options, message in (
        ({"norms": (0.5,)}, "norms must be a sequence of different numbers from 1 to 100, or inf"),
        ({"norms": (2, 2)}, "norms must be a sequence of different numbers"),
        ({"n_iter": 0}, "advise_norm: n_iter must be a whole number at least 1"),
        ({"least_gain": -1}, "least_gain must be a number at least 0, got -1"),
        ({"y": 1 - Y}, "model and reference must have rows of X right, got none of 12"),
    ):
        with pytest.raises(ValueError, match=message):
            cf.advise_norm(**good | options)
