"""What searches copy from the model's device to the host, counted on a device that is pretended.

Tensors of the model's device are marked, and so is all that is computed from them. Whatever would
make the host wait for a GPU is counted: copies, single numbers, masks whose entries are counted.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from torch import Tensor

import contrafact as cf
from contrafact.models.torch_adapter import TorchClassifier
from contrafact.nn.networks import seeded

COPIES = {"cpu", "numpy", "tolist", "item", "nonzero"}
NUMBERS = {"__bool__", "__int__", "__float__", "__index__", "is_nonzero"}
COUNT: Counter[str] = Counter()


class OnDevice(Tensor):
    """A tensor that counts as one on a device other than the host."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in COPIES | NUMBERS or (name in ("__getitem__", "__setitem__") and by_mask(args)):
            COUNT[name] += 1
        out = super().__torch_function__(func, types, args, kwargs or {})
        return out.as_subclass(Tensor) if name == "cpu" else out


def by_mask(args):
    index = args[1] if isinstance(args[1], tuple) else (args[1],)
    return any(isinstance(part, OnDevice) and part.dtype == torch.bool for part in index)


class OnDeviceClassifier(TorchClassifier):
    """A module whose rows and answers are on the pretended device."""

    def as_input(self, x):
        return super().as_input(x).as_subclass(OnDevice)


@pytest.fixture(autouse=True)
def new_count():
    COUNT.clear()


def classifier():
    with seeded(0):
        module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(24, 2))
    return OnDeviceClassifier(module.eval(), [0, 1], None, None)


def series(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 1, 24)).astype(np.float32)


def copies(explainer, X, **request):
    COUNT.clear()
    result = explainer.explain(X, **request)
    return COUNT.total(), result


def test_pretended_device_is_noticed():
    x = torch.ones(3).as_subclass(OnDevice)
    assert isinstance(2 * x + torch.ones(3), OnDevice) and COUNT.total() == 0
    assert bool((x > 0).all()) and type(x.cpu()) is Tensor and x[x > 0].sum().item() == 3
    assert COUNT == {"__bool__": 1, "cpu": 1, "__getitem__": 1, "item": 1}


@pytest.mark.parametrize(
    ("make", "modality"),
    [
        # No task is done before the last step.
        (lambda steps: cf.CELS(max_iter=steps, patience=1000, tau=1.0), "series"),
        (lambda steps: cf.Wachter(max_iter=steps, max_rounds=1), "row"),
    ],
)
def test_gradient_steps_wait_for_the_device_twice(make, modality):
    """Which iterates are the best so far, and whether a task leaves."""
    model = classifier()
    X = series(30) if modality == "series" else series(30)[:, 0]
    counts = []
    for steps in (5, 25):
        explainer = make(steps).fit(model, X, modality=modality)
        counts.append(copies(explainer, X[:6], confidence=0.999999)[0])
    assert (counts[1] - counts[0]) / 20 <= 2, counts


def test_steps_in_a_ball_wait_a_few_times_more():
    """For the best points of the step itself, and for the exact maximization in the ball."""
    X = series(30)
    explainer = cf.SVCE(n_iter=25, restarts=1).fit(classifier(), X)
    total, _ = copies(explainer, X[:6], confidence=0.999999)
    steps = COUNT["__bool__"]  # one in each step
    assert steps >= 80 and total / steps <= 12, COUNT


def test_a_question_of_a_search_waits_three_times():
    """Whether the candidates are finite, and the answers; which are accepted."""
    model = classifier()
    X = series(30)
    counts = []
    for steps in (5, 15):
        explainer = cf.NativeGuide(mode="blend", steps=steps).fit(model, X)
        counts.append(copies(explainer, X[:6])[0])
    assert (counts[1] - counts[0]) / 10 <= 3, counts


def test_results_are_those_of_the_host():
    X = series(30)
    on_device = classifier()
    on_host = cf.as_classifier(on_device.module, classes=[0, 1])
    for method in (cf.CELS(max_iter=20), cf.LineSearch(), cf.NativeGuide()):
        there = method.fit(on_device, X).explain(X[:5])
        here = method.fit(on_host, X).explain(X[:5])
        assert np.array_equal(np.asarray(there.X_cf), np.asarray(here.X_cf))
