"""Allocation of the budget of an l_p ball to coordinates of limited size.

    max Σ |w| z    subject to   ‖z‖_p ≤ ε,   0 ≤ z ≤ g

In units that depend neither on the scale of w nor on ε, the solution is

    r = |w| / max |w|,   u = min(g / ε, 1),   a = r^(1/(p−1)),   z / ε = min(u, t a),

where t solves Σ min(u, t a)^p = 1. In s = t^p that sum is h(s) = Σ min(G, s A), with G = u^p and
A = a^p: increasing, concave, piecewise linear. h(s) = 1 is solved by Newton's method, or by sorting
the kinks of h where powers underflow.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

#: Below this p, A = r^(p/(p−1)) underflows and the kinks of h spread too far for Newton's method.
_NEWTON_FROM = 1.1
_NEWTON_PASSES = 24
#: For p = 1 this many of the largest weights are looked at, or their share of all; all if too few.
_SELECTED = 64
#: Closer to 1 the norms differ by less than 1e-9 log d, and 1 / (p − 1) has lost its digits.
_TAKEN_FOR_1 = 1 + 1e-9


class Buffers(NamedTuple):
    """Memory of Newton's method, (n, d) each."""

    r: Tensor
    u: Tensor
    a: Tensor
    G: Tensor
    A: Tensor
    kink: Tensor


def allocate(
    w: Tensor,
    g: Tensor,
    eps: Tensor,
    p: float,
    buffers: Buffers,
) -> Tensor:
    """Compute z for 1 ≤ p < ∞.

    Parameters
    ----------
    w : Tensor of shape (n, d)
        The weights.
    g : Tensor of shape (n, d)
        The largest values of z, at most ε.
    eps : Tensor of shape () or (n, 1)
        The budget.
    p : float
        The norm, from 1 and finite.
    buffers : Buffers
        Memory to work in; the result may be part of it.

    Returns
    -------
    Tensor of shape (n, d)
    """
    if p < _TAKEN_FOR_1:
        return _by_selection(w, g, eps, buffers)
    if p < _NEWTON_FROM:
        return allocate_by_sorting(w, g, eps, p)
    z, s = _by_newton(w, g, eps, p, buffers)
    # Up to this s, all that underflowed in A adds less than 1e-9 to h.
    most = 1e290 if s.dtype == torch.float64 else 1e26
    # NaN is in doubt as well, hence the negations.
    if not s.amax().item() < most:
        fits = (s == torch.inf)[:, 0]
        doubt = ~(s <= most)[:, 0] & ~fits
        # Everything is at its limit, and budget is left.
        z[fits] = g[fits]
        z[doubt] = allocate_by_sorting(
            w[doubt],
            g[doubt],
            eps.expand(len(w), 1)[doubt],
            p,
        )
    return z


def allocate_by_sorting(
    w: Tensor,
    g: Tensor,
    eps: Tensor,
    p: float,
) -> Tensor:
    """Compute z for any p < ∞, w and g, as `allocate` does; slower than Newton's method."""
    r, u = scale_free(w.double(), g.double(), eps.double())
    share, _ = scale_free_allocation(r, u, p)
    return torch.minimum(g, share.mul_(eps).to(g.dtype))


def _by_selection(w: Tensor, g: Tensor, eps: Tensor, buffers: Buffers) -> Tensor:
    """Compute z for p = 1, where few of the largest weights take the budget, without a sort."""
    d = w.shape[1]
    k = min(d, max(_SELECTED, d // _SELECTED))
    weight = torch.abs(buffers.r.copy_(w), out=buffers.r)
    value, order = weight.topk(k, dim=1)
    limit = g.gather(1, order)
    after = limit.cumsum(1, dtype=torch.float64)
    left = (eps - (after - limit)).clamp_min_(0)
    z = buffers.u.zero_().scatter_(1, order, torch.minimum(limit, left.to(limit.dtype)))
    short = (after[:, -1:] < eps) & (value[:, -1:] > 0)
    if k < d and bool(short.any()):
        rows = short[:, 0]
        z[rows] = allocate_by_sorting(w[rows], g[rows], eps.expand(len(w), 1)[rows], 1.0)
    return z


def power(base: Tensor, exponent: float, out: Tensor) -> Tensor:
    """Compute base^exponent for base ≥ 0; `out` is another tensor."""
    # torch has fast paths for these; for others exp and log take half the time of pow.
    if exponent in (0.5, 1.0, 2.0):
        return torch.pow(base, exponent, out=out)
    return torch.log(base, out=out).mul_(exponent).exp_()


def _by_newton(
    w: Tensor,
    g: Tensor,
    eps: Tensor,
    p: float,
    buffers: Buffers,
) -> tuple[Tensor, Tensor]:
    """Compute z (n, d) and s (n, 1) by Newton's method on h(s) = 1, from below.

    s ← (1 − Σ_clipped G) / Σ_free A. Once no further coordinate is clipped, s is exact for those
    that are. NaN where that did not happen.
    """
    r, u, a, G, A, kink = buffers
    r.copy_(w).abs_()
    r.div_(r.amax(1, keepdim=True))
    torch.div(g, eps, out=u)
    power(r, 1 / (p - 1), out=a)
    power(u, p - 1, out=G).mul_(u)
    torch.mul(a, r, out=A)
    torch.div(G, A, out=kink)
    # r and u are not needed any more: their memory serves the passes.
    s = newton_root(G, A, kink, scratch=(r, u))
    scale = s.pow(1 / p).mul_(eps)
    z = torch.minimum(g, a.mul_(scale), out=a)
    return z, s


def newton_root(
    G: Tensor,
    A: Tensor,
    kink: Tensor,
    scratch: tuple[Tensor, Tensor],
) -> Tensor:
    """Solve h(s) = 1 for s by Newton's method.

    Parameters
    ----------
    G, A : Tensor of shape (n, d)
        h(s) = Σ min(G, s A).
    kink : Tensor of shape (n, d)
        G / A.
    scratch : tuple of two Tensors of shape (n, d)
        Memory to work in.

    Returns
    -------
    Tensor of shape (n, 1)
        s; inf where all of G is less than 1, NaN where the method did not finish.
    """
    buffer, clipped = scratch
    before = torch.zeros_like(clipped)
    s = A.sum(1, keepdim=True).reciprocal_()
    one = s.new_ones(())
    for _ in range(_NEWTON_PASSES):
        # 0 or 1 as floats: faster than booleans.
        torch.le(kink, s, out=clipped)
        if torch.equal(clipped, before):
            break
        spent = torch.mul(clipped, G, out=buffer).sum(1, keepdim=True)
        slope = torch.addcmul(
            A,
            clipped,
            A,
            value=-1,
            out=buffer,
        ).sum(1, keepdim=True)
        s = torch.sub(one, spent).div_(slope)
        before, clipped = clipped, before
    else:
        unfinished = (clipped != before).any(1)
        s[unfinished] = torch.nan
    return s


def scale_free(w: Tensor, g: Tensor, eps: Tensor) -> tuple[Tensor, Tensor]:
    """Compute r = |w| / max |w| and u = g / ε.

    Parameters
    ----------
    w, g : Tensor of shape (n, d)
        The weights and the limits.
    eps : Tensor of shape () or (n, 1)
        The budget.

    Returns
    -------
    r, u : Tensor of shape (n, d)
        0 in rows where w or ε is 0.
    """
    tiny = torch.finfo(w.dtype).tiny
    magnitude = w.abs()
    r = magnitude / magnitude.amax(1, keepdim=True).clamp_min(tiny)
    u = g / eps.clamp_min(tiny)
    return r, u


def scale_free_allocation(r: Tensor, u: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """Compute z / ε and the price of the budget in scale-free units, by sorting.

    Parameters
    ----------
    r, u : Tensor of shape (n, d)
        As `scale_free` returns them.
    p : float
        The norm, from 1 and finite.

    Returns
    -------
    share : Tensor of shape (n, d)
        z / ε.
    price : Tensor of shape (n, 1)
        The price m = p μ of the budget: r = m share^(p−1) where a coordinate is free.
    """
    if p < _TAKEN_FOR_1:
        return _knapsack(r, u)
    return _by_kinks(r, u, p)


def _knapsack(r: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """Fill in the order of r until the budget of 1 is spent: the fractional knapsack (p = 1)."""
    d = r.shape[1]
    value, order = r.sort(dim=1, descending=True)
    limit = u.gather(1, order)
    after = limit.cumsum(1)
    left = (1 - (after - limit)).clamp_min(0)
    filled = torch.minimum(limit, left)
    share = torch.zeros_like(u).scatter_(1, order, filled)
    # The coordinate that the budget ends in sets the price; 0 if it does not end.
    last = (after < 1).sum(1, keepdim=True)
    marginal = value.gather(1, last.clamp_max(d - 1))
    price = torch.where(last < d, marginal, 0)
    return share, price


def _by_kinks(r: Tensor, u: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """Solve h(s) = 1 by evaluating h at its kinks, in logarithms."""
    log_r = r.log()
    log_G = p * u.log()
    log_A = p / (p - 1) * log_r
    G = u**p
    kink, order = torch.where(
        r > 0,
        log_G - log_A,
        torch.inf,
    ).sort(dim=1)
    G_sorted = G.gather(1, order)
    spent = G_sorted.cumsum(1) - G_sorted
    # The slope of h after each kink: the sum of A from there to the end.
    log_A_sorted = log_A.gather(1, order)
    slope = log_A_sorted.flip(1).logcumsumexp(1).flip(1)
    h = spent + (kink + slope).exp()
    enough = h >= 1
    # From the first kink where h reaches 1, coordinates are free.
    first = enough.int().argmax(1, keepdim=True)
    position = torch.arange(r.shape[1], device=r.device)
    free = torch.zeros_like(enough).scatter_(
        1,
        order,
        position >= first,
    )

    # What is left of the budget fixes the level c of the free coordinates, relative to one of them.
    lead = log_r.gather(1, order.gather(1, first))
    log_a = (log_r - lead) / (p - 1)
    total = torch.where(
        free,
        p * log_a,
        -torch.inf,
    ).logsumexp(1, keepdim=True)
    left = 1 - spent.gather(1, first)
    c = (left.log() - total) / p
    fits = ~enough.any(1, keepdim=True)
    clipped = torch.minimum(u, (log_a + c).exp())
    share = torch.where(fits, u, clipped)
    log_price = lead - (p - 1) * c
    price = torch.where(fits, 0, log_price.exp())
    return torch.where(r > 0, share, 0), price
