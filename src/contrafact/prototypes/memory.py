"""PrototypeMemory: an energy that is low near prototypes, and steps that lower it."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..data.arrays import read_array
from ..numerics.tensors import as_kind, is_dense, read_tensor
from ..validation import Integer, Real, brief, check_parameters


class PrototypeMemory:
    """Measure how close points are to remembered prototypes, and move points toward them.

    An associative memory: the modern Hopfield energy, with distances in place of products.

        E(x) = −β⁻¹ log Σ_p exp(−β/2 ‖x − p‖²)
        ∇E(x) = x − Σ_p a_p p,    a = softmax(−β/2 ‖x − p‖²)

    Differences are divided by `scale` first. The step x ← Σ_p a_p p is a mean shift, and never
    raises the energy. The energy serves as a plausibility metric and, since it has gradients, as
    a term of an objective; `project` brings a counterfactual back to the data.

    Parameters
    ----------
    prototypes : array or Tensor of shape (K, *shape)
        Points to remember, finite; they are copied.
    labels : array of shape (K,), optional
        Their classes, needed to ask for one class only.
    beta : float, default=1.0
        β, the sharpness: with a large one the nearest point counts, with a small one all of them.
    scale : float or array of shape (*shape), optional
        Unit of the differences; default: the spread of the prototypes.

    Attributes
    ----------
    prototypes : Tensor of shape (K, *shape)
        The remembered points.
    labels : array of shape (K,) or None
        Their classes.
    scale : Tensor
        The unit used.

    References
    ----------
    Ramsauer et al.: Hopfield networks is all you need. ICLR 2021.

    Examples
    --------
    >>> memory = PrototypeMemory([[0.0, 0.0], [4.0, 0.0]], labels=["a", "b"], scale=1.0)
    >>> memory.project([[3.0, 0.5]]).round(1).tolist()
    [[4.0, 0.0]]
    """

    def __init__(
        self,
        prototypes: Any,
        labels: Any = None,
        *,
        beta: float = 1.0,
        scale: Any = None,
    ) -> None:
        check_parameters("PrototypeMemory", {"beta": Real(above=0)}, {"beta": beta})
        self.beta = beta
        self.prototypes = read_tensor(prototypes, "prototypes", ("K", "...")).detach().clone()
        if self.prototypes.ndim < 2 or self.prototypes.numel() == 0:
            shape = tuple(self.prototypes.shape)
            raise ValueError(f"prototypes must be (K, *shape) with at least one, got {shape}.")
        if self.prototypes.dtype not in (torch.float32, torch.float64):
            self.prototypes = self.prototypes.float()  # NumPy and `cdist` need it
        self.labels = None if labels is None else self._read_labels(labels)
        unit = self._spread() if scale is None else scale
        self.scale = read_tensor(unit, "scale").detach().to(self.prototypes)
        self._check_scale()

    def _read_labels(self, labels: Any) -> NDArray[Any]:
        """Check that there is one label per prototype."""
        array = read_array(labels, "labels")
        n = len(self.prototypes)
        if array.shape != (n,):
            raise ValueError(f"labels must be one per prototype, ({n},); got shape {array.shape}.")
        return array

    def _check_scale(self) -> None:
        """Check that the unit is positive and broadcasts against a point."""
        if not bool((self.scale > 0).all()):
            raise ValueError("scale must be above 0 everywhere.")
        point = self.prototypes[0]
        try:
            self.scale.expand_as(point)
        except RuntimeError:
            raise ValueError(
                f"scale has shape {tuple(self.scale.shape)}. Accepted: one number, or an array "
                f"that broadcasts against a point, {tuple(point.shape)}."
            ) from None

    def energy(self, x: Any, label: Any = None) -> Any:
        """Compute E(x), over all prototypes or those of one class.

        Parameters
        ----------
        x : array or Tensor of shape (n, *shape)
            Points; one with NaN or inf, or too far for a square, gives NaN or inf.
        label : label or array of shape (n,), optional
            Class whose prototypes count: one, or one per point; default: all prototypes.

        Returns
        -------
        array or Tensor of shape (n,)
            Energies, of the kind of x; low near prototypes.
        """
        if not is_dense(x):
            return self.energy(self._tensor(x), label).numpy()
        return self._similarity(x, label).logsumexp(1) / -self.beta

    def gradient(self, x: Any, label: Any = None) -> Any:
        """Compute ∇E(x) in closed form.

        Parameters
        ----------
        x : array or Tensor of shape (n, *shape)
            Points; one with NaN or inf, or too far for a square, gives NaN or inf.
        label : label or array of shape (n,), optional
            Class whose prototypes count, as in `energy`.

        Returns
        -------
        array or Tensor of shape (n, *shape)
            Gradients, of the kind of x.
        """
        if not is_dense(x):
            return self.gradient(self._tensor(x), label).numpy()
        shifted = self.step(x, label)
        return (x - shifted) / self.scale.to(x).square()

    def step(self, x: Any, label: Any = None) -> Any:
        """Take one mean shift: to the mean of the prototypes, weighted by how near they are.

        Parameters
        ----------
        x : array or Tensor of shape (n, *shape)
            Points; one with NaN or inf, or too far for a square, gives NaN or inf.
        label : label or array of shape (n,), optional
            Class whose prototypes count, as in `energy`.

        Returns
        -------
        array or Tensor of shape (n, *shape)
            The points after the step, of the kind of x.
        """
        if not is_dense(x):
            return self.step(self._tensor(x), label).numpy()
        attention = self._similarity(x, label).softmax(1)  # (n, K)
        return torch.tensordot(attention, self.prototypes.to(x), 1)

    def project(
        self,
        x: Any,
        label: Any = None,
        n_steps: int = 10,
    ) -> Any:
        """Move points toward the remembered data by several mean shifts.

        Parameters
        ----------
        x : array or Tensor of shape (n, *shape)
            Points; one with NaN or inf, or too far for a square, gives NaN or inf.
        label : label or array of shape (n,), optional
            Class whose prototypes count, as in `energy`.
        n_steps : int, default=10
            Number of mean shifts.

        Returns
        -------
        array or Tensor of shape (n, *shape)
            The points after the steps, of the kind of x.
        """
        rules = {"n_steps": Integer(at_least=0, at_most=10**6)}
        check_parameters("PrototypeMemory.project", rules, {"n_steps": n_steps})
        moved = x if is_dense(x) else self._tensor(x)
        for _ in range(n_steps):
            moved = self.step(moved, label)
        return as_kind(moved, x)

    def _spread(self) -> float:
        """Return the root of the mean variance of the prototypes' values; 1 where it is 0."""
        variance = self.prototypes.double().var(0, correction=0)
        spread = float(variance.mean().sqrt())
        if not math.isfinite(spread):
            raise ValueError(
                f"prototypes differ by up to {self.prototypes.abs().max():.3g}, too much for their "
                "variance to be a float. Give scale, or smaller numbers."
            )
        return spread or 1.0

    def _tensor(self, x: Any) -> Tensor:
        """Read an array as a tensor of the prototypes' dtype."""
        return read_tensor(x, "x", finite=False).to(self.prototypes)

    def _similarity(self, x: Tensor, label: Any) -> Tensor:
        """Compute −β/2 ‖x − p‖² (n, K); −inf for prototypes of classes not asked for."""
        return -self.beta / 2 * self._squared(x, label)

    def _squared(self, x: Tensor, label: Any) -> Tensor:
        """Compute standardized squared distances (n, K); inf for classes not asked for."""
        shape = tuple(self.prototypes.shape[1:])
        if not x.is_floating_point() or tuple(x.shape[1:]) != shape or x.ndim == 0:
            raise ValueError(
                f"x has dtype {x.dtype} and shape {tuple(x.shape)}. Accepted: floats, (n, "
                f"{', '.join(map(str, shape))}) as the prototypes."
            )
        if x.dtype not in (torch.float32, torch.float64):
            return self._squared(x.float(), label).to(x.dtype)  # torch has no shorter distances
        scale = self.scale.to(x)
        u = (x / scale).flatten(1)
        p = (self.prototypes.to(x) / scale).flatten(1)
        center = p.mean(0)
        distance = torch.cdist(
            u - center,
            p - center,
            compute_mode="donot_use_mm_for_euclid_dist",
        )
        squared = distance.square()
        if label is None:
            return squared
        foreign = self._foreign(label, len(x))
        return squared.masked_fill(foreign.to(x.device), torch.inf)

    def _foreign(self, label: Any, n: int) -> Tensor:
        """Return the mask (n, K) of prototypes that are not of the class asked for."""
        if self.labels is None:
            raise ValueError("label can't be asked for: the memory was made without labels.")
        asked = np.asarray(label) if isinstance(label, str) else read_array(label, "label")
        if asked.shape not in ((), (n,)):
            raise ValueError(f"label must be one, or one per row, {n}; got shape {asked.shape}.")
        wanted: NDArray[Any] = np.broadcast_to(asked, (n,))
        known = set(self.labels.tolist())
        for name in wanted.tolist():
            if not isinstance(name, Hashable) or name not in known:
                raise ValueError(f"label {brief(name)} has no prototype in this memory.")
        return torch.from_numpy(wanted[:, None] != self.labels)
