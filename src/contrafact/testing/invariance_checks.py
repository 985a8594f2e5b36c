"""Checks that the answer depends on the question alone, and that asking changes nothing."""

from __future__ import annotations

import random

import numpy as np
import torch

from ..engine.result import Counterfactuals
from ..explainers.support.explainer import Explainer
from .cases import Case

# A float32 network rounds differently in batches of other sizes; searches end within a step of each other.
TOLERANCE = 2e-3


def same(one: Counterfactuals, other: Counterfactuals, why: str) -> None:
    assert np.array_equal(one.status, other.status), (
        f"{why}: status {one.status} became {other.status}"
    )
    np.testing.assert_allclose(other.X_cf, one.X_cf, atol=TOLERANCE, rtol=TOLERANCE, err_msg=why)


def check_batch_equals_loop(explainer: Explainer, case: Case) -> None:
    case.fitted(explainer)
    together = case.answer(explainer, random_state=3)
    for i in range(0, len(case.X), 2):  # one of every class
        same(
            together[i],
            explainer.explain(case.X[i : i + 1], random_state=3),
            f"row {i} alone differs",
        )


def check_order_does_not_matter(explainer: Explainer, case: Case) -> None:
    case.fitted(explainer)
    forward = case.answer(explainer, random_state=3)
    same(
        forward,
        explainer.explain(case.X[::-1], random_state=3)[::-1],
        "rows in reverse order differ",
    )


def check_internal_batch_does_not_matter(explainer: Explainer, case: Case) -> None:
    usual = case.answer(explainer, random_state=3)
    small = case.fitted(explainer, case.classifier(batch_size=2)).explain(case.X, random_state=3)
    same(usual, small, "another batch_size differs")


def check_same_seed_same_result(explainer: Explainer, case: Case) -> None:
    case.fitted(explainer)
    first, second = (explainer.explain(case.X, random_state=5) for _ in range(2))
    np.testing.assert_array_equal(
        first.X_cf, second.X_cf, err_msg="the same seed gives another result"
    )


def check_inputs_untouched(explainer: Explainer, case: Case) -> None:
    X, reference, y = case.X.copy(), case.X_reference.copy(), case.y_reference.copy()
    explainer.fit(case.classifier(), reference, y, modality=case.modality).explain(X, refine=True)
    for name, now, before in (
        ("X", X, case.X),
        ("the reference", reference, case.X_reference),
        ("y", y, case.y_reference),
    ):
        assert np.array_equal(now, before), f"{name} was written to"


def check_model_untouched(explainer: Explainer, case: Case) -> None:
    if case.model_kind != "torch":
        return
    module = case.model
    weights = {name: value.clone() for name, value in module.state_dict().items()}
    modes = [part.training for part in module.modules()]
    case.fitted(explainer, case.classifier()).explain(case.X, refine=True)
    assert [part.training for part in module.modules()] == modes, "train/eval mode was changed"
    for name, value in module.state_dict().items():
        assert torch.equal(value, weights[name]), f"weights {name} were changed"
    assert all(p.grad is None for p in module.parameters()), (
        "gradients were left on the model's weights"
    )


def check_global_random_state_untouched(explainer: Explainer, case: Case) -> None:
    before = random.getstate(), str(np.random.get_state()), torch.get_rng_state()  # noqa: NPY002
    case.fitted(explainer, case.classifier()).explain(case.X, random_state=1)
    assert random.getstate() == before[0], "Python's random state moved"
    assert str(np.random.get_state()) == before[1], "NumPy's random state moved"  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[2]), "torch's random state moved"
