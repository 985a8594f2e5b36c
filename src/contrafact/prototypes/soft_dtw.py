"""Soft DTW as a distance of prototype models, with exact gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ..validation import Nothing, Real, Rule, check_parameters
from .option_rules import BAND

#: γ where none is given, as a share of the mean variance of the training data
DEFAULT_GAMMA = 0.1
#: largest γ, as a multiple of it
LARGEST_GAMMA = 1e6


@dataclass(frozen=True)
class SoftDTW:
    """Compare series by soft DTW, which forgives shifts in time and has gradients.

    With s_γ(x, w) = −γ log Σ e^{−cost(path)/γ}, a sum over all warping paths, and

        cost(path) = Σ_{(i, j) on the path} ‖x_i − w_j‖²,

    the distance is the divergence

        d(x, w) = max(0, s_γ(x, w) − ½ s_γ(x, x) − ½ s_γ(w, w)).

    s_γ itself is negative for series that are alike; d is 0 for equal ones, as GLVQ needs. That
    the difference is at least 0 is proved under conditions on the cost (Blondel et al.); the
    maximum makes sure for any. For γ → 0 it is DTW with squared costs.

    Pass it as `distance_fn` of GLVQ, LVQ1, LVQ21, RSLVQ or CELVQ. GRLVQ, and the last two with
    metric="relevance", also learn a relevance λ_t of each time step, λ ≥ 0 and Σλ = 1: then

        cost(path) = Σ_{(i, j) on the path} (length/2)(λ_i + λ_j) ‖x_i − w_j‖²,

    which is the same for equal λ_t. A weight of w's steps alone would make d negative near w.

    Parameters
    ----------
    gamma : float, optional
        γ, at least 0, in squared units of the data: how far paths that are not the cheapest count.
        0 is DTW, with gradients along its path. Default: a tenth of the mean variance of the
        training data.
    window : float, optional
        Sakoe-Chiba band, |i − j| ≤ ⌊window · length⌋; from 0 to 1; default: no band.

    Notes
    -----
    Computed in double precision on the CPU by compiled loops, in parallel over pairs of series,
    wherever the model is. The gradient keeps n · K · channels · length numbers.

    References
    ----------
    Cuturi, Blondel: Soft-DTW: a differentiable loss function for time-series. ICML 2017.
    https://arxiv.org/abs/1703.01541

    Blondel, Mensch, Vert: Differentiable divergences between time series. AISTATS 2021.
    https://arxiv.org/abs/2010.08354

    Examples
    --------
    >>> import numpy as np
    >>> from contrafact.prototypes import GLVQ
    >>> y = np.arange(20) % 2
    >>> shift = np.random.default_rng(0).uniform(-0.2, 0.2, size=(20, 1))
    >>> X = np.sin(2 * np.pi * (1 + y[:, None]) * (np.linspace(0, 1, 30) + shift))
    >>> model = GLVQ(distance_fn=SoftDTW(window=0.2), max_iter=20, random_state=0).fit(X, y)
    >>> model.prototypes_.shape, model.score(X, y) > 0.9
    ((2, 30), True)
    """

    gamma: float | None = None
    window: float | None = None

    rules: ClassVar[Mapping[str, Rule]] = {
        "gamma": Real(at_least=0) | Nothing(),
        "window": BAND,
    }

    def __post_init__(self) -> None:
        """Check the fields."""
        check_parameters(type(self).__name__, self.rules, vars(self))

    def between(self, shape: tuple[int, ...], variance: float) -> WarpedDistance:
        """Return the distance of flat instances.

        Parameters
        ----------
        shape : tuple of int
            Shape of one instance: (length,) or (channels, length).
        variance : float
            The mean variance of the training data.

        Returns
        -------
        WarpedDistance
            A function of rows and prototypes.
        """
        if len(shape) > 2:
            raise ValueError(
                f"X: SoftDTW compares series (n, channels, length), got shape {shape} of one."
            )
        gamma = DEFAULT_GAMMA * variance if self.gamma is None else float(self.gamma)
        if gamma > LARGEST_GAMMA * variance:
            raise ValueError(
                f"SoftDTW: gamma={self.gamma} is more than {LARGEST_GAMMA:g} times the mean "
                f"variance of X, {variance:.3g}: distances would be lost in rounding."
            )
        return WarpedDistance(shape[-1], band_width(self.window, shape[-1]), gamma)


@dataclass(frozen=True)
class WarpedDistance:
    """The distance of `SoftDTW` between flat instances.

    Parameters
    ----------
    length : int
        Time steps of a series.
    band : int
        Largest |i − j|.
    gamma : float
        γ.
    """

    length: int
    band: int
    gamma: float

    def __call__(self, x: Tensor, w: Tensor, relevances: Tensor | None = None) -> Tensor:
        """Compute the distances (n, K) of rows (n, D) to prototypes (K, D)."""
        shape = (-1, self.length)
        importance = torch.ones(self.length) if relevances is None else relevances * self.length
        return soft_dtw_divergence(
            x.unflatten(1, shape),
            w.unflatten(1, shape),
            self.gamma,
            self.band,
            importance.to(x),
        )


def band_width(window: float | None, length: int) -> int:
    """Return the largest |i − j| of a Sakoe-Chiba band, rounded as aeon does.

    Parameters
    ----------
    window : float or None
        The band, as a fraction of the length; None: no band.
    length : int
        Length of the series.

    Returns
    -------
    int
        The largest difference.
    """
    return length if window is None else int(window * length)


def soft_dtw_divergence(
    x: Tensor,
    w: Tensor,
    gamma: float,
    band: int,
    importance: Tensor,
) -> Tensor:
    """Compute max(0, s(x, w) − ½s(x, x) − ½s(w, w)) for all pairs.

    Parameters
    ----------
    x : Tensor of shape (n, channels, length)
        Series.
    w : Tensor of shape (K, channels, length)
        Series to compare with.
    gamma : float
        γ, at least 0.
    band : int
        Largest |i − j|.
    importance : Tensor of shape (length,)
        Weight of each time step.

    Returns
    -------
    Tensor of shape (n, K)
        The divergences, with gradients in x, w and importance.
    """
    rows, columns = torch.arange(len(x)), torch.arange(len(w))
    first, second = torch.cartesian_prod(rows, columns).T
    flat = soft_dtw(x, w, importance, first, second, band, gamma)
    between: Tensor = flat.unflatten(0, (-1, len(w)))
    if gamma == 0:
        return between
    own_x = soft_dtw(x, x, importance, rows, rows, band, gamma)
    own_w = soft_dtw(w, w, importance, columns, columns, band, gamma)
    divergence: Tensor = between - own_x[:, None] / 2 - own_w / 2
    return divergence.clamp_min(0)


def soft_dtw(
    x: Tensor,
    w: Tensor,
    importance: Tensor,
    first: Tensor,
    second: Tensor,
    band: int,
    gamma: float,
) -> Tensor:
    """Compute soft DTW of pairs of series; may be negative.

    Parameters
    ----------
    x, w : Tensors of shape (n, channels, length) and (m, channels, length)
        Series.
    importance : Tensor of shape (length,)
        Weight of each time step.
    first, second : int Tensors of shape (p,)
        The pairs: numbers of a series in x, and of one in w.
    band : int
        Largest |i − j|.
    gamma : float
        γ, at least 0.

    Returns
    -------
    Tensor of shape (p,)
        s of each pair, with gradients in x, w and importance.
    """
    if not torch.is_grad_enabled():
        # Inside of `forward` it is not known whether a gradient will be asked for.
        x, w, importance = x.detach(), w.detach(), importance.detach()
    s: Tensor = _SoftDTW.apply(x, w, importance, first, second, band, gamma)  # type: ignore[no-untyped-call]
    return s


class _SoftDTW(torch.autograd.Function):
    """Soft DTW of pairs; values and gradients come from one pass, where gradients are needed."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        w: Tensor,
        importance: Tensor,
        first: Tensor,
        second: Tensor,
        band: int,
        gamma: float,
    ) -> Tensor:
        from .soft_dtw_kernels import fill_soft_dtw, fill_soft_dtw_gradients
        from .warping_kernels import in_threads

        a, b = _as_floats(x), _as_floats(w.flip(-1))
        weight = _as_floats(torch.stack([importance, importance.flip(-1)]))
        p, q = first.numpy(), second.numpy()
        out = np.empty(len(p))
        given = (a, b)
        if not any(ctx.needs_input_grad):

            def values(part: slice) -> None:
                fill_soft_dtw(*given, p[part], q[part], weight, band, gamma, out[part])

            in_threads(len(p), values)
            return torch.from_numpy(out).to(x)
        slopes = [np.zeros((len(p), *a.shape[1:])) for _ in range(2)]
        slopes.append(np.zeros((len(p), 2, a.shape[2])))

        def gradients(part: slice) -> None:
            places = [slope[part] for slope in slopes]
            fill_soft_dtw_gradients(
                *given, p[part], q[part], weight, band, gamma, out[part], *places
            )

        in_threads(len(p), gradients)
        ctx.save_for_backward(*[torch.from_numpy(slope) for slope in slopes], first, second)
        ctx.sizes = len(x), len(w)
        return torch.from_numpy(out).to(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        of_x, of_w, of_importance, first, second = ctx.saved_tensors
        g = gradient.to(of_x)
        n, m = ctx.sizes
        for_x = _sum_by(first, g[:, None, None] * of_x, n)
        for_w = _sum_by(second, g[:, None, None] * of_w, m).flip(-1)
        of_rows, of_columns = torch.einsum("p,pel->el", g, of_importance)
        for_importance = of_rows + of_columns.flip(-1)
        answers = (for_x, for_w, for_importance)
        return *[answer.to(gradient) for answer in answers], None, None, None, None


def _as_floats(values: Tensor) -> Any:
    """Return a tensor as a contiguous array of double precision."""
    return np.ascontiguousarray(values.detach().cpu().double().numpy())


def _sum_by(group: Tensor, values: Tensor, n: int) -> Tensor:
    """Add up values (p, ...) by group; returns (n, ...)."""
    total = values.new_zeros((n, *values.shape[1:]))
    return total.index_add_(0, group, values)
