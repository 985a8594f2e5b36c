"""Compiled loops of soft DTW and its gradients. Import it only to compute: it imports numba."""

from __future__ import annotations

import math

import numpy as np

from .warping_kernels import Floats, Ints, compiled

#: e^−40 is less than half a unit in the last place of 1
NEGLIGIBLE = 40.0
ROOT = math.sqrt(3)
LOG_ROOT = math.log(3) / 2


@compiled
def exp_negative(t: float) -> float:
    """Compute e^−t to 13 digits, and 0 from t = 40; unlike a call, for many cells at a time."""
    z = (t if t < NEGLIGIBLE else NEGLIGIBLE) * (-1 / 128)
    p = 1 / 39916800 + z * (1 / 479001600)
    p = 1 / 3628800 + z * p
    p = 1 / 362880 + z * p
    p = 1 / 40320 + z * p
    p = 1 / 5040 + z * p
    p = 1 / 720 + z * p
    p = 1 / 120 + z * p
    p = 1 / 24 + z * p
    p = 1 / 6 + z * p
    p = 1 / 2 + z * p
    p = 1 + z * p
    p = 1 + z * p
    p *= p
    p *= p
    p *= p
    p *= p
    p *= p
    p *= p
    p *= p
    return p if t < NEGLIGIBLE else 0.0


@compiled
def log_up_to_three(t: float) -> float:
    """Compute log t for t from 1 to 3: log √3 + 2 artanh((t − √3)/(t + √3))."""
    z = (t - ROOT) / (t + ROOT)
    q = z * z
    p = 1 / 25 + q * (1 / 27)
    p = 1 / 23 + q * p
    p = 1 / 21 + q * p
    p = 1 / 19 + q * p
    p = 1 / 17 + q * p
    p = 1 / 15 + q * p
    p = 1 / 13 + q * p
    p = 1 / 11 + q * p
    p = 1 / 9 + q * p
    p = 1 / 7 + q * p
    p = 1 / 5 + q * p
    p = 1 / 3 + q * p
    p = 1 + q * p
    return LOG_ROOT + 2 * z * p


@compiled
def fill_squares(x: Floats, w: Floats, out: Floats) -> None:
    """Compute out_i = Σ (x_i − w_i)² over the channels."""
    for i in range(len(out)):
        out[i] = (x[0, i] - w[0, i]) ** 2
    for channel in range(1, len(x)):
        for i in range(len(out)):
            out[i] += (x[channel, i] - w[channel, i]) ** 2


@compiled
def fill_exponentials(s: Floats, least: Floats, inverse: float, out: Floats) -> None:
    """Compute out_i = e^−(s_i − least_i)/γ, given 1/γ."""
    for i in range(len(out)):
        out[i] = exp_negative((s[i] - least[i]) * inverse)


@compiled
def soft_steps(
    diagonal: Floats,
    up: Floats,
    left: Floats,
    gamma: float,
    a: Floats,
    b: Floats,
    c: Floats,
    out: Floats,
) -> None:
    """Compute −γ log(e^{−diagonal/γ} + e^{−up/γ} + e^{−left/γ}) for many cells.

    Parameters
    ----------
    diagonal, up, left : arrays of shape (m,)
        s of the three cells before each.
    gamma : float
        γ; for 0 it is the least of the three, the diagonal one where several are.
    a, b, c : arrays of shape (m,)
        Where the shares of the three terms go.
    out : array of shape (m,)
        Where the results go.
    """
    for i in range(len(out)):
        beside = up[i] if up[i] < left[i] else left[i]
        out[i] = diagonal[i] if diagonal[i] <= beside else beside
    if gamma == 0:
        for i in range(len(out)):
            a[i] = 1.0 if diagonal[i] == out[i] else 0.0
            b[i] = (1.0 if up[i] == out[i] else 0.0) * (1 - a[i])
            c[i] = 1 - a[i] - b[i]
        return
    # Short loops over few arrays are compiled to instructions on many cells.
    fill_exponentials(diagonal, out, 1 / gamma, a)
    fill_exponentials(up, out, 1 / gamma, b)
    fill_exponentials(left, out, 1 / gamma, c)
    for i in range(len(out)):
        total = a[i] + b[i] + c[i]
        out[i] -= gamma * log_up_to_three(total)
        part = 1 / total
        a[i] *= part
        b[i] *= part
        c[i] *= part


@compiled
def rows_of(diagonal: int, length: int, band: int) -> tuple[int, int]:
    """Return the first row, and one past the last, of an anti-diagonal's cells in the band."""
    first = max(0, diagonal - length + 1, (diagonal - band + 1) // 2)
    last = min(length - 1, diagonal, (diagonal + band) // 2)
    return first, max(first, last + 1)


@compiled
def soft_dtw(
    x: Floats,
    w: Floats,
    importance: Floats,
    band: int,
    gamma: float,
    shares: Floats,
    costs: Floats,
) -> float:
    """Compute soft DTW of two series along the anti-diagonals.

        s_ij = c_ij − γ log(e^{−s_(i−1)(j−1)/γ} + e^{−s_(i−1)j/γ} + e^{−s_i(j−1)/γ})
        c_ij = ½(importance_i + importance_j) ‖x_i − w_j‖²

    Parameters
    ----------
    x : array of shape (channels, length)
        Series.
    w : array of shape (channels, length)
        Series, reversed in time: so cells of an anti-diagonal are neighbors in both.
    importance : array of shape (2, length)
        Weight of each time step, and the same reversed.
    band : int
        Largest |i − j|.
    gamma : float
        γ, at least 0; 0 is DTW.
    shares : array of shape (D, 3, length + 1)
        Where the shares of the three steps into each cell go, by anti-diagonal and row. D is at
        least 2 length − 1, or 1 to overwrite them.
    costs : array of shape (D, length)
        Where ‖x_i − w_j‖² goes, likewise.

    Returns
    -------
    float
        s of the last cell.
    """
    length = x.shape[1]
    s = np.full((3, length + 1), np.inf)
    s[1, 0] = 0.0
    step = np.empty(length)
    for diagonal in range(2 * length - 1):
        here, last, before = s[diagonal % 3], s[(diagonal + 2) % 3], s[(diagonal + 1) % 3]
        i, end = rows_of(diagonal, length, band)
        j = length - 1 - diagonal + i  # the column, in what is reversed
        m = end - i
        kept = diagonal % len(costs)
        cost = costs[kept, i:end]
        fill_squares(x[:, i:end], w[:, j : j + m], cost)
        soft_steps(
            before[i:end],
            last[i:end],
            last[i + 1 : end + 1],
            gamma,
            shares[kept, 0, i:end],
            shares[kept, 1, i:end],
            shares[kept, 2, i:end],
            step[i:end],
        )
        here[:] = np.inf
        target, steps = here[i + 1 : end + 1], step[i:end]
        of_rows, of_columns = importance[0, i:end], importance[1, j : j + m]
        for k in range(m):
            target[k] = (of_rows[k] + of_columns[k]) / 2 * cost[k] + steps[k]
    value: float = s[(2 * length - 2) % 3, length]
    return value


@compiled
def fill_soft_dtw(
    x: Floats,
    w: Floats,
    first: Ints,
    second: Ints,
    importance: Floats,
    band: int,
    gamma: float,
    out: Floats,
) -> None:
    """Compute out[p] = `soft_dtw` of x[first[p]] and w[second[p]]."""
    length = x.shape[2]
    shares = np.empty((1, 3, length + 1))
    costs = np.empty((1, length))
    for p in range(len(first)):
        a, b = x[first[p]], w[second[p]]
        out[p] = soft_dtw(a, b, importance, band, gamma, shares, costs)


@compiled
def fill_soft_dtw_gradients(
    x: Floats,
    w: Floats,
    first: Ints,
    second: Ints,
    importance: Floats,
    band: int,
    gamma: float,
    out: Floats,
    of_x: Floats,
    of_w: Floats,
    of_importance: Floats,
) -> None:
    """Compute `soft_dtw` of pairs, and its gradients.

    E_ij = ∂s/∂c_ij, the probability that a path passes through (i, j), comes back from the last
    cell: it is the sum of the shares that the three cells after (i, j) have from it.

    Parameters
    ----------
    x : array of shape (n, channels, length)
        Series.
    w : array of shape (m, channels, length)
        Series, reversed in time.
    first, second : int arrays of shape (p,)
        The pairs.
    importance, band, gamma : object
        As in `soft_dtw`.
    out : array of shape (p,)
        Where the results go.
    of_x, of_w : arrays of shape (p, channels, length), zero
        Where the gradients with respect to the two series of each pair go.
    of_importance : array of shape (p, 2, length), zero
        Where those with respect to the importance go, of rows and of reversed columns.
    """
    channels, length = x.shape[1:]
    n_diagonals = 2 * length - 1
    # Shares of cells outside the band stay 0.
    shares = np.zeros((n_diagonals + 2, 3, length + 1))
    costs = np.empty((n_diagonals + 2, length))
    mass = np.empty((3, length + 1))
    for p in range(len(first)):
        a, b = x[first[p]], w[second[p]]
        out[p] = soft_dtw(a, b, importance, band, gamma, shares, costs)
        mass[:] = 0.0
        for diagonal in range(n_diagonals - 1, -1, -1):
            i, end = rows_of(diagonal, length, band)
            j = length - 1 - diagonal + i
            m = end - i
            mass[diagonal % 3] = 0.0
            e = mass[diagonal % 3, i:end]
            next_, after = mass[(diagonal + 1) % 3], mass[(diagonal + 2) % 3]
            one, two = shares[diagonal + 1], shares[diagonal + 2]
            add_products(next_[i + 1 : end + 1], one[1, i + 1 : end + 1], e)
            add_products(next_[i:end], one[2, i:end], e)
            add_products(after[i + 1 : end + 1], two[0, i + 1 : end + 1], e)
            if diagonal == n_diagonals - 1:
                e[:] = 1.0
            cost = costs[diagonal, i:end]
            add_products(e, cost, of_importance[p, 0, i:end])
            add_products(e, cost, of_importance[p, 1, j : j + m])
            scale = cost  # it is not needed any more
            of_rows, of_columns = importance[0, i:end], importance[1, j : j + m]
            for k in range(m):
                scale[k] = e[k] * (of_rows[k] + of_columns[k])
            for channel in range(channels):
                u, v = a[channel, i:end], b[channel, j : j + m]
                add_slopes(scale, u, v, of_x[p, channel, i:end])
                add_slopes(scale, v, u, of_w[p, channel, j : j + m])
        of_importance[p] /= 2


@compiled
def add_products(a: Floats, b: Floats, out: Floats) -> None:
    """Add a_i b_i to out_i."""
    for i in range(len(out)):
        out[i] += a[i] * b[i]


@compiled
def add_slopes(scale: Floats, u: Floats, v: Floats, out: Floats) -> None:
    """Add scale_i (u_i − v_i) to out_i."""
    for i in range(len(out)):
        out[i] += scale[i] * (u[i] - v[i])
