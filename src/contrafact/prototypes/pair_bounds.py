"""How far an instance is from where one prototype is as near as another, for all pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from typing_extensions import Self

#: numbers that are held at once for the duals of quadratic conditions
MAX_NUMBERS = 2**22
#: steps to the maximum of a dual: enough for all digits where every step only halves the bracket
MAX_STEPS = 60
#: it is reached where a further step would raise the squared distance by less than this share
GAIN = 1e-12


@dataclass(frozen=True)
class PairBounds:
    """Distances from instances to { x' : d_j(x') ≤ d_k(x') } for pairs (j, k) of prototypes.

    With one metric this is the half-space

        2 (w_k − w_j)ᵀ ΩᵀΩ δ ≤ d_k(x) − d_j(x),      δ = x' − x,

    at the distance (d_j − d_k)/‖normal‖* where it is violated. With a metric for each prototype it
    is one quadratic condition δᵀQδ + 2gᵀδ + r ≤ 0, Q = Λ_j − Λ_k, r = d_j − d_k. Its dual has no
    gap (S-lemma): the squared l2 distance is

        max over λ ≥ 0, I + λQ ⪰ 0   of   λr − λ² gᵀ(I + λQ)⁻¹g.

    Parameters
    ----------
    w : Tensor of float64, shape (K, D)
        Prototypes.
    omega : Tensor of float64, shape (rank, D) or (K, rank, D), or None
        Ω of d = ‖Ω(x − w)‖²; None: Euclidean.
    norm : {1, 2}
        Norm of the distances; 2 where every prototype has its own metric.
    """

    w: Tensor
    omega: Tensor | None
    norm: int

    @classmethod
    def of(cls, w: Tensor, omega: Tensor | None, norm: int) -> Self:
        """Check that the norm can be had for the metric, and prepare the bounds."""
        if omega is not None and omega.ndim == 3 and norm != 2:
            raise ValueError(
                f"norm must be 2 where every prototype has its own metric, got {norm}."
            )
        return cls(w, omega, norm)

    @property
    def is_local(self) -> bool:
        """Whether every prototype has a metric of its own."""
        return self.omega is not None and self.omega.ndim == 3

    @property
    def numbers_per_row(self) -> int:
        """Return how many numbers the bounds of one instance take."""
        n_prototypes, n_features = self.w.shape
        return n_prototypes * max(n_prototypes, n_features)

    def distances(self, x: Tensor) -> Tensor:
        """Return the squared distances (n, K) by explicit differences, which cancel no digits."""
        if self.omega is None:
            return torch.cdist(x, self.w, compute_mode="donot_use_mm_for_euclid_dist") ** 2
        if not self.is_local:
            image, places = x @ self.omega.T, self.w @ self.omega.T
            return torch.cdist(image, places, compute_mode="donot_use_mm_for_euclid_dist") ** 2
        away = torch.einsum("krd,nkd->nkr", self.omega, x[:, None] - self.w)
        return away.square().sum(2)

    @cached_property
    def normal(self) -> Tensor:
        """Normals (K, K, D) of the half-spaces: [j, k] is 2 ΩᵀΩ (w_k − w_j)."""
        difference = self.w[None] - self.w[:, None]
        if self.omega is None:
            return 2 * difference
        return 2 * (difference @ self.omega.T) @ self.omega

    def each(self, x: Tensor, own: Tensor) -> Tensor:
        """Compute how far instances are from where w_j is as near as w_k of the own class.

        Parameters
        ----------
        x : Tensor of float64, shape (n, D)
            Instances.
        own : Tensor of bool, shape (n, K)
            Which prototypes are of the class decided for.

        Returns
        -------
        Tensor of shape (n, K, K)
            Entry (j, k), for j of another class and k of the own: the distance; 0 where w_j is as
            near already. Elsewhere it means nothing.
        """
        d = self.distances(x)
        if self.is_local:
            return self._by_duals(x, d, own)
        behind = (d[:, :, None] - d[:, None, :]).clamp_min(0)  # (n, j, k)
        dual_norm = torch.inf if self.norm == 1 else 2
        size = torch.linalg.vector_norm(self.normal, dual_norm, dim=2)
        # Two that are at one place in the metric are always equally near.
        return torch.where(size > 0, behind / size, 0.0)

    def _by_duals(self, x: Tensor, d: Tensor, own: Tensor) -> Tensor:
        """Maximize the duals of quadratic conditions, for all pairs of a w_k at once."""
        n_prototypes = len(self.w)
        slope = self.slopes(x)
        found = x.new_zeros(len(x), n_prototypes, n_prototypes)
        for k in range(n_prototypes):
            rows = own[:, k].nonzero().flatten()
            if len(rows):
                # All of these rows are of the class of w_k, so they have the same w_j.
                j = (~own[rows[0]]).nonzero().flatten()
                own_k = torch.full_like(j, k)
                found[rows[:, None], j, k] = self.quadratic(slope[rows], d[rows], j, own_k)
        return found

    @cached_property
    def metric(self) -> Tensor:
        """Λ = ΩᵀΩ of each prototype, (K, D, D)."""
        assert self.omega is not None
        return self.omega.transpose(1, 2) @ self.omega

    def slopes(self, x: Tensor) -> Tensor:
        """Return half the gradients (n, K, D) of the distances, Λ_k (x − w_k)."""
        return torch.einsum("kde,nke->nkd", self.metric, x[:, None] - self.w)

    def quadratic(
        self, slope: Tensor, d: Tensor, j: Tensor, k: Tensor, lead: float = 0.0
    ) -> Tensor:
        """Compute how far instances are from where d_k − d_j is at least `lead`.

        Parameters
        ----------
        slope : Tensor of shape (n, K, D)
            Their slopes.
        d : Tensor of shape (n, K)
            Their distances.
        j, k : Tensor of int, shape (pairs,)
            The pairs.
        lead : float, default=0.0
            By how much nearer w_j has to be, in squared distances.

        Returns
        -------
        Tensor of shape (n, pairs)
            l2 distances.
        """
        n_features = slope.shape[2]
        found = d.new_empty(len(d), len(j))
        for pairs in torch.arange(len(j)).split(max(1, MAX_NUMBERS // n_features**2)):
            a, b = j[pairs], k[pairs]
            curvature, axes = torch.linalg.eigh(self.metric[a] - self.metric[b])
            for rows in torch.arange(len(d)).split(max(1, MAX_NUMBERS // curvature.numel())):
                steep = slope[rows]
                g = torch.einsum("npd,pde->npe", steep[:, a] - steep[:, b], axes)
                r = d[rows][:, a] - d[rows][:, b] + lead
                found[rows[:, None], pairs] = quadratic_distance(curvature, g, r)
        return found


def quadratic_distance(curvature: Tensor, g: Tensor, r: Tensor) -> Tensor:
    """Compute the distance from 0 to { δ : Σ_i s_i δ_i² + 2 g_i δ_i + r ≤ 0 }, by its dual.

        max over λ ≥ 0, 1 + λs ≥ 0   of   λr − λ² Σ_i g_i²/(1 + λs_i)

    It is concave in λ, and every λ bounds the squared distance from below. With ρ = 1/λ its slope
    is 0 where

        h(ρ) = Σ_i g_i² (2ρ + s_i)/(ρ + s_i)² = r

    h falls from the pole at ρ = −min s to 0, and 1/h is close to a line, on which Newton's steps
    find the point; where one leaves the bracket, the bracket is halved.

    Parameters
    ----------
    curvature : Tensor of shape (pairs, D)
        s.
    g : Tensor of shape (n, pairs, D)
        Half the gradients at 0.
    r : Tensor of shape (n, pairs)
        The values at 0.

    Returns
    -------
    Tensor of shape (n, pairs)
        The distances; 0 where r ≤ 0, and very large where the set is empty.
    """
    tiny = torch.finfo(g.dtype).tiny
    squares = g.square()
    s = curvature.expand_as(squares)
    rho = 10 * squares.sum(-1) / r.clamp_min(tiny)
    rho = torch.maximum(rho, 2 * curvature.abs().amax(-1))  # where h ≤ r
    asked = (r > 0) & (rho > 0) & rho.isfinite()
    least = (-curvature.amin(-1)).clamp_min(0).expand_as(r)
    rho[asked] = _level(s[asked], squares[asked], r[asked], least[asked], rho[asked])
    value = (r - (squares / (rho[..., None] + s).clamp_min(tiny)).sum(-1)) / rho
    distance = value.clamp_min(0).sqrt()
    return torch.where(r > 0, distance, 0.0)


def _level(s: Tensor, squares: Tensor, r: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Find ρ (m,) with Σ_i g_i² (2ρ + s_i)/(ρ + s_i)² = r, between low and high; rows (m, D)."""
    found = high.clone()
    rows = torch.arange(len(r))
    rho = high
    for _ in range(MAX_STEPS):
        share = (rho[:, None] + s).reciprocal()
        pull = squares * share
        h = 2 * pull.sum(1) - (pull * share * s).sum(1)
        found[rows] = rho
        fall = 2 * rho * (pull * share.square()).sum(1)
        step = rho - h * (1 - h / r) / fall
        # The squared distance is (r − Σ pull)/ρ, its slope in ρ is (h − r)/ρ².
        gain = (h - r) * (step - rho) / rho
        is_done = gain.abs() <= GAIN * (r - pull.sum(1)).abs()
        left = (~is_done).nonzero().flatten()
        if len(left) == 0:
            break
        above = h > r
        low = torch.where(above, rho, low)
        high = torch.where(above, high, rho)
        inside = (step > low) & (step < high)
        rho = torch.where(inside, step, (low + high) / 2)
        rows, s, squares, r = rows[left], s[left], squares[left], r[left]
        low, high, rho = low[left], high[left], rho[left]
    return found
