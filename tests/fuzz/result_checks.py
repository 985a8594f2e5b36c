"""Independent checks of results: the model is asked again, limits are compared by hand."""

import numpy as np
import torch


def no_complaints(given, result):
    """Accept anything."""
    return []


def plain(values):
    """Return an array or tensor as an array of float64."""
    if isinstance(values, torch.Tensor):
        values = values.detach().double().numpy()
    return np.asarray(values, dtype=np.float64)


def of_known_classes(given, result):
    """Check predicted labels."""
    return [] if set(np.unique(result).tolist()) <= {0, 1} else [f"unknown classes in {result!r}"]


def in_ball(given, result):
    """Check a projection onto a ball and a box, where its arguments are plain numbers."""
    eps, p = given["eps"], given["p"]
    if not isinstance(eps, (int, float)) or not isinstance(p, (int, float)):
        return []
    delta = plain(result) - plain(given["center"])
    size = np.linalg.norm(delta.reshape(len(delta), -1), ord=p, axis=1)
    # The result has the precision of x: its values are rounded by so much.
    rounding = precision(result) * (np.abs(plain(result)).max(initial=1) * delta[:1].size)
    return [] if (size <= eps * (1 + 1e-6) + rounding).all() else [f"norms {size} beyond {eps}"]


def precision(values):
    """Return the distance from 1 to the next number in the dtype of floats."""
    if isinstance(values, torch.Tensor):
        return torch.finfo(values.dtype).eps
    return np.finfo(values.dtype).eps


def same_points_finite(given, result):
    """Check that exactly the points that are finite, and have a finite square, give such values."""
    x = plain(given["x"])
    if not len(x):
        return []
    with np.errstate(over="ignore"):
        points = np.isfinite(x**2).reshape(len(x), -1).all(1)
    values = np.isfinite(plain(result)).reshape(len(x), -1).all(1)
    return [] if (points == values).all() else [f"points {points}, values {values}"]


def check_scores(given, result):
    """Check that there is one row of scores per counterfactual."""
    return [] if len(result) == len(given["result"]) else [f"{len(result)} rows of scores"]


def check_request(given, result):
    """Check a result of `explain` against what the model says and what was asked for."""
    complaints = []
    X, X_cf = plain(result.X), plain(result.X_cf)
    valid = np.asarray(result.valid)
    reached = result.cf_labels == result.target
    failed = result.status == "error"
    if (valid & ~reached).any():
        complaints.append("valid, though the model gives another class")
    if (valid & ~np.isin(result.status, ["valid", "already_target"])).any():
        complaints.append(f"valid with status {result.status}")
    if (~valid & (result.status == "valid")).any():
        complaints.append("status valid, but not valid")
    if not np.isfinite(X_cf[~failed]).all():
        complaints.append("counterfactuals that are no numbers")
    proba = result.cf_proba[~failed]
    if len(proba) and not np.allclose(proba.sum(1), 1, atol=1e-5):
        complaints.append(f"probabilities {proba}")
    k = given.get("k", 1)
    if isinstance(k, (int, np.integer)) and len(result):
        most = np.bincount(np.asarray(result.source)).max()
        if most > k:
            complaints.append(f"{most} counterfactuals for k={k}")
    model = given.get("model")
    if hasattr(model, "coef_"):
        own = model.predict(X_cf.reshape(len(X_cf), -1))
        if (own[~failed] != result.cf_labels[~failed]).any():
            complaints.append("the model's own predict disagrees")
    complaints += check_limits(given, X, X_cf)
    return complaints


def check_limits(given, X, X_cf):
    """Check bounds, frozen values and slopes where they are plain arrays or numbers."""
    complaints = []
    changed = X_cf != X
    rows = changed.reshape(len(changed), -1).any(1)  # the rows that were changed at all
    lower, upper = given.get("lower"), given.get("upper")
    for name, limit, sign in (("lower", lower, 1), ("upper", upper, -1)):
        if isinstance(limit, (int, float)) and not isinstance(limit, bool):
            beyond = sign * (X_cf - limit) < -1e-9
            if beyond[rows].any():
                complaints.append(f"values beyond {name}")
    frozen = given.get("frozen")
    by_step = isinstance(frozen, np.ndarray) and frozen.dtype == bool and frozen.shape == (16,)
    if by_step and changed[..., frozen].any():
        complaints.append("frozen values changed")
    step = given.get("max_step")
    if isinstance(step, (int, float)) and not isinstance(step, bool) and len(X):
        step = float(step)
        steps = np.abs(np.diff(X_cf, axis=-1))
        allowed = np.maximum(step, 0) + 1e-9
        if (steps[rows] > allowed).any() and X.ndim == 3:
            complaints.append("steps beyond max_step")
    return complaints


def check_made_result(given, result):
    """Check that a result that could be made is used as it is."""
    made, words, frame, scores = result
    n = len(made.source)
    right = len(made) == len(frame) == len(scores) == n and "Counterfactuals" in words
    return [] if right else [f"{n} rows, {len(frame)} in the table, {len(scores)} scores"]


def check_rows(given, result):
    """Check that rows were chosen as NumPy chooses them."""
    rows = given["rows"]
    if isinstance(rows, (list, tuple, range)):
        rows = np.array(rows, dtype=int)
    expected = np.arange(3)[rows if isinstance(rows, slice) else np.asarray(rows)]
    return [] if np.size(expected) == len(result) else [f"{len(result)} rows for {rows!r}"]


def check_finite(given, result):
    """Check that a result holds numbers only."""
    return [] if np.isfinite(plain(result)).all() else [f"{result} is not finite"]
