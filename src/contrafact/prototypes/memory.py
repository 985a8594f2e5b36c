"""PrototypeMemory: an energy that is low near prototypes: how plausible a point is, and the way back."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class PrototypeMemory:
    """An associative memory of points p (the modern Hopfield energy, in distances instead of products).

        E(x) = −β⁻¹ log Σ_p exp(−β/2 ‖x − p‖²),     ∇E(x) = x − Σ_p a_p p,     a = softmax(−β/2 ‖x − p‖²)

    Distances are standardized: differences are divided by `scale` first. The step x ← Σ_p a_p p is a
    mean shift, and never raises the energy.

    It serves as a plausibility metric (`energy`), as a term of an objective (it has gradients), and to bring
    a counterfactual back to the data (`project`).

    Parameters
    ----------
    prototypes : (K, *shape) points to remember.
    labels : (K,) their classes, to ask for one class only.
    beta : β, the sharpness: large asks for the nearest point, small for the mean of all.
    scale : a number, or one per value of an instance; default: the spread of the prototypes.

    Examples
    --------
    >>> memory = PrototypeMemory([[0.0, 0.0], [4.0, 0.0]], labels=["a", "b"], scale=1.0)
    >>> memory.project([[3.0, 0.5]]).round(1).tolist()
    [[4.0, 0.0]]
    """

    def __init__(
        self, prototypes: Any, labels: Any = None, *, beta: float = 1.0, scale: Any = None
    ) -> None:
        self.prototypes = torch.as_tensor(prototypes).detach().clone()
        if not self.prototypes.is_floating_point():
            self.prototypes = self.prototypes.double()
        if self.prototypes.ndim < 2 or len(self.prototypes) == 0:
            raise ValueError(
                f"prototypes must be (K, *shape) of at least one, got {self.prototypes.shape}."
            )
        self.labels = None if labels is None else np.asarray(labels)
        if self.labels is not None and len(self.labels) != len(self.prototypes):
            raise ValueError(
                f"labels must be one per prototype, {len(self.prototypes)}; got {len(labels)}."
            )
        if not beta > 0:
            raise ValueError(f"beta must be above 0, got {beta}.")
        self.beta = beta
        if scale is None:
            scale = float(self.prototypes.double().var(0, correction=0).mean().sqrt()) or 1.0
        self.scale = torch.as_tensor(scale, dtype=self.prototypes.dtype)
        if not bool((self.scale > 0).all()):
            raise ValueError(f"scale must be above 0, got {scale}.")

    def energy(self, x: Any, label: Any = None) -> Any:
        """E(x) per row, over all prototypes or those of one class (one label, or one per row)."""
        if not isinstance(x, Tensor):
            return self.energy(self._tensor(x), label).numpy()
        return (-self.beta / 2 * self._squared(x, label)).logsumexp(1) / -self.beta

    def gradient(self, x: Any, label: Any = None) -> Any:
        """∇E(x), in closed form."""
        if not isinstance(x, Tensor):
            return self.gradient(self._tensor(x), label).numpy()
        return (x - self.step(x, label)) / self.scale.to(x).square()

    def step(self, x: Any, label: Any = None) -> Any:
        """One mean shift: the mean of the prototypes, each weighted by how near it is."""
        if not isinstance(x, Tensor):
            return self.step(self._tensor(x), label).numpy()
        a = (-self.beta / 2 * self._squared(x, label)).softmax(1)
        return torch.tensordot(a, self.prototypes.to(x), 1)

    def project(self, x: Any, label: Any = None, n_steps: int = 10) -> Any:
        """Some mean shifts: toward the data that the memory knows."""
        for _ in range(n_steps):
            x = self.step(x, label)
        return x

    def _tensor(self, x: Any) -> Tensor:
        return torch.as_tensor(np.asarray(x)).to(self.prototypes)

    def _squared(self, x: Tensor, label: Any) -> Tensor:
        """(n, K) standardized squared distances; inf to prototypes of classes not asked for."""
        scale = self.scale.to(x)
        u, p = ((part / scale).flatten(1) for part in (x, self.prototypes.to(x)))
        center = p.mean(0)
        squared = torch.cdist(
            u - center, p - center, compute_mode="donot_use_mm_for_euclid_dist"
        ).square()
        if label is None:
            return squared
        if self.labels is None:
            raise ValueError("label can't be asked for: the memory was made without labels.")
        if np.ndim(label) and len(label) != len(x):
            raise ValueError(f"label must be one, or one per row, {len(x)}; got {len(label)}.")
        wanted: NDArray[Any] = np.broadcast_to(np.asarray(label), (len(x),))
        unknown = set(wanted.tolist()) - set(self.labels.tolist())
        if unknown:
            raise ValueError(f"label {sorted(unknown)[0]!r} has no prototype in this memory.")
        foreign = torch.from_numpy(wanted[:, None] != self.labels).to(x.device)
        return squared.masked_fill(foreign, torch.inf)
