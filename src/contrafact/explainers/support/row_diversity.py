"""Sets of rows that are good and differ from each other, by a determinant."""

from __future__ import annotations

import torch
from torch import Tensor


def diversity_kernel(rows: Tensor) -> Tensor:
    """Compute K_ij = 1 / (1 + |r_i - r_j|_1) of rows (n, m, coordinates), (n, m, m)."""
    return 1 / (1 + torch.cdist(rows.double(), rows.double(), p=1))


def choose_diverse(loss: Tensor, kernel: Tensor, k: int, weight: float) -> Tensor:
    """Choose sets of k greedily, for many pools at once.

        minimize over C    1/k Σ_{i ∈ C} loss_i − weight · det K_C

    by adding in turn the member that makes this smallest. The determinant grows by the conditional
    variance of the new member, which a Cholesky factorization keeps up to date.

    Parameters
    ----------
    loss : Tensor of shape (n, m)
        Loss of each member.
    kernel : Tensor of float64, shape (n, m, m)
        K, with ones on the diagonal.
    k : int
        How many to choose; at most m are.
    weight : float
        Weight of the determinant.

    Returns
    -------
    Tensor of int, shape (n, min(k, m))
        Positions, in the order chosen; the first has the smallest loss.

    Examples
    --------
    >>> rows = torch.tensor([[[0.0], [0.1], [5.0]]])
    >>> loss = torch.tensor([[0.0, 0.1, 0.2]])
    >>> choose_diverse(loss, diversity_kernel(rows), 2, weight=1.0).tolist()
    [[0, 2]]
    """
    n, m = loss.shape
    pool = torch.arange(n, device=loss.device)
    share = loss.double() / k
    variance = torch.ones_like(share)
    determinant = torch.ones_like(share[:, :1])
    factor: list[Tensor] = []
    chosen: list[Tensor] = []
    for _ in range(min(k, m)):
        value = share - weight * determinant * variance
        for earlier in chosen:
            value[pool, earlier] = torch.inf
        best = value.argmin(1)
        chosen.append(best)
        remaining = variance[pool, best][:, None]
        column = kernel[pool, best]
        for row in factor:
            column = column - row[pool, best][:, None] * row
        column = column / remaining.sqrt().clamp_min(1e-12)
        factor.append(column)
        variance = (variance - column.square()).clamp_min(0)
        determinant = determinant * remaining
    return torch.stack(chosen, 1)
