"""Gradients by finite differences, for functions that only return values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ..data.arrays import as_real, read_array
from ..validation import Function, Integer, OneOf, brief, check_parameters
from .randomness import row_normal, row_uniform
from .tensors import read_tensor

_RULES = {
    "function": Function("rows"),
    "n_directions": Integer(at_least=1),
    "directions": OneOf("normal", "rademacher"),
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
    """Estimate the gradient of a function at every row of x, from one call of the function.

    The estimate is antithetic,

        g_i = 1 / (2 σ m)  Σ_j  [f(x_i + σ u_ij) − f(x_i − σ u_ij)] u_ij,        E[u uᵀ] = I

    with m directions u_ij drawn from the seed of row i alone: the estimate of a row does not depend
    on the rest of the batch. Where m reaches the number d of elements of a row, the coordinate axes
    replace random directions: 2 d rows then give every partial derivative by central differences.

    Parameters
    ----------
    function : callable
        Maps a Tensor of shape (r, *shape) to r values, row by row. Called once, without gradients.
    x : Tensor of shape (n, *shape)
        Where to estimate the gradient.
    seeds : array of int of shape (n,)
        One seed per row (see `row_seeds`); change them from step to step with `fold_in`.
    n_directions : int, default=32
        Number m of directions; the call evaluates 2 n min(m, d) rows.
    scale : float or Tensor of shape (n,), default=1e-2
        Length σ of the differences, one for all or one per row, in the unit of x; positive.
    directions : {"normal", "rademacher"}, default="normal"
        Distribution of the directions: standard normal, or random signs, which all have the same
        length and hence give less variance.

    Returns
    -------
    Tensor of shape (n, *shape)
        The estimates, in the dtype of x.

    Raises
    ------
    ValueError
        If an argument has the wrong shape or value, or `function` does not return one value per
        row.

    Examples
    --------
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    >>> zeroth_order_gradient(lambda z: (z**2).sum(1), x, seeds=[0, 1]).round(decimals=6)
    tensor([[2., 4.],
            [6., 8.]], dtype=torch.float64)
    """
    options = {"function": function, "n_directions": n_directions, "directions": directions}
    check_parameters("zeroth_order_gradient", _RULES, options)
    x = read_tensor(x, "x", ("n", "..."))
    _check_seeds(seeds, len(x))
    sigma = _as_scale(scale, x)
    if x.numel() == 0:
        return torch.zeros_like(x)

    n = len(x)
    d = x[0].numel()
    along_axes = n_directions >= d
    if along_axes:
        axes = torch.eye(d, dtype=x.dtype, device=x.device)
        u = axes.expand(n, d, d)
    else:
        u = _random_directions(seeds, n_directions, d, directions).to(x)

    slope = _central_differences(function, x, u, sigma)  # (n, m)
    if along_axes:
        return slope.view_as(x)
    # Not einsum: a batched product may round differently in a larger batch.
    gradients = slope[:, :, None] * u  # (n, m, d)
    return gradients.mean(dim=1).view_as(x)


def _check_seeds(seeds: ArrayLike, n: int) -> None:
    """Check that there is one seed per row."""
    shape = read_array(seeds, "seeds").shape
    if shape != (n,):
        raise ValueError(f"seeds must be one integer per row of x, shape ({n},); got {shape}.")


def _as_scale(scale: float | Tensor, x: Tensor) -> Tensor:
    """Return the length of the differences, of shape (1, 1, 1) or (n, 1, 1)."""
    n = len(x)
    values = as_real(scale, "scale")
    if values.shape not in ((), (1,), (n,)) or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(
            f"scale must be positive, one number or one per row ({n}); got {brief(scale)}."
        )
    return torch.tensor(values).to(x).reshape(-1, 1, 1)


def _random_directions(
    seeds: ArrayLike,
    m: int,
    d: int,
    kind: str,
) -> Tensor:
    """Draw m directions for each seed, of shape (n, m, d)."""
    numbers: NDArray[np.float64]
    if kind == "normal":
        numbers = row_normal(seeds, m * d)
    else:
        uniform = row_uniform(seeds, m * d)
        numbers = np.where(uniform < 0.5, -1.0, 1.0)
    return torch.from_numpy(numbers).view(-1, m, d)


def _central_differences(
    function: Callable[[Tensor], Tensor],
    x: Tensor,
    u: Tensor,
    sigma: Tensor,
) -> Tensor:
    """Estimate the directional derivatives along u (n, m, d), of shape (n, m)."""
    n, m, d = u.shape
    n_rows = 2 * n * m
    center = x.detach().reshape(n, 1, d)
    step = sigma * u
    perturbed = torch.stack([center + step, center - step])  # (2, n, m, d)
    with torch.no_grad():
        values = function(perturbed.view(n_rows, *x.shape[1:]))
    if not isinstance(values, Tensor):
        raise TypeError(f"function must return a Tensor, got {type(values).__name__}.")
    if values.shape != (n_rows,):
        raise ValueError(
            f"function must give one value per row, "
            f"got shape {tuple(values.shape)} for {n_rows} rows."
        )
    f_plus, f_minus = values.view(2, n, m)
    width = 2 * sigma.view(-1, 1)
    slope: Tensor = (f_plus - f_minus) / width
    return slope.to(x)
