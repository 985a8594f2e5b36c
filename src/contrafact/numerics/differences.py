"""First and second differences of real series, and edits that leave their range."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..validation import Integer, Real, brief, check_parameters
from .tensors import is_dense, read_tensor

#: limits are at least this share of a channel's standard deviation, so that ratios stay finite
FLOOR = 1e-6

#: numbers sorted at once; `torch.nanquantile` accepts no more than 16 million
MAX_ELEMENTS = 2**23

_RULES = {
    "quantile": Real(above=0, at_most=1),
    "reach": Integer(at_least=0),
}


@dataclass(frozen=True)
class RealDifferences:
    """Hold how far real series move from one time step to the next.

    With q the quantile over the reference rows and the places within `reach` steps of t:

        first[t]  = q |x[t+1] − x[t]|
        second[t] = q |x[t+2] − 2 x[t+1] + x[t]|

    A limit is never below a millionth of its channel's standard deviation (of 1, where the channel
    is constant).

    Parameters
    ----------
    first : Tensor of float64, shape (channels, length - 1)
        Limit of the first differences.
    second : Tensor of float64, shape (channels, length - 2)
        Limit of the second differences.

    Examples
    --------
    >>> X = torch.tensor([[[0.0, 1.0, 2.0, 3.0, 4.0]], [[4.0, 3.0, 2.0, 1.0, 0.0]]])
    >>> x, x_cf = X[:1], torch.tensor([[[0.0, 1.0, 5.0, 3.0, 4.0]]])
    >>> RealDifferences.of(X).seam(x_cf, x)
    tensor([4.], dtype=torch.float64)
    """

    first: Tensor
    second: Tensor

    @classmethod
    def of(cls, X: Tensor, quantile: float = 0.99, reach: int = 2) -> RealDifferences:
        """Compute the limits of reference series.

        Parameters
        ----------
        X : Tensor of shape (n, channels, length)
            At least one series; missing values (NaN) are left out.
        quantile : float in (0, 1], default=0.99
            Share of the real differences that lie within the limit.
        reach : int, default=2
            Places within so many steps count as the same place.

        Returns
        -------
        RealDifferences
            The limits of every channel and place.

        Raises
        ------
        ValueError
            Where X is not a batch of series, or an option is out of range.
        """
        options = {"quantile": quantile, "reach": reach}
        check_parameters("RealDifferences.of", _RULES, options)
        X = read_tensor(X, "X", ("n", "channels", "length"), finite=False)
        if X.numel() == 0:
            raise ValueError(
                f"X has shape {tuple(X.shape)}; accepted: (n, channels, length), none of them 0."
            )
        if bool(X.isinf().any()):
            raise ValueError("X contains inf. Accepted: finite numbers, and NaN for missing ones.")
        X = X.detach().double()
        deviation = X.std(dim=(0, 2), correction=0)
        scale = torch.where(deviation > 0, deviation, torch.ones_like(deviation))
        floor = FLOOR * scale[:, None]
        first = quantile_near(_first(X), quantile, reach)
        second = quantile_near(_second(X), quantile, reach)
        return cls(torch.maximum(first, floor), torch.maximum(second, floor))

    def seam(self, x_cf: Tensor, x: Tensor) -> Tensor:
        """Compute the largest step across an edge of an edit, as a multiple of the real limit.

        An edge lies between two neighbors in a channel of which one was changed.

        Parameters
        ----------
        x_cf : Tensor of shape (n, channels, length)
            Edited series.
        x : Tensor of shape (n, channels, length)
            The series before.

        Returns
        -------
        Tensor of float64, shape (n,)
            Above 1: a jump that real series do not show there. 0 where there is no edge.

        Raises
        ------
        ValueError
            Where the series do not have the shape of the reference.
        """
        return _largest(self.seam_ratios(x_cf, x))

    def kink(self, x_cf: Tensor, x: Tensor) -> Tensor:
        """Compute the largest bend across an edge of an edit, as a multiple of the real limit.

        Second differences count whose three points hold both changed and unchanged values.

        Parameters
        ----------
        x_cf : Tensor of shape (n, channels, length)
            Edited series.
        x : Tensor of shape (n, channels, length)
            The series before.

        Returns
        -------
        Tensor of float64, shape (n,)
            Above 1: a kink that real series do not show there. 0 where there is no edge.

        Raises
        ------
        ValueError
            Where the series do not have the shape of the reference.
        """
        return _largest(self.kink_ratios(x_cf, x))

    def seam_ratios(self, x_cf: Tensor, x: Tensor) -> Tensor:
        """Compute the step across every edge of an edit, as a multiple of the real limit.

        Parameters
        ----------
        x_cf : Tensor of shape (n, channels, length)
            Edited series.
        x : Tensor of shape (n, channels, length)
            The series before.

        Returns
        -------
        Tensor of float64, shape (n, channels, length - 1)
            The ratio at t is that of the step from t to t + 1; 0 where that is no edge.

        Raises
        ------
        ValueError
            Where the series do not have the shape of the reference.
        """
        self._check(x_cf, x)
        changed = x_cf != x
        is_edge = changed[..., 1:] != changed[..., :-1]
        ratio = _first(x_cf.double()) / self.first.to(x_cf.device)
        return torch.where(is_edge, ratio, torch.zeros_like(ratio))

    def kink_ratios(self, x_cf: Tensor, x: Tensor) -> Tensor:
        """Compute the bend around every edge of an edit, as a multiple of the real limit.

        Parameters
        ----------
        x_cf : Tensor of shape (n, channels, length)
            Edited series.
        x : Tensor of shape (n, channels, length)
            The series before.

        Returns
        -------
        Tensor of float64, shape (n, channels, length - 2)
            The ratio at t is that of the points t, t + 1 and t + 2; 0 where these were all changed
            or all left.

        Raises
        ------
        ValueError
            Where the series do not have the shape of the reference.
        """
        self._check(x_cf, x)
        changed = x_cf != x
        is_edge = changed[..., 1:] != changed[..., :-1]
        holds_edge = is_edge[..., 1:] | is_edge[..., :-1]
        ratio = _second(x_cf.double()) / self.second.to(x_cf.device)
        return torch.where(holds_edge, ratio, torch.zeros_like(ratio))

    def _check(self, x_cf: Tensor, x: Tensor) -> None:
        """Raise where the series do not have the shape of the reference."""
        channels, steps = self.first.shape
        for name, series in (("x", x), ("x_cf", x_cf)):
            if not is_dense(series) or not series.is_floating_point():
                raise TypeError(f"{name} must be a dense tensor of floats, got {brief(series)}.")
            if x.ndim != 3 or series.shape != (len(x), channels, steps + 1):
                raise ValueError(
                    f"{name} has shape {tuple(series.shape)}; accepted here: "
                    f"(n, {channels}, {steps + 1}) as the reference series, the same n for both."
                )


def _first(X: Tensor) -> Tensor:
    """|x[t+1] − x[t]|, shape (n, channels, length - 1)."""
    return X.diff(dim=-1).abs()


def _second(X: Tensor) -> Tensor:
    """|x[t+2] − 2 x[t+1] + x[t]|, shape (n, channels, length - 2), or no place at all."""
    return X.diff(dim=-1).diff(dim=-1).abs()


def quantile_near(values: Tensor, quantile: float, reach: int) -> Tensor:
    """Compute quantiles over rows and neighboring places.

    Parameters
    ----------
    values : Tensor of shape (n, channels, places)
        Values of n rows, at least one; missing ones (NaN) are left out.
    quantile : float in [0, 1]
        Which quantile.
    reach : int
        Places within so many steps count as the same place.

    Returns
    -------
    Tensor of shape (channels, places)
        The quantile at every place.

    Examples
    --------
    >>> quantile_near(torch.tensor([[[1.0, 2.0, 9.0]]]), 1.0, reach=1)
    tensor([[2., 9., 9.]])
    """
    options = {"quantile": quantile, "reach": reach}
    rules = {**_RULES, "quantile": Real(at_least=0, at_most=1)}
    check_parameters("quantile_near", rules, options)
    values = read_tensor(values, "values", ("n", "channels", "places"), finite=False)
    if values.dtype not in (torch.float32, torch.float64):
        values = values.float()  # torch has no quantiles of shorter floats
    if bool(values.isinf().any()):
        raise ValueError("values contains inf. Accepted: finite numbers, and NaN for missing ones.")
    n, channels, places = values.shape
    if n == 0:
        raise ValueError("values has no rows. Accepted: at least one.")
    limits = values.new_empty(channels, places)
    if places == 0:
        return limits
    reach = min(reach, places)
    width = 2 * reach + 1
    padded = torch.nn.functional.pad(values, (reach, reach), value=torch.nan)
    near = padded.unfold(-1, width, 1)  # a view, (n, channels, places, width)
    step = max(1, MAX_ELEMENTS // (n * width))
    for channel in range(channels):
        for start in range(0, places, step):
            part = slice(start, start + step)
            pooled = near[:, channel, part].transpose(0, 1).flatten(1)  # (places, n * width)
            limits[channel, part] = pooled.nanquantile(float(quantile), dim=1)
    return limits


def _largest(ratios: Tensor) -> Tensor:
    """Return the largest ratio of every row; 0 where a series is too short to have one."""
    n = len(ratios)
    none = ratios.new_zeros(n, 1)
    return torch.cat([none, ratios.flatten(1)], dim=1).amax(dim=1)
