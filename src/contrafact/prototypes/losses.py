"""Losses of the LVQ family, one value per row.

They are functions of the distances `d` (n, K) and of `same` (n, K), which says which prototypes
are of the row's own class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from ..validation import brief

Transfer = Literal["identity", "sigmoid", "swish"]


def same_class(labels: Tensor, t: Tensor) -> Tensor:
    """Return which prototypes are of a row's own class.

    Parameters
    ----------
    labels : int Tensor of shape (K,)
        Class of each prototype.
    t : int Tensor of shape (n,)
        Class of each row.

    Returns
    -------
    bool Tensor of shape (n, K)
        True where the two are equal.
    """
    return t[:, None] == labels


def nearest_two(d: Tensor, same: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distances to the nearest prototype of the own class and of any other.

    Parameters
    ----------
    d : Tensor of shape (n, K)
        Distances of the rows to the prototypes.
    same : bool Tensor of shape (n, K)
        Which prototypes are of the row's own class.

    Returns
    -------
    plus, minus : Tensor of shape (n,)
        d⁺ and d⁻.
    """
    plus = d.masked_fill(~same, torch.inf).amin(1)
    minus = d.masked_fill(same, torch.inf).amin(1)
    return plus, minus


def relative_distance(d: Tensor, same: Tensor) -> Tensor:
    """Compute μ = (d⁺ − d⁻) / (d⁺ + d⁻), from −1 (clearly right) to 1; 0 where both are 0.

    Parameters
    ----------
    d : Tensor of shape (n, K)
        Distances of the rows to the prototypes.
    same : bool Tensor of shape (n, K)
        Which prototypes are of the row's own class.

    Returns
    -------
    Tensor of shape (n,)
        μ.
    """
    plus, minus = nearest_two(d, same)
    total = plus + minus
    # Where both are 0 the gradient stays a number.
    return (plus - minus) / torch.where(total > 0, total, 1.0)


def glvq(
    d: Tensor,
    same: Tensor,
    transfer: Transfer | Callable[[Tensor], Tensor],
    beta: float,
    margin: float | None,
) -> Tensor:
    """Compute f(μ), or f(max(μ + margin, 0)), the loss of generalized LVQ.

    Parameters
    ----------
    d : Tensor of shape (n, K)
        Distances of the rows to the prototypes.
    same : bool Tensor of shape (n, K)
        Which prototypes are of the row's own class.
    transfer : {"identity", "sigmoid", "swish"} or function of a Tensor
        f: μ, σ(βμ), μσ(βμ), or what the function returns for μ.
    beta : float
        β.
    margin : float or None
        Rows with μ < −margin do not count.

    Returns
    -------
    Tensor of shape (n,)
        The loss of each row.
    """
    mu = relative_distance(d, same)
    if margin is not None:
        mu = (mu + margin).clamp_min(0)
    if callable(transfer):
        loss = transfer(mu)
        if not isinstance(loss, Tensor) or loss.shape != mu.shape:
            raise TypeError(
                f"transfer must return a Tensor of the shape of μ, {tuple(mu.shape)}; got "
                f"{brief(loss)}."
            )
        return loss
    if transfer == "sigmoid":
        return (beta * mu).sigmoid()
    if transfer == "swish":
        return mu * (beta * mu).sigmoid()
    return mu


def lvq1(d: Tensor, same: Tensor) -> Tensor:
    """Compute ±d of the winner: positive where it is of the row's class, negative elsewhere.

    Its gradient draws a winner of the right class in and pushes one of a wrong class away.

    Parameters
    ----------
    d : Tensor of shape (n, K)
        Distances of the rows to the prototypes.
    same : bool Tensor of shape (n, K)
        Which prototypes are of the row's own class.

    Returns
    -------
    Tensor of shape (n,)
        The loss of each row.
    """
    d_win, winner = d.min(1)
    right = same.gather(1, winner[:, None])[:, 0]
    return torch.where(right, d_win, -d_win)


def lvq21(
    d: Tensor,
    same: Tensor,
    window: float,
) -> Tensor:
    """Compute d⁺ − d⁻ for rows in the window between the two prototypes, 0 for all others.

    A row is in the window where min(√(d⁺/d⁻), √(d⁻/d⁺)) > (1 − w)/(1 + w).

    Parameters
    ----------
    d : Tensor of shape (n, K)
        Squared distances of the rows to the prototypes.
    same : bool Tensor of shape (n, K)
        Which prototypes are of the row's own class.
    window : float
        w, between 0 and 1.

    Returns
    -------
    Tensor of shape (n,)
        The loss of each row.
    """
    plus, minus = nearest_two(d, same)
    nearer = torch.minimum(plus, minus)
    farther = torch.maximum(plus, minus)
    inside = nearer > farther * ((1 - window) / (1 + window)) ** 2
    return torch.where(inside, plus - minus, 0.0)


def rslvq(
    d: Tensor,
    same: Tensor,
    temperature: float,
) -> Tensor:
    """Compute −log Σ_{k of the class} p(k | x) with p(k | x) = softmax(−d/T)_k.

    Parameters
    ----------
    d : Tensor of shape (n, K)
        Distances of the rows to the prototypes.
    same : bool Tensor of shape (n, K)
        Which prototypes are of the row's own class.
    temperature : float
        T, in units of d.

    Returns
    -------
    Tensor of shape (n,)
        The loss of each row.
    """
    log_p = (-d / temperature).log_softmax(1)
    return -log_p.masked_fill(~same, -torch.inf).logsumexp(1)


def cross_entropy(
    d: Tensor,
    labels: Tensor,
    t: Tensor,
    temperature: float,
) -> Tensor:
    """Compute −log P(t | x), with P the softmax of `class_scores`.

    Parameters
    ----------
    d : Tensor of shape (n, K)
        Distances of the rows to the prototypes.
    labels : int Tensor of shape (K,)
        Class of each prototype, as a column.
    t : int Tensor of shape (n,)
        Class of each row, as a column.
    temperature : float
        T, in units of d.

    Returns
    -------
    Tensor of shape (n,)
        The loss of each row.
    """
    n_classes = int(labels.max()) + 1
    scores = class_scores(d, labels, n_classes, temperature)
    return torch.nn.functional.cross_entropy(scores, t, reduction="none")


def class_scores(
    d: Tensor,
    labels: Tensor,
    n_classes: int,
    temperature: float,
) -> Tensor:
    """Compute class logits: −d/T of the nearest prototype of each class.

    Their softmax is the class probability, and the largest is that of the nearest prototype's
    class: so the most probable class is the predicted one, however many prototypes a class has.

    Parameters
    ----------
    d : Tensor of shape (n, K)
        Distances of the rows to the prototypes.
    labels : int Tensor of shape (K,)
        Class of each prototype, as a column.
    n_classes : int
        Number of classes.
    temperature : float
        T, in units of d.

    Returns
    -------
    Tensor of shape (n, n_classes)
        Logits; −inf for a class without prototypes.
    """
    n_rows = len(d)
    nearest = d.new_full((n_rows, n_classes), torch.inf)
    columns = labels.expand(n_rows, -1)
    nearest = nearest.scatter_reduce(
        1,
        columns,
        d,
        "amin",
        include_self=False,
    )
    return -nearest / temperature
