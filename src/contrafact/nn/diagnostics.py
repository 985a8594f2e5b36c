"""Measure the spectrum of a model's features, beside its accuracy under attack."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from ..models.adapters import TorchClassifier, as_classifier
from ..models.classifier import Array, Classifier
from ..models.eval_mode import evaluating
from .reading import read_instances


@dataclass(frozen=True)
class SpectralReport:
    """Describe how the variance of features is spread over their principal components.

    Parameters
    ----------
    spectrum : array of shape (components,)
        Variances λ_1 >= λ_2 >= ... along the components.
    top_share : float
        λ_1 / Σ λ.
    pc_id : int
        Number of components that hold 90 % of the variance.
    """

    spectrum: Array
    top_share: float
    pc_id: int


def spectral_report(model: nn.Module | Classifier, X: ArrayLike | Tensor) -> SpectralReport:
    """Compute the spectrum of a network's features, the inputs of the last linear layer that runs.

    Parameters
    ----------
    model : torch.nn.Module or Classifier
        A torch module, or a classifier made of one.
    X : array-like of shape (n, ...)
        Instances.

    Returns
    -------
    SpectralReport
        The variances of the features along their principal components.

    Raises
    ------
    TypeError
        If the model is no torch module.
    ValueError
        If the module runs no linear layer, or the features do not vary.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 3))
    >>> _ = model[0].weight.data.copy_(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
    >>> report = spectral_report(model, [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> report.spectrum.round(3).tolist(), round(report.top_share, 3), report.pc_id
    ([2.0, 0.5], 0.8, 2)
    """
    classifier = as_classifier(model)
    if not isinstance(classifier, TorchClassifier):
        raise TypeError(f"model must be a torch module or a classifier made of one, got {model!r}.")
    x = classifier.as_input(read_instances(X, "X"))
    features = penultimate(classifier, x).double()
    if not features.square().sum().isfinite():
        raise ValueError(
            f"X must hold rows whose features have a finite variance, got features up to "
            f"{features.abs().max():.3g}."
        )
    scatter = scatter_spectrum(features).clamp(min=0)
    spectrum = scatter.cpu().numpy() / len(x)
    variance = spectrum.sum()
    if not variance > 0:
        raise ValueError(
            f"X must hold rows whose features differ, got {len(x)} of variance {variance}."
        )
    shares = spectrum / variance
    n_before_limit = int((shares.cumsum() < 0.9).sum())
    return SpectralReport(spectrum, float(shares[0]), n_before_limit + 1)


def penultimate(classifier: TorchClassifier, x: Tensor) -> Tensor:
    """Compute the inputs of the last linear layer that runs.

    Parameters
    ----------
    classifier : TorchClassifier
        A classifier made of a module.
    x : Tensor of shape (n, ...)
        Instances, as the module takes them.

    Returns
    -------
    Tensor of shape (n, features)
        The features; of a layer that runs at several places, (n, ..., features).
    """
    features: list[Tensor] = []
    with classifier.in_eval_mode.hooked() as module:
        layer = last_linear(module, x[:2])
        hook = layer.register_forward_pre_hook(lambda layer, inputs: features.append(inputs[0]))
        try:
            classifier.evaluate(x)
        finally:
            hook.remove()
    return torch.cat(features)


def last_linear(module: nn.Module, x: Tensor) -> nn.Linear:
    """Find the linear layer that runs last, wherever it was defined.

    Parameters
    ----------
    module : torch.nn.Module
        The module.
    x : Tensor of shape (n, ...)
        A few instances to run it on.

    Returns
    -------
    torch.nn.Linear
        The layer, a part of the module.

    Raises
    ------
    ValueError
        If no linear layer runs.
    """
    ran: list[nn.Linear] = []
    layers = [part for part in module.modules() if isinstance(part, nn.Linear)]
    hooks = [
        layer.register_forward_pre_hook(lambda layer, inputs: ran.append(layer)) for layer in layers
    ]
    try:
        with evaluating(module), torch.no_grad():
            module(x)
    finally:
        for hook in hooks:
            hook.remove()
    if not ran:
        raise ValueError(
            f"module {type(module).__name__} runs no nn.Linear, whose inputs would be the "
            "features; end it with one."
        )
    return ran[-1]


def scatter_spectrum(F: Tensor) -> Tensor:
    """Compute the eigenvalues of (F - mean)ᵀ(F - mean), not divided by the number of rows.

    Parameters
    ----------
    F : Tensor of shape (n, ...)
        Features of n rows; flattened.

    Returns
    -------
    Tensor of shape (min(n, features),)
        Eigenvalues, the largest first.
    """
    F = F.flatten(1)
    F = F - F.mean(0)
    # Both products have the same eigenvalues other than 0; the smaller one is cheaper.
    scatter = F.T @ F if F.shape[1] <= len(F) else F @ F.T
    eigenvalues: Tensor = torch.linalg.eigvalsh(scatter)
    return eigenvalues.flip(0)
