"""Penalties and proximal steps that the regularizers of prototype models are made of."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..deprecation import renamed_parameters
from ..numerics.tensors import as_kind, read_integers, read_tensor
from ..validation import Integer, OneOf, Real, check_parameters
from .user_data import naming, read_labels

_RULES = {
    "sigma": Real(above=0) | OneOf("median"),
    "eps": Real(at_least=0),
    "seed": Integer(at_least=-(2**63), at_most=2**63 - 1),
    "l1_weight": Real(at_least=0),
    "l2_weight": Real(at_least=0),
    "learning_rate": Real(at_least=0),
}


def prototype_diversity_loss(
    prototypes: Any,
    labels: Any,
    sigma: float | Literal["median"] = 1.0,
    *,
    eps: float = 1e-6,
    seed: int = 0,
) -> Any:
    """Measure how alike the prototypes of each class are.

        −Σ_c log det(K_c + εI),    K_ij = exp(−‖p_i − p_j‖²/(2σ²))

    Prototypes at exactly the same place have no gradient that separates them: the kernel sees
    them slightly apart, in directions drawn from `seed`.

    Parameters
    ----------
    prototypes : array or Tensor of shape (K, ...)
        The prototypes, finite.
    labels : array of shape (K,), or Tensor of int
        Their classes: numbers, text or anything that sorts.
    sigma : float or "median", default=1.0
        σ, the width of the kernel, above 0; "median": the median distance between prototypes of
        one class.
    eps : float, default=1e-6
        ε, at least 0; no less is used than rounding needs in the dtype of the prototypes.
    seed : int, default=0
        Of the directions in which coincident prototypes are moved apart.

    Returns
    -------
    Tensor or array of shape ()
        The loss, of the kind of the prototypes; large where those of a class are close together.

    Raises
    ------
    ValueError, TypeError
        If an argument has the wrong shape, type or value.

    Examples
    --------
    >>> apart, close = torch.tensor([[0.0], [2.0]]), torch.tensor([[0.0], [0.1]])
    >>> labels = torch.tensor([7, 7])
    >>> bool(prototype_diversity_loss(close, labels) > prototype_diversity_loss(apart, labels))
    True
    """
    options = {"sigma": sigma, "eps": eps, "seed": seed}
    check_parameters("prototype_diversity_loss", _RULES, options)
    p, classes = _read(prototypes, labels)
    return as_kind(diversity(p, classes, sigma, eps=eps, seed=seed), prototypes)


def _read(prototypes: Any, labels: Any) -> tuple[Tensor, Tensor]:
    """Check prototypes and their labels."""
    # A compiled graph can't branch on values.
    finite = not torch.compiler.is_compiling()
    p = read_tensor(prototypes, "prototypes", ("K", "..."), finite=finite)
    if p.numel() == 0 or p.ndim < 2:
        raise ValueError(
            f"prototypes has shape {tuple(p.shape)}. Accepted: (K, ...) with at least two axes, "
            "not empty."
        )
    if p.dtype not in (torch.float32, torch.float64):
        p = p.float()  # torch has no distances of shorter floats
    beside = f"prototypes of shape {tuple(p.shape)}"
    if not isinstance(labels, Tensor):
        names = read_labels(labels, "labels", len(p))
        with naming("labels"):  # some objects do not sort
            _, labels = np.unique(names, return_inverse=True)
    classes = read_integers(labels, "labels", (len(p),), beside=beside)
    return p, classes.to(p.device)


def diversity(
    prototypes: Tensor,
    labels: Tensor,
    sigma: float | Literal["median"],
    *,
    eps: float = 1e-6,
    seed: int = 0,
) -> Tensor:
    """Compute `prototype_diversity_loss` without checks, as training needs it.

    Parameters
    ----------
    prototypes : Tensor of shape (K, ...)
        The prototypes.
    labels : int Tensor of shape (K,)
        Their classes.
    sigma, eps, seed
        As in `prototype_diversity_loss`.

    Returns
    -------
    Tensor of shape ()
        The loss.
    """
    p = prototypes.flatten(1)
    K = len(p)
    identity = torch.eye(
        K,
        dtype=p.dtype,
        device=p.device,
    )
    together = labels[:, None] == labels  # (K, K)
    pairs = together & ~identity.bool()
    with torch.no_grad():
        distance = torch.cdist(p, p, compute_mode="donot_use_mm_for_euclid_dist")
        coincident = ((distance == 0) & pairs).any(1)
        width = _kernel_width(distance, pairs, sigma)
        jitter = _jitter(p, width, seed)
    moved = torch.where(coincident[:, None], p + jitter, p)
    u = moved / width
    differences = u[:, None] - u
    squared = differences.square().sum(2)
    kernel = (-squared / 2).exp()
    # Classes do not interact, so the kernel of all has the determinant Π_c det(K_c + εI).
    rounding = 4 * K * torch.finfo(p.dtype).eps  # matters in single precision
    ridge = max(eps, rounding)
    blocks = torch.where(together, kernel, 0.0) + ridge * identity
    factor: Tensor = torch.linalg.cholesky(blocks)
    return -2 * factor.diagonal().log().sum()


def _kernel_width(
    distance: Tensor,
    pairs: Tensor,
    sigma: float | Literal["median"],
) -> Tensor:
    """Return σ as a tensor, large enough that its square does not vanish."""
    number = 1.0 if sigma == "median" else sigma
    width = torch.as_tensor(
        number,
        dtype=distance.dtype,
        device=distance.device,
    )
    if sigma == "median":
        among = distance[pairs & (distance > 0)]
        width = among.median() if len(among) else width
    return width.clamp_min(torch.finfo(distance.dtype).tiny ** 0.25)


def _jitter(
    p: Tensor,
    width: Tensor,
    seed: int,
) -> Tensor:
    """Return small displacements of the shape of p, each in a direction of its own."""
    counter = torch.arange(
        1,
        p.numel() + 1,
        dtype=p.dtype,
        device=p.device,
    )
    # A hash by sine: cheap, the same on every device, and torch.compile can trace it.
    noise = (counter.reshape(p.shape) * 12.9898 + seed).sin()
    n_features = p.shape[1]
    jitter: Tensor = 1e-3 * width * noise / n_features**0.5
    return jitter


@renamed_parameters(lr="learning_rate")
def sparse_relevance_proximal(
    relevances: Any,
    l1_weight: float,
    learning_rate: float = 1.0,
) -> Any:
    """Take the proximal step of l1·‖x‖₁: sign(x)·max(|x| − l1·learning_rate, 0).

    Parameters
    ----------
    relevances : array or Tensor
        x, finite.
    l1_weight : float
        l1, the weight of the norm, at least 0.
    learning_rate : float, default=1.0
        Length of the gradient step that this step follows, at least 0.

    Returns
    -------
    array or Tensor
        Of the kind and shape of `relevances`; small values are exactly 0.

    Raises
    ------
    ValueError, TypeError
        If an argument has the wrong type or value.

    Examples
    --------
    >>> sparse_relevance_proximal(torch.tensor([0.5, 0.1]), l1_weight=0.25).tolist()
    [0.25, 0.0]
    """
    options = {"l1_weight": l1_weight, "learning_rate": learning_rate}
    check_parameters("sparse_relevance_proximal", _RULES, options)
    x = read_tensor(relevances, "relevances")
    return as_kind(shrink(x, l1_weight * learning_rate), relevances)


def shrink(x: Tensor, threshold: float) -> Tensor:
    """Compute sign(x)·max(|x| − threshold, 0)."""
    return x.sign() * (x.abs() - threshold).clamp_min(0)


@renamed_parameters(lr="learning_rate")
def elastic_net_proximal(
    relevances: Any,
    l1_weight: float,
    l2_weight: float,
    learning_rate: float = 1.0,
) -> Any:
    """Take the proximal step of l1·‖x‖₁ + l2/2·‖x‖².

    It is the step of `sparse_relevance_proximal`, divided by 1 + l2·learning_rate.

    Parameters
    ----------
    relevances : array or Tensor
        x, finite.
    l1_weight : float
        l1, the weight of the absolute values, at least 0.
    l2_weight : float
        l2, the weight of the squares, at least 0.
    learning_rate : float, default=1.0
        Length of the gradient step that this step follows, at least 0.

    Returns
    -------
    array or Tensor
        Of the kind and shape of `relevances`; small values are exactly 0.

    Raises
    ------
    ValueError, TypeError
        If an argument has the wrong type or value.

    Examples
    --------
    >>> elastic_net_proximal(torch.tensor([0.5, 0.1]), l1_weight=0.25, l2_weight=1.0).tolist()
    [0.125, 0.0]
    """
    options = {"l1_weight": l1_weight, "l2_weight": l2_weight, "learning_rate": learning_rate}
    check_parameters("elastic_net_proximal", _RULES, options)
    x = read_tensor(relevances, "relevances")
    sparse = shrink(x, l1_weight * learning_rate)
    return as_kind(sparse / (1 + l2_weight * learning_rate), relevances)


def orthogonality_loss(prototypes: Any, labels: Any) -> Any:
    """Compute the mean squared cosine between prototypes of different classes.

    Parameters
    ----------
    prototypes : array or Tensor of shape (K, ...)
        The prototypes, finite.
    labels : array of shape (K,), or Tensor of int
        Their classes, two or more: numbers, text or anything that sorts.

    Returns
    -------
    Tensor or array of shape ()
        The loss, of the kind of the prototypes, from 0 (the classes are orthogonal) to 1.

    Raises
    ------
    ValueError, TypeError
        If an argument has the wrong shape, type or value.

    Examples
    --------
    >>> float(orthogonality_loss(torch.eye(2), torch.tensor([0, 1])))
    0.0
    """
    p, classes = _read(prototypes, labels)
    if not torch.compiler.is_compiling() and bool((classes == classes[0]).all()):
        raise ValueError("labels must hold two classes or more, got one.")
    return as_kind(orthogonality(p, classes), prototypes)


def orthogonality(prototypes: Tensor, labels: Tensor) -> Tensor:
    """Compute `orthogonality_loss` without checks, as training needs it."""
    unit = torch.nn.functional.normalize(prototypes.flatten(1), dim=1)
    cosines = unit @ unit.T
    apart = labels[:, None] != labels
    return cosines.square()[apart].mean()
