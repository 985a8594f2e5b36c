"""Optimizers, schedules, lookahead and running averages."""

import numpy as np
import pytest
import torch

from contrafact.prototypes import GLVQ, GMLVQ, LVQ1


@pytest.mark.parametrize(
    ("optimizer", "same_as"),
    [
        (torch.optim.SGD([torch.zeros(1)], lr=0.2, momentum=0.5), None),
        (torch.optim.Adam([torch.zeros(1)], lr=0.05), "adam"),
        (torch.optim.SGD([torch.zeros(1)], lr=0.05), "sgd"),
        (torch.optim.AdamW, "adamw"),
        (torch.optim.NAdam, "nadam"),
        (torch.optim.RMSprop, "rmsprop"),
    ],
)
def test_optimizers_by_name_class_and_instance(optimizer, same_as, blobs):
    found = GLVQ(optimizer=optimizer, max_iter=5, random_state=0).fit(*blobs).prototypes_
    named = {
        name: GLVQ(optimizer=name, max_iter=5, random_state=0).fit(*blobs).prototypes_
        for name in ("adam", "adamw", "nadam", "rmsprop", "sgd")
    }
    assert [name for name, there in named.items() if np.array_equal(there, found)] == [same_as] * (
        same_as is not None
    )


@pytest.mark.parametrize(
    ("scheduler", "same"),
    [
        ("cosine", lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)),
        (
            "plateau",
            lambda optimizer: torch.optim.lr_scheduler.ReduceLROnPlateau(
                optimizer, factor=0.5, patience=5
            ),
        ),
        (None, lambda optimizer: torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)),
    ],
)
def test_schedulers(scheduler, same, blobs):
    by_name, by_function = (
        LVQ1(2, scheduler=choice, learning_rate=0.5, max_iter=20, random_state=0).fit(*blobs)
        for choice in (scheduler, same)
    )
    # torch computes its cosine from step to step, which rounds differently.
    np.testing.assert_allclose(by_name.prototypes_, by_function.prototypes_, rtol=1e-12)


#: name, arguments, and the learning rates of the first epochs of 8, worked out by hand
RATES = {
    "cosine": ({"T_max": 4}, [1, (1 + 0.5**0.5) / 2, 0.5, (1 - 0.5**0.5) / 2]),
    "exponential": ({"gamma": 0.5}, [1, 0.5, 0.25, 0.125]),
    "exponential, default": ({}, [0.01 ** (t / 8) for t in range(8)]),
    "polynomial": ({"power": 3.0, "total_iters": 4}, [1, 0.75**3, 0.5**3, 0.25**3, 0]),
    "linear": ({"total_iters": 4, "end_factor": 0.5}, [1, 0.875, 0.75, 0.625, 0.5, 0.5]),
    "linear, default": ({}, [1 - t / 8 for t in range(8)]),
    "piecewise": ({"milestones": [2, 3], "gamma": 0.5}, [1, 1, 0.5, 0.25, 0.25]),
    "piecewise, default": ({}, [1, 1, 1, 1, 0.1, 0.1, 0.01, 0.01]),
    "restarts": ({"T_0": 2, "T_mult": 2}, [1, 0.5, 1, (1 + 0.5**0.5) / 2, 0.5]),
    "warmup_constant": ({"warmup": 4, "start_factor": 0.2}, [0.2, 0.4, 0.6, 0.8, 1, 1, 1]),
    "warmup_cosine": ({"warmup": 4, "start_factor": 0.2}, [0.2, 0.4, 0.6, 0.8, 1, 0.853553, 0.5]),
    "warmup_exponential": ({"warmup": 2, "gamma": 0.5}, [0.1, 0.55, 1, 0.5, 0.25]),
}


@pytest.mark.parametrize("name", ["cosine", "restarts", "warmup_cosine"])
def test_every_group_keeps_its_share_of_the_step(name, blobs):
    steps = []

    class Noting(torch.optim.SGD):
        def step(self, closure=None):
            steps.append([group["lr"] for group in self.param_groups])

    GMLVQ(
        optimizer=Noting,
        learning_rate=0.05,
        metric_learning_rate=0.01,
        scheduler=name,
        scheduler_options={"eta_min": 0.02},
        max_iter=12,
    ).fit(*blobs)
    prototypes, metric = np.transpose(steps)
    np.testing.assert_allclose(metric, 0.01 * prototypes)
    assert len(set(prototypes)) >= 3 and prototypes.max() <= 0.05 + 1e-12
    if name == "cosine":
        t = np.arange(12) / 12
        np.testing.assert_allclose(prototypes, 0.02 + 0.03 * (1 + np.cos(np.pi * t)) / 2)


@pytest.mark.parametrize("name", RATES)
def test_schedules_by_name_and_with_arguments(name, blobs):
    """Seen from outside: steps of an optimizer that notes its learning rate."""
    rates = []

    class Noting(torch.optim.SGD):
        def step(self, closure=None):
            rates.append(self.param_groups[0]["lr"])

    options, expected = RATES[name]
    GLVQ(
        optimizer=Noting,
        learning_rate=1.0,
        scheduler=name.split(",")[0],
        scheduler_options=options or None,
        max_iter=8,
    ).fit(*blobs)
    np.testing.assert_allclose(rates[: len(expected)], expected, atol=1e-6)


def test_plateau_takes_arguments(blobs):
    options = {"learning_rate": 3.0, "random_state": 0, "scheduler": "plateau", "max_iter": 40}
    plain, other = (
        GLVQ(2, scheduler_options=given, **options).fit(*blobs).loss_history_
        for given in (None, {"factor": 0.1, "patience": 0})
    )
    assert not np.array_equal(plain, other)


def test_plateau_halves_the_step(blobs):
    """At a huge step the loss stops falling: from then on plateau differs from no schedule."""
    options = {"learning_rate": 3.0, "random_state": 0}
    curves = [
        GLVQ(2, scheduler=s, max_iter=40, **options).fit(*blobs).loss_history_
        for s in (None, "plateau")
    ]
    differ = np.flatnonzero(curves[0] != curves[1])
    assert 6 < differ[0] < 40


def test_ema_is_the_average_of_the_weights(blobs):
    """Prototypes after every epoch, averaged by hand."""
    X, y = blobs
    options = {"optimizer": "sgd", "learning_rate": 0.5, "scheduler": None}
    path = [GLVQ(max_iter=n, **options).fit(X, y).prototypes_ for n in range(1, 6)]
    mean = path[0]
    for place in path[1:]:
        mean = 0.7 * mean + 0.3 * place
    found = GLVQ(max_iter=5, ema=0.7, **options).fit(X, y).prototypes_
    np.testing.assert_allclose(found, mean, rtol=1e-9)


def test_lookahead_goes_back_half_of_the_way(blobs):
    X, y = blobs
    start = X[:3], y[:3]
    options = {"optimizer": "sgd", "learning_rate": 0.5, "scheduler": None, "max_iter": 3}
    plain = GLVQ(**options).fit(X, y, initial_prototypes=start).prototypes_
    found = GLVQ(lookahead=3, **options).fit(X, y, initial_prototypes=start).prototypes_
    np.testing.assert_allclose(found, (X[:3] + plain) / 2, rtol=1e-9)


def test_lookahead_as_a_dictionary(blobs):
    """Every third step, a quarter of the way is kept; the default period is six steps."""
    X, y = blobs
    start = X[:3], y[:3]
    options = {"optimizer": "sgd", "learning_rate": 0.5, "scheduler": None, "max_iter": 3}
    plain = GLVQ(**options).fit(X, y, initial_prototypes=start).prototypes_
    given = {"sync_period": 3, "slow_step_size": 0.25}
    found = GLVQ(lookahead=given, **options).fit(X, y, initial_prototypes=start).prototypes_
    np.testing.assert_allclose(found, 0.75 * X[:3] + 0.25 * plain, rtol=1e-9)
    options["max_iter"] = 6
    by_number = GLVQ(lookahead=6, **options).fit(X, y, initial_prototypes=start).prototypes_
    by_default = GLVQ(lookahead={}, **options).fit(X, y, initial_prototypes=start).prototypes_
    np.testing.assert_allclose(by_default, by_number, rtol=1e-12)
