"""Relevance of features without labels: what a low-dimensional code of the rows tells of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.arrays import finite_array
from ..validation import Integer, check_parameters
from .estimator import Array, generator
from .option_rules import EPOCHS, SEED

_RULES = {
    "n_components": Integer(at_least=1, at_most=10**4),
    "hidden": Integer(at_least=1, at_most=10**4),
    "max_iter": EPOCHS,
    "random_state": SEED,
}
#: parts of the entries of X, each of which is left out once
N_PARTS = 5
LEARNING_RATE = 0.03
#: α
SHRINKAGE = 0.02


def unsupervised_relevance(
    X: Any,
    n_components: int = 5,
    *,
    hidden: int = 32,
    max_iter: int = 200,
    random_state: Any = None,
) -> Array:
    """Compute how much of each feature a code of few numbers tells that was learned without it.

    Every row i has a code z_i of `n_components` numbers, from which a small network g decodes all
    features, W₂ᵀ tanh(W₁ᵀ z_i + b₁) + b₂. Codes and network are learned together, as in NeuroDAVIS,
    on standardized features:

        minimize over z and g   mean_S (x_ij − g_j(z_i))² + α(mean z² + mean W₁² + mean W₂²)

    over a set S of entries, with α = 0.02. The entries (i, j) of X are divided at
    random into five parts, and S is all parts but one: x̂_ij = g_j(z_i) of an entry comes from the
    code and the network that were learned on the four parts without it. The relevance of feature j
    is the share of its variance that x̂ explains,

        r_j = max(0, correlation of x_j and x̂_j)²

    A feature that shares nothing with the others has r near 0 whatever its variance, since nothing
    else tells its entries; one that is constant has 0. Were an entry part of what its code is
    learned from, a code with numbers to spare would copy such a feature, and r would be near 1.
    It follows that a feature which decides the class, but goes with no other, is missed.

    Parameters
    ----------
    X : array of shape (n, features)
        Rows, at least 5.
    n_components : int, default=5
        Length of a code.
    hidden : int, default=32
        Units of the hidden layer of g, with tanh.
    max_iter : int, default=200
        Steps of Adam.
    random_state : int or RandomState, optional
        Seed of the parts and of the start; default: draw one.

    Returns
    -------
    array of shape (features,)
        r, from 0 to 1.

    References
    ----------
    Maitra, Seal, De: NeuroDAVIS: a neural network model for data visualization. Neurocomputing
    573, 2024. doi:10.1016/j.neucom.2023.127182

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 6, 200)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle), angle])
    >>> X = np.column_stack([circle, 9 * rng.normal(size=200)])
    >>> unsupervised_relevance(X, 2, random_state=0).argmin()
    np.int64(3)
    """
    given = {"n_components": n_components, "hidden": hidden, "max_iter": max_iter}
    check_parameters("unsupervised_relevance", _RULES, {**given, "random_state": random_state})
    rows = finite_array(X, "X", ("n", "features")).astype(np.float64)
    if len(rows) < N_PARTS or not rows.shape[1]:
        raise ValueError(
            f"X has shape {rows.shape}. Accepted: at least {N_PARTS} rows and one feature."
        )
    rng = generator(random_state)
    x, varies = _standardized(rows)
    parts = torch.from_numpy(rng.randint(N_PARTS, size=x.shape))
    seen = parts != torch.arange(N_PARTS)[:, None, None]  # (parts, n, features)
    draws = torch.Generator().manual_seed(int(rng.randint(2**31)))
    decoded = _decode(x, seen, n_components, hidden, max_iter, draws)
    foretold = torch.where(seen, 0.0, decoded).sum(0)
    correlation = (x * foretold).mean(0) / foretold.std(0, correction=0).clamp_min(1e-12)
    return np.where(varies, correlation.clamp(0, 1).square().numpy(), 0.0)


def _standardized(rows: Array) -> tuple[Tensor, Array]:
    """Return the rows with mean 0 and variance 1 per feature, and which features vary at all."""
    # First to a largest value of 1, so that squares neither overflow nor vanish.
    centered = rows - rows.mean(0)
    size = np.abs(centered).max(0)
    varies = size > 1e-12 * np.abs(rows).max(0)
    scaled = centered / np.where(varies, size, 1.0)
    deviation = np.where(varies, scaled.std(0), 1.0)
    return torch.from_numpy(np.where(varies, scaled / deviation, 0.0)), varies


def _decode(
    x: Tensor,
    seen: Tensor,
    n_components: int,
    hidden: int,
    max_iter: int,
    draws: torch.Generator,
) -> Tensor:
    """Learn codes and a decoder for every part; returns what they decode, (parts, n, features)."""
    n, n_features = x.shape

    def start(*shape: int, scale: float) -> Tensor:
        values = scale * torch.randn(N_PARTS, *shape, generator=draws, dtype=x.dtype)
        return values.requires_grad_()

    z = start(n, n_components, scale=0.1)
    W1 = start(n_components, hidden, scale=n_components**-0.5)
    b1 = start(1, hidden, scale=0.1)
    W2 = start(hidden, n_features, scale=hidden**-0.5)
    b2 = start(1, n_features, scale=0.0)

    def g() -> Tensor:
        return (z @ W1 + b1).tanh() @ W2 + b2

    weights = seen / seen.sum((1, 2), keepdim=True)
    optimizer = torch.optim.Adam([z, W1, b1, W2, b2], LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max_iter)
    for _ in range(max_iter):
        optimizer.zero_grad()
        error = (weights * (x - g()).square()).sum()
        shrinkage = sum(each.square().mean((1, 2)).sum() for each in (z, W1, W2))
        (error + SHRINKAGE * shrinkage).backward()
        optimizer.step()
        schedule.step()
    return g().detach()
