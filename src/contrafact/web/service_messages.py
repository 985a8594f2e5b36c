"""What programs send to the service and get back: the models behind its OpenAPI schema.

Instances are checked as arrays by `service_data`, since checking every number by itself is slow.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from ..engine import Constraints
from .explanation_merging import ExplainOptions

#: the most counterfactuals per instance
MAX_K = 16
#: a number, or nested lists of numbers with null where there is no limit
Values = float | list[Any] | None
Label = bool | int | float | str


class _Message(BaseModel):
    """Settings of all messages: unknown fields are refused, and numbers are finite."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, protected_namespaces=())


class LimitsMessage(_Message):
    """What a counterfactual may change, in the words of `contrafact.Constraints`."""

    lower: Values = Field(None, description="Lowest value: for all, per channel or per value.")
    upper: Values = Field(None, description="Highest value.")
    frozen: list[Any] | None = Field(
        None, description="True where nothing may change, in the shape of an instance; or names."
    )
    max_step: Values = Field(None, description="Series: largest step, for all or per channel.")
    bounds: dict[str, tuple[float | str | None, float | str | None]] | None = Field(
        None, description="Tables: lowest and highest value by column."
    )
    increasing: list[str] | None = Field(None, description="Tables: columns that may not fall.")
    decreasing: list[str] | None = Field(None, description="Tables: columns that may not rise.")
    max_changed: int | None = Field(
        None, ge=1, le=10**6, description="Tables: how many columns may change."
    )
    relations: list[str] | None = Field(
        None, max_length=100, description="Tables: comparisons to keep, 'age >= employed + 16'."
    )
    forbidden: dict[str, list[tuple[Label, Label]]] | None = Field(
        None, description="Tables: by column, which level may not become which."
    )

    def constraints(self) -> Constraints | None:
        """Make the constraints; None where nothing is limited."""
        given = {name: getattr(self, name) for name in type(self).model_fields}
        for name, nothing in (("lower", -np.inf), ("upper", np.inf), ("max_step", np.inf)):
            given[name] = _with_infinite(given[name], nothing, name)
        constraints = Constraints(**given)
        return constraints if constraints.kinds else None


def _with_infinite(value: Any, nothing: float, name: str) -> Any:
    """Return a limit as an array, in which null stands for no limit."""
    if not isinstance(value, list):
        return value
    try:
        array = np.asarray(value, dtype=object)
        return np.where(array == None, nothing, array).astype(np.float64)  # noqa: E711
    except (ValueError, TypeError, OverflowError):
        raise ValueError(
            f"limits.{name} must be a number or lists of numbers of equal lengths."
        ) from None


class PredictBody(_Message):
    """Instances to classify."""

    instances: list[Any] = Field(description="The instances.")


class ExplainSettings(_Message):
    """What is asked of a search besides instances."""

    target: Label | list[Label] | None = Field(
        None, description="The class wanted, or one per instance; null: the method's choice."
    )
    method: str | None = Field(
        None, max_length=60, description="Name of a method; null: what is recommended."
    )
    level: Literal["smallest", "steady", "lasting"] | None = Field(
        None, description="What answers of Graft have to withstand."
    )
    k: int = Field(1, ge=1, le=MAX_K, description="Different counterfactuals per instance.")
    confidence: float | None = Field(None, gt=0, lt=1, description="Least P(target) to aim for.")
    refine: bool | Literal["minimal", "believable"] = Field(
        False, description="Make changes smaller after the search."
    )
    limits: LimitsMessage | None = Field(None, description="What may change.")
    calls: int | None = Field(
        None, ge=1, le=10**9, description="Model rows for all instances together."
    )
    seconds: float | None = Field(None, gt=0, description="Seconds of the search.")
    seed: int = Field(0, ge=-(2**63), lt=2**63, description="Seed of all random numbers.")

    def options(self, max_seconds: float) -> ExplainOptions:
        """Make the options of `explain`; a search takes `max_seconds` where none are given."""
        limits = self.limits
        words = "" if limits is None else json.dumps(limits.model_dump(), sort_keys=True)
        return ExplainOptions(
            constraints=None if limits is None else limits.constraints(),
            words=words,
            k=self.k,
            confidence=self.confidence,
            refine=self.refine,
            calls=self.calls,
            seconds=self.seconds or max_seconds,
            seed=self.seed,
        )


class ExplainBody(ExplainSettings):
    """Instances to explain, and how."""

    instances: list[Any] = Field(description="The instances.")


class PredictAnswer(BaseModel):
    """What the model decides."""

    classes: list[Label]
    labels: list[Label]
    probabilities: list[list[float]]


class CounterfactualMessage(BaseModel):
    """One counterfactual."""

    source: int = Field(description="Which of the instances it belongs to, from 0.")
    valid: bool = Field(description="Whether the model decides for the target.")
    status: str
    message: str
    label: Label
    target: Label
    cf_label: Label
    probabilities: list[float | None]
    cf_probabilities: list[float | None]
    values: Any = Field(description="The counterfactual, in the form of an instance.")
    changed_fraction: float
    calls: int
    seconds: float


class ExplainAnswer(BaseModel):
    """The counterfactuals of all instances of a request."""

    method: str
    version: str
    classes: list[Label]
    counterfactuals: list[CounterfactualMessage]


class Metadata(BaseModel):
    """What the service answers for."""

    name: str
    version: str
    classes: list[Label]
    kind: str
    shape: list[int]
    columns: list[dict[str, Any]] | None
    methods: list[str]
    default_method: str
    limits: dict[str, float]


class ErrorMessage(BaseModel):
    """Why there is no answer."""

    error: str


class TensorMessage(BaseModel):
    """A named tensor of the V2 inference protocol."""

    model_config = ConfigDict(extra="ignore")

    name: str
    shape: list[int] = Field(min_length=1, max_length=8)
    datatype: Literal["BOOL", "INT8", "INT16", "INT32", "INT64", "FP32", "FP64", "BYTES"]
    data: list[Any] = Field(description="The values, flat or nested, row by row.")
    parameters: dict[str, Any] | None = None


class OutputName(BaseModel):
    """An output that is asked for."""

    model_config = ConfigDict(extra="ignore")

    name: str


class InferBody(BaseModel):
    """A request of the V2 inference protocol."""

    model_config = ConfigDict(extra="ignore")

    id: str | None = None
    inputs: list[TensorMessage] = Field(min_length=1)
    outputs: list[OutputName] | None = None
    parameters: dict[str, Any] | None = Field(
        None, description="For explanations: target, method, k, … as in /v1/explain."
    )


class InferAnswer(BaseModel):
    """An answer of the V2 inference protocol."""

    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[TensorMessage]


def targets_of(target: Any, n: int) -> tuple[Any, ...] | None:
    """Return one target per instance; None where the method chooses."""
    if target is None:
        return None
    if not isinstance(target, Sequence) or isinstance(target, str):
        return (target,) * n
    if len(target) != n:
        raise ValueError(f"target has {len(target)} labels for {n} instances.")
    return tuple(target)
