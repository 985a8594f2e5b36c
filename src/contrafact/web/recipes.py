"""Recipes: the command and the Python lines that give an explanation again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..engine import Constraints
from ..metrics.regions import runs
from ..models.classifier import Array
from .jobs import Question
from .methods import Methods
from .workspace import Workspace

#: parts of a command that describe frozen values; more are not readable any more
MOST_SPECS = 60
#: what the names in the Python lines stand for
GIVEN = (
    "model, X, reference and schema are what contrafact.explore was given: of a Dataset its test "
    "part, and the Dataset; without a reference, the data are the reference."
)
AS_READ = "model, X, reference and schema are what the command reads from its files."


@dataclass(frozen=True)
class Source:
    """Where the model and the data come from.

    Parameters
    ----------
    model, data : str
        Short words for the page.
    command : tuple of str, optional
        The words after `contrafact explain` that name model, data and how they are read; None
        where they come from Python.
    lines : tuple of str, default=()
        Python lines that define `model`, `X` and `reference`; none where they are the user's own.
    """

    model: str
    data: str
    command: tuple[str, ...] | None = None
    lines: tuple[str, ...] = ()


def recipe(
    workspace: Workspace, methods: Methods, source: Source, question: Question
) -> dict[str, str]:
    """Return command, Python lines and what else to know, to repeat an explanation.

    Parameters
    ----------
    workspace : Workspace
        What is explored.
    methods : Methods
        The methods.
    source : Source
        Where model and data come from.
    question : Question
        What was asked.

    Returns
    -------
    dict of str to str
        "command", empty where the command line cannot express the question; "python"; "note".
    """
    notes = []
    command = ""
    if question.edited or question.instance is None:
        notes.append(
            "The instance was edited on the page, so it is in no file: `edited` below is X of the "
            'exported arrays, contrafact.Counterfactuals.load("arrays.npz").X[:1]; of a table, '
            ".frame[:1]."
        )
    elif source.command is not None:
        words = _command(workspace, source.command, question)
        command = "" if words is None else shlex.join(words)
        if words is None:
            notes.append("The command line has no options for this question; Python has.")
    if not source.lines:
        notes.append(GIVEN if source.command is None else AS_READ)
    if question.budget is not None and question.budget.seconds is not None:
        notes.append("With a limit in seconds, a slower machine may find less.")
    return {
        "command": command,
        "python": _python(workspace, methods, source, question),
        "note": " ".join(notes),
    }


# --- Python


def _python(workspace: Workspace, methods: Methods, source: Source, question: Question) -> str:
    """Return lines whose `result` is the explanation."""
    explainer, options = methods.make(question.choice)
    arguments = ["model", _instance(question)]
    if question.target is not None:
        label = workspace.classes[question.target]
        arguments.append(f"target={label.item()!r}")
    arguments += ["reference=reference", f"method=cf.{explainer!r}".replace("\n", "")]
    arguments.append(f"modality={workspace.modality!r}")
    if workspace.schema_given:
        arguments.append("schema=schema")
    arguments += [f"{name}={value!r}" for name, value in options.items()]
    if question.constraints is not None:
        arguments.append(f"constraints={_constraints(question.constraints)}")
    if question.k > 1:
        arguments.append(f"k={question.k}")
    if question.budget is not None:
        limits = {"calls": question.budget.calls, "seconds": question.budget.seconds}
        given = [f"{name}={value!r}" for name, value in limits.items() if value is not None]
        arguments.append(f"budget=cf.Budget({', '.join(given)})")
    if question.confidence is not None:
        arguments.append(f"confidence={question.confidence!r}")
    lines = ["import numpy as np", "", "import contrafact as cf", "", *source.lines]
    inner = "".join(f"    {argument},\n" for argument in arguments)
    return "\n".join([*lines, f"result = cf.explain(\n{inner})"]) + "\n"


def _instance(question: Question) -> str:
    """Write how to get the instance."""
    i = question.instance
    if question.edited or i is None:
        return "edited"
    return f"X[{i}:{i + 1}]"


def _constraints(constraints: Constraints) -> str:
    """Write constraints as Python does."""
    given = [
        f"{name}={_literal(value)}"
        for name, value in vars(constraints).items()
        if value is not None
    ]
    return f"cf.Constraints({', '.join(given)})"


def _literal(value: Any) -> str:
    """Write a value such that Python reads the same one."""
    if not isinstance(value, np.ndarray):
        return repr(value)
    if value.dtype == bool:
        return _mask(value)
    text = repr(value.tolist()).replace("-inf", "-np.inf").replace(" inf", " np.inf")
    return f"np.array({text.replace('[inf', '[np.inf')})"


def _mask(mask: Array) -> str:
    """Write a mask by the numbers of its frozen values, as ranges of the flat array."""
    ranges = ", ".join(f"{start}:{stop}" for start, stop in runs(mask.reshape(-1)))
    chosen = f"np.isin(np.arange({mask.size}), np.r_[{ranges}])"
    return f"{chosen}.reshape{mask.shape}" if mask.ndim > 1 else chosen


# --- the command line


def _command(workspace: Workspace, given: Sequence[str], question: Question) -> list[str] | None:
    """Return the words of the command; None where it has no options for the question."""
    limits = _limit_words(workspace, question.constraints)
    choice = question.choice
    if limits is None or choice.front:
        return None
    words = ["contrafact", "explain", *given, "--rows", str(question.instance)]
    if question.target is not None:
        words.append(f"--target={workspace.classes[question.target]}")
    if choice.name is not None:
        words += ["--method", choice.name]
    if choice.level is not None:
        words += ["--level", choice.level]
    words += limits
    if question.k > 1:
        words += ["--k", str(question.k)]
    if question.confidence is not None:
        words += ["--confidence", repr(question.confidence)]
    if question.budget is not None and question.budget.calls is not None:
        words += ["--calls", str(question.budget.calls)]
    if question.budget is not None and question.budget.seconds is not None:
        words += ["--seconds", repr(question.budget.seconds)]
    return [*words, "--seed", "0"]


def _limit_words(workspace: Workspace, constraints: Constraints | None) -> list[str] | None:
    """Return the options that set the limits; None where there are none for them."""
    if constraints is None:
        return []
    words = _bound_words(workspace, constraints)
    if constraints.names_columns:
        words += [f"--freeze={name}" for name in constraints.frozen]
    elif constraints.frozen is not None:
        specs = _freeze_specs(workspace, constraints.frozen)
        if len(specs) > MOST_SPECS:
            return None
        words += [f"--freeze={spec}" for spec in specs]
    if constraints.max_step is not None:
        steps = np.unique(constraints.max_step)
        if len(steps) > 1:
            return None
        words += ["--max-step", repr(float(steps[0]))]
    words += [f"--increasing={name}" for name in constraints.increasing or ()]
    words += [f"--decreasing={name}" for name in constraints.decreasing or ()]
    if constraints.max_changed is not None:
        words += ["--max-changed", str(constraints.max_changed)]
    return words


def _bound_words(workspace: Workspace, constraints: Constraints) -> list[str]:
    """Return one --bounds for each channel or column that has bounds."""
    intervals: dict[str, tuple[Any, Any]] = dict(constraints.bounds or {})
    for name, infinite in (("lower", -np.inf), ("upper", np.inf)):
        bound = getattr(constraints, name)
        for j, value in enumerate([] if bound is None else bound.reshape(-1).tolist()):
            if value == infinite:
                continue
            part = _part_name(workspace, j)
            low, high = intervals.get(part, (None, None))
            intervals[part] = (value, high) if name == "lower" else (low, value)
    texts = {
        part: ":".join("" if end is None else str(end) for end in ends)
        for part, ends in intervals.items()
    }
    return [f"--bounds={part}={interval}" for part, interval in texts.items()]


def _part_name(workspace: Workspace, j: int) -> str:
    """Return what the command line calls channel or column j."""
    if workspace.names is not None:
        return workspace.names[j]
    return f"column {j}" if workspace.modality == "row" else f"ch {j}"


def _freeze_specs(workspace: Workspace, mask: Array) -> list[str]:
    """Return what --freeze calls the frozen values of an instance."""
    if mask.ndim == 1:
        return [f"{start}:{stop}" for start, stop in runs(mask)]
    if (mask == mask[:1]).all():
        return [text for _, text in _windows(mask[0])]
    return [
        f"{_part_name(workspace, j)}:{text}"
        for j in range(len(mask))
        for _, text in _windows(mask[j])
    ]


def _windows(mask: Array) -> list[tuple[int, str]]:
    """Return windows of time, or of lines and columns; equal lines that follow are one window."""
    if mask.ndim == 1:
        return [(start, f"{start}:{stop}") for start, stop in runs(mask)]
    found = []
    edges = [0, *(np.flatnonzero((mask[1:] != mask[:-1]).any(1)) + 1).tolist(), len(mask)]
    for first, last in pairwise(edges):
        for start, stop in runs(mask[first]):
            found.append((first, f"{first}:{last},{start}:{stop}"))
    return found
