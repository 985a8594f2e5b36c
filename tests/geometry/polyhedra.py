"""Random polyhedra for the tests of nearest points, and a reference solver."""

import math

import cvxpy as cp
import numpy as np
import torch

from contrafact.geometry import nearest_point

INF = math.inf
NORMS = ["l1", "l2"]
KINDS = ["plain", "box", "frozen", "integers", "dependent", "scales"]


def problems(kind, n=8, d=9, m=12, seed=0):
    """x, A, b, lo, hi, frozen; most have a solution, some of them only just."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, m, d))
    x = rng.normal(size=(n, d))
    z = rng.normal(size=(n, d))
    lo = np.full((n, d), -INF)
    hi = np.full((n, d), INF)
    frozen = np.zeros((n, d), bool)
    if kind == "integers":  # ties everywhere
        A = rng.integers(-2, 3, A.shape) * 1.0
        x = rng.integers(-3, 4, x.shape) * 1.0
        z = np.round(2 * z)
    if kind == "dependent":
        A[:, m // 2 :], A[:, ::3] = A[:, : m - m // 2], 2 * A[:, ::3]
        A[:, :, 1] = A[:, :, 0]
        x[:, 1] = x[:, 0]
    if kind == "scales":
        A = A * 10.0 ** rng.integers(-6, 7, (n, m, 1))
        x = 1e4 * x
        z = 1e4 * z
    if kind in ("box", "integers"):
        lo = np.where(rng.random((n, d)) < 0.8, np.minimum(z, -0.5), -INF)
        hi = np.where(rng.random((n, d)) < 0.8, np.maximum(z, 0.4), INF)
    if kind == "frozen":
        frozen = rng.random((n, d)) < 0.4
    room = rng.choice([0.0, 0.0, 1.0, -0.1], (n, m)) * np.abs(A).max(2)
    return x, A, np.einsum("nmd,nd->nm", A, z) + room, lo, hi, frozen


def solve(norm, x, A, b, lo=-INF, hi=INF, frozen=None, **more):
    x, A, b, lo, hi = (torch.as_tensor(v, dtype=torch.float64) for v in (x, A, b, lo, hi))
    return nearest_point(
        x, A, b, norm, (lo, hi), None if frozen is None else torch.as_tensor(frozen), **more
    )


def by_cvxpy(norm, x, A, b, lo, hi, frozen):
    """Solve one problem on a common scale: the smallest norm, inf where there is no solution."""
    lo, hi = np.where(frozen, x, lo), np.where(frozen, x, hi)
    length = np.linalg.norm(A, axis=1)
    A, b, unit = A / length[:, None], b / length, np.abs(x).max()
    delta = cp.Variable(len(x))
    limits = [A @ delta <= (b - A @ x) / unit]
    for i in range(len(x)):
        limits += [delta[i] >= (lo[i] - x[i]) / unit] if lo[i] > -INF else []
        limits += [delta[i] <= (hi[i] - x[i]) / unit] if hi[i] < INF else []
    objective = cp.norm(delta, 1) if norm == "l1" else cp.norm(delta, 2)
    problem = cp.Problem(cp.Minimize(objective), limits)
    problem.solve(solver="CLARABEL")
    return INF if problem.status.startswith("infeasible") else unit * problem.value


def check_kept(found, x, A, b, lo, hi, frozen):
    """Every solution keeps every limit."""
    ok = found.value.isfinite().numpy()
    x_new = (x + found.delta.numpy())[ok]
    scale = np.abs(A[ok]).max(2) * (
        1 + np.abs(x[ok]).max(1, keepdims=True) + np.abs(x_new).max(1, keepdims=True)
    )
    assert (np.einsum("nmd,nd->nm", A[ok], x_new) <= b[ok] + 1e-9 * scale).all()
    free = ~frozen[ok]
    slack = 1e-14 * (1 + np.abs(x[ok]))
    assert ((x_new >= lo[ok] - slack) & (x_new <= hi[ok] + slack) | ~free).all()
    assert (found.delta.numpy()[ok][frozen[ok]] == 0).all()
