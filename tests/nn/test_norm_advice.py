"""The norm that is advised, and the radii it rests on."""

import math

import numpy as np
import pytest
import torch
from digit_models import X_TEST, Y_TEST, blobs, digit_model
from torch import nn

from contrafact.nn import advise_norm

INF = math.inf


def linear(w, b=0.0):
    """A model of two classes whose margin is w·x + b."""
    module = nn.Linear(2, 2)
    weights = torch.tensor([[0.0, 0.0], list(w)])
    module.weight.data, module.bias.data = weights, torch.tensor([0.0, b])
    return module


@pytest.mark.usefixtures("own_random_numbers")
def test_the_half_radius_of_a_linear_model_is_its_median_margin():
    X = np.random.default_rng(0).random((99, 2))
    module = linear((3.0, 1.0), -2.0)
    margin = np.abs(X @ [3.0, 1.0] - 2.0)
    y = (X @ [3.0, 1.0] > 2.0).astype(int)
    advice = advise_norm(module, X, y, linear((1.0, 1.0), -1.0), (1, 2, INF), bounds=None)
    duals = {1: 3.0, 2: math.sqrt(10), INF: 4.0}
    for norm, dual in duals.items():
        assert advice.half_radius[norm] == pytest.approx(np.median(margin) / dual, rel=0.03)


@pytest.mark.usefixtures("own_random_numbers")
def test_the_norm_of_the_largest_gain_is_advised():
    """Of equal l2 lengths, even weights withstand l1 better and a single one l∞."""
    X, y = blobs()
    even, single = linear((1.0, 1.0), -1.0), linear((math.sqrt(2), 0.0), -math.sqrt(0.5))
    for model, reference, norm in ((even, single, 1), (single, even, INF)):
        advice = advise_norm(model, X, y, reference, bounds=None)
        assert advice.norm == norm
        for p, gain in advice.gain.items():
            assert gain == advice.half_radius[p] / advice.reference_half_radius[p]


def test_a_model_trained_for_one_norm_is_explained_in_it():
    advice = advise_norm(
        digit_model("linf"), X_TEST[:150], Y_TEST[:150], digit_model("standard"), (1, INF), steps=5
    )
    assert advice.norm == INF and advice.gain[INF] > 1.1


@pytest.mark.usefixtures("own_random_numbers")
def test_errors_name_the_argument():
    X, y = blobs()
    good = {"model": linear((1.0, 1.0), -1.0), "X": X, "y": y}
    good["reference"] = good["model"]
    for options, message in (
        ({"norms": (0.5,)}, "norms must be a sequence of different numbers from 1 to inf"),
        ({"steps": 0}, "advise_norm: steps must be a whole number at least 1"),
        ({"model": linear((1e-3, 1e-3), 1.0), "y": y * 0 + 1}, "model withstands every attack"),
        ({"reference": linear((-1.0, -1.0), 1.0)}, "reference must have rows of X right, got none"),
    ):
        with pytest.raises(ValueError, match=message):
            advise_norm(**good | options)
