"""Measure how robust a model is: accuracy under attack, and the spectrum of its features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from ..models.adapters import TorchClassifier, as_classifier
from ..models.class_labels import label_index
from ..models.classifier import Array, Classifier
from ..models.eval_mode import evaluating
from ..validation import check_parameters
from .attacks import ATTACK_RULES, Bounds, check_attack, log_odds, pgd
from .networks import seeded
from .option_rules import SEED, STEPS
from .reading import read, read_instances


def robust_accuracy(
    model: Any,
    X: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    norm: float = 2,
    eps: float = 0.5,
    *,
    steps: int = 20,
    restarts: int = 3,
    bounds: Bounds = (0.0, 1.0),
    random_state: int = 0,
) -> float:
    """Measure the share of rows that are classified correctly and withstand an attack.

    The attack is `pgd` on the log-odds against y. An attack that fails proves nothing, so this is
    an upper bound of the true share.

    Parameters
    ----------
    model : model
        Anything that `as_classifier` takes; it must be differentiable.
    X : array-like of shape (n, ...)
        Rows within the bounds.
    y : array-like of shape (n,)
        Their labels.
    norm : {2, inf}, default=2
        Norm of the ball around each row.
    eps : float, default=0.5
        Radius of the ball, in the units of X.
    steps : int, default=20
        Steps of the attack; more make it stronger.
    restarts : int, default=3
        Number of attacks; only rows that withstood one are attacked again.
    bounds : (float, float) or None, default=(0.0, 1.0)
        Smallest and largest value of an input; None: no limit.
    random_state : int, default=0
        Seed of the random starts; the global random state is neither read nor changed.

    Returns
    -------
    float
        Share from 0 to 1.

    Raises
    ------
    TypeError
        If the model is not differentiable.
    ValueError
        If data, labels or an option cannot be used.

    References
    ----------
    Madry, Makelov, Schmidt, Tsipras, Vladu: Towards deep learning models resistant to adversarial
    attacks. ICLR 2018. https://doi.org/10.48550/arXiv.1706.06083

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X, y)
    >>> [round(robust_accuracy(model, X, y, eps=eps, bounds=None), 2) for eps in (0.0, 0.25, 0.5)]
    [0.97, 0.91, 0.72]
    """
    rules = {**ATTACK_RULES, "restarts": STEPS, "random_state": SEED}
    given = {"norm": norm, "eps": eps, "steps": steps, "bounds": bounds}
    given |= {"restarts": restarts, "random_state": random_state}
    check_parameters("robust_accuracy", rules, given)
    classifier = as_classifier(model)
    if not classifier.differentiable:
        raise TypeError(
            f"model must be differentiable, got {getattr(model, 'model', model)!r}. Accepted: "
            "torch modules, and scikit-learn models made of linear, neural or scaling steps."
        )
    x, t = _read_labeled(classifier, X, y)
    check_attack(x, norm, eps, steps, bounds)
    robust = classifier.verdict(x).label == t
    with seeded(random_state):
        for _ in range(restarts):
            standing = robust.nonzero()[:, 0]
            if len(standing) == 0:
                break
            for rows in standing.split(classifier.internal_batch(x)):
                x_adv = pgd(
                    log_odds(classifier.logits, t[rows]),
                    x[rows],
                    norm=norm,
                    eps=eps,
                    steps=steps,
                    bounds=bounds,
                )
                robust[rows] = classifier.verdict(x_adv).label == t[rows]
    return robust.double().mean().item()


def _read_labeled(classifier: Classifier, X: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Convert rows to input of a classifier, and labels to indices of its classes."""
    X, labels = read(X, y, "X", "y")
    classifier.infer_classes(X, labels)
    if not np.isin(labels, classifier.classes).all():
        raise ValueError(
            f"y must hold classes of the model, {classifier.classes.tolist()}, "
            f"got {np.unique(labels).tolist()}."
        )
    x = classifier.as_input(X)
    t = label_index(labels, classifier.classes).to(x.device)
    return x, t


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
