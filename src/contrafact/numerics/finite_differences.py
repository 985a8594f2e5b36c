"""Gradients of a model that only answers: finite differences along each row's own directions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from .randomness import row_normal, row_uniform

_DIRECTIONS: dict[str, Callable[[ArrayLike, int], NDArray[np.float64]]] = {
    "normal": row_normal,
    "rademacher": lambda seeds, size: np.where(row_uniform(seeds, size) < 0.5, -1.0, 1.0),
}


def zeroth_order_gradient(
    function: Callable[[Tensor], Tensor],
    x: Tensor,
    seeds: ArrayLike,
    *,
    n_directions: int = 32,
    scale: float | Tensor = 1e-2,
    directions: str = "normal",
) -> Tensor:
    """Antithetic estimate of the gradient of `function` at every row of `x`, from one call of `function`.

        g_i = 1 / (2 σ m)  Σ_j  [f(x_i + σ u_ij) − f(x_i − σ u_ij)] u_ij,        E[u uᵀ] = I

    with m directions u_ij drawn from the seed of row i alone: a row's estimate does not depend on the rest of
    the batch. Where m reaches the number d of elements of a row, the coordinate axes take the place of random
    directions: 2 d rows then give every partial derivative by central differences.

    Parameters
    ----------
    function : maps (r, *shape) to (r,) values, row by row.
    x : (n, *shape).
    seeds : one integer per row (see `row_seeds`); change them from step to step with `fold_in`.
    n_directions : m; a call costs 2 n min(m, d) rows.
    scale : σ, one number or one per row.
    directions : "normal", or "rademacher" (random signs: all of one length, hence less variance).

    Examples
    --------
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    >>> zeroth_order_gradient(lambda z: (z**2).sum(1), x, seeds=[0, 1]).round(decimals=6)
    tensor([[2., 4.],
            [6., 8.]], dtype=torch.float64)
    """
    if n_directions < 1:
        raise ValueError(f"n_directions must be at least 1, got {n_directions}.")
    if directions not in _DIRECTIONS:
        raise ValueError(f"directions must be 'normal' or 'rademacher', got {directions!r}.")
    if np.shape(seeds) != (len(x),):
        raise ValueError(
            f"seeds must be one integer per row, shape ({len(x)},); got {np.shape(seeds)}."
        )
    sigma = torch.as_tensor(scale, dtype=x.dtype, device=x.device).reshape(-1, 1, 1)
    if len(sigma) not in (1, len(x)) or not bool((sigma > 0).all()):
        raise ValueError(
            f"scale must be positive, one number or one per row ({len(x)}); got {scale}."
        )
    if x.numel() == 0:
        return torch.zeros_like(x)

    n, d, m = len(x), x[0].numel(), n_directions
    axes = m >= d
    if axes:
        m = d
        u = torch.eye(d, dtype=x.dtype, device=x.device).expand(n, d, d)
    else:
        u = torch.from_numpy(_DIRECTIONS[directions](seeds, m * d)).to(x).view(n, m, d)

    center = x.detach().reshape(n, 1, d)
    perturbed = torch.stack([center + sigma * u, center - sigma * u])  # (2, n, m, d)
    with torch.no_grad():
        values = function(perturbed.view(2 * n * m, *x.shape[1:]))
    if values.shape != (2 * n * m,):
        raise ValueError(
            f"function must give one value per row, got shape {tuple(values.shape)} for {2 * n * m} rows."
        )
    f_plus, f_minus = values.view(2, n, m)
    slope: Tensor = ((f_plus - f_minus) / (2 * sigma.view(-1, 1))).to(x)
    if axes:
        return slope.view_as(x)
    # Not einsum: a batched product may round differently in a larger batch.
    return (slope[:, :, None] * u).mean(dim=1).view_as(x)
