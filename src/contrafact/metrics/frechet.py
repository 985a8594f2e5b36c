"""The Fréchet distance between two sets: one number for all counterfactuals together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from ..data.arrays import finite_array
from ..models.classifier import Array


def frechet_distance(features: ArrayLike | Tensor, reference: ArrayLike | Tensor) -> float:
    """Compute the Fréchet distance of two sets of features, each taken as a normal distribution.

        d² = ‖m − m_r‖² + tr(C + C_r − 2 (C C_r)^½)

    with the means m and the covariances C (divisor n − 1) of the two sets. It is the square that is
    returned, as the Fréchet inception distance (FID) reports it. With C = RᵀR and C_r = QᵀQ,
    tr (C C_r)^½ is the sum of the singular values of R Qᵀ: exact for singular covariances as well,
    so that fewer rows than features need no correction.

    A distance of two sets is not a score of a counterfactual, so `evaluate` does not have it. Few
    rows make it too large, and the more features, the more so: compare sets of equal size only, and
    have real images as one of them.

    Parameters
    ----------
    features : array-like of shape (n, d)
        Features of one set, for instance of counterfactuals; at least 2 rows.
    reference : array-like of shape (m, d)
        Features of the other set, for instance of real images; at least 2 rows.

    Returns
    -------
    float
        d², at least 0; in the squared units of the features.

    Raises
    ------
    ValueError
        Where a set has fewer than 2 rows, the numbers of features differ, or numbers are not finite
        or too large to be squared.

    See Also
    --------
    contrafact.nn.FeatureExtractor : Learn features of images.

    References
    ----------
    Dowson, Landau: The Fréchet distance between multivariate normal distributions. Journal of
    Multivariate Analysis 12, 1982. https://doi.org/10.1016/0047-259X(82)90077-X

    Heusel, Ramsauer, Unterthiner, Nessler, Hochreiter: GANs trained by a two time-scale update rule
    converge to a local Nash equilibrium. NeurIPS 2017. https://doi.org/10.48550/arXiv.1706.08500

    Examples
    --------
    >>> frechet_distance([[0.0], [2.0]], [[5.0], [7.0]])
    25.0
    """
    F = _read(features, "features")
    G = _read(reference, "reference")
    if F.shape[1] != G.shape[1]:
        raise ValueError(
            f"features has {F.shape[1]} columns and reference {G.shape[1]}. Accepted: the same "
            "features of both sets."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        squared = _squared_distance(F, G)
    if not np.isfinite(squared):
        largest = max(np.abs(F).max(), np.abs(G).max())
        raise ValueError(
            f"features or reference holds numbers up to {largest:.3g}, too large to be squared."
        )
    return squared


def _squared_distance(F: Array, G: Array) -> float:
    """Compute d² of two sets of features in float64."""
    gap = F.mean(0) - G.mean(0)
    R = _root(F)
    Q = _root(G)
    product = R @ Q.T
    if not np.isfinite(product).all():
        return float("nan")
    trace_of_root = np.linalg.svd(product, compute_uv=False).sum()
    squared = gap @ gap + (R * R).sum() + (Q * Q).sum() - 2 * trace_of_root
    return float(max(squared, 0.0))  # of equal sets, rounding leaves less than nothing


def _root(F: Array) -> Array:
    """Return R with RᵀR = C, shape (min(n, d), d)."""
    centered = (F - F.mean(0)) / np.sqrt(len(F) - 1)
    if len(F) <= F.shape[1] or not np.isfinite(centered).all():
        return np.asarray(centered)
    return np.asarray(np.linalg.qr(centered, mode="r"))


def _read(values: ArrayLike | Tensor, name: str) -> Array:
    """Convert the features of a set to float64."""
    array = finite_array(values, name, ("n", "features")).astype(np.float64)
    if len(array) < 2 or array.shape[1] == 0:
        raise ValueError(
            f"{name} has shape {array.shape}. Accepted: at least 2 rows, since one has no "
            "covariance, of at least 1 feature."
        )
    return array
