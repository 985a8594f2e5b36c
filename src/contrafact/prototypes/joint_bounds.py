"""How far an instance is from where one prototype is nearer than several, each with its metric.

    minimize ‖δ‖²   subject to   q_i(δ) = δᵀQ_iδ + 2g_iᵀδ + r_i ≤ 0   for all i

For multipliers λ ≥ 0 with H = I + Σ λ_i Q_i ≻ 0, the least value of the Lagrangian,

    θ(λ) = min over δ of ‖δ‖² + Σ λ_i q_i(δ),     at δ(λ) = −H⁻¹ Σ λ_i g_i,

bounds the minimum from below. θ is concave, its gradient is q(δ(λ)) and its Hessian −2 VᵀH⁻¹V with
the columns V_i = Q_iδ + g_i. It is maximized by projected Newton steps. Where δ(λ) keeps all
conditions at the maximum, it is the solution: the bound has no gap there. Elsewhere the maximum
lies where H is singular, and is approached by maxima of

    θ(λ) + μ (log det H + Σ log λ_i)      with falling μ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

#: Newton steps of a problem, for each μ
MAX_STEPS = 15
#: μ, as shares of ‖δ‖², where H turns singular; how much of λ is kept to step back from there, and
#: how much of the way to λ_i = 0 a step may go
BARRIERS = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
STEP_BACK = 0.9
NEARER = 0.95
#: how often a step is made shorter, without and with μ, and by which factor
MAX_CUTS = (4, 10)
SHRINK = 4
#: a problem is solved when a step promises to raise θ by less than this share: δ(λ) has the square
#: root of it as its error
LEAST_GAIN = 1e-24
#: share of the promised gain that a step has to make, and of θ that may be lost to rounding
SUFFICIENT = 1e-4
ROUNDING = 1e-14
#: numbers in the matrices of the problems that are worked on at once
MAX_NUMBERS = 2**23
#: least pivot of H that counts as positive: θ has lost its digits below
LEAST_PIVOT = 1e-9


@dataclass(frozen=True)
class Strips:
    """Conditions a (vᵀδ)² + 2b vᵀδ + c ≤ 0 on single directions, m of each problem.

    l ≤ vᵀδ ≤ u is the strip a = 1, b = −(l + u)/2, c = lu; vᵀδ ≤ u is a = 0, b = ½, c = −u. One
    that is all 0 asks for nothing.

    Parameters
    ----------
    v : Tensor of float64, shape (n, m, D)
        The directions.
    a, b, c : Tensor of float64, shape (n, m)
        The coefficients.
    """

    v: Tensor
    a: Tensor
    b: Tensor
    c: Tensor

    @classmethod
    def between(cls, v: Tensor, low: Tensor, high: Tensor) -> Strips:
        """Make the strips low ≤ vᵀδ ≤ high."""
        return cls(v, torch.ones_like(low), -(low + high) / 2, low * high)

    def take(self, which: Tensor) -> Strips:
        """Return the strips of some problems."""
        return Strips(self.v[which], self.a[which], self.b[which], self.c[which])

    def join(self, other: Strips) -> Strips:
        """Return these strips and those of another, problem by problem."""
        return Strips(
            torch.cat([self.v, other.v], 1),
            torch.cat([self.a, other.a], 1),
            torch.cat([self.b, other.b], 1),
            torch.cat([self.c, other.c], 1),
        )


@dataclass(frozen=True)
class Conditions:
    """Ask that x + δ is nearer to w_j than to other prototypes, and within strips.

    q_k = d_j − d_k, so Q_k = Λ_j − Λ_k.

    Parameters
    ----------
    metric : Tensor of float64, shape (K, D, D)
        Λ of each prototype.
    j : Tensor of int, shape (n,)
        The prototype to be nearest to.
    g : Tensor of float64, shape (n, K, D)
        Half the gradients of q_k at 0; 0 for frozen coordinates.
    r : Tensor of float64, shape (n, K)
        q_k at 0.
    rival : Tensor of bool, shape (n, K)
        Which prototypes are to be farther than w_j.
    free : Tensor of float64, shape (n, D)
        1 where a coordinate may move, 0 where it is frozen.
    strips : Strips
        Further conditions.
    """

    metric: Tensor
    j: Tensor
    g: Tensor
    r: Tensor
    rival: Tensor
    free: Tensor
    strips: Strips

    def __len__(self) -> int:
        return len(self.j)

    def take(self, which: Tensor) -> Conditions:
        """Return the conditions of some problems."""
        return Conditions(
            self.metric,
            self.j[which],
            self.g[which],
            self.r[which],
            self.rival[which],
            self.free[which],
            self.strips.take(which),
        )

    def within(self, strips: Strips) -> Conditions:
        """Return the conditions with further strips."""
        return replace(self, strips=self.strips.join(strips))

    @property
    def is_asked(self) -> Tensor:
        """Which multipliers may differ from 0, (n, K + m)."""
        strips = (self.strips.a != 0) | (self.strips.b != 0)
        return torch.cat([self.rival, strips], 1)

    def zero(self) -> Tensor:
        """Return multipliers that are 0, (n, K + m)."""
        return self.r.new_zeros(len(self), self.r.shape[1] + self.strips.c.shape[1])

    def small(self) -> Tensor:
        """Return multipliers above 0 whose curvatures add up to 1/20 at most, (n, K + m)."""
        size = self.metric.diagonal(dim1=1, dim2=2).sum(1).max()
        zero = self.zero()
        return zero + self.is_asked / (20 * zero.shape[1] * size)

    def curvature(self, multipliers: Tensor) -> Tensor:
        """Compute H = I + Σ λ_i Q_i, (n, D, D)."""
        lam, nu = self._parts(multipliers)
        total = lam.sum(1)[:, None, None] * self.metric[self.j]
        total = total - torch.einsum("nk,kde->nde", lam, self.metric)
        total = total * self.free[:, :, None] * self.free[:, None, :]
        weighted = (nu * self.strips.a)[..., None] * self.strips.v
        total = total + self.strips.v.transpose(1, 2) @ weighted
        return total + torch.eye(total.shape[1], dtype=total.dtype)

    def slope(self, multipliers: Tensor) -> Tensor:
        """Compute Σ λ_i g_i, (n, D)."""
        lam, nu = self._parts(multipliers)
        pull = torch.einsum("nm,nmd->nd", nu * self.strips.b, self.strips.v)
        return pull + torch.einsum("nk,nkd->nd", lam, self.g)

    def scaled_curvatures(self, root: Tensor) -> Tensor:
        """Compute L⁻¹ Q_i L⁻ᵀ with the Cholesky root L of H, (n, K + m, D, D)."""
        pairs = self.metric[self.j][:, None] - self.metric
        pairs = pairs * self.free[:, None, :, None] * self.free[:, None, None, :]
        pairs = pairs * self.rival[..., None, None]
        wide = root[:, None]
        half = torch.linalg.solve_triangular(wide, pairs, upper=False)
        pairs = torch.linalg.solve_triangular(wide, half.transpose(2, 3), upper=False)
        v = torch.linalg.solve_triangular(root, self.strips.v.transpose(1, 2), upper=False)
        v = v.transpose(1, 2)
        strips = self.strips.a[..., None, None] * v[..., :, None] * v[..., None, :]
        return torch.cat([pairs, strips], 1)

    def values(self, delta: Tensor) -> tuple[Tensor, Tensor]:
        """Compute q (n, K + m) at displacements, and V (n, K + m, D)."""
        image = torch.einsum("kde,ne->nkd", self.metric, delta)
        own = image[torch.arange(len(self)), self.j]
        curved = (own[:, None] - image) * self.free[:, None]
        curved = curved * self.rival[..., None]
        q = torch.einsum("nkd,nd->nk", curved + 2 * self.g, delta) + self.r
        along = torch.einsum("nmd,nd->nm", self.strips.v, delta)
        s = self.strips.a * along**2 + 2 * self.strips.b * along + self.strips.c
        steep = (self.strips.a * along + self.strips.b)[..., None] * self.strips.v
        return torch.cat([q, s], 1), torch.cat([curved + self.g, steep], 1)

    def _parts(self, multipliers: Tensor) -> tuple[Tensor, Tensor]:
        n_pairs = self.r.shape[1]
        return multipliers[:, :n_pairs], multipliers[:, n_pairs:]


@dataclass
class DualPoint:
    """Multipliers and what they prove.

    Parameters
    ----------
    multipliers : Tensor of float64, shape (n, K + m)
        λ.
    root : Tensor of float64, shape (n, D, D)
        The Cholesky root of H.
    delta : Tensor of float64, shape (n, D)
        δ(λ).
    value : Tensor of float64, shape (n,)
        θ(λ); −inf where H is not positive definite.
    """

    multipliers: Tensor
    root: Tensor
    delta: Tensor
    value: Tensor

    @classmethod
    def at(cls, conditions: Conditions, multipliers: Tensor) -> DualPoint:
        """Compute δ and θ for some multipliers."""
        H = conditions.curvature(multipliers)
        root, failed = torch.linalg.cholesky_ex(H)
        pivot = root.diagonal(dim1=1, dim2=2).square().amin(1)
        slope = conditions.slope(multipliers)
        delta = -torch.cholesky_solve(slope[..., None], root)[..., 0]
        q, _ = conditions.values(delta)
        # Errors of δ enter this form of θ in the second order only.
        value = delta.square().sum(1) + (multipliers * q).sum(1)
        proves = (failed == 0) & (pivot > LEAST_PIVOT) & value.isfinite()
        return cls(multipliers, root, delta, torch.where(proves, value, -torch.inf))

    @classmethod
    def concat(cls, parts: list[DualPoint]) -> DualPoint:
        """Join the points of several sets of problems."""
        names = ("multipliers", "root", "delta", "value")
        return cls(*(torch.cat([getattr(part, name) for part in parts]) for name in names))

    def merit(self, asked: Tensor, mu: Tensor) -> Tensor:
        """Return θ + μ (log det H + Σ log λ_i), over the conditions that are asked."""
        log_det = 2 * self.root.diagonal(dim1=1, dim2=2).abs().log().sum(1)
        logs = torch.where(asked, self.multipliers, 1.0).log().sum(1)
        return self.value + torch.where(mu > 0, mu * (log_det + logs), 0.0)

    def take(self, rows: Tensor) -> DualPoint:
        """Return the points of some problems."""
        return DualPoint(*(values[rows] for values in vars(self).values()))

    def put(self, rows: Tensor, other: DualPoint, which: Tensor) -> None:
        """Take over some points of another."""
        for name, values in vars(self).items():
            values[rows] = getattr(other, name)[which]


def maximize_dual(
    conditions: Conditions,
    enough: Tensor,
    start: Tensor | None = None,
) -> DualPoint:
    """Maximize θ for every problem.

    Parameters
    ----------
    conditions : Conditions
        The problems.
    enough : Tensor of shape (n,)
        Values of θ that need no raising.
    start : Tensor of shape (n, K + m), optional
        Multipliers with H ≻ 0 to start from; default: 0.

    Returns
    -------
    DualPoint
        The best multipliers found; each is a proof, whether or not it is the maximum.
    """
    start = conditions.zero() if start is None else start
    n_features = conditions.free.shape[1]
    at_once = max(1, MAX_NUMBERS // (start.shape[1] * n_features**2))
    if len(conditions) <= at_once:
        return _maximize(conditions, enough, start)
    parts = [
        _maximize(conditions.take(rows), enough[rows], start[rows])
        for rows in torch.arange(len(conditions)).split(at_once)
    ]
    return DualPoint.concat(parts)


def _maximize(conditions: Conditions, enough: Tensor, start: Tensor) -> DualPoint:
    """Maximize θ, then follow the maxima of θ + μ log det H where H turns singular."""
    best = DualPoint.at(conditions, start.clone())
    everything = torch.arange(len(conditions))
    jammed = everything[_ascend(conditions, best, everything, enough)]
    jammed = jammed[best.value[jammed] < enough[jammed]]
    inner = conditions.take(jammed)
    point = DualPoint.at(inner, STEP_BACK * best.multipliers[jammed] + inner.small())
    size = torch.maximum(best.value[jammed], _linear_estimate(inner))
    for share in BARRIERS:
        left = (best.value[jammed] < enough[jammed]).nonzero().flatten()
        if len(left) == 0:
            break
        _ascend(inner, point, left, enough[jammed], share * size)
        higher = point.value > best.value[jammed]
        best.put(jammed[higher], point, higher)
    return best


def _linear_estimate(conditions: Conditions) -> Tensor:
    """Estimate ‖δ‖² by the pair that is farthest from holding, as if it were linear: (r/2‖g‖)²."""
    steep = 4 * conditions.g.square().sum(2)
    tiny = torch.finfo(steep.dtype).tiny
    square = conditions.r.clamp_min(0) ** 2 / steep.clamp_min(tiny)
    return torch.where(steep > 0, square, 0.0).amax(1).clamp_min(tiny)


def _ascend(
    conditions: Conditions,
    best: DualPoint,
    rows: Tensor,
    enough: Tensor,
    mu: Tensor | None = None,
) -> Tensor:
    """Raise θ + μ log det H of some rows by Newton steps; returns where they ended early, (n,)."""
    n = len(conditions)
    mu = torch.zeros(n, dtype=torch.float64) if mu is None else mu
    jammed = torch.zeros(n, dtype=torch.bool)
    jammed[rows] = True
    for _ in range(MAX_STEPS):
        rows = rows[best.value[rows] < enough[rows]]
        if len(rows) == 0:
            break
        rises, solved = _newton_step(conditions.take(rows), best, rows, mu[rows])
        jammed[rows[solved]] = False
        rows = rows[rises & ~solved]
    return jammed


def _newton_step(
    conditions: Conditions,
    best: DualPoint,
    rows: Tensor,
    mu: Tensor,
) -> tuple[Tensor, Tensor]:
    """Take one Newton step; returns where the value rises, and where it is the largest.

    Without μ, multipliers that would fall below 0 are set to 0; with μ, steps end before.
    """
    now = best.take(rows)
    lam = now.multipliers
    asked = conditions.is_asked
    value = now.merit(asked, mu)
    gradient, V = conditions.values(now.delta)
    W = torch.linalg.solve_triangular(now.root, V.transpose(1, 2), upper=False)
    B = 2 * W.transpose(1, 2) @ W
    has_barrier = bool((mu > 0).any())
    moves = asked
    if has_barrier:
        M = conditions.scaled_curvatures(now.root)
        push = torch.where(asked, mu[:, None] / lam, 0.0)
        gradient = gradient + mu[:, None] * M.diagonal(dim1=2, dim2=3).sum(2) + push
        M = M.flatten(2)
        B = B + mu[:, None, None] * (M @ M.transpose(1, 2))
        B = B + torch.diag_embed(torch.where(asked, push / lam, 0.0))
    else:
        moves = moves & ((lam > 0) | (gradient > 0))
    step = _solve_scaled(B, gradient, moves)
    promised = (gradient * step).sum(1)
    precision = torch.where(mu > 0, 0.1 * mu, LEAST_GAIN * now.value.abs())
    solved = promised <= precision
    share = torch.ones_like(mu)
    if has_barrier:
        way = torch.where(asked & (step < 0), lam / -step, torch.inf)
        share = (NEARER * way.amin(1)).clamp_max(1)
    left = (~solved).nonzero().flatten()
    rises = torch.zeros(len(rows), dtype=torch.bool)
    for _ in range(MAX_CUTS[has_barrier]):
        if len(left) == 0:
            break
        trial = (lam[left] + share[left, None] * step[left]).clamp_min(0)
        at_trial = DualPoint.at(conditions.take(left), trial)
        gain = (gradient[left] * (trial - lam[left])).sum(1).clamp_min(0)
        least = value[left] + SUFFICIENT * gain - ROUNDING * value[left].abs()
        good = at_trial.merit(asked[left], mu[left]) >= least
        best.put(rows[left[good]], at_trial, good)
        rises[left[good]] = True
        left = left[~good]
        share = share / SHRINK
    return rises, solved


def _solve_scaled(B: Tensor, gradient: Tensor, moves: Tensor) -> Tensor:
    """Solve B s = gradient for what moves, in units in which B has ones on its diagonal."""
    diagonal = B.diagonal(dim1=1, dim2=2)
    unit = torch.where(moves & (diagonal > 0), diagonal.rsqrt(), 0.0)
    scaled = unit[:, :, None] * B * unit[:, None, :]
    # Conditions that depend on each other linearly would leave B singular.
    ridge = torch.where(unit > 0, 1e-12, 1.0)
    right = (unit * gradient)[..., None]
    step: Tensor = torch.linalg.solve(scaled + torch.diag_embed(ridge), right)[..., 0]
    return unit * step
