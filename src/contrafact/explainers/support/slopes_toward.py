"""First-order predictions of what a move toward a donor does to the lead of the target."""

from __future__ import annotations

import torch
from torch import Tensor

from ...engine import Tasks
from ...models.classifier import Classifier

#: a prediction is scaled up at most this much to agree with the donor's own lead
LARGEST_FACTOR = 5.0
#: share of the overall variance added to that of each value
VARIANCE_FLOOR = 0.05


def log_odds_gradient(classifier: Classifier, x: Tensor, target: Tensor) -> Tensor:
    """Return the gradient of log P(target) − log P(other classes) at x, of the shape of x."""
    x = x.detach().clone().requires_grad_(True)
    log_p = classifier.logits(x).log_softmax(1)
    own = log_p.gather(1, target[:, None])[:, 0]
    others = log_p.scatter(1, target[:, None], -torch.inf).logsumexp(1)
    (gradient,) = torch.autograd.grad((own - others).sum(), x)
    return gradient.detach()


def discriminant_slopes(X: Tensor, label: Tensor, n_classes: int) -> Tensor:
    """Return the direction that separates each pair of classes if values were independent.

        slope[a, b] = (mean of a − mean of b) / variance within classes

    Parameters
    ----------
    X : Tensor of shape (n, *shape)
        Reference rows.
    label : Tensor of int, shape (n,)
        Class of each.
    n_classes : int
        Number of classes; one without rows gets the mean of all.

    Returns
    -------
    Tensor of shape (n_classes, n_classes, *shape)
        Slopes from class b toward class a.
    """
    X = X.double()
    mean = X.mean(0, keepdim=True).repeat(n_classes, *[1] * (X.ndim - 1))
    for c in label.unique().tolist():
        mean[c] = X[label == c].mean(0)
    variance = (X - mean[label]).square().mean(0) + VARIANCE_FLOOR * X.var()
    tiny = torch.finfo(X.dtype).tiny
    return (mean[:, None] - mean) / variance.clamp_min(tiny)


def scaled_slopes(
    tasks: Tasks,
    donor: Tensor,
    slope: Tensor,
    donor_lead: Tensor,
    lead: Tensor,
) -> Tensor:
    """Scale slopes so that the whole way to a donor predicts the donor's own lead.

    Parameters
    ----------
    tasks : Tasks
        The instances.
    donor : Tensor of shape (n, donors, *shape)
        The donors of each.
    slope : Tensor of shape (n, donors, *shape)
        Derivative of the lead on the way to each.
    donor_lead : Tensor of shape (n, donors)
        Lead of the target at each donor.
    lead : Tensor of shape (n,)
        Lead of the target at the instances.

    Returns
    -------
    Tensor of float64, shape (n, donors, *shape)
        The slopes; where the first order predicts next to nothing, enlarged within limits.
    """
    way = (donor - tasks.x[:, None]).double()
    predicted = (slope.double() * way).flatten(2).sum(2)
    actual = (donor_lead - lead[:, None]).clamp_min(0.5)
    factor = actual / predicted.clamp_min(1e-9)
    factor = torch.where(predicted > 0, factor, LARGEST_FACTOR).clamp(max=LARGEST_FACTOR)
    return slope.double() * factor.view(*factor.shape, *[1] * (slope.ndim - 2))
