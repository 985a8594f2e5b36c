"""The set of arrays that keep all constraints, and projections onto it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from ..models.classifier import Array
from .limits import Limits
from .slopes import join_slopes, reachable_bounds


@dataclass(frozen=True)
class FeasibleSet(Limits):
    """The constraints over one instance: a box, a frozen mask and a slope limit.

    Parameters
    ----------
    lower, upper : Tensor of the shape of one instance
        The box in the working precision, never looser than asked.
    exact_lower, exact_upper : Tensor of float64
        The box as asked.
    frozen : Tensor of bool
        True where values may not change.
    max_step : Tensor of float64, shape (channels,), or None
        Largest step along time of each channel, inf where there is no limit; None: of none.
    """

    lower: Tensor
    upper: Tensor
    exact_lower: Tensor
    exact_upper: Tensor
    frozen: Tensor
    max_step: Tensor | None

    @override
    def project(self, x_cf: Tensor, x: Tensor) -> Tensor:
        """Clip to the limits; gradients pass to every value that is neither frozen nor clipped."""
        x_cf = self._into_box(x_cf, x)
        if self.max_step is None:
            return x_cf
        steep = self._too_steep(x_cf).nonzero().flatten()
        if len(steep) == 0:
            return x_cf
        x_cf = x_cf.clone()
        own = x[steep]
        limited = self._limit_steps(x_cf[steep], own, leave_room=True)
        x_cf[steep] = self._into_box(limited, own)
        # Frozen values that leave no room for rounding can be joined by steps of exactly max_step.
        tight = steep[self._too_steep(x_cf[steep])]
        if len(tight):
            own = x[tight]
            limited = self._limit_steps(x_cf[tight], own, leave_room=False)
            x_cf[tight] = self._into_box(limited, own)
        return x_cf

    @override
    def box(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.lower, self.upper, ~self.frozen

    @override
    def check(
        self,
        x_cf: Tensor,
        x: Tensor,
        *,
        precision: torch.dtype | None = None,
        step_tolerance: float = 0.0,
    ) -> dict[str, Tensor]:
        """Check which candidates keep which limit.

        Parameters
        ----------
        x_cf, x : Tensor of shape (n, *shape)
            Candidates and their instances.
        precision : torch.dtype, optional
            Precision in which an unchanged value may be equal to a bound that it breaks by
            rounding only; default: that of `x`.
        step_tolerance : float, default=0
            Relative tolerance of the slope limit.

        Returns
        -------
        dict of str to Tensor of bool, shape (n,)
            Keys "lower", "upper", "frozen" and "max_step".
        """
        precision = precision or x.dtype
        unchanged = x_cf == x
        own = x.to(precision)
        above_lower = (x_cf >= self.lower) | (unchanged & (own >= self.exact_lower.to(precision)))
        below_upper = (x_cf <= self.upper) | (unchanged & (own <= self.exact_upper.to(precision)))
        return {
            "lower": above_lower.flatten(1).all(1),
            "upper": below_upper.flatten(1).all(1),
            "frozen": (unchanged | ~self.frozen).flatten(1).all(1),
            "max_step": ~self._too_steep(x_cf, step_tolerance),
        }

    @override
    def impossible(self, x: Tensor) -> list[str]:
        """Explain, per instance, why no change at all can keep the limits; "" where one can."""
        if bool(self.frozen.all()):
            return ["every point is frozen"] * len(x)
        reasons = [""] * len(x)
        in_box = self._in_box(x)
        outside = self.frozen & ~in_box
        for row, at in _first_per_row(outside):
            reasons[row] = f"the frozen value {x[row][at].item():g} at {at} is outside the bounds"
        empty = ~self.frozen & (self.lower > self.upper) & ~in_box
        for row, at in _first_per_row(empty):
            precision = str(x.dtype).removeprefix("torch.")
            reasons[row] = reasons[row] or (
                f"no {precision} number, the model's precision, lies within the bounds "
                f"[{self.exact_lower[at].item()}, {self.exact_upper[at].item()}] at {at}"
            )
        if self.max_step is not None:
            # A channel without a limit cannot fail: its slack is infinite.
            low, high = self._envelope(x.double(), self._finite_step().expand(len(x), -1))
            slack = 1e-5 * self.max_step[:, None]
            for row, at in _first_per_row(low > high + slack):
                reasons[row] = reasons[row] or (
                    f"no series keeps max_step={self.max_step[at[0]].item():g} with these frozen "
                    "values and bounds"
                )
        return reasons

    @override
    def finish(self, final: Array, original: Array, found: Array) -> Array:
        lower, upper = self.bounds(final.dtype)
        other_axes = tuple(range(1, final.ndim))
        has_changed = (final != original).any(other_axes, keepdims=True)
        free = ~self.frozen.cpu().numpy() & has_changed
        final = np.where(free, np.clip(final, lower, upper), final)
        if self.max_step is None:
            return final
        # Steps that the model sees as allowed may be a hair too large in the user's precision.
        steps = np.abs(np.diff(final, axis=-1))
        limit = self.max_step.cpu().numpy()[:, None]
        too_steep = (steps > limit).any((1, 2), keepdims=True)
        return np.where(free & too_steep, found, final)

    def bounds(self, dtype: Any) -> tuple[Array, Array]:
        """Return the box in a NumPy data type, never looser than asked."""
        torch_dtype = torch.from_numpy(np.empty(0, dtype)).dtype
        lower = round_inward(self.exact_lower.cpu().numpy(), torch_dtype, up=True)
        upper = round_inward(self.exact_upper.cpu().numpy(), torch_dtype, up=False)
        return lower.numpy(), upper.numpy()

    @override
    def describe(self) -> str:
        """Describe the limits in words, for messages."""
        parts = []
        if bool(self.frozen.any()):
            parts.append(f"{int(self.frozen.sum())} of {self.frozen.numel()} points frozen")
        if bool(self.lower.isfinite().any() | self.upper.isfinite().any()):
            low, high = self.lower.min().item(), self.upper.max().item()
            parts.append(f"values within [{low:g}, {high:g}]")
        if self.max_step is not None:
            smallest, largest = self.max_step.min().item(), self.max_step.max().item()
            by_channel = "" if smallest == largest else f" to {largest:g}, by channel"
            parts.append(f"steps up to {smallest:g}{by_channel}")
        return ", ".join(parts)

    def _in_box(self, x: Tensor) -> Tensor:
        """Return which values of the instances themselves keep the bounds.

        Rounding is monotone: a value within its bound before rounding is so after it.
        """
        return (x >= self.exact_lower.to(x.dtype)) & (x <= self.exact_upper.to(x.dtype))

    def _into_box(self, x_cf: Tensor, x: Tensor) -> Tensor:
        """Clip to the bounds; values that are frozen, or changed by rounding only, stay."""
        clipped = torch.clamp(x_cf, self.lower, self.upper)
        own = torch.clamp(x, self.lower, self.upper)
        unmoved = (clipped == own) & self._in_box(x)
        # The value is x, the gradient that of the candidate: a constant here would hold every
        # value that has not moved yet in its place.
        with_gradient = x + (clipped - clipped.detach())
        return torch.where(
            self.frozen,
            x,
            torch.where(unmoved, with_gradient, clipped),
        )

    def _too_steep(self, x_cf: Tensor, tolerance: float = 0.0) -> Tensor:
        """Return the mask of the rows with a step above the limit."""
        if self.max_step is None:
            return torch.zeros(len(x_cf), dtype=torch.bool, device=x_cf.device)
        steps = x_cf.double().diff(dim=-1).abs()
        limit = self.max_step[:, None] * (1 + tolerance)
        return (steps > limit).flatten(1).any(1)

    def _limit_steps(self, x_cf: Tensor, x: Tensor, *, leave_room: bool) -> Tensor:
        """Clip the steps along time, optionally leaving room for what rounding may add."""
        assert self.max_step is not None
        dtype = x_cf.dtype
        x_cf = x_cf.double()
        x = x.double()
        step = self._finite_step().expand(len(x), -1)
        if leave_room:
            largest = torch.maximum(x_cf.abs(), x.abs()).flatten(1).amax(1, keepdim=True)
            ramp = step * x.shape[-1]
            rounding = torch.finfo(dtype).eps * largest + torch.finfo(torch.float64).eps * ramp
            step = torch.maximum(step - 8 * rounding, step / 2)
        low, high = self._envelope(x, step)
        limited = join_slopes(x_cf, low, high, step)
        is_limited = self.max_step.isfinite()[:, None]
        return torch.where(is_limited, limited, x_cf).to(dtype)

    def _finite_step(self) -> Tensor:
        """Return the slope limits, 0 in place of inf, with which nothing can be computed."""
        assert self.max_step is not None
        return torch.where(self.max_step.isfinite(), self.max_step, 0.0)

    def _envelope(self, x: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        """Return the tightest bounds that box, frozen values and slope limit imply together."""
        low = torch.where(self.frozen, x, self.lower.to(x.dtype))
        high = torch.where(self.frozen, x, self.upper.to(x.dtype))
        return reachable_bounds(low, high, step)


def round_inward(bound: Array, dtype: torch.dtype, *, up: bool) -> Tensor:
    """Round a bound to the working precision, never making it looser.

    Parameters
    ----------
    bound : array of float64
        The bound as asked.
    dtype : torch.dtype
        The working precision.
    up : bool
        True for lower bounds, which are rounded up; False for upper bounds.

    Returns
    -------
    Tensor
        The bound in the working precision.
    """
    exact = torch.from_numpy(bound)
    rounded = exact.to(dtype)
    is_looser = rounded.double() < exact if up else rounded.double() > exact
    direction = torch.full_like(rounded, torch.inf if up else -torch.inf)
    inward = torch.nextafter(rounded, direction)
    return torch.where(is_looser, inward, rounded)


def _first_per_row(mask: Tensor) -> list[tuple[int, tuple[int, ...]]]:
    """Return each row with a True in it, and the position of its first one."""
    rows = mask.flatten(1).any(1).nonzero().flatten().tolist()
    return [(row, tuple(mask[row].nonzero()[0].tolist())) for row in rows]
