"""The methods that the explorer offers, fitted once each."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from ..catalog import METHODS
from ..engine.constraints import TABLE_KINDS
from ..explainers import Graft, recommend
from ..explainers.graft import LEVELS
from ..explainers.registry import default_refinement, explainer_classes, find_explainer
from ..explainers.support.explainer import Explainer
from ..explainers.support.prototype_model import is_prototype_model
from .workspace import Workspace

#: limits that the page can express
LIMITS = ("bounds", "frozen", "max_step", "increasing", "decreasing", "max_changed")


@dataclass(frozen=True)
class MethodChoice:
    """What a client chose.

    Parameters
    ----------
    name : str, optional
        Name of a method; None: what is recommended.
    level : str, optional
        Of `Graft`.
    front : bool, default=False
        Whether alternatives lead from the smallest to the most believable.
    """

    name: str | None = None
    level: str | None = None
    front: bool = False


class Methods:
    """Offer the methods that suit a workspace, and keep those that were fitted.

    Parameters
    ----------
    workspace : Workspace
        Model and data.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        # By parameters: what is recommended and the same method by name are fitted once.
        self._fitted: dict[str, Explainer] = {}
        # One at a time: what is trained at fit seeds the random numbers of the process.
        self._fitting = threading.Lock()
        self.names = [name for name, cls in explainer_classes().items() if self._suits(cls)]

    def _suits(self, cls: type[Explainer]) -> bool:
        """Return whether a method takes the model and the data."""
        tags = cls.tags
        workspace = self._workspace
        if workspace.modality not in tags.modalities:
            return False
        if workspace.modality != "row" and workspace.shape[0] > 1 and not tags.multivariate:
            return False
        return not tags.prototype_model or is_prototype_model(workspace.model)

    def listed(self) -> list[dict[str, Any]]:
        """Return what the page shows of each method."""
        does = {entry.method: entry.does for entry in METHODS}
        recommended = type(self._recommended().method).__name__
        is_table = self._workspace.kind == "table"
        kinds = [kind for kind in LIMITS if is_table or kind not in TABLE_KINDS]
        if self._workspace.modality != "series":
            kinds.remove("max_step")
        return [
            {
                "name": name,
                "does": does.get(name, ""),
                "default": name == recommended,
                "limits": [kind for kind in kinds if kind in find_explainer(name).tags.constraints],
                "levels": list(LEVELS) if name == Graft.__name__ else None,
            }
            for name in self.names
        ]

    def _recommended(self) -> Any:
        return recommend(self._workspace.model, self._workspace.modality)

    def make(self, choice: MethodChoice) -> tuple[Explainer, dict[str, Any]]:
        """Make a method that is not fitted, and its options for `explain`.

        Raises
        ------
        ValueError
            If there is no such method here, or it has no levels.
        """
        if choice.name is None:
            recommendation = self._recommended()
            explainer, options = recommendation.method, dict(recommendation.options)
        elif choice.name in self.names:
            explainer = find_explainer(choice.name)()
            options = {"refine": default_refinement(explainer, self._workspace.modality)}
        else:
            raise ValueError(f"method must be one of {', '.join(self.names)}.")
        if not isinstance(explainer, Graft):
            if choice.level is not None:
                raise ValueError(f"{type(explainer).__name__} has no levels; Graft has.")
            return explainer, options
        if choice.level is not None and choice.level not in LEVELS:
            raise ValueError(f"level must be one of {', '.join(LEVELS)}.")
        if choice.level is not None:
            explainer.set_params(level=choice.level)
        if choice.front:
            explainer.set_params(spread="front")
        return explainer, options

    def is_fitted(self, choice: MethodChoice) -> bool:
        """Return whether a method is ready."""
        return repr(self.make(choice)[0]) in self._fitted

    def fitted(self, choice: MethodChoice) -> Explainer:
        """Return a fitted method; it is fitted at the first request, and others wait for it."""
        explainer, _ = self.make(choice)
        key = repr(explainer)
        if key in self._fitted:
            return self._fitted[key]
        with self._fitting:
            if key not in self._fitted:
                workspace = self._workspace
                explainer.fit(
                    workspace.model,
                    workspace.X_reference,
                    workspace.y_reference,
                    modality=workspace.modality,
                    schema=workspace.schema,
                )
                self._fitted[key] = explainer
            return self._fitted[key]
