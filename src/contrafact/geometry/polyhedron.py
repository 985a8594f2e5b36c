"""The nearest point of a polyhedron, for many points at once, with a certificate.

    min ‖δ‖    subject to   A (x + δ) ≤ b,   lo ≤ x + δ ≤ hi,        ‖·‖ the l1 or the l2 norm

With c = b − A x and the box moved by x, the dual of either is separable in δ, so that for every y ≥ 0

    g(y) = −⟨c, y⟩ + Σ min over lo ≤ δ ≤ hi of (|δ| + (Aᵀy) δ)     (l1),      (½ δ² + (Aᵀy) δ)     (l2)

is a lower bound, whoever found y. Where ⟨y, A δ⟩ > ⟨y, c⟩ for all δ of the box, no point exists (Farkas).

l2: Newton's method on g, which is concave and piecewise quadratic, and is left after finitely many pieces.
l1: the dual simplex method, from δ = 0 outward: the result is a vertex, so what need not move is exactly 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Norm = Literal["l1", "l2"]

#: Numbers in the constraints of one block of problems: they stay in the cache.
_BLOCK = 2**19
#: Violations up to this are rounding, where rows of A have length 1 and the largest violation is 1.
_TOLERANCE = 1e-12
#: Smaller coefficients of a tableau are taken for 0.
_PIVOT = 1e-9


@dataclass(frozen=True)
class Nearest:
    """One entry per problem.

    delta, value : the displacement and its norm; NaN and inf where no point exists, or none was found.
    lower_bound, y : no feasible displacement is shorter than this, as y proves; where no point exists, inf,
        and y is a Farkas certificate.
    infeasible : where y proves that no point exists.
    """

    delta: Tensor
    value: Tensor
    lower_bound: Tensor
    y: Tensor
    infeasible: Tensor

    @property
    def gap(self) -> Tensor:
        """How much longer than the shortest δ may be at most; 0 where no point exists."""
        return torch.where(self.infeasible, 0, self.value - self.lower_bound)


def nearest_point(
    x: Tensor,
    A: Tensor,
    b: Tensor,
    norm: Norm = "l2",
    bounds: tuple[Tensor | float, Tensor | float] = (-torch.inf, torch.inf),
    frozen: Tensor | None = None,
    which: Tensor | None = None,
) -> Nearest:
    """The shortest δ with A (x + δ) ≤ b and lo ≤ x + δ ≤ hi, for every row of x; in float64.

    Parameters
    ----------
    x : (n, d), the points.
    A, b : (n, m, d) and (n, m), or (m, d) and (m,) for all: the half-spaces.
    norm : "l1" or "l2".
    bounds : (lo, hi), numbers or anything that fits x; may be infinite.
    frozen : boolean, fits x: where δ = 0, whatever the bounds say.
    which : (n,), optional: problem i has the half-spaces A[which[i]], and A holds as many sets as there are;
        b is (n, m) all the same.

    Examples
    --------
    >>> x, A, b = torch.zeros(1, 2), torch.tensor([[-2.0, -1.0]]), torch.tensor([-2.0])
    >>> nearest_point(x, A, b, "l2").delta
    tensor([[0.8000, 0.4000]], dtype=torch.float64)
    >>> nearest_point(x, A, b, "l1", bounds=(0, 0.75)).delta
    tensor([[0.7500, 0.5000]], dtype=torch.float64)
    """
    if norm not in ("l1", "l2"):
        raise ValueError(f"norm must be 'l1' or 'l2', got {norm!r}.")
    x, A = x.double(), A.double()
    n, m, d = len(x), A.shape[-2], x.shape[1]
    # Rows of A of length 1 from here on.
    length = torch.linalg.vector_norm(A, dim=-1)
    empty = length == 0
    length = length + empty
    A = A / length[..., None]
    lo, hi = (torch.as_tensor(bound).to(x).expand(n, d) - x for bound in bounds)
    if frozen is not None:
        lo, hi = lo.masked_fill(frozen, 0), hi.masked_fill(frozen, 0)
    if bool((lo > hi).any()):
        raise ValueError("bounds must be (lo, hi) with lo <= hi everywhere.")
    if A.ndim == 2:
        A, length, empty = A[None], length[None], empty[None]
        which = torch.zeros(n, dtype=torch.long, device=x.device)
    which = torch.arange(n, device=x.device) if which is None else which
    length = length[which]
    b = b.double().expand(n, m) / length
    solve = _l2 if norm == "l2" else _l1
    delta, y = torch.empty_like(x), x.new_empty(n, m)
    bound, none = x.new_empty(n), torch.empty(n, dtype=torch.bool, device=x.device)
    found = torch.empty_like(none)
    size = max(1, _BLOCK // max(1, m * d))
    for rows in torch.arange(n, device=x.device).split(size) if n else ():
        A_, lo_, hi_ = A[which[rows]], lo[rows], hi[rows]
        c = b[rows] - (A_ @ x[rows, :, None])[..., 0]
        # All in units of the longest step that is needed for sure.
        start = x.new_zeros(()).clamp(lo_, hi_)
        unit = torch.maximum(-c.amin(1, keepdim=True), start.abs().amax(1, keepdim=True))
        unit = torch.where(unit > 0, unit, 1)
        c = torch.where((c < 0) & empty[which[rows]], -unit, c)  # 0 ≤ −1e-99 is as false as 0 ≤ −1
        scaled = (A_, c / unit, lo_ / unit, hi_ / unit)
        step, y_, none[rows] = solve(*scaled)
        # A result is checked: where the method failed, the gap is infinite.
        found[rows] = (_apply(A_, step) <= scaled[1] + 1e-9).all(1) & ~none[rows]
        lost = (~found[rows] & ~none[rows]).nonzero().flatten()
        if norm == "l2" and len(
            lost
        ):  # the l1 problem has a solution where this one has, and tells for sure
            _, proof, none[rows[lost]] = _l1(*(value[lost] for value in scaled))
            y_[lost] = torch.where(none[rows[lost], None], proof, y_[lost])
        delta[rows] = torch.where(
            step <= scaled[2], lo_, torch.where(step >= scaled[3], hi_, step * unit)
        )
        bound[rows] = _lower_bound(y_, A_, c, lo_, hi_, norm, unit)
        y[rows] = y_ / length[rows] if norm == "l1" else y_ * unit / length[rows]
    value = torch.linalg.vector_norm(delta, 1 if norm == "l1" else 2, dim=1).masked_fill(
        ~found, torch.inf
    )
    delta = delta.masked_fill(~found[:, None], torch.nan)
    y[none] /= y[none].sum(1, keepdim=True)
    return Nearest(delta, value, bound.masked_fill(none, torch.inf), y, none)


def _times(y: Tensor, A: Tensor) -> Tensor:
    """Aᵀ y for every problem."""
    return (y[:, None] @ A)[:, 0]


def _apply(A: Tensor, delta: Tensor) -> Tensor:
    """A δ for every problem."""
    return (A @ delta[..., None])[..., 0]


def _lower_bound(
    y: Tensor,
    A: Tensor,
    c: Tensor,
    lo: Tensor,
    hi: Tensor,
    norm: Norm,
    unit: Tensor,
) -> Tensor:
    """g(y) as a bound on the norm, less what rounding may have added; y is that of the problem in `unit`s."""
    u = _times(y, A)
    rounding = sum(A.shape[1:]) * torch.finfo(y.dtype).eps
    # Where y is large, Aᵀy is the small difference of large numbers.
    doubt = rounding * _times(y, A.abs())
    if norm == "l2":
        delta = (-u * unit).clamp(lo, hi)
        g = (0.5 * delta**2 + u * unit * delta).sum(1) - (c * y * unit).sum(1)
        unsure = (doubt * unit * delta.abs()).sum(1) + rounding * (c.abs() * y * unit).sum(1)
        return (2 * (g - unsure).clamp_min(0)).sqrt()
    # Where there is no bound, |Aᵀy| may not exceed 1: a hair of rounding is taken off y.
    far = torch.maximum(u.masked_fill(lo > -torch.inf, 0), -u.masked_fill(hi < torch.inf, 0))
    share = 1 / far.amax(1, keepdim=True).clamp_min(1)
    u, y, doubt = u * share, y * share, doubt * share
    ends = torch.stack([lo, lo.new_zeros(()).clamp(lo, hi), hi])
    least, which = torch.where(ends.isfinite(), ends.abs() + u * ends, torch.inf).min(0)
    unsure = (doubt * ends.gather(0, which[None])[0].abs()).sum(1) + rounding * (c.abs() * y).sum(1)
    return (least.sum(1) - (c * y).sum(1) - unsure).clamp_min(0)


def _is_farkas(y: Tensor, A: Tensor, c: Tensor, lo: Tensor, hi: Tensor) -> Tensor:
    """Does y ≥ 0 prove that no δ of the box has A δ ≤ c?"""
    y = y / y.sum(1, keepdim=True).clamp_min(torch.finfo(y.dtype).tiny)
    u = _times(y, A)
    end = torch.where(u > 0, lo, hi)
    open_ = end.isinf()
    least = torch.where(open_, 0, u * end.masked_fill(open_, 0)).sum(1)
    return (u.abs().masked_fill(~open_, 0).amax(1) <= 1e-9) & (least - (c * y).sum(1) > 1e-9)


# --- l2 -----------------------------------------------------------------------------------------------------


def _l2(A: Tensor, c: Tensor, lo: Tensor, hi: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Maximize g over y ≥ 0: with δ(y) = clip(−Aᵀy, lo, hi), its gradient is −s, s = c − A δ(y).

    Each turn takes the most violated row to those with y > 0, goes Newton's way in these, until one of their
    y is 0, and stops on it where g is largest.
    """
    n, m = c.shape
    delta, y = torch.empty_like(lo), torch.empty_like(c)
    infeasible = torch.zeros(n, dtype=torch.bool, device=c.device)
    open_ = torch.arange(n, device=c.device)
    state = (A, c, lo, hi, torch.zeros_like(c), torch.zeros_like(lo))
    for _ in range(100 + 2 * m):
        A, c, lo, hi, y_, u = state
        step = (-u).clamp(lo, hi)
        s = c - _apply(A, step)
        delta[open_], y[open_] = step, y_
        largest = y_.amax(1)
        over = torch.minimum(s, y_).abs().amax(1) <= _TOLERANCE * (1 + 1e-3 * largest)
        if bool((largest > 1e6).any()):
            infeasible[open_] = _is_farkas(y_, A, c, lo, hi)
            over |= infeasible[open_]
        if bool(over.any()):
            left = (~over).nonzero().flatten()
            if len(left) == 0:
                break
            open_ = open_[left]
            A, c, lo, hi, y_, u, step, s = (value[left] for value in (A, c, lo, hi, y_, u, step, s))
        toward = _uphill(A, s, y_, step == -u)
        v = _times(toward, A)
        share = _top(u, v, (toward * c).sum(1, keepdim=True), lo, hi)
        moved = y_ + share * toward
        state = (A, c, lo, hi, torch.where(moved > 1e-14 * y_, moved, 0), u + share * v)
    return delta, y, infeasible


def _uphill(A: Tensor, s: Tensor, y: Tensor, free: Tensor) -> Tensor:
    """−H⁻¹ s, H = A_W diag(free) A_Wᵀ, W the rows with y > 0 and the most violated one; no y below 0."""
    worst, row = s.masked_fill(y > 0, 0).min(1, keepdim=True)
    pressed = y > 0
    moves = pressed.scatter(1, row, pressed.gather(1, row) | (worst < 0))
    mine, W = moves.to(A.dtype).topk(int(moves.sum(1).max()), dim=1)
    A_W = A.gather(1, W[..., None].expand(-1, -1, A.shape[2])) * mine[..., None]
    H = (A_W * free[:, None]) @ A_W.mT
    H.diagonal(dim1=1, dim2=2).add_(1 - mine + 1e-13)  # dependent rows share
    s_W = s.gather(1, W) * mine
    factor, failed = torch.linalg.cholesky_ex(H)
    newton = -torch.cholesky_solve(s_W[..., None], factor)[..., 0]
    way = torch.zeros_like(s).scatter_(1, W, torch.where(failed[:, None] > 0, -s_W, newton))
    way = torch.where(
        pressed | (way > 0), way, 0
    )  # the new row may have to wait: the others lead up as well
    return way * torch.where(way < 0, -y / way, torch.inf).amin(1, keepdim=True).clamp_max(1)


def _top(u: Tensor, v: Tensor, linear: Tensor, lo: Tensor, hi: Tensor) -> Tensor:
    """The share t ≤ 1 where φ'(t) = linear − ⟨v, clip(−(u + t v), lo, hi)⟩, increasing, is 0; else 1."""

    def slope(t: Tensor) -> tuple[Tensor, Tensor]:
        want = -(u + t * v)
        step = want.clamp(lo, hi)
        return linear - (v * step).sum(1, keepdim=True), (v**2 * (want == step)).sum(
            1, keepdim=True
        )

    left, right = torch.zeros_like(linear), torch.ones_like(linear)
    t, close = right, 1e-3 * slope(left)[0].abs()
    for _ in range(60):
        value, curvature = slope(t)
        done = (value.abs() <= close) | ((t == 1) & (value < 0))
        if bool(done.all()):
            break
        left, right = torch.where(value < 0, t, left), torch.where(value > 0, t, right)
        newton = t - value / curvature
        inside = (newton > left) & (newton < right)
        t = torch.where(done, t, torch.where(inside, newton, (left + right) / 2))
    return t


# --- l1 -----------------------------------------------------------------------------------------------------


def _l1(A: Tensor, c: Tensor, lo: Tensor, hi: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The dual simplex method for A δ + s = c, then its last vertex once more, from the numbers given."""
    n, m, d = A.shape
    basic, r_B, x_N, infeasible = _dual_simplex(A, c, lo, hi)
    M = torch.cat([A, torch.eye(m, dtype=A.dtype, device=A.device).expand(n, m, m)], 2)
    M = M.gather(2, basic[:, None].expand(n, m, m))
    factors, pivots, _ = torch.linalg.lu_factor_ex(M)
    x_B = torch.linalg.lu_solve(factors, pivots, (c - _apply(A, x_N[:, :d]))[..., None])[..., 0]
    y = torch.linalg.lu_solve(factors, pivots, -r_B[..., None], adjoint=True)[..., 0]
    y = y.clamp_min(0)
    return x_N.scatter(1, basic, x_B)[:, :d], y, infeasible & _is_farkas(y, A, c, lo, hi)


def _dual_simplex(
    A: Tensor, c: Tensor, lo: Tensor, hi: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Costs are piecewise linear in each of the variables (δ, s): three levels and two knots.

    With r = −[A 1]ᵀ y, a variable sits at its first level while r is below the first knot, at the second
    between them, at the third above; on a knot, as a basic variable, it may lie between two levels.
    δ has levels lo, 0, hi and knots −1, 1; s has levels 0, ∞, ∞ and knots 0, ∞, and is basic at first.

    Each turn takes the basic variable p that is farthest outside its levels. r_p leaves its knot by t, every
    other r moves by t ρ, and variables that pass a knot go to their next level, which brings p nearer; the
    variable q at whose knot p comes home is basic in its place.

    Returns per problem the basic variables (n, m), their r, the others' values (0 for the basic), and where
    p could not come home: there is no solution, and r is the direction that proves it.
    """
    n, m, d = A.shape
    zero, ever = c.new_zeros(n, m), c.new_full((n, m), torch.inf)
    start = lo.new_zeros(()).clamp(lo, hi)
    levels = torch.stack(
        [torch.cat(pair, 1) for pair in ((lo, zero), (start, ever), (hi, ever))], 1
    )
    # Knots that differ by a hair: equal ones would lead to steps of length 0, and in circles.
    knot = 1 + 1e-10 * (torch.arange(d, dtype=A.dtype, device=A.device) * 0.6180339887498949).frac()
    knots = torch.stack([torch.cat([-knot, zero[0]]), torch.cat([knot, ever[0]])])
    N, B = torch.arange(d + m, device=A.device).repeat(n, 1).split([d, m], 1)

    basic, r_B, value = B.clone(), zero.clone(), torch.cat([start, zero], 1)
    infeasible = torch.zeros(n, dtype=torch.bool, device=A.device)
    open_ = torch.arange(n, device=A.device)
    # The tableau x_B = const − T x_N; the knot each of B is on; of N level, r, ways between levels, knots.
    T, x_B, on = A.clone(), c - _apply(A, start), 0 * B
    at, r, ways, kinks = (
        0 * N + 1,
        torch.zeros_like(lo),
        levels[:, :, :d].diff(dim=1),
        knots[:, :d].repeat(n, 1, 1),
    )
    for _ in range(50 + 10 * (m + d)):
        low, high = levels[open_[:, None], on, B], levels[open_[:, None], on + 1, B]
        outside, p = torch.maximum(low - x_B, x_B - high).max(1, keepdim=True)
        over, stuck = outside[:, 0] <= _TOLERANCE, torch.zeros_like(open_, dtype=torch.bool)
        if not bool(over.any()):
            B_p, on_p = B.gather(1, p), on.gather(1, p)
            above = x_B.gather(1, p) > high.gather(1, p)
            side = 2 * above.long() - 1
            row = T[torch.arange(len(T), device=T.device), p[:, 0]]
            rho = side * row
            ahead = torch.stack([(rho > 0) == (at < 1), (rho > 0) == (at < 2)], 1)
            ahead &= (rho.abs() > _PIVOT)[:, None]
            t = torch.where(ahead, (kinks - r[:, None]) / rho[:, None], torch.inf).clamp_min(0)
            gain = torch.where(ahead, rho.abs()[:, None] * ways, 0)
            # p may have a knot of its own ahead.
            knots_p, levels_p = knots[:, B_p[:, 0]].T, levels[open_, :, B_p[:, 0]]
            second = above == (on_p == 0)
            t_p = torch.where(second, knots_p[:, 1:] - knots_p[:, :1], torch.inf)
            gain_p = torch.where(second, levels_p.diff(dim=1).gather(1, 1 - on_p), 0)
            t, order = torch.cat([t.flatten(1), t_p], 1).sort(dim=1)
            nearer = torch.cat([gain.flatten(1), gain_p], 1).gather(1, order).cumsum(1)
            reached = nearer >= (1 - 1e-10) * outside  # the whole way may be just enough
            over = stuck = ~reached.any(1)
        if bool(over.any()):
            who, left = open_[over], (~over).nonzero().flatten()
            basic[who], infeasible[who] = B[over], stuck[over]
            r_B[who] = torch.where(basic[who] < d, 2 * on[over] - 1, 0).to(r_B)
            if bool(stuck.any()):
                r_B[who] = torch.zeros_like(r_B[who]).scatter_(1, p[over], side[over].to(r_B))
            value[who] = torch.zeros_like(value[who]).scatter_(
                1, N[over], levels[who[:, None], at[over], N[over]]
            )
            if len(left) == 0:
                break
            state = (open_, T, B, x_B, on, N, at, r, ways, kinks)
            open_, T, B, x_B, on, N, at, r, ways, kinks = (tensor[left] for tensor in state)
            continue

        last = reached.int().argmax(1, keepdim=True)
        step, index = t.gather(1, last), order.gather(1, last)
        passed = torch.zeros_like(reached).scatter_(
            1, order, torch.arange(2 * d + 1, device=A.device) < last
        )
        passed, passed_p = passed[:, :-1].reshape(-1, 2, d), passed[:, -1:]
        sign = rho.sign()
        x_B = x_B - _apply(T, sign * torch.where(passed, ways, 0).sum(1))
        at = at + (sign * passed.sum(1)).long()
        r = r + step * rho

        # q becomes basic and p stays at its level; where p stops at its own knot, nothing is exchanged.
        swap = index < 2 * d
        q, on_q = index % d, torch.where(swap, index // d, 1 - on_p)
        N_q, at_q, r_q = N.gather(1, q), at.gather(1, q), r.gather(1, q)
        at_p = on_p + above + side * passed_p
        pivot = torch.where(swap, row.gather(1, q), 1)
        column = T.gather(2, q[:, None].expand(-1, m, 1))[..., 0]
        move = torch.where(swap, (x_B.gather(1, p) - levels_p.gather(1, at_p)) / pivot, 0)
        x_q = torch.where(swap, levels[open_[:, None], at_q, N_q] + move, x_B.gather(1, p))
        x_B = (x_B - column * move).scatter_(1, p, x_q)
        row_p = (row / pivot)[:, None]
        column_q = torch.where(swap, (-column / pivot).scatter_(1, p, 1 / pivot), column)
        T.baddbmm_((column * swap)[..., None], row_p, alpha=-1)
        T.scatter_(1, p[..., None].expand(-1, 1, d), row_p)
        T.scatter_(2, q[:, None].expand(-1, m, 1), column_q[..., None])

        B, N = (
            B.scatter(1, p, torch.where(swap, N_q, B_p)),
            N.scatter(1, q, torch.where(swap, B_p, N_q)),
        )
        on = on.scatter(1, p, on_q)
        at = at.scatter(1, q, torch.where(swap, at_p, at_q))
        r = r.scatter(1, q, torch.where(swap, knots_p.gather(1, on_p) + side * step, r_q))
        entry = q[:, None].expand(-1, 2, 1)
        ways_p = levels_p.diff(dim=1).nan_to_num(torch.inf)
        ways.scatter_(
            2, entry, torch.where(swap[..., None], ways_p[..., None], ways.gather(2, entry))
        )
        kinks.scatter_(
            2, entry, torch.where(swap[..., None], knots_p[..., None], kinks.gather(2, entry))
        )
    return basic, r_B, value, infeasible
