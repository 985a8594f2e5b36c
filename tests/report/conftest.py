"""Results written by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from contrafact.engine.result import Counterfactuals


@pytest.fixture
def make():
    """Build a result: classes follow the probabilities, the second class is the target."""

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
def silent(series):
    """The series, had the model not answered for the counterfactuals."""
    return replace(
        series,
        cf_proba=np.full((3, 2), np.nan),
        valid=np.zeros(3, dtype=bool),
        status=np.repeat("error", 3),
    )


@pytest.fixture
def series(make):
    """Two channels of twenty steps: reached in three stretches, failed, already there."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 2, 20))
    X_cf = X.copy()
    X_cf[0, 1, [3, 4, 5, 9]] += 1
    X_cf[0, 0, 19] -= 1
    X_cf[1, 0, 5:15] += 1
    return make(
        X,
        X_cf,
        [[0.97, 0.03], [0.75, 0.25], [0.125, 0.875]],
        [[0.375, 0.625], [0.5625, 0.4375], [0.125, 0.875]],
        classes=("gun", "point"),
        status=np.array(["valid", "infeasible", "already_target"]),
        message=np.array(["", "not reached with a frozen window; best P('point') = 0.44", ""]),
        source=np.array([12, 14, 17]),
        provenance={"method": "CELS", "seed": 0},
    )
