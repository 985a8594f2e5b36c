"""Kohonen's rules: LVQ1 and LVQ 2.1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from typing_extensions import override

from ..validation import Real, Rule
from . import losses
from .gradient import GradientLVQ
from .gradient_rules import accept_old_names


@accept_old_names
@dataclass(eq=False, repr=False, kw_only=True)
class LVQ1(GradientLVQ):
    """Learn prototypes by Kohonen's first rule, LVQ1.

    The nearest prototype moves toward a row of its class and away from a row of any other:
    gradient descent on ±‖x − w‖² of the nearest prototype w.

    Parameters
    ----------
    n_prototypes : int or dict from label to int, default=1
        Prototypes per class.
    **options
        The options of `contrafact.prototypes.gradient.GradientLVQ`, by name.

    References
    ----------
    Kohonen: The self-organizing map. Proceedings of the IEEE 78, 1990.
    doi:10.1109/5.58325

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> LVQ1(n_prototypes=2, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    @override
    def _loss(
        self,
        d: Tensor,
        labels: Tensor,
        t: Tensor,
    ) -> Tensor:
        return losses.lvq1(d, losses.same_class(labels, t))


@accept_old_names
@dataclass(eq=False, repr=False, kw_only=True)
class LVQ21(GradientLVQ):
    """Learn prototypes by Kohonen's LVQ 2.1.

    For rows near the boundary the nearest prototype of the right class is drawn in and the
    nearest one of a wrong class is pushed away.

    Parameters
    ----------
    n_prototypes : int or dict from label to int, default=1
        Prototypes per class.
    window : float, default=0.3
        Which rows count: those with min(√(d⁺/d⁻), √(d⁻/d⁺)) > (1 − window)/(1 + window), where d⁺
        and d⁻ are the squared distances to the two prototypes; between 0 and 1.
    **options
        The options of `contrafact.prototypes.gradient.GradientLVQ`, by name.

    References
    ----------
    Kohonen: The self-organizing map. Proceedings of the IEEE 78, 1990.
    doi:10.1109/5.58325

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> LVQ21(n_prototypes=2, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    window: float = 0.3

    rules: ClassVar[Mapping[str, Rule]] = {"window": Real(above=0, below=1)}

    @override
    def _loss(
        self,
        d: Tensor,
        labels: Tensor,
        t: Tensor,
    ) -> Tensor:
        return losses.lvq21(d, losses.same_class(labels, t), self.window)
