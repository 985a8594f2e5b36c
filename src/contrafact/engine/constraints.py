"""Constraints: what a counterfactual may not do. Enforced inside every method, audited after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..models.classifier import Array

KINDS = frozenset({"bounds", "frozen", "max_step"})


@dataclass(frozen=True)
class Constraints:
    """Limits that every counterfactual must keep.

    Parameters
    ----------
    lower, upper : float or array, optional
        Bounds on the values: one number, one per channel, or anything that broadcasts against an instance.
    frozen : bool array, optional
        True where nothing may change: time windows, channels, pixel regions, columns. Broadcasts against
        one instance.
    max_step : float, optional
        Series only: the largest change from one time step to the next, |x'(t+1) − x'(t)|.

    Examples
    --------
    >>> import numpy as np
    >>> first_half = np.arange(150) < 75
    >>> limits = Constraints(lower=-3.0, upper=3.0, frozen=first_half)
    """

    lower: Any = None
    upper: Any = None
    frozen: Any = None
    max_step: float | None = None

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            value = getattr(self, name)
            if value is not None and np.isnan(np.asarray(value, dtype=float)).any():
                raise ValueError(
                    f"constraints.{name} contains NaN; use ±inf where there is no bound."
                )
        if self.max_step is not None and not self.max_step > 0:
            raise ValueError(f"constraints.max_step must be positive, got {self.max_step}.")
        if self.frozen is not None and np.asarray(self.frozen).dtype != bool:
            raise ValueError(
                f"constraints.frozen must be a boolean array (True = may not change), "
                f"got dtype {np.asarray(self.frozen).dtype}."
            )

    @property
    def kinds(self) -> frozenset[str]:
        """Which kinds of constraint are in force: bounds, frozen, max_step."""
        used = {
            "bounds": self.lower is not None or self.upper is not None,
            "frozen": self.frozen is not None,
            "max_step": self.max_step is not None,
        }
        return frozenset(name for name, on in used.items() if on)

    def resolve(
        self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
    ) -> FeasibleSet:
        """The same limits as tensors over one instance of this shape."""
        if self.max_step is not None and len(shape) != 2:
            raise ValueError(
                f"constraints.max_step applies to series; instances here have shape {shape}."
            )
        lower = (
            np.full(shape, -np.inf) if self.lower is None else spread(self.lower, shape, "lower")
        )
        upper = np.full(shape, np.inf) if self.upper is None else spread(self.upper, shape, "upper")
        crossed = np.argwhere(lower > upper)
        if len(crossed):
            at = tuple(crossed[0].tolist())
            raise ValueError(
                f"constraints: lower {lower[at]} is above upper {upper[at]} at position {at}."
            )
        frozen = (
            np.zeros(shape, bool)
            if self.frozen is None
            else spread(self.frozen, shape, "frozen", bool)
        )
        return FeasibleSet(
            lower=round_inward(lower, dtype, up=True).to(device),
            upper=round_inward(upper, dtype, up=False).to(device),
            exact_lower=torch.from_numpy(lower).to(device),
            exact_upper=torch.from_numpy(upper).to(device),
            frozen=torch.from_numpy(frozen).to(device),
            max_step=self.max_step,
        )

    def check(self, X: Any, X_cf: Any) -> dict[str, Array]:
        """Check which counterfactuals keep which constraint.

        Parameters
        ----------
        X, X_cf : array of shape (n, *shape)
            Instances and counterfactuals, series and images with their channel axis.

        Returns
        -------
        dict of str to bool ndarray of shape (n,)
            For each constraint in force, of "lower", "upper", "frozen" and "max_step", which rows
            keep it. A value of the instance itself that only its rounding to float32 brings beyond
            a bound keeps it.
        """
        x = np.asarray(X, dtype=np.float64)
        x_cf = np.asarray(X_cf, dtype=np.float64)
        shape = x.shape[1:]
        kept: dict[str, Array] = {}
        if self.lower is not None:
            lower = spread(self.lower, shape, "lower")
            kept["lower"] = (x_cf >= lower) | _own_rounding(x, x_cf, lower)
        if self.upper is not None:
            upper = spread(self.upper, shape, "upper")
            kept["upper"] = (x_cf <= upper) | _own_rounding(x, x_cf, upper)
        if self.frozen is not None:
            frozen = spread(self.frozen, shape, "frozen", bool)
            kept["frozen"] = ~frozen | (x_cf == x)
        if self.max_step is not None:
            steps = np.abs(np.diff(x_cf, axis=-1))
            kept["max_step"] = steps <= self.max_step * (1 + 1e-6)
        return {
            kind: np.asarray(values.all(axis=tuple(range(1, values.ndim))))
            for kind, values in kept.items()
        }


def _own_rounding(x: Array, x_cf: Array, bound: Array) -> Array:
    """Mark values of the instance itself that equal the bound in float32."""
    return np.asarray((x_cf == x) & (x.astype(np.float32) == bound.astype(np.float32)))


def spread(value: Any, shape: tuple[int, ...], name: str, dtype: Any = float) -> Array:
    """Broadcast a constraint over one instance; a vector with one entry per channel goes by channel."""
    array = np.asarray(value.detach().cpu() if isinstance(value, Tensor) else value, dtype=dtype)
    by_channel = array.ndim == 1 and len(shape) > 1 and len(array) == shape[0] > 1
    if by_channel and shape[0] == shape[-1]:
        raise ValueError(
            f"constraints.{name} has {len(array)} entries, as many as channels and as the last axis; give it "
            f"shape {(len(array),) + (1,) * (len(shape) - 1)} or {shape} to say which is meant."
        )
    if by_channel:
        array = array.reshape(-1, *[1] * (len(shape) - 1))
    try:
        return np.array(np.broadcast_to(array, shape))
    except ValueError:
        raise ValueError(
            f"constraints.{name} has shape {array.shape}, which does not broadcast against an instance of "
            f"shape {shape}."
        ) from None


def round_inward(bound: Array, dtype: torch.dtype, *, up: bool) -> Tensor:
    """`bound` in the working precision, never looser than given."""
    exact = torch.from_numpy(bound)
    rounded = exact.to(dtype)
    loose = rounded.double() < exact if up else rounded.double() > exact
    inward = torch.nextafter(rounded, torch.full_like(rounded, torch.inf if up else -torch.inf))
    return torch.where(loose, inward, rounded)


@dataclass(frozen=True)
class FeasibleSet:
    """Constraints over one instance: a box, a frozen mask and a slope limit.

    lower, upper : the box in the working precision, never looser than asked.
    exact_lower, exact_upper : the box as asked, in float64.
    """

    lower: Tensor
    upper: Tensor
    exact_lower: Tensor
    exact_upper: Tensor
    frozen: Tensor
    max_step: float | None

    def project(self, x_cf: Tensor, x: Tensor) -> Tensor:
        """A point that keeps every limit, as near to `x_cf` as clipping brings it; `x` is the original."""
        x_cf = self._into_box(x_cf, x)
        steep = self._breaks_step(x_cf).nonzero().flatten()
        if len(steep) == 0:
            return x_cf
        x_cf = x_cf.clone()
        x_cf[steep] = self._into_box(self._limit_steps(x_cf[steep], x[steep], safe=True), x[steep])
        # Frozen values that leave no room for rounding can still be joined by steps of exactly max_step.
        tight = steep[self._breaks_step(x_cf[steep])]
        if len(tight):
            x_cf[tight] = self._into_box(
                self._limit_steps(x_cf[tight], x[tight], safe=False), x[tight]
            )
        return x_cf

    def allows(self, x_cf: Tensor, x: Tensor) -> Tensor:
        """Mask of the rows of `x_cf` that keep every limit."""
        same = x_cf == x
        inside = (x_cf >= self.lower) & (x_cf <= self.upper) | (same & self._in_box(x))
        return (inside & (same | ~self.frozen)).flatten(1).all(1) & ~self._breaks_step(x_cf)

    def impossible(self, x: Tensor) -> list[str]:
        """Per row: why no change at all can satisfy the limits, or an empty string."""
        reasons = [""] * len(x)
        if bool(self.frozen.all()):
            return ["every point is frozen"] * len(x)
        outside = self.frozen & ~self._in_box(x)
        for row in outside.flatten(1).any(1).nonzero().flatten().tolist():
            at = tuple(outside[row].nonzero()[0].tolist())
            reasons[row] = f"the frozen value {x[row][at].item():g} at {at} is outside the bounds"
        between = ~self.frozen & (self.lower > self.upper) & ~self._in_box(x)
        for row in between.flatten(1).any(1).nonzero().flatten().tolist():
            at = tuple(between[row].nonzero()[0].tolist())
            reasons[row] = reasons[row] or (
                f"no {str(x.dtype).removeprefix('torch.')} number, the model's precision, lies within the "
                f"bounds [{self.exact_lower[at].item()}, {self.exact_upper[at].item()}] at {at}"
            )
        if self.max_step is not None:
            lo, hi = self._envelope(
                x.double(), x.new_full((len(x), 1), self.max_step, dtype=torch.float64)
            )
            slack = 1e-5 * self.max_step
            for row in (lo > hi + slack).flatten(1).any(1).nonzero().flatten().tolist():
                reasons[row] = reasons[row] or (
                    f"no series keeps max_step={self.max_step:g} with these frozen values and bounds"
                )
        return reasons

    def bounds(self, dtype: Any) -> tuple[Array, Array]:
        """The box in another precision, never looser than asked."""
        kind = torch.from_numpy(np.empty(0, dtype)).dtype
        lower, upper = self.exact_lower.cpu().numpy(), self.exact_upper.cpu().numpy()
        return round_inward(lower, kind, up=True).numpy(), round_inward(
            upper, kind, up=False
        ).numpy()

    def describe(self) -> str:
        """The limits in words, for messages."""
        parts = []
        if bool(self.frozen.any()):
            parts.append(f"{int(self.frozen.sum())} of {self.frozen.numel()} points frozen")
        if bool(self.lower.isfinite().any() | self.upper.isfinite().any()):
            parts.append(
                f"values within [{self.lower.min().item():g}, {self.upper.max().item():g}]"
            )
        if self.max_step is not None:
            parts.append(f"steps up to {self.max_step:g}")
        return ", ".join(parts)

    def _in_box(self, x: Tensor) -> Tensor:
        """Which values of the instances themselves keep the bounds.

        Rounding is monotone: a value within its bound before rounding is within the rounded bound after.
        """
        return (x >= self.exact_lower.to(x.dtype)) & (x <= self.exact_upper.to(x.dtype))

    def _into_box(self, x_cf: Tensor, x: Tensor) -> Tensor:
        """Clip to the bounds; what is frozen, or differs from the instance by rounding only, stays."""
        clipped, own = (torch.minimum(torch.maximum(v, self.lower), self.upper) for v in (x_cf, x))
        return torch.where(self.frozen | ((clipped == own) & self._in_box(x)), x, clipped)

    def _breaks_step(self, x_cf: Tensor) -> Tensor:
        """Mask of the rows whose slope is too steep somewhere."""
        if self.max_step is None:
            return torch.zeros(len(x_cf), dtype=torch.bool, device=x_cf.device)
        return (x_cf.double().diff(dim=-1).abs() > self.max_step).flatten(1).any(1)

    def _limit_steps(self, x_cf: Tensor, x: Tensor, *, safe: bool) -> Tensor:
        """Clip the steps along time; `safe` leaves room for what rounding may add."""
        assert self.max_step is not None
        dtype, step = x_cf.dtype, x_cf.new_full((len(x_cf), 1), self.max_step, dtype=torch.float64)
        x_cf, x = x_cf.double(), x.double()
        if safe:
            largest = torch.maximum(x_cf.abs(), x.abs()).flatten(1).amax(1, keepdim=True)
            ramp = self.max_step * x.shape[-1]
            slack = 8 * (torch.finfo(dtype).eps * largest + torch.finfo(torch.float64).eps * ramp)
            step = torch.maximum(step - slack, step / 2)
        lo, hi = self._envelope(x, step)
        forward = slope_pass(x_cf, lo, hi, step)
        backward = slope_pass(x_cf.flip(-1), lo.flip(-1), hi.flip(-1), step).flip(-1)
        # Both passes are feasible and the set is convex: their mean is feasible and favors no direction.
        return ((forward + backward) / 2).to(dtype)

    def _envelope(self, x: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        """Tightest bounds that the box, the frozen values and the slope limit imply together."""
        lo = torch.where(self.frozen, x, self.lower.to(x.dtype))
        hi = torch.where(self.frozen, x, self.upper.to(x.dtype))
        ramp = step[..., None] * torch.arange(x.shape[-1], dtype=x.dtype, device=x.device)
        return reach(lo, ramp), -reach(-hi, ramp)


def reach(lo: Tensor, ramp: Tensor) -> Tensor:
    """max over u of lo(u) − step·|t − u|, by a running maximum from each side."""
    from_left = (lo + ramp).cummax(-1).values - ramp
    from_right = (lo - ramp).flip(-1).cummax(-1).values.flip(-1) + ramp
    return torch.maximum(from_left, from_right)


def slope_pass(values: Tensor, lo: Tensor, hi: Tensor, step: Tensor) -> Tensor:
    """Walk along time, clipping each value to within `step` of the one before it and to its envelope."""
    out = values.clone()
    previous = torch.minimum(torch.maximum(values[..., 0], lo[..., 0]), hi[..., 0])
    out[..., 0] = previous
    for t in range(1, values.shape[-1]):
        low = torch.maximum(lo[..., t], previous - step)
        high = torch.minimum(hi[..., t], previous + step)
        previous = torch.minimum(torch.maximum(values[..., t], low), high)
        out[..., t] = previous
    return out
