"""Results written by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contrafact.engine.result import Counterfactuals
from contrafact.nn.autoencoders import Autoencoder


@pytest.fixture
def make():
    """Build a result: classes follow the probabilities; the second class is wanted by default."""

    def build(
        X, X_cf, proba, cf_proba, *, classes=("a", "b"), target=None, modality="series", **other
    ):
        proba, cf_proba, classes = np.array(proba), np.array(cf_proba), np.array(classes)
        n = len(proba)
        cf_labels = classes[np.nan_to_num(cf_proba).argmax(1)]
        target = np.repeat(classes[1], n) if target is None else np.array(target)
        silent = np.isnan(proba).any(1) | np.isnan(cf_proba).any(1)
        valid = (cf_labels == target) & ~silent
        status = np.where(valid, "valid", np.where(silent, "error", "invalid"))
        fields = {
            "source": np.arange(n),
            "labels": classes[np.nan_to_num(proba).argmax(1)],
            "valid": valid,
            "status": status,
            "message": np.repeat("", n),
            "seconds": np.full(n, 0.5),
            "calls": np.arange(n) + 7,
        }
        fields |= other
        return Counterfactuals(
            X=X,
            X_cf=X_cf,
            proba=proba,
            cf_proba=cf_proba,
            cf_labels=cf_labels,
            target=target,
            classes=classes,
            modality=modality,
            **fields,
        )

    return build


@pytest.fixture
def three(make):
    """Three series of two channels and four steps: reached, changed in vain, unchanged."""
    X = np.zeros((3, 2, 4), dtype=np.float32)
    X_cf = X.copy()
    X_cf[0] = [[3, 0, 0, -4], [0, 0, 0, 0]]
    X_cf[1] = [[0, 1, 1, 0], [1, 0, 1, 1]]
    return make(
        X,
        X_cf,
        [[0.75, 0.25], [0.875, 0.125], [1.0, 0.0]],
        [[0.25, 0.75], [0.625, 0.375], [1.0, 0.0]],
    )


class Zero(Autoencoder):
    """Rebuilds nothing: what is left of x is x."""

    def __init__(self, shape):
        super().__init__(shape, 1)
        self.weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))

    def _encode(self, x):
        return x.flatten(1)[:, :1]

    def _decode(self, z):
        return torch.zeros(len(z), *self.shape, dtype=z.dtype)


@pytest.fixture(scope="session")
def zero():
    """Makes an autoencoder that rebuilds nothing, for instances of a shape."""
    return Zero


@pytest.fixture
def changes(make):
    """Rows x → x' judged by a function of rows that gives P("b"); "b" is wanted."""

    def build(p_b, X, X_cf, **other):
        def model(rows):
            p = np.clip(p_b(rows.reshape(len(rows), -1)).astype(float), 0, 1)
            return np.stack([1 - p, p], 1)

        X, X_cf = np.asarray(X, dtype=float), np.asarray(X_cf, dtype=float)
        return make(X, X_cf, model(X), model(X_cf), **{"modality": "row", **other}), model

    return build
