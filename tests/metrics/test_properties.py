"""Every metric, on series, images and rows: rows are scored alone, wherever they stand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.metrics import Reference, evaluate, list_metrics

SETS = ["diversity", "coverage"]
SHAPES = {"series": (2, 12), "univariate": (12,), "image": (1, 5, 5), "row": (6,)}


@pytest.fixture(scope="module", params=SHAPES)
def scored(request, zero):
    """A result with failures, and all that metrics can need."""
    shape = SHAPES[request.param]
    modality = {"univariate": "series"}.get(request.param, request.param)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, *shape))
    flat = X.reshape(40, -1)
    y = np.where(flat[:, :3].sum(1) > 0, "up", "down")
    model, other = (
        LogisticRegression().fit(flat, y),
        RandomForestClassifier(20, random_state=0).fit(flat, y),
    )
    explainer = cf.LineSearch().fit(model, X, y, modality=modality)
    result = explainer.explain(X[:9], k=2)
    X_cf = result.X_cf.copy()
    X_cf[0], X_cf[5] = result.X[0], result.X[5] + 0.01
    broken = result.valid.copy()
    broken[[0, 5]] = False
    status = np.where(broken, result.status, "invalid")
    saliency = rng.random(result.X.reshape(len(result), *explainer.shape_).shape)
    result = replace(
        result,
        X_cf=X_cf,
        valid=broken,
        status=status,
        cf_labels=np.where(broken, result.cf_labels, result.labels),
        info={"saliency": saliency},
    )
    given = {
        "reference": Reference(X, y),
        "explainer": explainer,
        "other_model": other,
        "other_models": [other, model],
        "autoencoder": zero(explainer.shape_) if modality != "row" else None,
    }
    return result, given, evaluate(result, **given)


def same(left, right, rows):
    """Equal up to rounding."""
    right = right.iloc[rows].reset_index(drop=True)
    pd.testing.assert_frame_equal(left, right, rtol=1e-6, atol=1e-9)


def test_every_metric_is_computed_where_it_makes_sense(scored):
    result, _, frame = scored
    table = list_metrics().set_index("name")
    sensible = set(table.index[table["modalities"].str.contains(result.modality)])
    if result.X.shape[1:] == SHAPES["univariate"]:
        sensible.discard("channel_correlation_gap")
    assert set(frame.columns) == {"source", "status", *sensible}
    assert all(reason.startswith("is for") for reason in frame.left_out.values())
    undefined = frame.columns[frame.isna().all()]
    assert not len(undefined)


def test_permuted_rows_permute_the_scores(scored):
    result, given, frame = scored
    order = np.random.default_rng(3).permutation(len(result))
    same(evaluate(result[order], **given), frame, order)


def test_a_subset_scores_as_it_does_among_all(scored):
    result, given, frame = scored
    rows = np.array([0, 4, 5, 11])
    same(evaluate(result[rows], **given).drop(columns=SETS), frame.drop(columns=SETS), rows)


def test_torch_scores_as_numpy(scored):
    result, given, frame = scored
    tensors = replace(result, X=torch.from_numpy(result.X), X_cf=torch.from_numpy(result.X_cf))
    same(evaluate(tensors, **given), frame, np.arange(len(result)))


def test_inputs_are_not_touched(scored):
    result, given, _ = scored
    before = result.X.copy(), result.X_cf.copy(), given["reference"].X.copy()
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    evaluate(result, **given)
    for old, new in zip(before, (result.X, result.X_cf, given["reference"].X), strict=True):
        np.testing.assert_array_equal(old, new)
    np.testing.assert_array_equal(state, np.random.get_state()[1])  # noqa: NPY002
