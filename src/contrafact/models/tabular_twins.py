"""Differentiable twins of models of tables, in the coordinates of a `TableSpace`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from torch import Tensor

from ..tables import TableSpace
from .classifier import Array
from .twin_tensors import Twin
from .twins import classifier_twin

#: reference rows on which a twin is compared with what it recomputes
CHECKED_ROWS = 64

#: converts rows of a table to the numbers that the last step of a model takes
Preparation = Callable[[Tensor], Array]


def make_tabular_twin(
    space: TableSpace,
    x: Tensor,
    prepare: Preparation | None = None,
    decide: Twin | None = None,
    *,
    model: Any = None,
) -> Twin | None:
    """Recompute a model as a differentiable function of coordinates.

    What stands before the last step (one-hot codes, imputation, scaling, projections) is an affine
    map of the coordinates, A x + b. It is found by changing one coordinate at a time, so that it
    does not matter which transformers do it, and compared with the transformers on reference rows.

    Parameters
    ----------
    space : TableSpace
        The coordinates.
    x : Tensor of shape (n, coordinates)
        Reference rows.
    prepare, decide : functions, optional
        From rows to numbers, and from numbers to logits; default: those of `model`.
    model : estimator, optional
        A scikit-learn estimator or pipeline.

    Returns
    -------
    function of Tensor (n, coordinates), or None
        The logits; None where the map is not affine, or the last step has no twin.
    """
    if prepare is None or decide is None:
        steps = _split(model, space)
        if steps is None:
            return None
        prepare, decide = steps
    some = x[:: max(1, len(x) // CHECKED_ROWS)][:CHECKED_ROWS]
    try:
        expected = torch.as_tensor(prepare(space.codes(some)), dtype=torch.float64)
        A, b = _affine_map(space, some[0], prepare)
    # Transformers may refuse levels and numbers that the schema allows, with any error. Then the
    # model has no twin, and says so itself where it is asked about them.
    except Exception:
        return None
    features = some @ A.T + b
    if not torch.allclose(features, expected, rtol=1e-6, atol=1e-8):
        return None
    last_step = decide

    def twin(x: Tensor) -> Tensor:
        return last_step(x @ A.T + b)

    return twin


def _split(model: Any, space: TableSpace) -> tuple[Preparation, Twin] | None:
    """Split a model into what prepares rows and a last step that has a twin."""
    while type(model) is FrozenEstimator or hasattr(model, "best_estimator_"):
        model = model.estimator if type(model) is FrozenEstimator else model.best_estimator_
    transform: Callable[[Any], Any] | None = None
    if type(model) is Pipeline and len(model.steps) > 1:
        transform = model[:-1].transform
        model = model.steps[-1][1]
    decide = classifier_twin(model)
    if decide is None:
        return None
    if transform is None:
        codes = space.codes(torch.zeros(1, space.n_coordinates, dtype=torch.float64))
        if space.numbers(codes) is None:
            return None

    def prepare(codes: Tensor) -> Array:
        if transform is None:
            return np.asarray(space.numbers(codes))
        made = transform(space.table.with_codes(codes.numpy()).frame_without_index())
        dense = made.toarray() if hasattr(made, "toarray") else made
        return np.asarray(dense, dtype=np.float64)

    return prepare, decide


def _affine_map(space: TableSpace, base: Tensor, prepare: Preparation) -> tuple[Tensor, Tensor]:
    """Find A and b by moving one coordinate at a time away from a row."""
    rows = torch.cat([base[None], space.single_moves(base)])
    codes = space.codes(rows)
    rows = space.embed(codes)
    features = torch.as_tensor(prepare(codes), dtype=torch.float64)
    # features - features[0] = A (rows - base): one equation per coordinate that can move.
    steps = rows[1:] - rows[:1]
    A = torch.linalg.lstsq(steps, features[1:] - features[:1], driver="gelsd").solution.T
    return A, features[0] - A @ base
