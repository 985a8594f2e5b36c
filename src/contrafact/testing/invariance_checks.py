"""Check that the result depends on the request alone, and that explaining changes nothing."""

from __future__ import annotations

import random

import numpy as np
import torch

from ..engine.result import Counterfactuals
from ..explainers.support.explainer import Explainer
from .cases import Case
from .checks import check

#: A float32 network rounds differently in batches of other sizes, and a search that ends at
#: another step by that ends within this distance.
TOLERANCE = 2e-3


def assert_same(one: Counterfactuals, other: Counterfactuals, problem: str) -> None:
    """Assert that two results agree but for rounding.

    Parameters
    ----------
    one, other : Counterfactuals
        Results of equal length.
    problem : str
        What is wrong if they do not, for the message.
    """
    assert np.array_equal(one.status, other.status), (
        f"{problem}: status {one.status} became {other.status}"
    )
    np.testing.assert_allclose(
        other.X_cf,
        one.X_cf,
        atol=TOLERANCE,
        rtol=TOLERANCE,
        err_msg=problem,
    )


@check("every_model")
def check_batch_equals_loop(explainer: Explainer, case: Case) -> None:
    """Check that instances explained one by one get the same result as in a batch."""
    together = case.explain(explainer, random_state=3)
    for i in range(0, len(case.X), 2):  # one of every class
        alone = explainer.explain(case.X[i : i + 1], random_state=3)
        assert_same(together[i], alone, f"row {i} alone differs")


@check("two_models")
def check_order_does_not_matter(explainer: Explainer, case: Case) -> None:
    """Check that instances in another order get the same results."""
    forward = case.explain(explainer, random_state=3)
    backward = explainer.explain(case.X[::-1], random_state=3)
    assert_same(forward, backward[::-1], "rows in reverse order differ")


@check("network")
def check_internal_batch_does_not_matter(explainer: Explainer, case: Case) -> None:
    """Check that the classifier's batch size has no influence on fit or result."""
    usual = case.explain(explainer, random_state=3)
    classifier = case.classifier(batch_size=2)
    small = case.fit(explainer, classifier).explain(case.X, random_state=3)
    assert_same(usual, small, "another batch_size differs")


@check("every_model")
def check_same_seed_same_result(explainer: Explainer, case: Case) -> None:
    """Check that the same request with the same seed gives the same arrays, bit by bit."""
    # Both by the same explainer: a result that is shared was made by another copy of it, which may
    # have been asked as often as this one.
    case.fit(explainer)
    first = explainer.explain(case.X, random_state=5)
    second = explainer.explain(case.X, random_state=5)
    np.testing.assert_array_equal(
        first.X_cf,
        second.X_cf,
        err_msg="the same seed gives another result",
    )


@check("one_model")
def check_inputs_untouched(explainer: Explainer, case: Case) -> None:
    """Check that the caller's arrays are not written to."""
    X = case.X.copy()
    X_reference = case.X_reference.copy()
    y_reference = case.y_reference.copy()
    explainer.fit(case.classifier(), X_reference, y_reference, modality=case.modality)
    explainer.explain(X, refine=True)
    assert np.array_equal(X, case.X), "X was written to"
    assert np.array_equal(X_reference, case.X_reference), "the reference was written to"
    assert np.array_equal(y_reference, case.y_reference), "y was written to"


@check("network")
def check_model_untouched(explainer: Explainer, case: Case) -> None:
    """Check that a network keeps its weights, its mode and its lack of gradients."""
    if case.model_kind != "torch":
        return
    module = case.model
    weights = {name: value.clone() for name, value in module.state_dict().items()}
    modes = [part.training for part in module.modules()]
    case.fit(explainer, case.classifier()).explain(case.X, refine=True)
    assert [part.training for part in module.modules()] == modes, "train/eval mode was changed"
    for name, value in module.state_dict().items():
        assert torch.equal(value, weights[name]), f"weights {name} were changed"
    left = [name for name, parameter in module.named_parameters() if parameter.grad is not None]
    assert not left, f"gradients were left on the model's weights {left}"


@check("two_models")
def check_global_random_state_untouched(explainer: Explainer, case: Case) -> None:
    """Check that fitting and explaining draw no global random numbers."""
    python_before = random.getstate()
    numpy_before = str(np.random.get_state())  # noqa: NPY002
    torch_before = torch.get_rng_state()
    case.fit(explainer, case.classifier()).explain(case.X, random_state=1)
    numpy_after = str(np.random.get_state())  # noqa: NPY002
    assert random.getstate() == python_before, "Python's random state moved"
    assert numpy_after == numpy_before, "NumPy's random state moved"
    assert torch.equal(torch.get_rng_state(), torch_before), "torch's random state moved"
