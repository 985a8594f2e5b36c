"""Threads of torch stay as they are, whatever a model does to them, and can be chosen."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

import contrafact as cf

X = np.random.default_rng(0).normal(size=(40, 6))
Y = (X[:, 0] > 0).astype(int)

NUMBA = """
import numpy as np, torch, numba
import contrafact as cf
from numba.np.ufunc.parallel import _launch_threads

class Slow:
    classes_ = np.array([0, 1])
    def predict(self, X):
        _launch_threads()
        # What the start of numba's pool does where it shares the OpenMP of torch.
        torch.set_num_threads(numba.config.NUMBA_NUM_THREADS)
        return (X[:, 0] > 0).astype(int)

X = np.random.default_rng(0).normal(size=(40, 6))
torch.set_num_threads(1)
Slow().predict(X)
print("bare", torch.get_num_threads())
for model in (Slow(), cf.as_classifier(Slow().predict, classes=[0, 1])):
    torch.set_num_threads(1)
    cf.LineSearch().fit(model, X).explain(X[:3])
    print("asked", torch.get_num_threads())
"""


def test_pool_of_numba_does_not_change_the_threads_of_torch():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", NUMBA],
        env={**os.environ, "NUMBA_NUM_THREADS": "3"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.split() == ["bare", "3", "asked", "1", "asked", "1"]


class Watching:
    """A model that notes how many threads there are when it is asked."""

    classes_ = np.array([0, 1])

    def __init__(self):
        self.seen = set()

    def predict(self, X):
        self.seen.add(torch.get_num_threads())
        return (np.asarray(X)[:, 0] > 0).astype(int)


@pytest.mark.parametrize("n", [1, 3])
def test_model_is_asked_with_the_threads_that_were_chosen(n):
    model = Watching()
    classifier = cf.as_classifier(model, n_threads=n)
    before = torch.get_num_threads()
    classifier.predict(X)
    assert model.seen == {n}
    assert torch.get_num_threads() == before


def test_tables_and_series_of_two_axes_are_asked_with_them_too():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    for data, modality in ((frame, "row"), (X, "series")):
        model = Watching()
        predict = lambda rows, model=model: model.predict(np.asarray(rows).reshape(len(rows), -1))  # noqa: E731
        classifier = cf.as_classifier(predict, classes=[0, 1], n_threads=3)
        explainer = cf.NearestUnlike().fit(classifier, data, Y, modality=modality)
        model.seen.clear()
        explainer.explain(data[:3])
        assert model.seen == {3}


def test_wrong_numbers_of_threads_are_refused():
    with pytest.raises(ValueError, match="n_threads must be"):
        cf.as_classifier(Watching(), n_threads=0)
    classifier = cf.as_classifier(Watching())
    with pytest.raises(ValueError, match="n_threads"):
        cf.as_classifier(classifier, n_threads=2)
