"""PrototypeMemory: an energy that is low near prototypes, and steps that lower it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..validation import Real, check_parameters


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
        Points to remember; they are copied.
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
        rules = {"beta": Real(above=0)}
        check_parameters("PrototypeMemory", rules, {"beta": beta})
        self.beta = beta
        self.prototypes = torch.as_tensor(prototypes).detach().clone()
        if not self.prototypes.is_floating_point():
            self.prototypes = self.prototypes.double()
        if self.prototypes.ndim < 2 or len(self.prototypes) == 0:
            shape = tuple(self.prototypes.shape)
            raise ValueError(f"prototypes must be (K, *shape) with at least one, got {shape}.")
        self.labels = None if labels is None else np.asarray(labels)
        if self.labels is not None and len(self.labels) != len(self.prototypes):
            raise ValueError(
                f"labels must be one per prototype, {len(self.prototypes)}; got {len(labels)}."
            )
        if scale is None:
            scale = self._spread()
        self.scale = torch.as_tensor(scale, dtype=self.prototypes.dtype)
        if not bool((self.scale > 0).all()):
            raise ValueError(f"scale must be above 0, got {scale}.")

    def energy(self, x: Any, label: Any = None) -> Any:
        """Compute E(x), over all prototypes or those of one class.

        Parameters
        ----------
        x : array or Tensor of shape (n, *shape)
            Points.
        label : label or array of shape (n,), optional
            Class whose prototypes count: one, or one per point; default: all prototypes.

        Returns
        -------
        array or Tensor of shape (n,)
            Energies, of the kind of x; low near prototypes.
        """
        if not isinstance(x, Tensor):
            return self.energy(self._tensor(x), label).numpy()
        return self._similarity(x, label).logsumexp(1) / -self.beta

    def gradient(self, x: Any, label: Any = None) -> Any:
        """Compute ∇E(x) in closed form.

        Parameters
        ----------
        x : array or Tensor of shape (n, *shape)
            Points.
        label : label or array of shape (n,), optional
            Class whose prototypes count, as in `energy`.

        Returns
        -------
        array or Tensor of shape (n, *shape)
            Gradients, of the kind of x.
        """
        if not isinstance(x, Tensor):
            return self.gradient(self._tensor(x), label).numpy()
        shifted = self.step(x, label)
        return (x - shifted) / self.scale.to(x).square()

    def step(self, x: Any, label: Any = None) -> Any:
        """Take one mean shift: to the mean of the prototypes, weighted by how near they are.

        Parameters
        ----------
        x : array or Tensor of shape (n, *shape)
            Points.
        label : label or array of shape (n,), optional
            Class whose prototypes count, as in `energy`.

        Returns
        -------
        array or Tensor of shape (n, *shape)
            The points after the step, of the kind of x.
        """
        if not isinstance(x, Tensor):
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
            Points.
        label : label or array of shape (n,), optional
            Class whose prototypes count, as in `energy`.
        n_steps : int, default=10
            Number of mean shifts.

        Returns
        -------
        array or Tensor of shape (n, *shape)
            The points after the steps, of the kind of x.
        """
        for _ in range(n_steps):
            x = self.step(x, label)
        return x

    def _spread(self) -> float:
        """Return the root of the mean variance of the prototypes' values; 1 where it is 0."""
        variance = self.prototypes.double().var(0, correction=0)
        return float(variance.mean().sqrt()) or 1.0

    def _tensor(self, x: Any) -> Tensor:
        """Read an array as a tensor of the prototypes' dtype."""
        return torch.as_tensor(np.asarray(x)).to(self.prototypes)

    def _similarity(self, x: Tensor, label: Any) -> Tensor:
        """Compute −β/2 ‖x − p‖² (n, K); −inf for prototypes of classes not asked for."""
        return -self.beta / 2 * self._squared(x, label)

    def _squared(self, x: Tensor, label: Any) -> Tensor:
        """Compute standardized squared distances (n, K); inf for classes not asked for."""
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
        if np.ndim(label) and len(label) != n:
            raise ValueError(f"label must be one, or one per row, {n}; got {len(label)}.")
        wanted: NDArray[Any] = np.broadcast_to(np.asarray(label), (n,))
        unknown = set(wanted.tolist()) - set(self.labels.tolist())
        if unknown:
            raise ValueError(f"label {sorted(unknown)[0]!r} has no prototype in this memory.")
        return torch.from_numpy(wanted[:, None] != self.labels)
