"""Is a model robust enough to explain? Its accuracy under attack, and the spectrum of its features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from ..models.adapters import TorchClassifier, evaluating, label_index
from ..models.classifier import Array, Classifier, as_classifier
from .attacks import Bounds, check_attack, log_odds, pgd
from .networks import seeded
from .training import read


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
    """Share of rows that the model gets right and that no attack within eps was found to change.

    The attack is `pgd` on the log-odds against y. That it finds nothing proves nothing: this is an upper
    bound of the true share.

    Parameters
    ----------
    model : Classifier, or what `as_classifier` takes; it must be differentiable.
    X, y : rows within the bounds, and their labels.
    norm, eps : 2 or inf, and the radius of the ball around each row.
    steps, restarts : of the attack; more make it stronger. Rows that withstand one are attacked again.
    bounds : smallest and largest value of an input; None: no limit.
    random_state : of the random starts; the global random state is neither read nor changed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X, y)
    >>> [round(robust_accuracy(model, X, y, eps=eps, bounds=None), 2) for eps in (0.0, 0.25, 0.5)]
    [0.97, 0.91, 0.72]
    """
    classifier = as_classifier(model)
    if not classifier.differentiable:
        raise TypeError(
            f"model must be differentiable, got {getattr(model, 'model', model)!r}. Accepted: torch modules, "
            "and scikit-learn models made of linear, neural or scaling steps."
        )
    X, labels = read(X, y, "X", "y")
    classifier.infer_classes(X, labels)
    if not np.isin(labels, classifier.classes).all():
        raise ValueError(
            f"y must hold classes of the model, {classifier.classes.tolist()}, "
            f"got {np.unique(labels).tolist()}."
        )
    x = classifier.as_input(X)
    check_attack(x, norm, eps, steps, bounds)
    if restarts < 1:
        raise ValueError(f"restarts must be at least 1, got {restarts}.")
    t = label_index(labels, classifier.classes).to(x.device)
    robust = classifier.verdict(x).label == t
    with seeded(random_state):
        for _ in range(restarts):
            standing = robust.nonzero()[:, 0]
            if len(standing) == 0:
                break
            for rows in standing.split(classifier.internal_batch(x)):
                loss = log_odds(classifier.logits, t[rows])
                x_adv = pgd(loss, x[rows], norm=norm, eps=eps, steps=steps, bounds=bounds)
                robust[rows] = classifier.verdict(x_adv).label == t[rows]
    return robust.double().mean().item()


@dataclass(frozen=True)
class SpectralReport:
    """How the variance of a model's features is spread over their principal components.

    spectrum : variances λ_1 >= λ_2 >= … along the components.
    top_share : λ_1 / Σ λ.
    pc_id : how many components hold 90 % of the variance.
    """

    spectrum: Array
    top_share: float
    pc_id: int


def spectral_report(model: nn.Module | Classifier, X: ArrayLike | Tensor) -> SpectralReport:
    """Spectrum of the features: the inputs of the last linear layer that runs.

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
    x = classifier.as_input(X if isinstance(X, Tensor) else np.asarray(X))
    features: list[Tensor] = []
    layer = last_linear(classifier.module, x[:2])
    hook = layer.register_forward_pre_hook(lambda layer, inputs: features.append(inputs[0]))
    try:
        classifier.evaluate(x)
    finally:
        hook.remove()
    spectrum = scatter_spectrum(torch.cat(features).double()).clamp(min=0).cpu().numpy() / len(x)
    if not spectrum.sum() > 0:
        raise ValueError(
            f"X must hold rows whose features differ, got {len(x)} of variance {spectrum.sum()}."
        )
    shares = spectrum / spectrum.sum()
    return SpectralReport(spectrum, float(shares[0]), int((shares.cumsum() < 0.9).sum()) + 1)


def last_linear(module: nn.Module, x: Tensor) -> nn.Linear:
    """The linear layer that runs last, wherever it was defined."""
    ran: list[nn.Linear] = []
    layers = [m for m in module.modules() if isinstance(m, nn.Linear)]
    hooks = [m.register_forward_pre_hook(lambda layer, inputs: ran.append(layer)) for m in layers]
    try:
        with evaluating(module), torch.no_grad():
            module(x)
    finally:
        for hook in hooks:
            hook.remove()
    if not ran:
        raise ValueError(
            f"module {type(module).__name__} runs no nn.Linear, whose inputs would be the features; "
            "end it with one."
        )
    return ran[-1]


def scatter_spectrum(F: Tensor) -> Tensor:
    """Eigenvalues of (F - mean)ᵀ(F - mean), not divided by the number of rows; largest first."""
    F = F.flatten(1)
    F = F - F.mean(0)
    # Both products have the same eigenvalues other than 0; the smaller one is cheaper.
    scatter = F.T @ F if F.shape[1] <= len(F) else F @ F.T
    eigenvalues: Tensor = torch.linalg.eigvalsh(scatter)
    return eigenvalues.flip(0)
