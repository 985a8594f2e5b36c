"""Several methods on the same instances: whether they can be compared, and a few lines on each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..engine.result import Counterfactuals, as_numpy
from ..metrics.metric import instance_shape
from ..metrics.table_rows import part_changes
from ..models.classifier import Array
from ..validation import brief
from .captions import changed_share
from .grammar import counted, shorten
from .pairs import changed_mask, pair
from .style import Look, look_of
from .words import (
    class_probability,
    column_of,
    instance_name,
    label_text,
    number_text,
    percent_text,
)


@dataclass(frozen=True)
class MethodAnswer:
    """One method's counterfactual of an instance.

    Parameters
    ----------
    name : str
        Name of the method.
    result : Counterfactuals
        Its result.
    i : int
        Row of the result.
    """

    name: str
    result: Counterfactuals
    i: int

    @property
    def x(self) -> Array:
        """The instance, series with their channel axis."""
        return pair(self.result, self.i)[0]

    @property
    def x_cf(self) -> Array:
        """The counterfactual, series with their channel axis."""
        return pair(self.result, self.i)[1]

    @property
    def changed(self) -> Array:
        """Mask of the values that changed."""
        return changed_mask(self.result, self.i)

    @property
    def valid(self) -> bool:
        """Whether the model puts it into the target class."""
        return bool(self.result.valid[self.i])

    @property
    def look(self) -> Look:
        """How it is drawn."""
        return look_of(self.result, self.i)


def check_same_instances(results: Mapping[str, Counterfactuals]) -> None:
    """Raise unless all results are of the same instances, by models with the same classes.

    Parameters
    ----------
    results : mapping of str to Counterfactuals
        By method.

    Raises
    ------
    ValueError
        With the names of two results that differ, and in what.
    """
    if not isinstance(results, Mapping) or not results:
        raise ValueError(
            f"results has to map names to Counterfactuals, at least one; got {brief(results)}."
        )
    for name, result in results.items():
        if not isinstance(name, str) or not isinstance(result, Counterfactuals):
            raise TypeError(
                f"results has to map names to Counterfactuals, got {brief(name)}: {brief(result)}."
            )
    (first_name, first), *others = results.items()
    for name, other in others:
        _check_pair(label_text(first_name), first, label_text(name), other)


def _check_pair(name: str, one: Counterfactuals, other_name: str, other: Counterfactuals) -> None:
    """Raise unless two results can be compared."""
    if other.modality != one.modality:
        raise ValueError(f"{name} holds {one.modality} data, {other_name} {other.modality} data.")
    if not np.array_equal(np.unique(one.source), np.unique(other.source)):
        raise ValueError(
            f"{name} and {other_name} answer for different rows of the input: "
            f"{_listed_rows(one.source)} and {_listed_rows(other.source)}."
        )
    mine = _instances(one)
    theirs = _instances(other)
    if mine.shape != theirs.shape or not np.array_equal(mine, theirs, equal_nan=True):
        raise ValueError(f"{name} and {other_name} answer for different instances: their X differ.")
    if not np.array_equal(one.classes, other.classes):
        raise ValueError(
            f"{name} and {other_name} answer for models of different classes: "
            f"{one.classes.tolist()!r:.80} and {other.classes.tolist()!r:.80}."
        )


def _instances(result: Counterfactuals) -> Array:
    """Return each input once, in the precision that all kinds of input keep."""
    _, first = np.unique(result.source, return_index=True)
    X = as_numpy(result.X)[first].astype(np.float32)
    return X.reshape(len(X), *instance_shape(result))


def _listed_rows(source: Array) -> str:
    """List rows of the input, shortened."""
    return shorten(", ".join(map(str, np.unique(source).tolist())), 60)


def answers_for(results: Mapping[str, Counterfactuals], source: int) -> list[MethodAnswer]:
    """Find each method's counterfactual of one input: the first valid one, or the first.

    Parameters
    ----------
    results : mapping of str to Counterfactuals
        By method.
    source : int
        Row of the input.

    Returns
    -------
    list of MethodAnswer
        One for each method, in order.

    Raises
    ------
    IndexError
        If there is none of this input.
    """
    answers = []
    for name, result in results.items():
        rows = np.flatnonzero(result.source == source)
        if len(rows) == 0:
            raise IndexError(
                f"No counterfactual of input {source}; "
                f"there are those of {_listed_rows(result.source)}."
            )
        best = int(np.argmax(result.valid[rows]))
        answers.append(MethodAnswer(name, result, int(rows[best])))
    return answers


def question_text(answers: list[MethodAnswer]) -> str:
    """Say what was asked, as far as all methods were asked the same.

    Parameters
    ----------
    answers : list of MethodAnswer
        Of one instance, at least one.
    """
    result = answers[0].result
    i = answers[0].i
    labels = {answer.result.labels[answer.i].item() for answer in answers}
    targets = {answer.result.target[answer.i].item() for answer in answers}
    text = instance_name(result, i)
    if len(labels) == 1:
        probability = class_probability(result.proba[i], column_of(result, result.labels[i]))
        text += f": {label_text(result.labels[i])} ({probability})"
    if len(targets) == 1:
        text += f", what would make it {label_text(result.target[i])}?"
    return text


def answer_lines(answer: MethodAnswer) -> list[str]:
    """Say what the model says now, how much changed, how far that is, and what it cost.

    Parameters
    ----------
    answer : MethodAnswer
        One method's counterfactual.
    """
    changed = answer.changed
    distance = float(np.linalg.norm(answer.x_cf - answer.x))
    if answer.result.table is not None:
        row = answer.result[answer.i]
        distance = float(np.linalg.norm(part_changes(row)))
        amount = counted(int(row.changed_parts.sum()), "column")
    elif answer.result.modality == "row":
        amount = counted(int(changed.sum()), "feature")
    elif answer.result.modality == "image":
        amount = f"{percent_text(changed_share(answer.result, answer.i))} of pixels visibly"
    else:
        amount = percent_text(float(changed.mean()))
    return [
        _verdict(answer),
        f"{amount} changed",
        f"l2 distance {number_text(distance)}",
        f"{number_text(answer.result.calls[answer.i])} model rows",
    ]


def _verdict(answer: MethodAnswer) -> str:
    """Say which class the counterfactual has, and whether it is the one asked for."""
    result = answer.result
    i = answer.i
    label = label_text(result.cf_labels[i], 14)
    if result.status[i] == "already_target":
        return f"already {label}"
    if np.isnan(result.cf_proba[i]).any():
        return "not reached: no answer"
    probability = class_probability(result.cf_proba[i], column_of(result, result.cf_labels[i]))
    start = "now" if answer.valid else "not reached:"
    return f"{start} {label} ({probability})"
