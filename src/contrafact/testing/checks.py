"""Define what a check is: a named property, and the kinds of model it has to be seen with."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ..explainers.support.explainer import Explainer
from .case_models import MODELS, PROTOTYPE_MODELS
from .cases import Case

Scope = Literal["every_model", "two_models", "one_model", "network"]

#: Kinds of model of each scope.
MODELS_OF_SCOPE: dict[Scope, tuple[str, ...]] = {
    "every_model": MODELS + PROTOTYPE_MODELS,
    "two_models": ("torch", "forest"),
    "one_model": ("linear",),
    "network": ("torch",),
}
#: The same of two models on tables, where there are no networks.
TWO_MODELS_OF_TABLES = ("linear", "forest")


@dataclass(frozen=True)
class Check:
    """Test one property that every explainer must have.

    Parameters
    ----------
    scope : {"every_model", "two_models", "one_model", "network"}
        Kinds of model it runs on: all of them; one with exact gradients and one without any; a
        linear model; a network.
    function : function of an explainer and a case
        Raises an AssertionError where the property does not hold. The first line of its docstring
        says what must hold.
    tables : bool, default=False
        Whether it runs on tables, and on nothing else.

    Examples
    --------
    >>> from contrafact.testing import CHECKS
    >>> CHECKS["pickle"].summary
    'Check that a pickled copy of a fitted explainer gives the same counterfactuals.'
    """

    scope: Scope
    function: Callable[[Explainer, Case], None]
    tables: bool = False

    def __call__(self, explainer: Explainer, case: Case) -> None:
        """Run the check on an unfitted explainer."""
        self.function(explainer, case)

    @property
    def name(self) -> str:
        """Name of the check: the function's, without its prefix."""
        return self.function.__name__.removeprefix("check_")

    @property
    def summary(self) -> str:
        """What must hold, in one line."""
        text = inspect.getdoc(self.function) or ""
        return text.partition("\n")[0]

    def models(self, available: tuple[str, ...]) -> tuple[str, ...]:
        """Choose the kinds of model to run on.

        Parameters
        ----------
        available : tuple of str
            Kinds to choose from.

        Returns
        -------
        tuple of str
            Those of the scope; where there are none, the first available one.
        """
        wanted = MODELS_OF_SCOPE[self.scope]
        if self.tables and self.scope == "two_models":
            wanted = TWO_MODELS_OF_TABLES
        chosen = tuple(kind for kind in available if kind in wanted)
        return chosen or available[:1]


def check(
    scope: Scope, *, tables: bool = False
) -> Callable[[Callable[[Explainer, Case], None]], Check]:
    """Turn a function into a check.

    Parameters
    ----------
    scope : {"every_model", "two_models", "one_model", "network"}
        Kinds of model the check runs on.
    tables : bool, default=False
        Whether it runs on tables, and on nothing else.

    Returns
    -------
    decorator
        Makes a `Check` of a function of an explainer and a case.
    """

    def decorate(function: Callable[[Explainer, Case], None]) -> Check:
        return Check(scope, function, tables)

    return decorate
