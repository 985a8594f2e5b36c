"""Optimizers, schedules, lookahead and running averages."""

import numpy as np
import pytest
import torch

from contrafact.prototypes import GLVQ, LVQ1


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
    np.testing.assert_array_equal(by_name.prototypes_, by_function.prototypes_)


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
