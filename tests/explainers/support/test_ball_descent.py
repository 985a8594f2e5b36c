"""The smallest ball: which runs search for it, and how near they come to what is proved."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import contrafact as cf
from contrafact.explainers.support import ball_descent
from contrafact.explainers.support.ball_descent import STARTS, choose_runs
from contrafact.prototypes import GMLVQ

X, Y = load_digits(return_X_y=True)
ROWS = np.random.default_rng(1).permutation(X)[:150]
BOX = {"lower": 0, "upper": 16}


def test_the_optimizers_asked_for_take_part():
    assert {run.optimizer for run in choose_runs("apgd", 1.5, 6)} == {"apgd"}
    assert {run.optimizer for run in choose_runs("auto", 1.5, 8)} == {"afw", "apgd", "apgd-l2"}


@pytest.mark.parametrize("p", [1, 1.5, 2, np.inf])
def test_every_guide_has_one_run(p):
    for count in range(1, len(STARTS) + 1):
        runs = choose_runs("auto", p, count)
        guides = [run.number for run in runs if run.start == "guide"]
        assert guides == list(range(len(guides)))
        assert len(set(runs)) == count


@pytest.fixture(scope="module")
def digits():
    """A model, targets, and the length of the smallest change of each row, proved."""
    model = GMLVQ(n_prototypes=3, random_state=0).fit(X, Y)
    exact = cf.PrototypeCounterfactual("l1").fit(model, X, Y)
    result = exact.explain(ROWS, constraints=cf.Constraints(**BOX))
    assert result.info["certified"].all()
    return model, result.target, result.info["distance"]


def ratios(digits):
    """Length of SVCE's change over the smallest."""
    model, target, smallest = digits
    method = cf.SVCE(norm=1, bounds=(0, 16)).fit(model, X, Y)
    result = method.explain(ROWS, target, constraints=cf.Constraints(**BOX))
    assert result.valid.all()
    return np.abs(result.delta).sum(1) / smallest


def test_within_a_tenth_of_the_smallest_change_in_l1(digits):
    ratio = ratios(digits)
    assert np.median(ratio) <= 1.01 and ratio.max() <= 1.1


def test_without_starts_at_guides_some_rows_end_in_the_wrong_place(digits, monkeypatch):
    monkeypatch.setattr(ball_descent, "STARTS_L1", ("gaussian", "gaussian", "line", "line") * 2)
    assert ratios(digits).max() > 1.1
