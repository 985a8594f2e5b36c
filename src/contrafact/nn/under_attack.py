"""Measure accuracy under attack, in one norm and in several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ..models.adapters import as_classifier
from ..models.class_labels import label_index
from ..models.classifier import Classifier
from ..validation import Rule, check_parameters
from .attacks import ATTACK_RULES, NORMS, RADII, Bounds, check_attack, log_odds, pgd, radii_of
from .networks import seeded
from .option_rules import SEED, STEPS
from .reading import read


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
    norm : float, default=2
        Norm of the ball around each row, from 1 to inf.
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
    attack = Attack(norm, eps, steps, restarts, bounds, random_state)
    check_parameters("robust_accuracy", attack.rules, vars(attack))
    classifier, x, t = _read_differentiable(model, X, y)
    return attack.withstood(classifier, x, t).double().mean().item()


@dataclass(frozen=True)
class RobustReport:
    """Robust accuracy in several norms.

    Parameters
    ----------
    accuracy : float
        Share of rows that are classified correctly.
    eps : dict of float to float
        Radius of each norm's ball.
    robust_accuracy : dict of float to float
        Share of rows that are right and withstand the attack in each norm.
    worst : float
        Share of rows that are right and withstand the attacks in all norms (the union of the
        balls).
    """

    accuracy: float
    eps: dict[float, float]
    robust_accuracy: dict[float, float]
    worst: float


def robust_report(
    model: Any,
    X: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    norms: Sequence[float] = (1, 2, math.inf),
    eps: float | Sequence[float] = 0.5,
    *,
    steps: int = 20,
    restarts: int = 3,
    bounds: Bounds = (0.0, 1.0),
    random_state: int = 0,
) -> RobustReport:
    """Measure robust accuracy in several norms, and in the worst of them.

    Parameters
    ----------
    model, X, y : model and two array-likes
        As in `robust_accuracy`.
    norms : sequence of float, default=(1, 2, inf)
        Norms of the balls around each row, from 1 to inf.
    eps : float or sequence of float, default=0.5
        One radius for each norm, or one number, the l2 radius: a linear model with random weights
        loses as much in the other balls.
    steps, restarts : int, default=20 and 3
        In each norm, as in `robust_accuracy`.
    bounds : (float, float) or None, default=(0.0, 1.0)
        As in `robust_accuracy`.
    random_state : int, default=0
        As in `robust_accuracy`.

    Returns
    -------
    RobustReport
        Accuracy without attack, with the attack of each norm, and with the worst of them.

    Raises
    ------
    TypeError
        If the model is not differentiable.
    ValueError
        If data, labels or an option cannot be used.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X, y)
    >>> report = robust_report(model, X, y, (1, 2), eps=(0.5, 0.4), bounds=None)
    >>> {norm: round(share, 2) for norm, share in report.robust_accuracy.items()}
    {1: 0.83, 2: 0.79}
    >>> round(report.worst, 2)
    0.79
    """
    rules = {"norms": NORMS, "eps": ATTACK_RULES["eps"] | RADII}
    check_parameters("robust_report", rules, {"norms": norms, "eps": eps})
    classifier, x, t = _read_differentiable(model, X, y)
    radii = radii_of(norms, eps, x)
    withstood = {}
    for norm, radius in zip(norms, radii, strict=True):
        attack = Attack(norm, radius, steps, restarts, bounds, random_state)
        check_parameters("robust_report", attack.rules, vars(attack))
        withstood[norm] = attack.withstood(classifier, x, t)
    everywhere = torch.stack(list(withstood.values())).all(0)
    return RobustReport(
        accuracy=(classifier.verdict(x).label == t).double().mean().item(),
        eps=dict(zip(norms, radii, strict=True)),
        robust_accuracy={norm: rows.double().mean().item() for norm, rows in withstood.items()},
        worst=everywhere.double().mean().item(),
    )


@dataclass(frozen=True)
class Attack:
    """Attack rows several times; the options are those of `robust_accuracy`."""

    norm: float
    eps: float
    steps: int
    restarts: int
    bounds: Bounds
    random_state: int

    rules: ClassVar[dict[str, Rule]] = {**ATTACK_RULES, "restarts": STEPS, "random_state": SEED}

    def withstood(self, classifier: Classifier, x: Tensor, t: Tensor) -> Tensor:
        """Return which rows are classified correctly and withstand all attacks."""
        check_attack(x, self.norm, self.eps, self.steps, self.bounds)
        robust = classifier.verdict(x).label == t
        with seeded(self.random_state):
            for _ in range(self.restarts):
                standing = robust.nonzero()[:, 0]
                if len(standing) == 0:
                    break
                for rows in standing.split(classifier.internal_batch(x)):
                    x_adv = pgd(
                        log_odds(classifier.logits, t[rows]),
                        x[rows],
                        norm=self.norm,
                        eps=self.eps,
                        steps=self.steps,
                        bounds=self.bounds,
                    )
                    robust[rows] = classifier.verdict(x_adv).label == t[rows]
        return robust


def _read_differentiable(model: Any, X: Any, y: Any) -> tuple[Classifier, Tensor, Tensor]:
    """Wrap a model and read labeled rows for it; refuse a model without gradients."""
    classifier = as_classifier(model)
    if not classifier.differentiable:
        raise TypeError(
            f"model must be differentiable, got {getattr(model, 'model', model)!r}. Accepted: "
            "torch modules, and scikit-learn models made of linear, neural or scaling steps."
        )
    return classifier, *_read_labeled(classifier, X, y)


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
