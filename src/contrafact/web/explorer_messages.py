"""What clients of the explorer may send."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

#: most alternatives of one explanation, most model rows and seconds it may cost
MAX_K = 8
MAX_CALLS = 20_000
MAX_SECONDS = 600.0


class Message(BaseModel):
    """Base of messages: unknown names are refused, and numbers have to be finite."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class PredictMessage(Message):
    """Ask for the probabilities of one instance."""

    values: list[Any]
    tag: int = 0


class ProfileMessage(Message):
    """Ask for the probabilities along one column."""

    values: list[Any]
    column: int = Field(ge=0)


class LimitsMessage(Message):
    """What a counterfactual may not do; lists have one entry per channel or column."""

    frozen: list[Any] | None = None
    lower: list[float | None] | None = None
    upper: list[float | None] | None = None
    max_step: list[float | None] | None = None
    increasing: list[str] = []
    decreasing: list[str] = []
    max_changed: int | None = Field(default=None, ge=1)


class ExplainMessage(Message):
    """Ask for counterfactuals of one instance, as it is or edited."""

    instance: int | None = Field(default=None, ge=0)
    values: list[Any] | None = None
    target: int | None = Field(default=None, ge=0)
    method: str | None = None
    level: str | None = None
    k: int = Field(default=1, ge=1, le=MAX_K)
    confidence: float | None = Field(default=None, gt=0, lt=1)
    calls: int | None = Field(default=None, ge=1, le=MAX_CALLS)
    seconds: float | None = Field(default=None, gt=0, le=MAX_SECONDS)
    front: bool = False
    limits: LimitsMessage = LimitsMessage()


class WhyMessage(Message):
    """Ask why an alternative is not smaller."""

    alternative: int = Field(default=0, ge=0)
