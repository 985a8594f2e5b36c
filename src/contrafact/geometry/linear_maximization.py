"""Where is a linear function largest, inside an l_p ball and a box? Exact, for every p in [1, ∞].

    max ⟨w, δ⟩    subject to   ‖δ‖_p ≤ ε,   lo ≤ x + δ ≤ hi

(Boreiko, Augustin, Croce, Berens, Hein, GCPR 2022). With the slack g (hi − x where w > 0, x − lo where w < 0,
0 where w = 0) the solution is δ = sign(w) z; in units that depend neither on the scale of w nor on ε,

    r = |w| / max |w|,   u = min(g / ε, 1),   a = r^(1/(p−1)),   z / ε = min(u, t a),   Σ min(u, t a)^p = 1.

In s = t^p the last sum is h(s) = Σ min(G, s A), G = u^p, A = a^p: increasing, concave, piecewise linear.
"""

from __future__ import annotations

import math

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .arguments import (
    Array,
    Kind,
    as_box,
    as_given,
    as_mask,
    as_norm,
    as_radius,
    as_rows,
    block_rows,
    blocks,
)

#: Below this p, A = r^(p/(p−1)) underflows and the kinks of h spread over too many decades for Newton.
_NEWTON_FROM = 1.1
_NEWTON_PASSES = 24


def lmo(
    w: Kind,
    x: Array,
    eps: ArrayLike | Tensor,
    p: float,
    bounds: tuple[ArrayLike | Tensor, ArrayLike | Tensor] = (0, 1),
    mask: ArrayLike | Tensor | None = None,
) -> Kind:
    """The displacement δ that maximizes ⟨w, δ⟩ with ‖δ‖_p ≤ ε and lo ≤ x + δ ≤ hi, for every row.

    Parameters
    ----------
    w, x : (n, …) floats, NumPy or torch; finite. Where x is outside its bounds, it does not move outward.
    eps : ε, one number or one per row.
    p : from 1 to inf.
    bounds : (lo, hi), each a number, one per channel (axis 1), or an array that fits an instance; may be inf.
    mask : boolean, True = may change; fits one instance or the batch.

    Returns
    -------
    δ, as w is: not the point x + δ. 0 where w = 0.

    Examples
    --------
    >>> w, x = torch.tensor([[4.0, -2.0, 1.0]]), torch.tensor([[0.5, 0.5, 0.5]])
    >>> lmo(w, x, eps=0.3, p=1.0)
    tensor([[0.3000, -0.0000, 0.0000]])
    >>> lmo(w, x, eps=0.7, p=2)
    tensor([[ 0.5000, -0.4382,  0.2191]])
    """
    p = as_norm(p)
    rows = as_rows(w, "w")
    at = as_rows(x, "x", rows)
    lo, hi = as_box(bounds, w.shape, rows)
    if mask is not None:
        rows = rows * as_mask(mask, w.shape, rows)
    return as_given(linear_maximum(rows, at, as_radius(eps, rows), p, lo, hi), w)


def duality_gap(
    w: Array,
    x: Array,
    delta: Array,
    eps: ArrayLike | Tensor,
    p: float,
    bounds: tuple[ArrayLike | Tensor, ArrayLike | Tensor] = (0, 1),
    mask: ArrayLike | Tensor | None = None,
) -> Array:
    """What fraction of the largest ⟨w, δ⟩ a feasible δ misses at most, for every row: a certificate.

        D(μ) = Σ max over 0 ≤ z ≤ g of (|w| z − μ z^p)  +  μ ε^p   ≥   ⟨w, δ⟩     for every μ ≥ 0

    so (D − ⟨w, δ⟩) / D bounds the loss whoever found δ and whichever μ is tried (p = ∞: D = Σ |w| min(g, ε)).
    0 for the optimum, 1 for δ = 0, negative only by as much as δ leaves the ball or the box. Where D = 0
    nothing can be gained, and the gap is 0. Computed in float64; parameters as in `lmo`.

    Examples
    --------
    >>> w, x = torch.tensor([[4.0, -2.0]]), torch.tensor([[0.5, 0.5]])
    >>> delta = lmo(w, x, eps=0.4, p=1.5)
    >>> bool(duality_gap(w, x, delta, eps=0.4, p=1.5) < 2e-7)
    True
    >>> duality_gap(w, x, 0 * delta, eps=0.4, p=1.5)
    tensor([1.], dtype=torch.float64)
    """
    p = as_norm(p)
    rows = as_rows(w, "w")
    at, moved = as_rows(x, "x", rows), as_rows(delta, "delta", rows)
    lo, hi = as_box(bounds, w.shape, rows)
    if mask is not None:
        rows = rows * as_mask(mask, w.shape, rows)
    parts = [_gap(p, *block) for block in blocks(rows, at, moved, as_radius(eps, rows), lo, hi)]
    gap = torch.cat(parts) if parts else rows.new_zeros(len(rows), dtype=torch.float64)
    return gap if isinstance(w, Tensor) else gap.numpy()


def linear_maximum(
    w: Tensor,
    x: Tensor,
    eps: Tensor,
    p: float,
    lo: Tensor,
    hi: Tensor,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """`lmo` on flat rows (n, d), in memory that serves one block of rows after the other.

    In float32 it takes two thirds of the time, and is exact to a few units of the last place of float32.
    """
    delta = torch.empty_like(w, memory_format=torch.contiguous_format)
    with torch.inference_mode():  # less work per operation; delta itself is an ordinary tensor
        memory = w.new_empty(8, min(len(w), block_rows(w)), w.shape[1], dtype=dtype)
        for out, *block in blocks(delta, w, x, eps, lo, hi):
            parts = list(memory[:, : len(out)].unbind())
            sign, g = _slack(*block, memory=parts)
            z = g if p == math.inf else _solve(block[0], g, block[2], p, parts[2:])
            out.copy_(sign.mul_(z))
    return delta


def _slack(*block: Tensor, memory: list[Tensor]) -> tuple[Tensor, Tensor]:
    """sign(w) and min(g, ε), in the first two of `memory`: no coordinate can move further than ε."""
    w, x, eps, lo, hi = block
    sign, g, down, up = memory[:4]
    torch.sign(g.copy_(w), out=sign)
    torch.sub(hi, g.copy_(x), out=up)
    torch.sub(lo, g, out=down)
    # Arithmetic instead of torch.where, which is about 10 times slower on masks without pattern.
    torch.mul(sign, eps, out=g).clamp_(min=down, max=up).mul_(sign).relu_()
    return sign, g


def _solve(w: Tensor, g: Tensor, eps: Tensor, p: float, memory: list[Tensor]) -> Tensor:
    """z for 1 ≤ p < ∞."""
    if p < _NEWTON_FROM:
        return _by_sorting(w, g, eps, p)
    z, s = _by_newton(w, g, eps, p, memory)
    # Up to this s, all that underflowed in A adds less than 1e-9 to h. NaN is in doubt as well.
    most = 1e290 if s.dtype == torch.float64 else 1e26
    if not s.amax().item() < most:
        fits, doubt = (s == torch.inf)[:, 0], ~(s <= most)[:, 0]
        z[fits] = g[fits]  # everything is clipped, and budget is left
        doubt &= ~fits
        z[doubt] = _by_sorting(w[doubt], g[doubt], eps.expand(len(w), 1)[doubt], p)
    return z


def _by_sorting(w: Tensor, g: Tensor, eps: Tensor, p: float) -> Tensor:
    """z for any p < ∞, w and g: slower than Newton."""
    scaled = _scale_free(w.double(), g.double(), eps.double())
    return torch.minimum(g, _maximizer(*scaled, p)[0].mul_(eps).to(g.dtype))


def _power(base: Tensor, exponent: float, out: Tensor) -> Tensor:
    """base^exponent for base ≥ 0."""
    if exponent in (0.5, 1.0, 2.0):  # torch knows these; for others exp and log take half its time
        return torch.pow(base, exponent, out=out)
    return torch.log(base, out=out).mul_(exponent).exp_()


def _by_newton(
    w: Tensor, g: Tensor, eps: Tensor, p: float, memory: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """z and s by Newton's method on h(s) = 1, from below: s ← (1 − Σ_clipped G) / Σ_free A.

    Once no further coordinate is clipped, s is exact for those that are. NaN where it did not come to that.
    """
    r, u, a, G, A, kink = memory
    r.copy_(w).abs_()
    r.div_(r.amax(1, keepdim=True))
    torch.div(g, eps, out=u)
    _power(r, 1 / (p - 1), out=a)
    _power(u, p - 1, out=G).mul_(u)
    torch.mul(a, r, out=A)
    torch.div(G, A, out=kink)
    s = A.sum(1, keepdim=True).reciprocal_()
    one, clipped, before, buffer = s.new_ones(()), u, torch.zeros_like(u), r
    for _ in range(_NEWTON_PASSES):
        torch.le(kink, s, out=clipped)  # 0 or 1 as floats: faster than booleans
        if torch.equal(clipped, before):
            break
        spent = torch.mul(clipped, G, out=buffer).sum(1, keepdim=True)
        slope = torch.addcmul(A, clipped, A, value=-1, out=buffer).sum(1, keepdim=True)
        s = torch.sub(one, spent).div_(slope)
        before, clipped = clipped, before
    else:
        s[(clipped != before).any(1)] = torch.nan
    return torch.minimum(g, a.mul_(s.pow(1 / p).mul_(eps)), out=a), s


def _scale_free(w: Tensor, g: Tensor, eps: Tensor) -> tuple[Tensor, Tensor]:
    """r and u; 0 in rows where w or ε is 0."""
    tiny = torch.finfo(w.dtype).tiny
    magnitude = w.abs()
    return magnitude / magnitude.amax(1, keepdim=True).clamp_min(tiny), g / eps.clamp_min(tiny)


def _maximizer(r: Tensor, u: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """z / ε and the price m = p μ of the budget, in scale-free units: r = m (z / ε)^(p−1) where free."""
    if (
        p < 1 + 1e-9
    ):  # closer to 1 the norms differ by less than 1e-9 log d, and 1 / (p − 1) has lost its digits
        # The fractional knapsack: fill in the order of r, until the budget of 1 is spent.
        value, order = r.sort(dim=1, descending=True)
        room = u.gather(1, order)
        after = room.cumsum(1)
        z = torch.minimum(room, (1 - (after - room)).clamp_min(0))
        last = (after < 1).sum(1, keepdim=True)
        price = torch.where(last < r.shape[1], value.gather(1, last.clamp_max(r.shape[1] - 1)), 0)
        return torch.zeros_like(u).scatter_(1, order, z), price
    log_r, log_G, G = r.log(), p * u.log(), u**p
    log_A = p / (p - 1) * log_r
    kink, order = torch.where(r > 0, log_G - log_A, torch.inf).sort(dim=1)
    spent = G.gather(1, order).cumsum(1) - G.gather(1, order)
    slope = log_A.gather(1, order).flip(1).logcumsumexp(1).flip(1)
    enough = spent + (kink + slope).exp() >= 1  # h at every kink
    first = enough.int().argmax(1, keepdim=True)
    free = torch.zeros_like(enough).scatter_(
        1, order, torch.arange(r.shape[1], device=r.device) >= first
    )
    # What is left of the budget fixes the level c of the free coordinates, relative to one of them.
    lead = log_r.gather(1, order.gather(1, first))
    log_a = (log_r - lead) / (p - 1)
    total = torch.where(free, p * log_a, -torch.inf).logsumexp(1, keepdim=True)
    c = ((1 - spent.gather(1, first)).log() - total) / p
    fits = ~enough.any(1, keepdim=True)
    z = torch.where(fits, u, torch.minimum(u, (log_a + c).exp()))
    price = torch.where(fits, 0, (lead - (p - 1) * c).exp())
    return torch.where(r > 0, z, 0), price


def _gap(p: float, *block: Tensor) -> Tensor:
    w, x, delta, eps, lo, hi = block
    w, delta = w.double(), delta.double()
    sign, g = _slack(w, x, eps, lo, hi, memory=list(w.new_empty(4, *w.shape)))
    r, u = _scale_free(w, g, eps)
    if p == math.inf:
        bound = (r * u).sum(1)
    else:
        z, price = _maximizer(r, u, p)
        bound = (r * z - price / p * z**p).sum(1) + price[:, 0] / p
    _, moved = _scale_free(w, delta * sign, eps)
    return torch.where(bound > 0, 1 - (r * moved).sum(1) / bound, 0)
