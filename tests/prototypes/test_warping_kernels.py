"""The compiled loops of DTW and soft DTW, in one thread and in several."""

import numba
import numpy as np
import pytest
import torch

from contrafact.prototypes.dissimilarity import dtw_distances, nearest_by_dtw
from contrafact.prototypes.soft_dtw import soft_dtw_divergence
from contrafact.prototypes.soft_dtw_kernels import exp_negative, log_up_to_three
from contrafact.prototypes.warping_kernels import dtw, in_threads

RNG = np.random.default_rng(0)
X = RNG.normal(size=(11, 2, 9))
Y = RNG.normal(size=(5, 2, 9))


def everything():
    x, y = (torch.tensor(values, requires_grad=True) for values in (X, Y))
    d = soft_dtw_divergence(x, y, 0.3, 4, torch.ones(9))
    d.square().sum().backward()
    return [
        d.detach(),
        x.grad,
        y.grad,
        dtw_distances(X, None, 0.5),
        nearest_by_dtw(X, Y, 0.5)[0],
    ]


@pytest.mark.parametrize("threads", [2, 3, 40])
def test_threads_do_not_change_a_bit(monkeypatch, threads):
    alone = everything()
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
    for one, other in zip(alone, everything(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n", [0, 1, 5, 7])
def test_every_item_is_in_one_slice(monkeypatch, n):
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 3)
    seen = np.zeros(n, int)

    def work(part):
        seen[part] += 1

    in_threads(n, work)
    assert (seen == 1).all()


def test_abandoning_is_right_about_what_it_abandons():
    exact = dtw(X[0], X[1], 9, np.inf)
    assert dtw(X[0], X[1], 9, exact) == exact
    assert dtw(X[0], X[1], 9, 0.3 * exact) == np.inf


def test_exponential_and_logarithm():
    t = np.linspace(0, 39.9, 500)
    np.testing.assert_allclose([exp_negative(v) for v in t], np.exp(-t), rtol=1e-12)
    assert exp_negative(40.0) == exp_negative(np.inf) == 0
    t = np.linspace(1, 3, 500)
    np.testing.assert_allclose([log_up_to_three(v) for v in t], np.log(t), atol=1e-15)
