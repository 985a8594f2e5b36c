"""Memory of `explain` grows with the instances and with the reference rows, never with a square."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import contrafact as cf
from contrafact.explainers import baselines, face
from contrafact.guides import proposals

WEIGHTS = np.random.default_rng(0).normal(size=12)
#: twice as much may take twice the memory, and a little for what is rounded up
TWICE = 2.5
METHODS = sorted(set(cf.list_explainers().index) - {"PrototypeCounterfactual"})


class LargestTensor(TorchDispatchMode):
    """Note the largest tensor that any operation returns, which tracemalloc does not see."""

    bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                self.bytes = max(self.bytes, leaf.untyped_storage().nbytes())
        return out


def model(X):
    p = 1 / (1 + np.exp(-X.reshape(len(X), -1) @ WEIGHTS))
    return np.column_stack([1 - p, p])


def instances(n, seed, modality):
    X = np.random.default_rng(seed).normal(size=(n, 12))
    return X if modality == "row" else X[:, None]


def peaks(method, n, m):
    """Return the bytes of the largest tensor, and the most that NumPy and Python held at once."""
    modality = "series" if "series" in method.tags.modalities else "row"
    X = instances(m, 1, modality)
    y = (X.reshape(m, -1) @ WEIGHTS > 0).astype(int)
    explainer = method(**method._get_test_params()[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explainer.fit(model, X, y, modality=modality)
        tracemalloc.start()
        with LargestTensor() as largest:
            explainer.explain(instances(n, 2, modality))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return np.array([largest.bytes, most])


def stays_within(bound, method, n, m):
    """Whether the peaks do, in one of three attempts: threads of other tests may still allocate."""
    return any((peaks(method, n, m) <= bound).all() for _ in range(3))


@pytest.mark.parametrize("name", METHODS)
def test_memory_is_not_quadratic(name):
    method = getattr(cf, name)
    peaks(method, 4, 40)  # what is made once
    n, m = 24, 300
    base = peaks(method, n, m)
    assert stays_within(TWICE * base, method, 2 * n, m)
    assert stays_within(TWICE * base, method, n, 2 * m)


@pytest.mark.parametrize(
    ("name", "module", "bound"),
    [
        ("NearestUnlike", proposals, "MAX_SCORES"),
        ("RandomTarget", baselines, "MAX_DRAWS"),
        ("FACE", face, "MAX_ELEMENTS"),
    ],
)
def test_pairs_of_instance_and_reference_row_are_compared_in_parts(
    name, module, bound, monkeypatch
):
    """Twice of both is four times the pairs; where they exceed the bound, they take no memory."""
    monkeypatch.setattr(module, bound, 2**12)
    method = getattr(cf, name)
    peaks(method, 4, 40)
    base = peaks(method, 100, 400)
    assert stays_within(TWICE * base, method, 200, 800)
