"""What each task carries besides the tensors it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from torch import Tensor

from ..models.classifier import Array, Classifier
from ..models.verdict import Verdict
from ..tables import TableSpace
from .instances import Modality
from .limits import Limits
from .oracle import Oracle
from .table_limits import TableLimits


class CarriedValues:
    """Look up what belongs to some tasks; a base of `Tasks`.

    Attributes
    ----------
    oracle : Oracle
        The request.
    row : Tensor of shape (n,)
        Instance each task belongs to.
    goal : Tensor of shape (n,)
        Least P(target) to reach.
    x : Tensor of shape (n, *shape)
        The instances.
    attached : mapping of str to Tensor
        More values per task.
    """

    if TYPE_CHECKING:
        oracle: Oracle
        row: Tensor
        goal: Tensor
        x: Tensor
        attached: Mapping[str, Tensor]

    def __getitem__(self, name: str) -> Tensor:
        """Return what was attached under a name."""
        return self.attached[name]

    @cached_property
    def before(self) -> Verdict:
        """What the model says of the instances."""
        return self.oracle.question.before[self.row]

    @property
    def label(self) -> Tensor:
        """The model's class of the instances, (n,)."""
        return self.before.label

    @cached_property
    def seed(self) -> Array:
        """The seed of each instance, (n,)."""
        seeds: Array = self.oracle.question.seeds[self.row.cpu().numpy()]
        return seeds

    @property
    def guide(self) -> Tensor:
        """The point of the target class each task moves toward, (n, *shape)."""
        return self.attached["guide"]

    @property
    def guide_index(self) -> Tensor:
        """The number of the guide among the reference rows, clusters or prototypes, (n,)."""
        return self.attached["guide_index"]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one instance."""
        return tuple(self.x.shape[1:])

    @property
    def space(self) -> TableSpace | None:
        """Coordinates of the table that the instances are rows of; None for arrays."""
        return self.oracle.question.space

    @property
    def modality(self) -> Modality:
        """Kind of data: "series", "image" or "row"."""
        return self.oracle.question.modality

    @property
    def classifier(self) -> Classifier:
        """The model, for what it is; ask it through the tasks."""
        return self.oracle.classifier

    @property
    def feasible_set(self) -> Limits | None:
        """The limits on candidates, one for each task; None where there are none."""
        limits = self.oracle.feasible_set
        if limits is None:
            return None
        limits = limits.take(self.row)
        if self.space is None:
            return limits
        assert isinstance(limits, TableLimits)
        if "lowest" in self.attached:
            limits = limits.within(self.attached["lowest"], self.attached["highest"])
        kept = self.attached.get("kept_parts")
        return limits if kept is None else limits.keeping(kept)

    @property
    def is_narrowed(self) -> bool:
        """Whether a search leaves more as it is than the request asks for."""
        return "kept_parts" in self.attached or "lowest" in self.attached

    @property
    def confidence(self) -> float | None:
        """The goal as one number, None where the decision alone is asked for."""
        goal = float(self.goal.max()) if len(self.goal) else 0.0
        return goal or None
